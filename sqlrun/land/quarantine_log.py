"""Log of requests about quarantined lines and their outcomes, rows beside the ledger. Shell: Delta files, user.

The log is append-only and retained in full: it decides which lines are pending, and records the lines that left.
"""

from __future__ import annotations

import getpass
import socket
import uuid
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlrun.engine_api import Relation, TableSpec
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.delta import vacuum as delta_vacuum
from sqlrun.errors import EngineError, LockedError
from sqlrun.land.quarantine_query import BOOK, DISCARD, ID_LENGTH
from sqlrun.publish.environment_paths import system_folder
from sqlrun.runtime import arrow_rows
from sqlrun.storage.factory import storage_of
from sqlrun.transpile.writer import type_name

if TYPE_CHECKING:
    from sqlrun.publish.ledger import Ledger

# Each command and each replay is a commit; this number of commits is compacted into one file.
COMPACT_EVERY = 50


def path_of(warehouse: str, env: str = "") -> str:
    """Return the path of the log of a warehouse's environment."""
    return f"{warehouse}/{system_folder(env)}/quarantine"


def relation(warehouse: str, env: str = "") -> Relation:
    """Return the log at its current version as the relation `book`; it is created if necessary.

    Raises: EngineError if it can't be created.
    """
    path = path_of(warehouse, env)
    delta_table.create(TableSpec("quarantine", path, BOOK))
    return Relation("book", path, BOOK, "new", version=delta_table.head(path) or 0)


def about(warehouse: str, env: str, sql: str) -> tuple[str, tuple[Relation, ...]]:
    """Return a SELECT over `book` for DuckDB, with its relations; it works without creating a log."""
    if has_rows(warehouse, env):
        return sql, (relation(warehouse, env),)
    columns = ", ".join(f"null::{type_name(c.type, 'duckdb')} as {c.name}" for c in BOOK)
    return f"with book as (select {columns} where false) {sql}", ()


def has_rows(warehouse: str, env: str = "") -> bool:
    """Return whether the log has any rows, without opening it."""
    return bool(delta_table.head(path_of(warehouse, env)))


def entries(
    kind: str, model: str, path: str, lines: list[dict[str, Any]], at: datetime, **said: Any
) -> list[dict[str, Any]]:
    """Return a row for each line (its `id`, `reason` and number of `lines`); all have one event."""
    event = uuid.uuid4().hex[:ID_LENGTH]
    common = {"event": event, "kind": kind, "model": model, "path": path, "written_at": at, "who": who()}
    common |= {"because": "", "request": "", "outcome": "", "tick": None} | said
    return [{**common, **line} for line in lines]


def who() -> str:
    """Return the name of the user and the machine."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        name = "unknown"
    return f"{name}@{socket.gethostname()}"


def append(warehouse: str, env: str, rows: list[dict[str, Any]], after: int | None = None) -> None:
    """Append rows in one durable commit; no commit without rows.

    `after` is the version of the log that the rows were computed from; later rows could contradict them.

    Raises: LockedError if there are later rows; EngineError if they can't be written.
    """
    if not rows:
        return
    path = path_of(warehouse, env)
    delta_table.create(TableSpec("quarantine", path, BOOK))
    table = delta_table.open_table(path)
    try:
        with delta_table.explained(f"the table of quarantined lines {path} can't be written"):
            alone = None if after is None else delta_table.commit(f"quarantine:{rows[0]['event']}", 1, {})
            if after is not None and table.version() != after:
                raise _overtaken()
            delta_table.append_rows(table, rows, alone)
    except EngineError as error:
        if after is not None and delta_table.head(path) != after:
            raise _overtaken() from error
        raise
    delta_table.follow(path, table)
    with delta_table.explained(f"the table of quarantined lines {path} can't be written"):
        if table.version() % COMPACT_EVERY == 0:
            delta_vacuum.compact(path)
    storage_of(path).sync(path)


def _overtaken() -> LockedError:
    return LockedError("another command or build wrote to the quarantine at the same time. Try again")


def discarded(ledger: Ledger) -> list[dict[str, Any]]:
    """Return the discarded lines, a row for each command, model and reason, the latest first."""
    from sqlrun.publish.reader import query

    if not has_rows(ledger.warehouse, ledger.env):
        return []
    sql = (
        "select written_at, who, model, reason, sum(lines)::bigint as lines, because "
        f"from book where kind = '{DISCARD}' group by all order by written_at desc, model, reason"
    )
    rows: list[dict[str, Any]] = arrow_rows.plain(query(sql, [relation(ledger.warehouse, ledger.env)]))
    return rows
