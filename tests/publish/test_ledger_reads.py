"""The ledger is read once for each state of its log, and cached rows are never used for another state.

Each test runs with rows that sqlrun commits itself, and with rows that delta-rs commits.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from sqlrun.engines.delta import foreign_commits
from sqlrun.engines.delta import table as delta_table
from sqlrun.errors import LockedError, UsageError
from sqlrun.publish import hash_chain
from sqlrun.publish.ledger import COMPACT_EVERY, NEWEST, Ledger
from sqlrun.publish.table_state import TableState

AT = datetime(2026, 1, 10, 12, tzinfo=timezone.utc)
STATE = TableState("orders/0a1b2c3d4e5f", 3, AT, {})


@pytest.fixture(params=["sqlrun", "delta-rs"])
def writer(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def ledger(tmp_path: Path, writer: str, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    real = Ledger._append

    def append(self: Ledger, values: tuple[Any, ...], after: int | None, own_commit: bool) -> int:
        return real(self, values, after, writer == "sqlrun")

    monkeypatch.setattr(Ledger, "_append", append)
    return Ledger(str(tmp_path), "shop")


def tick(ledger: Ledger, number: int, *, published: bool = True) -> None:
    pinned = ledger.pin(number, AT + number * timedelta(minutes=5), {"orders": STATE}, AT, "me")
    if published:
        ledger.publish(number, AT + number * timedelta(minutes=5), {"orders": STATE}, AT, "me", pinned)


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Record the reads of the ledger's files."""
    asked: list[Any] = []
    real = Ledger._rows

    def rows(self: Ledger, columns: list[str] | None, predicate: str | None = None) -> list[dict[str, Any]]:
        asked.append((columns, predicate))
        return real(self, columns, predicate)

    monkeypatch.setattr(Ledger, "_rows", rows)
    return asked


@pytest.mark.slow
def test_a_tick_reads_the_ledger_once(ledger: Ledger, scans: list[Any]) -> None:
    """The hash chain is checked first; later reads open no file, not even for the published row."""
    tick(ledger, 1)
    scans.clear()
    ledger.require_chain(NEWEST)
    assert len(scans) == 1
    for _ in range(2):
        found = ledger.read()
        assert found.published is not None
        assert (found.published.tick, found.last_tick) == (1, 1)
    tick(ledger, 2)
    assert len(scans) == 1
    ledger.require_chain()


@pytest.mark.slow
def test_own_rows_are_not_read_back(ledger: Ledger, scans: list[Any]) -> None:
    """No tick reads a file, and the cache equals another reader's result: the complete rows of the newest ticks."""
    tick(ledger, 1)
    ledger.require_chain(NEWEST)
    scans.clear()
    for number in range(2, NEWEST + 5):
        tick(ledger, number)
        ledger.require_chain(NEWEST)
        found, entry = ledger.read(), delta_table.entry_of_head(ledger.path)
        known = ledger._latest(NEWEST, entry, whole=True)
        assert scans == [] or number % COMPACT_EVERY == 0  # its files were compacted
        assert found == Ledger(ledger.warehouse, "shop").read()
        uncached = Ledger(ledger.warehouse, "shop")._latest(NEWEST, entry, whole=True)
        assert sorted(known, key=hash_chain.order) == sorted(uncached, key=hash_chain.order)
        scans.clear()


@pytest.mark.slow
def test_another_writer_is_seen(ledger: Ledger) -> None:
    tick(ledger, 1)
    ledger.require_chain(NEWEST)
    assert ledger.read().last_tick == 1
    other = Ledger(ledger.warehouse, "shop")
    tick(other, 2)

    found = ledger.read()
    assert found.published is not None
    assert found.published.tick == 2
    tick(ledger, 3)
    ledger.require_chain()
    assert [row["tick"] for row in ledger.sealed("kind = 'published'")] == [1, 2, 3]


@pytest.mark.slow
def test_alternating_writers_continue_the_hash_chain(ledger: Ledger) -> None:
    """Two writers alternate: each row has the previous row's hash, whoever wrote that."""
    other = Ledger(ledger.warehouse, "shop")
    for number in range(1, 7):
        tick(ledger if number % 2 else other, number)
    rows = sorted(ledger.sealed(), key=hash_chain.order)
    assert len(rows) == 12
    assert hash_chain.broken(rows) == ""
    with pytest.raises(LockedError):
        ledger.publish(7, AT, {}, AT, "me", 5)


def test_an_edit_is_noticed_after_it_was_read(ledger: Ledger) -> None:
    tick(ledger, 1)
    ledger.require_chain(NEWEST)
    delta_table.update_rows(ledger.path, "kind = 'published'", {"tables": "'{}'"})
    for look in (lambda: ledger.require_chain(NEWEST), ledger.read):
        with pytest.raises(UsageError, match="doesn't match its hash"):
            look()


@pytest.mark.slow
def test_an_older_published_tick_is_found(ledger: Ledger) -> None:
    """More ticks were pinned since than are read first."""
    tick(ledger, 1)
    for number in range(2, NEWEST + 4):
        tick(ledger, number, published=False)
    for _ in range(2):
        found = ledger.read()
        assert found.published is not None
        assert (found.published.tick, found.last_tick) == (1, NEWEST + 3)


def test_rows_are_committed_by_the_chosen_writer(ledger: Ledger, writer: str) -> None:
    """Both write the same rows, with statistics by which old files stay closed, and with the tick's transaction."""
    for number in range(1, 4):
        tick(ledger, number)
    head = delta_table.head(ledger.path)
    assert head is not None
    actions = delta_table.actions(ledger.path, head)
    assert str(foreign_commits.info_of(actions)["engineInfo"]).startswith(writer)
    (stats,) = [json.loads(action["add"]["stats"]) for action in actions if "add" in action]
    assert (stats["numRecords"], stats["minValues"]["tick"], stats["maxValues"]["kind"]) == (1, 3, "published")
    assert stats["nullCount"]["seal"] == 0
    found = delta_table.open_table(ledger.path)
    assert [found.transaction_version(f"shop.{kind}") for kind in ("pinned", "published")] == [3, 3]
    ledger.require_chain()
    assert [entry.tick for entry in ledger.entries()] == [3, 2, 1]


@pytest.mark.parametrize("writer", ["sqlrun"], indirect=True)
def test_an_own_row_asks_nothing_of_the_log(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once a tick has read the ledger, its rows are appended behind the newest one without another look."""
    for number in range(1, 3):
        tick(ledger, number)
    ledger.require_chain(NEWEST)
    monkeypatch.setattr(delta_table, "head", lambda path: pytest.fail("the log was listed"))
    monkeypatch.setattr(delta_table, "append_rows", lambda *_: pytest.fail("delta-rs wrote"))
    tick(ledger, 3)
    monkeypatch.undo()
    assert [row["tick"] for row in Ledger(ledger.warehouse, "shop").sealed("kind = 'published'")] == [1, 2, 3]


def test_a_build_that_was_suspended_takes_no_tick_of_another(ledger: Ledger) -> None:
    """It knows an older state of the ledger, at its pin or at its publish."""
    tick(ledger, 1)
    ledger.require_chain(NEWEST)
    other = Ledger(ledger.warehouse, "shop")
    other.require_chain(NEWEST)
    tick(other, 2)
    with pytest.raises(LockedError, match="another build has taken tick 2"):
        ledger.pin(2, AT, {}, AT, "me")
    ledger.require_chain(NEWEST)
    pinned = ledger.pin(3, AT, {}, AT, "me")
    other.require_chain(NEWEST)
    other.pin(4, AT, {}, AT, "other")
    with pytest.raises(LockedError, match="another build began during tick 3"):
        ledger.publish(3, AT, {}, AT, "me", pinned)
    assert [row["tick"] for row in other.sealed("kind = 'published'")] == [1, 2]
