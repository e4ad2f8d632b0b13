"""`sqlrun plan` predicts what the next build does: edited, new and removed models."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from sqlrun.cli.main import main
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.errors import UsageError
from sqlrun.events import Note
from sqlrun.operations.maintenance import vacuum_held
from sqlrun.operations.verify import verify
from sqlrun.plan.diff import Edit, as_json, edits, messages
from sqlrun.plan.plan import tick_plan
from sqlrun.storage.lock import hold
from tests.support.projects import Site, copy_project, prepared
from tests.support.script import FIVE, START, order
from tests.support.whole import differences

pytestmark = pytest.mark.slow
SLOTS = "models/facts/fct_restaurant_slots"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One tick over two orders."""
    made = Site(copy_project(tmp_path_factory.mktemp("built")), DuckDBEngine())
    made.write("0.jsonl", [order("1", START - FIVE, restaurant="r9001"), order("2", START - FIVE, restaurant="r9002")])
    assert made.tick(START).published
    return made.root


@pytest.fixture
def site(built: Path, tmp_path: Path) -> Site:
    return Site(shutil.copytree(built, tmp_path / "site"), DuckDBEngine())


def edit(site: Site, *changes: tuple[str, str, str]) -> None:
    for name, old, new in changes:
        text = (site.root / name).read_text()
        assert old in text
        (site.root / name).write_text(text.replace(old, new))
    site.prepared = prepared(site.root)


def largest(site: Site) -> None:
    """Give a fact another column, in between, which needs a more expensive strategy."""
    column = '      - {name: largest, data_type: "decimal(18,2)", description: "Of them.", unit: "EUR", nulls: false}\n'
    edit(
        site,
        (f"{SLOTS}.sql", "count(*) as n_orders,", "count(*) as n_orders, max(order_total) as largest,"),
        (f"{SLOTS}.yml", "      - {name: total_sales,", f"{column}      - {{name: total_sales,"),
        (f"{SLOTS}.yml", "at_worst: merge", "at_worst: keys"),
    )


def planned(site: Site, *select: str, refresh: bool = False) -> dict[str, Edit]:
    names = select or tuple(n for n in site.prepared.graph.order if not n.startswith("source:"))
    history = site.ledger.read()
    plan = tick_plan(
        site.prepared.workspace, site.warehouse, history.published, history.last_tick + 1, START, names, refresh
    )
    return {found.name: found for found in edits(site.prepared.workspace, plan)}


def fates(found: dict[str, Edit]) -> dict[str, str]:
    return {name: edit.fate for name, edit in found.items() if edit.fate != "untouched"}


def test_before_the_first_tick_everything_is_new(tmp_path: Path) -> None:
    site = Site(copy_project(tmp_path), DuckDBEngine())

    found = planned(site)

    assert {edit.fate for edit in found.values()} == {"new"}
    assert found["stg_order_events"].reads == ("orders.events",)
    assert messages(found.values(), None, {})[0] == "Nothing is published yet; the next build builds everything."


def test_nothing_edited_is_nothing_rebuilt(site: Site) -> None:
    assert fates(planned(site)) == {}
    assert messages(planned(site).values(), site.ledger.read().published, {})[-1].startswith("Nothing was edited")


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        (f"{SLOTS}.yml", "How many orders:", "How many orders there were:"),
        (f"{SLOTS}.sql", "with orders as (", "-- Orders that count.\nwith   orders as ("),
    ],
)
def test_comments_and_formatting_rebuild_nothing(site: Site, name: str, old: str, new: str) -> None:
    edit(site, (name, old, new))

    assert fates(planned(site)) == {}


def test_an_edited_model_and_its_readers_are_rebuilt(site: Site) -> None:
    largest(site)

    found = planned(site)

    assert fates(found) == dict.fromkeys(
        ("fct_restaurant_slots", "fct_restaurant_hours", "restaurant_windows"), "rebuilt"
    )
    assert found["fct_restaurant_slots"].why == "its query, columns or layout were edited"
    assert found["fct_restaurant_slots"].columns == ("+ largest decimal(18,2)",)
    assert "fct_restaurant_slots" in found["restaurant_windows"].why
    assert site.tick(START + FIVE).published
    assert fates(planned(site)) == {}
    assert differences(site, START + FIVE) == {}


def test_a_reader_that_takes_the_same_columns_is_rebuilt_for_its_input_alone(site: Site) -> None:
    edit(site, (f"{SLOTS}.sql", "where not is_cancelled", "where not is_cancelled and order_total > 0"))

    found = planned(site)

    assert found["fct_restaurant_hours"].why == "it reads fct_restaurant_slots, which is rebuilt"


def test_an_edited_seed_has_new_rows(site: Site) -> None:
    edit(site, ("seeds/restaurants.csv", "Golden Lantern", "Silver Lantern"))

    assert fates(planned(site)) == {"restaurants": "new rows"}


def test_a_full_refresh_is_reported(site: Site) -> None:
    found = planned(site, "fct_restaurant_hours", refresh=True)

    assert found["fct_restaurant_hours"].why == "--full-refresh"


def test_a_removed_model_leaves_what_is_published(site: Site) -> None:
    for folder, kind in (("models", "sql"), ("models", "yml"), ("expectations", "yml")):
        (site.root / folder / "marts" / f"restaurant_customers.{kind}").unlink()
    exposures = site.root / "models" / "marts" / "_exposures.yml"
    text = exposures.read_text().replace("      - ref('restaurant_customers')\n", "")
    exposures.write_text(re.sub(r"          - column: n_customers\n.*?(?=        lists:)", "", text, flags=re.DOTALL))
    site.prepared = prepared(site.root)

    assert fates(planned(site)) == {"restaurant_customers": "gone"}

    assert site.tick(START + FIVE).published
    removed = "No longer a table of the project: restaurant_customers. This tick drops it; earlier ticks keep it."
    assert [event for event in site.events if isinstance(event, Note)] == [Note(removed, is_news=True)]
    published, before = site.ledger.read().published, site.ledger.published(1)
    assert published is not None
    assert before is not None
    assert not [name for name in published.tables if name.startswith("restaurant_customers")]
    assert "restaurant_customers" in before.tables
    site.events.clear()
    assert site.tick(START + 2 * FIVE).published
    assert not any(isinstance(event, Note) for event in site.events)


def test_a_selection_without_an_edited_input_is_refused(site: Site) -> None:
    """The input's table no longer matches the project."""
    largest(site)

    found = planned(site, "stg_orders")
    assert found["fct_restaurant_slots"].why == "edited; readers keep the built table"
    for attempt in (
        lambda: site.tick(START + FIVE, ("restaurant_windows",)),
        lambda: planned(site, "restaurant_windows"),
    ):
        with pytest.raises(
            UsageError, match=r"reads fct_restaurant_slots, which was edited .* --select \+restaurant_windows"
        ):
            attempt()
    assert site.ledger.read().last_tick == 1


def test_text_and_json_have_the_tables_read(site: Site) -> None:
    largest(site)
    found, published = planned(site), site.ledger.read().published
    rows = {"stg_orders": 2, "fct_restaurant_slots": 2}

    lines = messages(found.values(), published, rows)
    tables = {table["name"]: table for table in as_json(found.values(), published, rows)["tables"]}

    assert lines[0] == f"Compared with tick 1, as_of {START:%Y-%m-%d %H:%M} UTC:"
    assert any(line.endswith("were edited; reads stg_orders, about 2 rows") for line in lines)
    assert tables["fct_restaurant_slots"]["rows_read"] == 2
    assert tables["restaurant_windows"]["rows_read"] is None


def test_the_command_reads_the_profile_s_warehouse(site: Site) -> None:
    edit(site, ("profiles/duckdb.yml", "warehouse/duckdb", "warehouse"), (f"{SLOTS}.sql", "not is_cancelled", "true"))

    done = CliRunner().invoke(main, ["--project-dir", str(site.root), "plan", "--profile", "duckdb"])

    assert done.exit_code == 0, done.output
    assert (
        "rebuilt  fct_restaurant_slots  its query, columns or layout were edited; reads stg_orders, about 2 rows"
        in done.output
    )
    assert site.ledger.read().last_tick == 1


def verified(site: Site, *names: str) -> dict[str, bool]:
    published = site.ledger.read().published
    assert published is not None
    wanted = names or tuple(model.name for model in site.prepared.workspace.tables)
    return {v.model: v.ok for v in verify(site.prepared.workspace, site.warehouse, published, wanted, 3)}


def test_a_rebuilt_table_is_not_an_edit_of_its_readers(site: Site) -> None:
    """Each is correct for the files that it read, which are retained; the next build that includes it rebuilds it."""
    name = SLOTS.rpartition("/")[2]
    assert site.tick(START + FIVE, (name,), refresh=True).published

    found = planned(site)

    said = {edit.name: edit.why for edit in found.values() if edit.fate == "rebuilt"}
    assert said and set(said.values()) == {f"it reads {name}, rebuilt since"}
    assert not any("edited" in edit.why or "refresh" in edit.why for edit in found.values())
    assert said.keys() <= verified(site).keys() and all(verified(site).values())
    with hold(site.warehouse, START + FIVE, None) as holder:
        vacuum_held(site.ledger, 1, START + FIVE, holder, lambda _: None)
    assert all(verified(site).values())
    assert site.tick(START + 2 * FIVE).published
    assert {edit.fate for edit in planned(site).values()} == {"untouched"}
    assert all(verified(site).values())


def test_changes_that_are_not_edits_rebuild_nothing(site: Site) -> None:
    """A moved folder, a comment, a rollback, another environment: none rebuilds a table."""
    before = site.everything()
    assert site.tick(START + FIVE).published
    (site.root / "models" / "other").mkdir()
    for ending in (".sql", ".yml"):
        (site.root / f"{SLOTS}{ending}").rename(site.root / "models" / "other" / f"fct_restaurant_slots{ending}")
    expectations = site.root / "expectations" / "facts" / "fct_restaurant_slots.yml"
    if expectations.exists():
        (site.root / "expectations" / "other").mkdir()
        expectations.rename(site.root / "expectations" / "other" / expectations.name)
    edit(site, ("models/other/fct_restaurant_slots.sql", "select", "-- the same\nselect"))
    assert {edit.fate for edit in planned(site).values()} == {"untouched"}
    assert all(verified(site).values()) and before.keys() == site.everything().keys()


def test_a_reader_of_an_edited_model_is_not_edited_itself(site: Site) -> None:
    largest(site)
    name = SLOTS.rpartition("/")[2]
    with pytest.raises(UsageError, match=f"{name} was edited since tick 1"):
        verified(site, name)
    with pytest.raises(UsageError, match=f"restaurant_windows reads {name}, which was edited after"):
        verified(site, "restaurant_windows")


@pytest.mark.long
def test_new_input_is_pending_until_a_build_takes_it_in(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of sources, and quarantined lines that a user asked to replay."""

    def run(*arguments: str) -> str:
        done = CliRunner().invoke(main, [*arguments, "--profile", "duckdb"])
        assert done.exit_code == 0, done.output
        return done.output

    monkeypatch.chdir(site.root)
    assert run("plan").endswith("Pending input:\n\n  orders.events  1 new file (0.jsonl)\n")
    for _ in range(2):
        said = run("build", "--skip-tests", "--as-of", f"{START:%Y-%m-%dT%H:%M}")
    assert "Nothing new: tick 2 published" in said and said.count("\n") == 1
    assert run("diff", "stg_orders") == (
        "No difference: stg_orders has the same rows at tick 1, as_of 2026-03-10 12:00 UTC, and at tick 2, "
        "as_of 2026-03-10 12:00 UTC.\n"
    )
    assert run("diff", "stg_orders", "--output", "json") == "[]\n"
    assert run("plan").endswith("Nothing was edited.\n\nNo new input is pending.\n")
    for name in ("1", "2", "3", "4"):
        site.write(f"{name}.jsonl", [order(name, START)])
    site.write("5.jsonl", ["{"])
    pending = "  orders.events  5 new files (1.jsonl, 2.jsonl, 3.jsonl and 2 more)\n"
    assert run("plan").endswith(f"Pending input:\n\n{pending}")
    assert "Pending" not in run("plan", "--json") and "Pending" not in run("plan", "--select", "restaurant_windows")

    run("build", "--skip-tests", "--as-of", f"{START + FIVE:%Y-%m-%dT%H:%M}")
    assert run("plan").endswith("No new input is pending.\n")
    run("quarantine", "replay", "stg_order_events", "--all")
    assert run("plan").endswith("Pending input:\n\n  orders.events  1 quarantined line to replay\n")
