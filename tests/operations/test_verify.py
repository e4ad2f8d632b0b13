"""`sqlrun verify` passes correct tables, and finds wrong, missing and duplicate rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable

from sqlrun.errors import UsageError
from sqlrun.operations.outcome_lines import verdict as verdict_lines
from sqlrun.operations.verify import Verdict, verify
from sqlrun.publish.table_state import Published
from tests.support.projects import Site
from tests.support.script import FIVE, START, order, site_of_orders

pytestmark = pytest.mark.slow
TABLES = {
    "stg_orders",
    "fct_restaurant_slots",
    "fct_restaurant_dish_slots",
    "fct_restaurant_hours",
    "restaurant_windows",
    "restaurant_customers",
}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    made = site_of_orders(tmp_path, 19)
    made.tick(START)
    made.write("1.jsonl", [order("3", START - 3 * FIVE, version=2, restaurant="r9001"), order("30", START)])
    made.tick(START + FIVE)
    return made


def published(site: Site, tick: int | None = None) -> Published:
    found = site.ledger.published(tick) if tick else site.ledger.read().published
    assert found is not None
    return found


def verdicts(site: Site, given: Published) -> dict[str, Verdict]:
    names = tuple(m.name for m in site.prepared.workspace.tables)
    return {v.model: v for v in verify(site.prepared.workspace, site.warehouse, given, names, 5)}


def tampered(site: Site, table: str, change: str) -> Published:
    """Change a table behind sqlrun's back, and point the ledger at that version."""
    now = published(site)
    state = now.tables[table]
    delta = DeltaTable(f"{site.warehouse}/{state.path}")
    match change:
        case "wrong":
            delta.update(updates={"n_orders": "n_orders + 1"}, predicate="n_orders > 0")
        case "missing":
            delta.delete()
    return replace(now, tables={**now.tables, table: replace(state, version=delta.version())})


def test_correct_tables_pass(site: Site) -> None:
    found = verdicts(site, published(site))

    assert set(found) == TABLES
    assert all(v.ok for v in found.values())
    assert found["stg_orders"].rows == 20


def test_an_old_tick_is_verified_at_its_own_time(site: Site) -> None:
    found = verdicts(site, published(site, 1))

    assert all(v.ok for v in found.values())
    assert found["stg_orders"].rows == 19


def test_a_partial_tick_is_verified_at_each_tables_own_inputs(site: Site) -> None:
    site.write("2.jsonl", [order("40", START + FIVE)])
    site.tick(START + 2 * FIVE, select=("stg_order_events", "stg_orders"))

    assert all(v.ok for v in verdicts(site, published(site)).values())


def test_wrong_rows_are_found_only_in_their_table(site: Site) -> None:
    found = verdicts(site, tampered(site, "fct_restaurant_slots", "wrong"))

    bad = found.pop("fct_restaurant_slots")
    assert (bad.wrong, bad.missing) == (bad.rows, bad.rows)
    assert {row["change"] for row in bad.samples} == {"-", "+"}
    assert all(v.ok for v in found.values())
    lines = [str(line) for line in verdict_lines(bad)]
    assert "FAIL fct_restaurant_slots" in lines[0]
    assert len(lines) > 3


def test_missing_rows_are_found(site: Site) -> None:
    bad = verdicts(site, tampered(site, "restaurant_windows", "missing"))["restaurant_windows"]

    assert (bad.rows, bad.wrong) == (0, 0)
    assert bad.missing > 0


def test_an_edited_model_is_not_compared_with_its_old_table(site: Site) -> None:
    model = next(site.root.rglob("fct_restaurant_slots.sql"))
    model.write_text(model.read_text().replace("not is_cancelled", "is_cancelled"))

    with pytest.raises(UsageError, match="was edited since tick 2"):
        verdicts(Site(site.root, site.engine), published(site))


def test_a_table_that_an_old_tick_lacks_can_be_left_out(site: Site) -> None:
    """A build adds the table to a newer tick alone."""
    now = published(site)
    before = replace(now, tables={name: now.tables[name] for name in now.tables if name != "restaurant_customers"})

    with pytest.raises(UsageError, match=r"tick 2 has no table `restaurant_customers`.*--exclude restaurant_customers"):
        verdicts(site, before)
