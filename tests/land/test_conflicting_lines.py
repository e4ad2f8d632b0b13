"""Lines of one key and version with different content: the winner depends on the set of lines, not on their order."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.events import TickResult
from sqlrun.maintain import changed_rows
from tests.support import broken, whole
from tests.support.projects import Site, copy_project
from tests.support.script import FIVE, START, order

pytestmark = pytest.mark.slow
# All are the first version of one order, so of one event.
CONFLICTS = (
    order("1", START),
    order("1", START, status="delivered"),
    order("1", START, items=(("d001", 2, "10.00"), ("d002", 1, "1.00"))),
)


def notes(result: TickResult) -> list[tuple[str, int, tuple[str, ...]]]:
    return [(c.status, c.unexpected, c.samples) for c in result.checks if c.type == "repeats"]


@pytest.mark.parametrize("held", [changed_rows.LARGE, 1])
def test_users_are_warned_in_the_tick_of_the_conflict(
    tmp_path: Path, held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether both lines land in one tick or the second much later; copies and older conflicts aren't reported.

    `held`: the most changed rows that are held in memory.
    """
    monkeypatch.setattr(changed_rows, "LARGE", held)
    site = Site(copy_project(tmp_path), DuckDBEngine())
    plays = (
        ([CONFLICTS[0], CONFLICTS[0], order("2", START)], 0),
        ([order("2", START), order("4", START)], 0),
        ([CONFLICTS[1], order("5", START)], 1),
        ([order("2", START, version=2), order("6", START)], 0),
        ([order("3", START), order("3", START, status="delivered"), order("2", START, status="delivered")], 2),
    )
    for number, (lines, conflicts) in enumerate(plays):
        site.write(f"{number}.jsonl", lines)
        found = notes(site.tick(START + (number + 1) * FIVE))
        assert [(status, count) for status, count, _ in found] == ([("warn", conflicts)] if conflicts else [])
        assert all("event_id=" in sample for _, _, samples in found for sample in samples)


SOURCES = """\
sources:
  - name: shops
    tables:
      - name: sales
        path: data/orders
        columns:
          - {name: id, data_type: int, description: The sale., nulls: false}
          - {name: shop, data_type: string, description: Who sold.}
"""


def test_keys_are_reported_in_their_own_order(tmp_path: Path) -> None:
    """Numbers as numbers, whether the other line is older or of the same tick."""
    (tmp_path / "data" / "orders").mkdir(parents=True)
    files = {
        "models/_sources.yml": SOURCES,
        "models/stg.sql": "select id, shop from {{ source('shops', 'sales') }}\n",
        "models/stg.yml": broken.contract("stg", "id int", "shop string", extra="    grain: [id]\n    repeats: true"),
    }
    site = Site(broken.write(tmp_path, files), DuckDBEngine())
    site.write("0.jsonl", [json.dumps({"id": each, "shop": "a"}) for each in (9, 11)])
    assert notes(site.tick(START)) == []
    lines = [(9, "b"), (10, "a"), (10, "b"), (11, "a"), (12, "a")]
    site.write("1.jsonl", [json.dumps({"id": each, "shop": shop}) for each, shop in lines])

    ((_, count, samples),) = notes(site.tick(START + FIVE))

    assert count == 2 and [sample.partition(",")[0] for sample in samples] == ["id=9", "id=10"]


def landed_orders(folder: Path, ticks: list[list[str]]) -> list[dict[str, object]]:
    """Land the lines tick by tick and return the resulting orders; each table equals its own query run in full."""
    folder.mkdir()
    site = Site(copy_project(folder), DuckDBEngine())
    for number, lines in enumerate(ticks):
        site.write(f"{number}.jsonl", [*lines, order(f"2{number}", START)])
        as_of = START + (number + 1) * FIVE
        site.tick(as_of)
        assert whole.differences(site, as_of) == {}
    return [row for row in site.rows("stg_orders") if row["order_id"] == "x1"]


@pytest.mark.long
def test_the_winner_does_not_depend_on_arrival(tmp_path: Path) -> None:
    ways = [[[line] for line in some] for some in itertools.permutations(CONFLICTS)][::2]
    ways += [[list(CONFLICTS)], [list(CONFLICTS[1:]), [CONFLICTS[0]]]]
    found = [landed_orders(tmp_path / str(number), way) for number, way in enumerate(ways)]

    assert len(found[0]) == 1
    assert all(each == found[0] for each in found)
    assert found[0][0]["status"] == "placed"  # `placed` comes after `delivered`, and two lines after one
    assert len(found[0][0]["items"]) == 2  # type: ignore[arg-type]


def test_exact_copies_and_higher_versions_are_as_before(tmp_path: Path) -> None:
    higher = order("1", START, version=2, status="cancelled")
    (row,) = landed_orders(tmp_path / "a", [[CONFLICTS[0], CONFLICTS[0]], [higher], [CONFLICTS[1]]])
    assert row["order_version"] == 2 and row["is_cancelled"]
