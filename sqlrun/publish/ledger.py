"""The ledger: planned and published ticks, as rows of a Delta table. Shell: Delta files.

A row `pinned` is written before any table of a tick is; a row `published` after all of them are checked. Both carry
the transaction id (project, tick), so of two builds that began at the same time one fails to commit. A tick's
number is used once, published or not. Each row carries a hash, which reveals edits.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from sqlrun.engine_api import StoredColumn, TableSpec
from sqlrun.engines.delta import commit as delta_commit
from sqlrun.engines.delta import own_append, table_pool
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.delta import vacuum as delta_vacuum
from sqlrun.engines.delta.heads import Heads
from sqlrun.errors import EngineError, LockedError, SqlrunError, UsageError, first_line
from sqlrun.publish import hash_chain, warehouse_format
from sqlrun.publish.environment_paths import environment, system_folder
from sqlrun.publish.table_state import Published, TableState, from_json, to_json
from sqlrun.runtime import arrow_rows
from sqlrun.storage.factory import storage_of

if TYPE_CHECKING:
    from deltalake import DeltaTable

COLUMNS = (
    StoredColumn("tick", "bigint", False),
    StoredColumn("kind", "string", False),
    StoredColumn("as_of", "timestamp", False),
    StoredColumn("written_at", "timestamp", False),
    StoredColumn("holder", "string", False),
    StoredColumn("tables", "string", False),
    StoredColumn("follows", "string", False),
    StoredColumn("seal", "string", False),
)
COMPACT_EVERY = 20
# Number of ticks read first.
NEWEST = 20
SEALS = ["tick", "kind", "seal"]


@dataclass(frozen=True, slots=True)
class History:
    """The latest published tick (None: there is none) and the highest tick number ever used."""

    published: Published | None
    last_tick: int


@dataclass(frozen=True, slots=True)
class Entry:
    """One tick in the ledger. `published_at` None: it was never published."""

    tick: int
    as_of: datetime
    pinned_at: datetime | None
    published_at: datetime | None


class Ledger:
    """The ledger of one environment of a warehouse; "" is production."""

    def __init__(self, warehouse: str, project: str, env: str | None = None) -> None:
        self.warehouse = warehouse
        self.env = environment(env)
        self._folder, self._storage = f"{warehouse}/{system_folder(self.env)}", storage_of(warehouse)
        self.path = f"{self._folder}/ledger"
        self._table = TableSpec("ledger", self.path, COLUMNS)
        self.project = project
        # The newest rows, complete and by hashes only, with the log entry that they were read at; and the last hash.
        self._held: dict[bool, tuple[delta_table.Entry, list[dict[str, Any]]]] = {}
        self._sealed: tuple[delta_table.Entry, str] | None = None

    def of(self, env: str) -> Ledger:
        """Return the ledger of another environment of the warehouse."""
        return Ledger(self.warehouse, self.project, env)

    def read(self, known: Heads | None = None) -> History:
        """Return the latest published tick and the highest tick number in use; `known`: versions seen a moment ago."""
        entry = self._newest_entry(known)
        rows = self._newest_rows(lambda row: row["kind"] == "published", entry)
        if not rows:
            return History(None, self._dropped())
        done = [row["tick"] for row in rows if row["kind"] == "published"]
        last = max((row["tick"] for row in rows), default=0)
        return History(self._published(max(done), entry) if done else None, last)

    def _newest_entry(self, known: Heads | None) -> delta_table.Entry | None:
        """Return the log's newest entry, by known versions if they have the ledger's."""
        head = (known or Heads()).of(self.path)
        return None if head is None else delta_table.entry_of(self.path, head)

    def _dropped(self) -> int:
        """Return the highest number of a dropped environment of this name: its tables may still record it."""
        try:
            return int(self._storage.text(f"{self._folder}/last_tick"))
        except FileNotFoundError:
            return 0

    def drop(self) -> None:
        """Delete an environment's ledger and system tables; its tick numbers stay used."""
        assert self.env, "the production environment can't be dropped"
        used = self.read().last_tick
        self._storage.put(f"{self._folder}/last_tick", str(used).encode(), synced=True)
        for part in ("ledger", "receipts", "checks", "measures", "quarantine", "intake", "completeness"):
            with contextlib.suppress(OSError):
                self._storage.delete_folder(f"{self._folder}/{part}")

    def entries(self) -> list[Entry]:
        """Return all ticks, the newest first."""
        found: dict[int, dict[str, datetime]] = {}
        for row in self._rows(["tick", "kind", "as_of", "written_at"]):
            found.setdefault(row["tick"], {"as_of": row["as_of"]})[row["kind"]] = row["written_at"]
        return [
            Entry(tick, found[tick]["as_of"], found[tick].get("pinned"), found[tick].get("published"))
            for tick in sorted(found, reverse=True)
        ]

    def published(self, tick: int) -> Published | None:
        """Return one published tick; None if it wasn't published."""
        return self._published(tick, delta_table.entry_of_head(self.path))

    def _published(self, tick: int, entry: delta_table.Entry | None) -> Published | None:
        cached = [r for r in self._known(entry, whole=True) or () if r["tick"] == tick and r["kind"] == "published"]
        if cached:
            self._require_unedited(hash_chain.broken(cached[-1:]))
        found = cached or self.sealed(f"tick = {tick} and kind = 'published'")
        return self._tick(found[-1]) if found else None

    def newest(self, count: int | None = None) -> list[Published]:
        """Return the latest published ticks, the newest first; all if `count` is None."""
        ticks = [entry.tick for entry in self.entries() if entry.published_at][:count]
        if not ticks:
            return []
        rows = self.sealed(f"tick >= {ticks[-1]} and kind = 'published'")
        found = {row["tick"]: self._tick(row) for row in rows}
        return [found[tick] for tick in ticks]

    def published_after(self, tick: int) -> list[Published]:
        """Return the published ticks after a tick, the oldest first."""
        return [self._tick(row) for row in self.sealed(f"tick > {tick} and kind = 'published'")]

    def all_published(self) -> list[Published]:
        """Return all published ticks, the oldest first."""
        return [self._tick(row) for row in self.sealed("kind = 'published'")]

    def sealed(self, predicate: str | None = None) -> list[dict[str, Any]]:
        """Return complete rows, in the order in which they were written.

        Raises: UsageError if one doesn't match its hash: it was edited.
        """
        rows = sorted(self._rows(None, predicate), key=hash_chain.order)
        for row in rows:
            self._require_unedited(hash_chain.broken([row]))
        return rows

    def require_chain(self, ticks: int | None = None, known: Heads | None = None) -> None:
        """Reject a ledger with a changed, removed or inserted row, among the newest `ticks` or all.

        `known`: versions seen a moment ago. Raises: UsageError naming the row.
        """
        entry = self._newest_entry(known)
        rows = self._rows(None) if ticks is None else self._latest(ticks, entry, whole=True)
        self._require_unedited(hash_chain.broken(rows))

    def _require_unedited(self, fault: str) -> None:
        if fault:
            raise UsageError(
                f"another writer changed the ledger {self.path}: {fault}. Nothing was written. Restore "
                "the folder from a backup, or undo the change: the ledger is a Delta table, and its log has "
                "the earlier version. Or build into another warehouse."
            )

    def _tick(self, row: Mapping[str, Any]) -> Published:
        try:
            tables = from_json(row["tables"])
        except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            raise UsageError(
                f"the ledger {self.path} can't be read at tick {row['tick']}: {error}. "
                "Restore the folder from a backup."
            ) from error
        for name, state in tables.items():
            if PurePosixPath(state.path).is_absolute() or ".." in PurePosixPath(state.path).parts:
                raise UsageError(
                    f"according to the ledger {self.path}, {name} is at {state.path}, outside the warehouse. "
                    "Restore the folder from a backup."
                )
        return Published(row["tick"], row["as_of"], tables)

    def _rows(self, columns: list[str] | None, predicate: str | None = None) -> list[dict[str, Any]]:
        """Return rows in no order; empty if there is no ledger."""
        warehouse_format.require(self.warehouse, self.project)
        head = delta_table.head(self.path)
        if head is None:
            return []
        try:
            table = delta_table.open_table(self.path, head)
            known = {field.name for field in table.schema().fields}
            if missing := {column.name for column in COLUMNS} - known:
                raise UsageError(
                    f"the ledger {self.path} has no column {sorted(missing)[0]}: it has a format that this sqlrun "
                    "doesn't know. Build into another warehouse, or use the sqlrun that created it."
                )
            rows = arrow_rows.plain(table.scan(columns=columns, predicate=predicate).read_all())
        except SqlrunError as error:
            if isinstance(error, UsageError):
                raise
            raise self._read_error(error) from error
        except Exception as error:
            raise self._read_error(error) from error
        return rows

    def _newest_rows(
        self, wanted: Callable[[dict[str, Any]], bool], entry: delta_table.Entry | None
    ) -> list[dict[str, Any]]:
        """Return tick, kind and hash of the newest ticks' rows; of all rows if `wanted` accepts none of the newest.

        `entry` is the log's newest entry. Files of older rows stay closed.
        """
        rows = self._latest(NEWEST, entry)
        return rows if any(map(wanted, rows)) else self._rows(SEALS)

    def _latest(self, ticks: int, entry: delta_table.Entry | None, *, whole: bool = False) -> list[dict[str, Any]]:
        """Return the rows of the newest ticks, or all rows if the log doesn't reveal which these are.

        They are read once for each state of the log, because a tick asks for them several times.
        """
        known = self._known(entry, whole=whole) if ticks == NEWEST else None
        if known is None:
            last = self.last_pinned()
            since = None if last is None else f"tick > {last - ticks}"
            known = self._rows(None if whole else SEALS, since)
            if entry is not None and ticks == NEWEST:
                self._held[whole] = entry, known
        return known

    def _known(self, entry: delta_table.Entry | None, *, whole: bool) -> list[dict[str, Any]] | None:
        """Return the newest rows if they were read at an entry of the log; else None."""
        for each in {True, whole}:
            found = self._held.get(each)
            if found is not None and found[0] == entry:
                return found[1]
        return None

    def last_pinned(self) -> int | None:
        """Return the newest tick's number from the log, which is open anyway; None if the log doesn't contain it."""
        head = delta_table.head(self.path)
        if head is not None:
            with contextlib.suppress(EngineError):
                return delta_table.open_table(self.path, head).transaction_version(f"{self.project}.pinned")
        return None

    def _read_error(self, error: Exception) -> EngineError:
        first = first_line(error)[:300]
        return EngineError(
            f"the ledger {self.path} can't be read: {first}. `sqlrun doctor` reports the corrupt files. "
            "The next `sqlrun build` moves leftovers of a crash aside."
        )

    def pin(
        self,
        tick: int,
        as_of: datetime,
        tables: Mapping[str, TableState],
        at: datetime,
        holder: str,
        own_commit: bool = False,
    ) -> int:
        """Record the plan of a tick before it writes anything; return the ledger's version afterwards.

        `own_commit`: sqlrun may write the commit itself instead of delta-rs (decision 41).
        """
        return self._append((tick, "pinned", as_of, at, holder, to_json(tables)), None, own_commit)

    def publish(
        self,
        tick: int,
        as_of: datetime,
        tables: Mapping[str, TableState],
        at: datetime,
        holder: str,
        after: int,
        own_commit: bool = False,
    ) -> None:
        """Publish a tick: first make its tables durable, then write the row.

        `after` is the ledger's version at this tick's pin. A newer version means that another build began while this
        one was suspended. Raises: LockedError in this case.
        """
        self._storage.sync(self.warehouse)
        self._append((tick, "published", as_of, at, holder, to_json(tables)), after, own_commit)
        self._storage.sync(self.warehouse)
        if tick % COMPACT_EVERY == 0:
            delta_vacuum.compact(self.path)

    def _append(self, values: tuple[Any, ...], after: int | None, own_commit: bool) -> int:
        """Append a row; return the ledger's version. `values` are those of `hash_chain.SEALED` before the last."""
        known, version = self._held.get(True), None
        if own_commit and known is not None:
            # The log isn't listed again: behind another commit than the one known last, this one fails.
            version = self._appended(known[0], values, after, own_commit)
        if version is None:
            version = self._appended(self._head(), values, after, own_commit)
        if version is None:
            raise LockedError(f"another build took tick {values[0]} at the same time")
        return version

    def _head(self) -> delta_table.Entry:
        """Return the log's newest entry; create the ledger if there is none."""
        head = delta_table.entry_of_head(self.path)
        if head is None:
            delta_table.create(self._table)
            head = delta_table.entry_of_head(self.path)
        if head is None:
            raise EngineError(f"the ledger {self.path} can't be read after its creation")
        return head

    def _appended(
        self, before: delta_table.Entry, values: tuple[Any, ...], after: int | None, own_commit: bool
    ) -> int | None:
        """Append a row behind an entry of the log; return its version, None if another commit is there already."""
        tick, kind = values[:2]
        base = delta_table.version_of(before)
        with table_pool.writing(self.path, base=base if own_commit else None) as table:
            own = own_commit and delta_commit.ours(table, own_append.write_of(self._table, base, tick))
            if not own:
                delta_table.follow(self.path, table)
            elif table.version() != base:
                return None
            used = self._last_tick(table, kind, before)
            if used is not None and used >= tick:
                raise LockedError(f"another build has taken tick {tick}. Nothing was published")
            if after is not None and table.version() != after:
                raise LockedError(f"another build began during tick {tick}. Nothing was published")
            row: dict[str, Any] = dict(zip(hash_chain.SEALED, (*values, self._last_seal(table, before)), strict=True))
            row["seal"] = hash_chain.seal(row)
            version = self._written(table, row, base if own else None)
        if version is None:
            return None
        entry = delta_table.entry_of(self.path, version)
        # If another commit follows, the log's newest entry is another one, and the rows are read again.
        self._sealed = None if entry is None else (entry, str(row["seal"]))
        known = self._held.get(True)
        if entry is not None and known is not None and known[0] == before and base == version - 1:
            rows = [each for each in (*known[1], _as_read(row)) if each["tick"] > tick - NEWEST]
            self._held = {True: (entry, rows)}
        return version

    def _written(self, table: DeltaTable, row: dict[str, Any], base: int | None) -> int | None:
        """Commit a row, by sqlrun itself behind the version `base`, or by delta-rs; return its version, or None."""
        from deltalake.exceptions import CommitFailedError

        tick, app_id = row["tick"], f"{self.project}.{row['kind']}"
        with delta_table.explained(f"the ledger {self.path} can't be written"):
            if base is not None:
                write = own_append.write_of(self._table, base, tick, app_id)
                return base + 1 if own_append.append(table, write, [row]) else None
            try:
                delta_table.append_rows(table, [row], delta_table.commit(app_id, tick, {}))
            except CommitFailedError as error:
                raise LockedError(f"another build took tick {tick} at the same time") from error
        return table.version()

    def _last_tick(self, table: DeltaTable, kind: str, before: delta_table.Entry) -> int | None:
        """Return the last tick with a row of a kind, by the rows known at the log's newest entry, else by the log."""
        known = self._known(before, whole=True) if table.version() == delta_table.version_of(before) else None
        ticks = [row["tick"] for row in known or () if row["kind"] == kind]
        return max(ticks) if ticks else table.transaction_version(f"{self.project}.{kind}")

    def _last_seal(self, table: DeltaTable, before: delta_table.Entry | None) -> str:
        """Return the hash of the row written last; "" if there is none."""
        if before is None or table.version() != delta_table.version_of(before):
            before = delta_table.entry_of_head(self.path)
        if self._sealed is not None and self._sealed[0] == before:
            return self._sealed[1]
        last = max(self._newest_rows(bool, before), key=hash_chain.order, default=None)
        return str(last["seal"]) if last else ""


def _as_read(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row as a reader gets it: times in UTC."""
    return {n: v.astimezone(timezone.utc) if isinstance(v, datetime) else v for n, v in row.items()}
