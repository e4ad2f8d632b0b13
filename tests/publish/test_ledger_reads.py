"""The ledger is read once for each state of its log, and cached rows are never used for another state."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from sqlrun.engines.delta import table as delta_table
from sqlrun.errors import LockedError, UsageError
from sqlrun.publish import hash_chain
from sqlrun.publish.ledger import COMPACT_EVERY, NEWEST, Ledger
from sqlrun.publish.table_state import TableState

AT = datetime(2026, 1, 10, 12, tzinfo=timezone.utc)
STATE = TableState("orders/0a1b2c3d4e5f", 3, AT, {})


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
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
        anew = Ledger(ledger.warehouse, "shop")._latest(NEWEST, entry, whole=True)
        assert sorted(known, key=hash_chain.order) == sorted(anew, key=hash_chain.order)
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
