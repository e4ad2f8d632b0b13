"""Ticks planned and ticks published, as rows of a Delta table. Shell: Delta files.

A row `pinned` is written before any table of a tick is; a row `published` after all of them are checked. Both carry
the transaction id (project, tick), so of two builds that began at the same time one fails to commit. A tick's
number is used once, published or not.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sqlrun.engines import delta_files
from sqlrun.engines.protocol import StoredColumn, TableSpec
from sqlrun.errors import LockedError
from sqlrun.ticks import Published, TableState, from_json, to_json

COLUMNS = (
    StoredColumn("tick", "bigint", False),
    StoredColumn("kind", "string", False),
    StoredColumn("as_of", "timestamp", False),
    StoredColumn("written_at", "timestamp", False),
    StoredColumn("holder", "string", False),
    StoredColumn("tables", "string", False),
)
COMPACT_EVERY = 100


@dataclass(frozen=True, slots=True)
class History:
    """What has happened: the newest published tick (None: there is none) and the highest number ever used."""

    published: Published | None
    last_tick: int


@dataclass(frozen=True, slots=True)
class Entry:
    """One tick in the ledger. `published_at` None: readers have never seen it."""

    tick: int
    as_of: datetime
    pinned_at: datetime | None
    published_at: datetime | None


class Ledger:
    """The ledger of one warehouse."""

    def __init__(self, warehouse: str, project: str) -> None:
        self.warehouse = warehouse
        self.path = str(Path(warehouse) / "_sqlrun" / "ledger")
        self._project = project

    def read(self) -> History:
        """Read the newest published tick and the highest number in use."""
        if delta_files.head(self.path) is None:
            return History(None, 0)
        import pyarrow as pa

        table = delta_files.open_table(self.path)
        rows = pa.table(table.scan(columns=["tick", "kind"]).read_all()).to_pylist()
        done = [row["tick"] for row in rows if row["kind"] == "published"]
        last = max((row["tick"] for row in rows), default=0)
        return History(self.published(max(done)) if done else None, last)

    def entries(self) -> list[Entry]:
        """List all ticks, the newest first."""
        import pyarrow as pa

        if delta_files.head(self.path) is None:
            return []
        table = delta_files.open_table(self.path)
        rows = pa.table(table.scan(columns=["tick", "kind", "as_of", "written_at"]).read_all()).to_pylist()
        found: dict[int, dict[str, datetime]] = {}
        for row in rows:
            found.setdefault(row["tick"], {"as_of": row["as_of"]})[row["kind"]] = row["written_at"]
        return [
            Entry(tick, found[tick]["as_of"], found[tick].get("pinned"), found[tick].get("published"))
            for tick in sorted(found, reverse=True)
        ]

    def published(self, tick: int) -> Published | None:
        """Read one published tick; None if there is no such."""
        import pyarrow as pa

        if delta_files.head(self.path) is None:
            return None
        predicate = f"tick = {tick} and kind = 'published'"
        found = pa.table(delta_files.open_table(self.path).scan(predicate=predicate).read_all()).to_pylist()
        if not found:
            return None
        return Published(tick, found[0]["as_of"], from_json(found[0]["tables"]))

    def newest(self, count: int) -> list[Published]:
        """Read the newest published ticks, the newest first."""
        import pyarrow as pa

        ticks = [entry.tick for entry in self.entries() if entry.published_at][:count]
        if not ticks:
            return []
        predicate = f"tick >= {ticks[-1]} and kind = 'published'"
        rows = pa.table(delta_files.open_table(self.path).scan(predicate=predicate).read_all()).to_pylist()
        found = {row["tick"]: Published(row["tick"], row["as_of"], from_json(row["tables"])) for row in rows}
        return [found[tick] for tick in ticks]

    def pin(self, tick: int, as_of: datetime, tables: Mapping[str, TableState], at: datetime, holder: str) -> None:
        """Write down what a tick will read, before it writes anything."""
        self._append(tick, "pinned", as_of, tables, at, holder)

    def publish(self, tick: int, as_of: datetime, tables: Mapping[str, TableState], at: datetime, holder: str) -> None:
        """Make a tick the one that readers see: first the tables are made durable, then the row."""
        sync(self.warehouse)
        self._append(tick, "published", as_of, tables, at, holder)
        sync(self.warehouse)
        if tick % COMPACT_EVERY == 0:
            delta_files.compact(self.path)

    def _append(
        self, tick: int, kind: str, as_of: datetime, tables: Mapping[str, TableState], at: datetime, holder: str
    ) -> None:
        from deltalake.exceptions import CommitFailedError

        delta_files.create(TableSpec("ledger", self.path, COLUMNS))
        table = delta_files.open_table(self.path)
        app_id = f"{self._project}.{kind}"
        used = table.transaction_version(app_id)
        if used is not None and used >= tick:
            raise LockedError(f"tick {tick} is taken by another build; nothing was written")
        row = dict(zip((c.name for c in COLUMNS), (tick, kind, as_of, at, holder, to_json(tables)), strict=True))
        try:
            delta_files.append_rows(table, [row], delta_files.commit(app_id, tick, {}))
        except CommitFailedError as error:
            raise LockedError(f"tick {tick} was taken by another build at the same moment") from error


def sync(folder: str) -> None:
    """Make everything written to the folder's file system durable; Spark and Delta call no fsync themselves."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        syncfs = getattr(ctypes.CDLL(None), "syncfs", None)
        if syncfs is not None:
            syncfs(descriptor)
        else:
            os.sync()
    finally:
        os.close(descriptor)
