"""The way to update a table in a tick, the sizes that decide it, and the limit on rows read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sqlrun.engine_api import StoredColumn, TableSpec
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.incremental.stages import Method, Stage
from sqlrun.plan import strategy_cost
from sqlrun.report.console import Console
from sqlrun.system_tables import receipts
from sqlrun.transpile.refusals import Reason
from tests.support.projects import Site, copy_project
from tests.support.script import FIVE, START, order, site_of_orders
from tests.support.whole import differences


def stage(method: Method) -> Stage:
    return Stage("v", "v", "merge", method, Reason("SR541", ""), (), None, ())


def test_few_rows_are_never_compared() -> None:
    """Below the rows that one second can read, the fixed cost dominates, and it is the same for both ways."""
    facts = strategy_cost.Facts(changed=strategy_cost.FEW // 10, inputs=1, own=1)

    assert strategy_cost.choose(stage("additive"), facts).way == "change"


def test_the_whole_query_wins_where_most_rows_changed() -> None:
    few, most = strategy_cost.Facts(30_000, 1_000_000, 10), strategy_cost.Facts(900_000, 1_000_000, 10)

    assert strategy_cost.choose(stage("keys"), few) == strategy_cost.Choice("change", 180_000, 1_000_010)
    assert strategy_cost.choose(stage("keys"), most) == strategy_cost.Choice("whole", 5_400_000, 1_000_010)


def test_run_stats_predict_what_a_change_reads() -> None:
    """The measured reads of past ticks override the default if they are lower."""
    cheap = strategy_cost.Facts(900_000, 1_000_000, 10, amplification=1.1)

    assert strategy_cost.choose(stage("keys"), cheap).way == "change"


def test_rows_of_opened_files_do_not_count_against_a_change() -> None:
    """Past ticks opened every file for a few of its rows. The whole query would compute with all of them."""
    opened = strategy_cost.Facts(19_422, 4_200_000, 477_000, amplification=265.0)

    assert strategy_cost.choose(stage("keys"), opened) == strategy_cost.Choice("change", 116_532, 4_677_000)


@pytest.mark.slow
def test_a_few_changed_keys_in_every_file_stay_incremental(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run stats of ticks that open every file make no later tick recompute a table."""
    monkeypatch.setattr(strategy_cost, "FEW", 1)
    site = site_of_orders(tmp_path)
    site.write("more.jsonl", [order(f"m{n}", START - FIVE, restaurant=f"r{n}") for n in range(200)])
    receipts.write(site.warehouse, site.tick(START), "duckdb", START)
    chosen = []
    for n in range(1, 4):
        as_of = START + n * FIVE
        site.write(f"{n}.jsonl", [order(f"n{n}-{k}", as_of - FIVE, restaurant=f"r{k}") for k in range(n)])
        result = site.tick(as_of)
        receipts.write(site.warehouse, result, "duckdb", as_of)
        chosen += [
            (s.strategy, s.reason) for node in result.nodes for s in node.stages if s.table == "restaurant_windows"
        ]

    assert [strategy for strategy, _ in chosen] == ["keys"] * 3
    assert differences(site, START + 3 * FIVE) == {}


def test_an_append_only_table_has_no_choice() -> None:
    assert [strategy_cost.has_choice(stage(m)) for m in ("land", "append", "full", "newest")] == [
        False,
        False,
        False,
        True,
    ]


@pytest.mark.slow
def test_inputs_are_counted_only_where_they_can_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counting would read back what the tick has just committed, and delay the table."""
    monkeypatch.setattr(strategy_cost, "FEW", 1)
    site = site_of_orders(tmp_path)
    site.write("more.jsonl", [order(f"m{n}", START - FIVE) for n in range(20)])
    site.tick(START)
    counted: list[str] = []
    really = delta_table.rows_at

    def rows_at(path: str, version: int) -> int:
        counted.append(Path(path).parent.name)
        return really(path, version)

    monkeypatch.setattr(delta_table, "rows_at", rows_at)
    site.write("1.jsonl", [order("1", START - FIVE, version=2, status="cancelled", restaurant="r9001")])
    site.tick(START + FIVE)

    assert "stg_orders" in counted
    assert "stg_order_events" not in counted


@pytest.mark.slow
def test_commits_count_their_rows(tmp_path: Path) -> None:
    """Appends by added rows, merges by inserted, updated and deleted rows."""
    site = site_of_orders(tmp_path)
    site.tick(START)
    site.write("1.jsonl", [order("1", START - FIVE, version=2, status="cancelled", restaurant="r9001")])
    result = site.tick(START + FIVE)

    read = {s.table: s.rows_in for node in result.nodes for s in node.stages}
    assert (read["stg_orders"], read["fct_restaurant_slots"]) == (1, 1)


@pytest.mark.slow
def test_a_tick_that_changes_most_rows_recomputes_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The choice is made for each table, reported in the run and in its stats, and changes no result."""
    monkeypatch.setattr(strategy_cost, "FEW", 1)
    site = site_of_orders(tmp_path)
    site.tick(START)
    site.write(
        "1.jsonl",
        [order(str(n), START - n * FIVE, v, restaurant=f"r900{n % 3}") for n in range(1, 30) for v in (2, 3, 4)],
    )
    site.events.clear()

    result = site.tick(START + FIVE)

    whole = {s.table: s for node in result.nodes for s in node.stages if s.reason == "SR548"}
    assert result.published and differences(site, START + FIVE) == {}
    assert "stg_orders" in whole and whole["stg_orders"].strategy == "full"
    console = Console()
    for event in site.events:
        console.emit(event)
    console.close()  # otherwise a thread prints pending output after the test
    assert "stg_orders is fully recomputed in this tick (SR548)" in capsys.readouterr().out

    quiet = site.tick(START + 2 * FIVE)
    assert not [s for node in quiet.nodes for s in node.stages if s.reason == "SR548"]
    assert differences(site, START + 2 * FIVE) == {}


@pytest.mark.long
@pytest.mark.slow
def test_a_table_that_reads_too_much_fails_the_tick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`max_read_amplification` is enforced in each tick; what was published stays."""
    monkeypatch.setattr(strategy_cost, "FEW", 100)
    root = copy_project(tmp_path)
    contract = root / "models" / "marts" / "restaurant_windows.yml"
    text = contract.read_text()
    assert "at_worst: keys" in text
    contract.write_text(text.replace("at_worst: keys", "at_worst: keys, max_read_amplification: 1"))
    site = Site(root, DuckDBEngine())
    site.write("0.jsonl", [order(str(n), START - n * FIVE, restaurant=f"r{n}") for n in range(1, 200)])
    site.tick(START)
    site.write("1.jsonl", [order("1", START - FIVE, 2, restaurant="r1")])

    result = site.tick(START + FIVE)

    failed = next(node for node in result.nodes if node.status == "error")
    assert not result.published
    assert failed.message.startswith("SR532 restaurant_windows")
    assert site.ledger.read().published.tick == 1  # type: ignore[union-attr]


def test_rows_are_counted_by_statistics(tmp_path: Path) -> None:
    spec = TableSpec("t", str(tmp_path / "t"), (StoredColumn("a", "bigint"),))
    delta_table.create(spec)
    for n in range(3):
        delta_table.append_rows(delta_table.open_table(spec.path), [{"a": n}] * (n + 1))

    assert delta_table.rows_at(spec.path, 3) == 6
    assert delta_table.rows_changed(spec.path, (2, 3)) == 5


@pytest.mark.slow
def test_past_ticks_are_read_by_table_and_strategy(tmp_path: Path) -> None:
    site = site_of_orders(tmp_path)
    receipts.write(site.warehouse, site.tick(START), "duckdb", START)
    receipts.write(site.warehouse, site.tick(START + FIVE), "duckdb", START + FIVE)

    assert len(receipts.read_for_changes(site.warehouse, "stg_orders", "merge")) == 2
    assert receipts.read_for_changes(site.warehouse, "stg_orders", "full") == []


@pytest.mark.long
@pytest.mark.slow
def test_explain_names_the_other_ways_and_their_cost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before a build in words, after it by the sizes of the tables; as text and as JSON."""
    from sqlrun.commands.build import explain_model

    site = site_of_orders(tmp_path)
    profile = site.root / "profiles" / "duckdb.yml"
    profile.write_text(f"engine: duckdb\nwarehouse: {site.warehouse}\n")
    explain_model(site.root, "fct_restaurant_slots", "duckdb", False, START)
    before = capsys.readouterr().out
    site.tick(START)
    explain_model(site.root, "fct_restaurant_slots", "duckdb", True, START)
    after = json.loads(capsys.readouterr().out)

    assert "merge reads about 2,000 rows, or full reads every row" in before
    (table,) = after["tables"]
    assert [way["strategy"] for way in table["ways"]] == ["merge", "full"]
    assert table["ways"][1]["rows"] > 29
    assert table["statement"].startswith("merge into")
