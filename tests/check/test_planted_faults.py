"""A fault of each kind, planted in the restaurants' dashboard: caught at the right table, with the right outcome.

Meanwhile readers see the last good tick; after the fix they see what plain Python computes from the lines.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sqlrun.cli.main import main
from sqlrun.events import CheckResult, Measure, TickResult
from sqlrun.expectations.catalogue import VOLUME
from sqlrun.system_tables import measures
from tests.support import oracle
from tests.support.projects import Site
from tests.support.script import FIVE, START, mart, order, site_of_orders
from tests.support.whole import differences

pytestmark = pytest.mark.slow

EVENTS, ORDERS, WINDOWS = "stg_order_events", "stg_orders", "restaurant_windows"
LATER = START + FIVE
GOOD = [order("90", LATER - FIVE / 2), order("91", LATER - FIVE / 2, restaurant="r9002")]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """Return a site with twelve published orders of three restaurants."""
    made = site_of_orders(tmp_path, 12)
    (made.root / "profiles" / "duckdb.yml").write_text("engine: duckdb\nwarehouse: warehouse\n")
    assert made.tick(START).published
    return made


def edit(site: Site, file: str, old: str, new: str) -> Site:
    """Edit the project as an analyst does, and read it again."""
    path = site.root / file
    text = path.read_text()
    assert old in text, file
    path.write_text(text.replace(old, new, 1))
    return Site(site.root, site.engine)


def caught(result: TickResult, model: str, *kinds: str) -> CheckResult:
    """Return the only check that didn't pass; it is of that table and that type."""
    (found,) = [check for check in result.checks if check.status in ("fail", "error", "warn")]
    assert (found.model, found.type) in [(model, kind) for kind in kinds]
    return found


def is_right(site: Site, tick: int) -> None:
    """Compare with plain Python over every line that ever arrived, and with each table's whole query."""
    as_of = START + tick * FIVE
    lines = oracle.read_lines(sorted(site.orders.glob("*.jsonl")))
    assert mart(site) == oracle.mart(lines, as_of)
    assert differences(site, as_of) == {}


def quarantined_by_reason(site: Site) -> dict[str, int]:
    """Return the number of quarantined lines by reason."""
    return dict(Counter(str(row["_quarantine_reason"]) for row in quarantine(site)))


def quarantine(site: Site) -> list[dict[str, Any]]:
    found = run(site, "show", f"{EVENTS}__quarantine", "--json")
    rows: list[dict[str, Any]] = json.loads(found)
    return rows


def run(site: Site, *words: str) -> str:
    done = CliRunner().invoke(main, ["--project-dir", str(site.root), *words, "--profile", "duckdb"])
    assert done.exit_code == 0, done.output
    return done.output


def broken_line(**fields: Any) -> str:
    """Return an order with some fields replaced."""
    return json.dumps({**json.loads(order("80", LATER - FIVE / 2)), **fields})


LINES = {
    "a null key": (broken_line(event_id=None), "event_id"),
    "a null key of the order": (broken_line(order_id=None), "order_id"),
    "a negative amount": (order("80", LATER, items=(("d001", 1, "-5.00"),)), "no dish costs less than nothing"),
    "a changed type": (broken_line(version="one"), "version"),
    "a changed shape": (broken_line(items={"dish_id": "d001"}), "not a JSON object"),
    "an unknown word": (broken_line(status="refunded"), "four states of an order"),
}


@pytest.mark.parametrize("fault", LINES)
def test_a_broken_line_is_quarantined_with_its_reason(site: Site, fault: str) -> None:
    """The tick continues without it: the dashboard is correct for all other lines."""
    line, reason = LINES[fault]
    site.write("1.jsonl", [line, *GOOD])

    result = site.tick(LATER)

    assert result.published
    ((said, count),) = next(node for node in result.nodes if node.name == EVENTS).reasons
    assert reason in said
    assert count == 1
    is_right(site, 1)


def test_lines_with_a_new_value_are_accepted_after_the_rule_is_fixed(site: Site) -> None:
    """Replayed once, as ordinary late lines: the dashboard is as if they had always been valid."""
    site.write("1.jsonl", [broken_line(status="refunded"), *GOOD])
    assert site.tick(LATER).published
    without = mart(site)
    fixed = edit(site, f"expectations/staging/orders/{EVENTS}.yml", "delivered]", "delivered, refunded]")
    run(fixed, "quarantine", "replay", EVENTS, "--all")

    assert fixed.tick(START + 2 * FIVE).published

    known = [line.replace("refunded", "delivered") for line in oracle.read_lines(sorted(site.orders.glob("*.jsonl")))]
    assert mart(fixed) == oracle.mart(known, START + 2 * FIVE) != without
    assert differences(fixed, START + 2 * FIVE) == {}
    assert fixed.tick(START + 3 * FIVE).published and mart(fixed) == oracle.mart(known, START + 3 * FIVE)


def repeated_key(site: Site) -> Site:
    """Edit a model so that it ignores that only the newest event counts."""
    edit(site, f"models/staging/orders/{ORDERS}.yml", "at_worst: merge", "at_worst: keys")
    return edit(site, f"models/staging/orders/{ORDERS}.sql", ") = 1", ") <= 2")


def repaired_key(site: Site) -> Site:
    return edit(site, f"models/staging/orders/{ORDERS}.sql", ") <= 2", ") = 1")


def unknown_restaurant(site: Site) -> Site:
    """Declare a relationship to the list of restaurants, of which one is missing."""
    rows = "".join(f"r900{n},Test {n},Lisbon,EUR,Europe/Lisbon\n" for n in range(3))
    path = site.root / "seeds" / "restaurants.csv"
    path.write_text(path.read_text() + rows)
    test = "data_tests: [{relationships: {to: ref('restaurants'), field: restaurant_id}}], nulls: false}"
    file = f"models/staging/orders/{ORDERS}.yml"
    old = 'description: "The restaurant that cooks, like r0001.", '
    edited = edit(site, file, f"{old}nulls: false}}", old + test)
    edited.write("2.jsonl", [order("70", LATER - FIVE / 2, restaurant="r9777")])
    return edited


def known_restaurant(site: Site) -> Site:
    path = site.root / "seeds" / "restaurants.csv"
    path.write_text(path.read_text() + "r9777,Test 777,Lisbon,EUR,Europe/Lisbon\n")
    return Site(site.root, site.engine)


BREACH = """
  - type: expect_table_row_count_to_be_between
    kwargs: {max_value: 9}
    description: Three restaurants in three windows.
"""


def breach_of_a_table(site: Site) -> Site:
    """Add a rule about all rows together, and a fourth restaurant."""
    path = site.root / "expectations" / "marts" / f"{WINDOWS}.yml"
    path.write_text(path.read_text() + BREACH)
    made = Site(site.root, site.engine)
    made.write("2.jsonl", [order("70", LATER - FIVE / 2, restaurant="r9777")])
    return made


def wider_rule(site: Site) -> Site:
    return edit(site, f"expectations/marts/{WINDOWS}.yml", "max_value: 9}", "max_value: 12}")


def too_much_quarantined(site: Site) -> Site:
    """Break half of a tick's lines: no such tick is better than the last one."""
    path = site.root / "expectations" / "staging" / "orders" / f"{EVENTS}.yml"
    path.write_text("max_quarantined: 10%\n" + path.read_text())
    made = Site(site.root, site.engine)
    made.write("2.jsonl", ["{cut", "{off"])
    return made


def discarded(site: Site) -> Site:
    run(site, "quarantine", "discard", EVENTS, "--all", "--because", "cut off by the sender")
    return site


def stale_source(site: Site) -> Site:
    """Send nothing for an hour, which the contract forbids."""
    file = f"models/staging/orders/{EVENTS}.yml"
    return edit(
        site,
        file,
        "    event_time: ordered_at\n",
        "    event_time: ordered_at\n    freshness: {error_after: 1 minute}\n",
    )


def fresh_source(site: Site) -> Site:
    site.write("3.jsonl", [order("71", START + 2 * FIVE)])
    return site


def half_the_volume(site: Site) -> Site:
    """Declare a volume of eight lines in these five minutes, as last week; three will arrive."""
    before = Measure(EVENTS, "rows", 8.0, None, FIVE.total_seconds())
    for ago in (LATER, START + 2 * FIVE):
        past = TickResult(0, ago - timedelta(weeks=1), True, 1.0, (), (), (before,))
        measures.write(site.warehouse, past, ago)
    file = f"expectations/staging/orders/{EVENTS}.yml"
    edited = edit(site, file, "weeks: 2\n    severity: warning", "weeks: 1\n    severity: critical")
    return edit(
        edited, file, "on_fail: warn\n    description: With little", "on_fail: fail\n    description: With little"
    )


def the_rest(site: Site) -> Site:
    """Send the missing lines: sixteen lines are usual in ten minutes."""
    site.write("2.jsonl", [order(f"7{n}", LATER - FIVE / 2) for n in range(8)])
    return site


UNIQUE = "expect_column_values_to_be_unique"
FAULTS: dict[str, tuple[Callable[[Site], Site], Callable[[Site], Site], str, str]] = {
    "a repeated key": (repeated_key, repaired_key, ORDERS, UNIQUE),
    "an unknown restaurant": (unknown_restaurant, known_restaurant, ORDERS, "relationships"),
    "a breach of a whole table": (breach_of_a_table, wider_rule, WINDOWS, "expect_table_row_count_to_be_between"),
    "too much set aside": (too_much_quarantined, discarded, EVENTS, "max_quarantined"),
    "half the volume": (half_the_volume, the_rest, EVENTS, VOLUME),
    "a stale source": (stale_source, fresh_source, EVENTS, "freshness"),
}


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS)
def test_a_critical_fault_is_never_published_and_disappears_after_the_fix(site: Site, fault: str) -> None:
    plant, fix, model, kind = FAULTS[fault]
    before = mart(site)
    planted = plant(site)
    planted.write("1.jsonl", [order("1", START - FIVE, 2, "updated"), *GOOD])

    failed = planted.tick(LATER)

    assert not failed.published
    assert caught(failed, model, kind).status == "fail"
    assert mart(planted) == before
    fixed = fix(planted)
    assert fixed.tick(START + 2 * FIVE).published
    is_right(fixed, 2)


@pytest.mark.long
def test_half_the_usual_volume_is_reported(tmp_path: Path) -> None:
    """There is no rule; the dashboard is correct for the lines that arrived, so it is published."""
    made = site_of_orders(tmp_path, 1)
    for tick in range(9):
        at = START + tick * FIVE
        count = 400 if tick < 8 else 200
        made.write(f"{tick + 1}.jsonl", [order(f"{tick}-{n}", at, restaurant=f"r900{n % 3}") for n in range(count)])
        result = made.tick(at)
        assert result.published
        measures.write(made.warehouse, result, at)

    found = caught(result, EVENTS, "volume")

    assert found.status == "warn" and "200 rows" in found.message, found.message
    is_right(made, 8)
