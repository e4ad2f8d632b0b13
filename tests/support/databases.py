"""A database of one table, its log of change events as Debezium writes them, and what a table of it must be. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from random import Random
from typing import Any

PLACEHOLDER = "__debezium_unavailable_value"
# Microseconds since 1970 of the first transaction.
START = 1_777_896_000_000_000
Row = dict[str, Any]


@dataclass
class Version:
    """A version of a row, as a trigger of the database would have written it down; times in microseconds."""

    key: int
    row: Row
    since: int
    until: int | None = None


@dataclass
class Database:
    """Rows by key, the log so far, and all versions. A row has a name, and a body too large to be sent again."""

    seed: int
    rows: dict[int, Row] = field(default_factory=dict)
    log: list[dict[str, Any]] = field(default_factory=list)
    versions: list[Version] = field(default_factory=list)
    # Keys of rows that came from another key, and whose bodies no change of this key has had.
    moved: set[int] = field(default_factory=set)
    _lsn: int = 1000
    _time: int = START

    def __post_init__(self) -> None:
        self._random = Random(self.seed)
        self._transaction = 0

    def snapshot(self) -> None:
        """Write the present rows to the log, as a connector does when it starts: all have one position."""
        self._begin()
        self._lsn += 8
        for number, (key, row) in enumerate(self.rows.items(), 1):
            self._write("r", key, row, snapshot="last" if number == len(self.rows) else "true")

    def run(self, transactions: int) -> None:
        """Run random transactions of one to four statements."""
        for _ in range(transactions):
            self._begin()
            for _ in range(self._random.randint(1, 4)):
                self._statement()

    def _begin(self) -> None:
        self._transaction += 1
        self._time += self._random.randint(1, 5_000_000)

    def _statement(self) -> None:
        kind = self._random.random()
        key = self._random.randint(1, 12)
        if kind < 0.02:
            self._truncate()
        elif key not in self.rows:
            self._insert(key, self._row())
        elif kind < 0.3:
            self._delete(key)
        elif kind < 0.45 and (other := self._random.randint(1, 12)) not in self.rows:
            # A changed key is a delete and an insert at one position.
            row, is_sent = self.rows[key], self._random.random() < 0.5 and key not in self.moved
            self._delete(key)
            self._lsn -= 8
            self._insert(other, row, is_sent)
        else:
            self._update(key)

    def _row(self) -> Row:
        return {"name": self._random.choice(["a", "é", None]), "body": f"body {self._random.random()}"}

    def _insert(self, key: int, row: Row, is_sent: bool = True) -> None:
        self.rows[key] = row
        if not is_sent:
            self.moved.add(key)
        self._write("c", key, row if is_sent else {**row, "body": PLACEHOLDER})
        self._open(key, row)

    def _update(self, key: int) -> None:
        before = self.rows[key]
        after = {"name": self._random.choice(["b", "c", None]), "body": before["body"]}
        sent = dict(after)
        if self._random.random() < 0.6:
            sent["body"] = PLACEHOLDER
        else:
            self.moved.discard(key)
            after["body"] = sent["body"] = None if self._random.random() < 0.3 else f"body {self._random.random()}"
        self.rows[key] = after
        self._write("u", key, sent)
        self._close(key)
        self._open(key, after)

    def _delete(self, key: int) -> None:
        del self.rows[key]
        self.moved.discard(key)
        # Postgres fills what isn't the key: no reader may take it for a value.
        self._write("d", key, {"name": "filler", "body": "filler"})
        self._close(key)

    def _truncate(self) -> None:
        for key in list(self.rows):
            del self.rows[key]
            self._close(key)
        self.moved.clear()
        self._write("t", None, None)

    def _open(self, key: int, row: Row) -> None:
        self.versions.append(Version(key, dict(row), self._time))

    def _close(self, key: int) -> None:
        for version in self.versions:
            if version.key == key and version.until is None:
                version.until = self._time

    def _write(self, op: str, key: int | None, row: Row | None, snapshot: str = "false") -> None:
        if op != "r":
            self._lsn += 8
        whole = None if row is None else {"id": key, **row}
        self.log.append(
            {
                "before": whole if op == "d" else None,
                "after": None if op == "d" else whole,
                "source": {
                    "connector": "postgresql", "name": "shop", "db": "shop", "schema": "public", "table": "docs",
                    "snapshot": snapshot, "lsn": self._lsn, "txId": self._transaction, "ts_ms": self._time // 1000,
                    "ts_us": self._time,
                },
                "op": op,
                "ts_ms": self._time // 1000 + 500,
                "transaction": None,
            }
        )  # fmt: skip


def micros(at: datetime | None) -> int | None:
    """Return microseconds since 1970; a time without a zone is UTC."""
    if at is None:
        return None
    at = at.replace(tzinfo=timezone.utc) if at.tzinfo is None else at
    since = at - datetime(1970, 1, 1, tzinfo=timezone.utc)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def lines(events: list[dict[str, Any]]) -> list[str]:
    """Return events as JSON lines."""
    return [json.dumps(event) for event in events]


def delivered(log: list[dict[str, Any]], random: Random) -> Iterator[list[dict[str, Any]]]:
    """Yield batches of a log as a broken connector delivers them: parts again, and each batch in any order."""
    place = 0
    while place < len(log):
        end = min(len(log), place + random.randint(1, 25))
        # A killed connector starts again at an older position.
        begin = max(0, place - random.randint(0, 15)) if random.random() < 0.5 else place
        batch = log[begin:end]
        if random.random() < 0.5:
            random.shuffle(batch)
        yield batch
        place = end
