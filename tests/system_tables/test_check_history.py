"""The results of every check in every tick can be read again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sqlrun.cli.main import main
from sqlrun.engine_api import Relation
from sqlrun.engines.delta import table as delta_table
from sqlrun.errors import EngineError, Place
from sqlrun.events import CheckResult, TickResult
from sqlrun.expectations.values import identity
from sqlrun.operations import doctor
from sqlrun.outcome import Outcome
from sqlrun.project import Expectation
from sqlrun.publish.ledger import Ledger
from sqlrun.publish.reader import query
from sqlrun.runtime.lru import Recent
from sqlrun.system_tables import check_results, receipts
from tests.run.test_machine import EDITS, project
from tests.support.script import FIVE, START

AT = datetime(2026, 1, 10, 12, 5, tzinfo=timezone.utc)


def result(tick: int, *statuses: str, published: bool = True) -> TickResult:
    def check(status: str) -> CheckResult:
        place = Place("expectations/m.yml", 2, 5)
        return CheckResult(
            "m", "t", ("a", "b"), "critical", Outcome(status), 9, 2, ("a=1",), 0.5, "2 rows", "", place, "f00"
        )

    return TickResult(tick, AT, published, 1.0, (), tuple(check(status) for status in statuses))


def rows(warehouse: Path | str, env: str = "") -> list[dict[str, Any]]:
    path = check_results.path_of(str(warehouse), env)
    head = delta_table.head(path)
    assert head is not None
    history = Relation("history", path, check_results.COLUMNS, "new", version=head)
    found: list[dict[str, Any]] = query("select * from history order by tick, model, status", (history,)).to_pylist()
    return found


def test_a_row_for_each_check_and_tick(tmp_path: Path) -> None:
    check_results.write(str(tmp_path), result(1, "pass", "warn"), AT)
    check_results.write(str(tmp_path), result(2, "fail", "error", published=False), AT)

    found = rows(tmp_path)

    statuses = [(r["tick"], r["published"], r["status"]) for r in found]
    assert statuses == [(1, True, "pass"), (1, True, "warn"), (2, False, "error"), (2, False, "fail")]
    first = found[0]
    assert (first["as_of"], first["written_at"]) == (AT, AT)
    kept = (first["check_id"], first["expectation"], first["columns"], first["severity"], first["message"])
    assert kept == ("f00", "t", ["a", "b"], "critical", "2 rows")
    assert (first["evaluated"], first["unexpected"], first["seconds"]) == (9, 2, 0.5)
    assert delta_table.head(check_results.path_of(str(tmp_path))) == 2  # one commit a tick


def test_no_row_of_a_table_is_stored(tmp_path: Path) -> None:
    assert not any("samples" in row for row in check_results.rows_of(result(1, "fail"), AT))


def test_a_tick_without_checks_writes_nothing(tmp_path: Path) -> None:
    check_results.write(str(tmp_path), result(1), AT)

    assert delta_table.head(check_results.path_of(str(tmp_path))) is None


def test_the_history_is_compacted_from_time_to_time(tmp_path: Path) -> None:
    for tick in (98, 99, 100):
        check_results.write(str(tmp_path), result(tick, "pass"), AT)

    assert len(rows(tmp_path)) == 3
    assert len(delta_table.files_at(delta_table.open_table(check_results.path_of(str(tmp_path))))) == 1


def test_a_failed_write_is_reported(tmp_path: Path) -> None:
    (tmp_path / "_sqlrun").write_text("not a folder")

    with pytest.raises(EngineError, match="checks of tick 1"):
        check_results.write(str(tmp_path), result(1, "pass"), AT)


def test_recent_results_of_some_checks_are_read(tmp_path: Path) -> None:
    assert check_results.recent(str(tmp_path), "", 1, ["f00"]) == []
    for number in (1, 2, 3):
        check_results.write(str(tmp_path), result(number, "fail"), AT)

    found = check_results.recent(str(tmp_path), "", 2, ["f00", "it's"])

    assert sorted(row["tick"] for row in found) == [2, 3]
    assert found[0] == {"tick": found[0]["tick"], "check_id": "f00", "status": "fail", "evaluated": 9, "unexpected": 2}
    assert check_results.recent(str(tmp_path), "", 1, ["it's"]) == check_results.recent(str(tmp_path), "", 1, []) == []


def odd_and_even(tick: int) -> TickResult:
    """Return two checks, of which one fails every other tick."""
    made = result(tick, "warn", "fail" if tick % 2 else "pass")
    return replace(made, checks=(made.checks[0], replace(made.checks[1], check_id="f01")))


def test_a_process_reads_the_history_of_its_checks_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str | None] = []
    real = receipts.rows
    monkeypatch.setattr(receipts, "rows", lambda *a: asked.append(a[2]) or real(*a))

    def recent(since: int, *checks: str) -> list[tuple[int, str, str]]:
        found = check_results.recent(str(tmp_path), "", since, checks)
        return sorted((row["tick"], row["check_id"], row["status"]) for row in found)

    def read_uncached(since: int, *checks: str) -> list[tuple[int, str, str]]:
        with monkeypatch.context() as patch:
            patch.setattr(check_results, "_known", Recent(4))
            patch.setattr(receipts, "rows", real)
            return recent(since, *checks)

    check_results.write(str(tmp_path), odd_and_even(1), AT)
    assert recent(1, "f00") == [(1, "f00", "warn")] and len(asked) == 1
    for tick in (2, 3, 4):
        check_results.write(str(tmp_path), odd_and_even(tick), AT)
        assert recent(tick - 1, "f00") == read_uncached(tick - 1, "f00") != []
    assert len(asked) == 1

    assert recent(3, "f01", "f00") == read_uncached(3, "f00", "f01")  # now the other one fails
    assert len(asked) == 2
    assert recent(3, "f01") == [(3, "f01", "fail"), (4, "f01", "pass")]
    assert len(asked) == 2
    assert recent(1, "f01") == read_uncached(1, "f01")  # earlier ticks, dropped from the cache, are read again
    assert len(asked) == 3

    other = delta_table.open_table(check_results.path_of(str(tmp_path)))
    delta_table.append_rows(other, check_results.rows_of(odd_and_even(5), AT))
    assert recent(1, "f01")[-1] == (5, "f01", "fail")
    assert len(asked) == 4


def test_a_corrupt_file_is_reported(tmp_path: Path) -> None:
    """Arrow's own error has no class that a report could catch."""
    check_results.write(str(tmp_path), result(1, "pass", "fail"), AT)
    for file in tmp_path.rglob("*.parquet"):
        file.write_text("torn")

    with pytest.raises(EngineError, match=r"the checks at .* can't be read"):
        check_results.recent(str(tmp_path), "", 1, ["f00"])


def test_a_check_keeps_its_id_wherever_it_is_declared() -> None:
    kwargs = {"column": "amount", "min_value": 0, "mostly": 0.9}
    check = Expectation("expect_column_values_to_be_between", kwargs, "critical", "fail", "Money.", Place("a.yml", 2))
    moved = replace(check, severity="warning", on_fail="warn", description="", place=Place("b.yml", 9))
    turned = replace(check, kwargs=dict(reversed(kwargs.items())))

    assert identity("m", check) == identity("m", moved) == identity("m", turned)
    others = [identity("n", check), identity("m", replace(check, type="x"))]
    others += [identity("m", replace(check, kwargs={**kwargs, "min_value": least})) for least in (1, "0", None)]
    assert len({identity("m", check), *others}) == 6


# ---------------------------------------------------------------------------------------- builds

SUITE = """\
expectations:
  - type: expect_column_values_to_be_between
    kwargs: {column: amount, min_value: 0}
  - type: expect_column_values_to_be_between
    kwargs: {column: amount, max_value: 5}
    severity: warning
"""


def sale(name: str, version: int, amount: int) -> str:
    return json.dumps({"id": name, "version": version, "shop": "x", "amount": amount, "sold_at": START.isoformat()})


class Shops:
    """The shops' project with a suite, built by the command."""

    def __init__(self, folder: Path) -> None:
        self.root = project(folder)
        for name, text in (
            ("expectations/stg_sales.yml", SUITE),
            ("profiles/local.yml", "engine: duckdb\nwarehouse: warehouse\nvacuum_every: 0\n"),
        ):
            (self.root / name).parent.mkdir(exist_ok=True)
            (self.root / name).write_text(text)
        self.warehouse = self.root / "warehouse"

    def run(self, *words: str) -> str:
        done = CliRunner().invoke(main, ["--project-dir", str(self.root), *words, "--profile", "local"])
        assert done.exception is None or isinstance(done.exception, SystemExit), done.output
        self.code = done.exit_code
        return done.output

    def build(self, number: int, *lines: str, env: tuple[str, ...] = ()) -> str:
        (self.root / "data" / "orders" / f"{number}.jsonl").write_text("".join(line + "\n" for line in lines))
        return self.run("build", "--skip-tests", "--as-of", (START + number * FIVE).isoformat(), *env)


@pytest.fixture
def shops(tmp_path: Path) -> Iterator[Shops]:
    yield Shops(tmp_path / "shops")


def amounts(found: list[dict[str, Any]]) -> list[tuple[int, bool, str, int]]:
    mine = [row for row in found if row["columns"] == ["amount"]]
    return [(row["tick"], row["published"], row["status"], row["unexpected"]) for row in mine]


@pytest.mark.slow
def test_builds_store_results_of_checks_published_or_not(shops: Shops) -> None:
    """Maintenance deletes rows of ticks that aren't retained, and the doctor finds nothing wrong."""
    shops.build(1, sale("a", 1, 3), sale("b", 1, 7))
    assert shops.code == 0
    shops.build(2, sale("c", 1, -1))
    assert shops.code == 1
    shops.build(3, sale("c", 2, 1))
    assert shops.code == 0

    found = rows(shops.warehouse)
    assert amounts(found) == [
        (1, True, "pass", 0), (1, True, "warn", 1),
        (2, False, "fail", 1), (2, False, "pass", 0),
        (3, True, "pass", 0), (3, True, "pass", 0),
    ]  # fmt: skip
    unique = [row for row in found if row["expectation"] == "expect_column_values_to_be_unique"]
    assert [row["tick"] for row in unique] == [1, 2, 3]
    assert len({row["check_id"] for row in unique}) == 1
    assert len({row["check_id"] for row in found}) == 3

    shops.run("vacuum", "--keep-ticks", "1")
    assert {row["tick"] for row in rows(shops.warehouse)} == {3}
    assert "All are intact." in shops.run("doctor")


@pytest.mark.slow
def test_a_failed_write_of_the_history_fails_no_tick(shops: Shops) -> None:
    place = shops.warehouse / "_sqlrun" / "checks"
    place.parent.mkdir(parents=True)
    place.write_text("not a folder")

    said = shops.build(1, sale("a", 1, 3))

    assert shops.code == 0
    assert "the checks of tick 1 can't be written" in said
    assert Ledger(str(shops.warehouse), "small").read().published is not None


@pytest.mark.long
@pytest.mark.slow
def test_a_corrupt_newest_entry_is_moved_and_a_dropped_environment_deletes_its_history(shops: Shops) -> None:
    shops.build(1, sale("a", 1, 3))
    model = shops.root / "models" / "stg_sales.sql"
    model.write_text(model.read_text().replace(*EDITS["stg_sales"]))
    shops.build(2, env=("--env", "dev"))
    assert {row["tick"] for row in rows(shops.warehouse, "dev")} == {1}
    history = Path(check_results.path_of(str(shops.warehouse)))
    (history / "_delta_log" / f"{1:020d}.json").write_bytes(b"")

    said: list[str] = []
    doctor.at_start(Ledger(str(shops.warehouse), "small"), AT, said.append)

    assert len(said) == 1 and said[0].startswith("checks: ")
    assert delta_table.head(str(history)) == 0
    shops.build(3, sale("c", 1, 3))
    assert {row["tick"] for row in rows(shops.warehouse)} == {2}
    shops.run("env", "drop", "dev")
    assert not Path(check_results.path_of(str(shops.warehouse), "dev")).exists()
