"""Run stats of each table in each tick, as rows of a Delta table beside the ledger. Shell: Delta files.

Written after a tick has ended, so that no reader waits for them. No decision depends on these rows: a build that can't
write them warns and continues.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlrun.engine_api import Receipt, StoredColumn, TableSpec
from sqlrun.engines.delta import own_append, table_pool
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.delta import vacuum as delta_vacuum
from sqlrun.errors import EngineError, first_line
from sqlrun.events import TickResult
from sqlrun.outcome import Level
from sqlrun.publish.environment_paths import system_folder
from sqlrun.runtime import arrow_rows
from sqlrun.runtime.lru import Recent
from sqlrun.system_tables import receipt_history

if TYPE_CHECKING:
    import pyarrow as pa

COSTS = tuple(field.name for field in fields(Receipt))
COLUMNS = (
    StoredColumn("tick", "bigint", False),
    StoredColumn("as_of", "timestamp", False),
    StoredColumn("written_at", "timestamp", False),
    StoredColumn("published", "boolean", False),
    StoredColumn("engine", "string", False),
    StoredColumn("model", "string", False),
    StoredColumn("table", "string", False),
    StoredColumn("strategy", "string", False),
    StoredColumn("reason", "string", False),
    StoredColumn("version", "bigint", False),
    StoredColumn("rows_in", "bigint", False),
    StoredColumn("rows_changed", "bigint", False),
    StoredColumn("checks", "bigint", False),
    StoredColumn("checks_warned", "bigint", False),
    StoredColumn("checks_failed", "bigint", False),
    *(StoredColumn(name, "double" if name == "seconds" else "bigint") for name in COSTS),
    # Tables of older versions don't have the following.
    # The same number in each row of a tick; NULL on a disk.
    StoredColumn("tick_requests", "bigint"),
    # Seconds of checks, measures and checksums, in the row of a model's own table.
    StoredColumn("check_seconds", "double"),
)
COMPACT_EVERY = 100
# Upper limits of plausible run stats, in seconds and in rows; rows above them are ignored.
LONGEST, MOST_ROWS = 7 * 86_400.0, 1e13


def path_of(warehouse: str, env: str = "") -> str:
    """Return the path of the run stats of an environment."""
    return f"{warehouse}/{system_folder(env)}/receipts"


def write(warehouse: str, result: TickResult, engine: str, at: datetime, env: str = "") -> None:
    """Append a tick's run stats in one commit; do nothing if the tick affected no table.

    Raises: EngineError if they can't be written.
    """
    rows = rows_of(result, engine, at)
    if not rows:
        return
    step = append(TableSpec("receipts", path_of(warehouse, env), COLUMNS), rows, result.tick)
    known = None if step is None else _known.known(step[0])
    if step is not None and known is not None:
        _known.put(step[1], known.and_of(rows))


_Step = tuple[delta_table.Entry, delta_table.Entry]


def append(table: TableSpec, rows: list[dict[str, Any]], tick: int, *, own_commit: bool = False) -> _Step | None:
    """Append a tick's rows to a table beside the ledger in one commit; from time to time compact its small files.

    Return the previous and the new version; None if another commit came between them. `own_commit`: sqlrun may write
    the commit itself instead of delta-rs.
    Raises: EngineError if the rows can't be written.
    """
    try:
        before, after = _appended(table, rows, tick, own_commit)
        if tick % COMPACT_EVERY == 0:
            delta_vacuum.compact(table.path)
    except Exception as error:  # a table of that name with other columns raises another error for each type
        message = first_line(error) or type(error).__name__
        raise EngineError(f"the {table.name} of tick {tick} can't be written to {table.path}: {message}") from error
    if before is None or after is None or delta_table.version_of(after) != delta_table.version_of(before) + 1:
        return None
    return before, after


def _appended(
    table: TableSpec, rows: list[dict[str, Any]], tick: int, own_commit: bool
) -> tuple[delta_table.Entry | None, delta_table.Entry | None]:
    """Append rows; return the log's entries before and after."""
    with table_pool.writing(table.path, partial(delta_table.create, table), follow=not own_commit) as opened:
        before, version = delta_table.entry_of(table.path, opened.version()), None
        if own_commit:
            version = own_append.appended(opened, table, rows, tick)
        if version is None:
            delta_table.append_rows(opened, rows)
            version = opened.version()
        return before, delta_table.entry_of(table.path, version)


def scan(table: TableSpec, columns: Sequence[str], predicate: str | None = None) -> pa.Table | None:
    """Return columns of a table beside the ledger, in no order; None if nothing was ever written.

    Raises: EngineError if they can't be read.
    """
    found = _scan(table, columns, predicate)
    return None if found is None else arrow_rows.table_of(found)


def rows(table: TableSpec, columns: Sequence[str], predicate: str | None = None) -> list[dict[str, Any]]:
    """Return what `scan` returns, as rows of plain values; empty if nothing was ever written."""
    found = _scan(table, columns, predicate)
    return [] if found is None else arrow_rows.plain(found)


def _scan(table: TableSpec, columns: Sequence[str], predicate: str | None) -> Any:
    head = delta_table.head(table.path)
    if head is None:
        return None
    try:
        return delta_table.open_table(table.path, head).scan(columns=list(columns), predicate=predicate).read_all()
    except Exception as error:  # Arrow's C interface finds a corrupt file; its error has no class of its own
        raise EngineError(f"the {table.name} at {table.path} can't be read: {first_line(error)}") from error


@dataclass(frozen=True, slots=True)
class Total:
    """Sums over all tables of a tick; of the checks, the number that warned and the number that blocked publishing."""

    rows_changed: int = 0
    seconds: float = 0.0
    checks: int = 0
    warned: int = 0
    failed: int = 0


def totals(warehouse: str, env: str = "") -> dict[int, Total]:
    """Return the sums of changed rows, seconds and checks by tick; implausible values are ignored."""
    columns = ("rows_changed", "seconds", "checks", "checks_warned", "checks_failed")
    found: dict[int, Total] = {}
    for row in _advice(warehouse, env, ["tick", *columns]):
        changed, seconds, *checks = (
            _possible(row[name], LONGEST if name == "seconds" else MOST_ROWS) for name in columns
        )
        so_far = found.get(row["tick"], Total())
        found[row["tick"]] = Total(
            so_far.rows_changed + int(changed),
            so_far.seconds + seconds,
            so_far.checks + int(checks[0]),
            so_far.warned + int(checks[1]),
            so_far.failed + int(checks[2]),
        )
    return found


def _possible(value: object, most: float) -> float:
    return value if isinstance(value, int | float) and 0 <= value <= most else 0  # excludes NaN


def read_for_changes(warehouse: str, table: str, strategy: str) -> list[tuple[int | None, int | None]]:
    """Return pairs of rows read and changed input rows of past ticks for a table and a strategy, latest last."""
    return _advised(warehouse).reads(table, strategy)


# One thread reads; the others wait for its result.
_reading = threading.Lock()
# A process that runs several ticks adds its own run stats to those it has read: reading all of them in each tick would
# take longer and longer, and tables wait for it.
_known: Recent[delta_table.Entry, receipt_history.Advice] = Recent(4)


def _advised(warehouse: str) -> receipt_history.Advice:
    try:
        entry = delta_table.entry_of_head(path_of(warehouse))
    except OSError:
        return receipt_history.NOTHING
    if entry is None:
        return receipt_history.NOTHING
    with _reading:
        return _known.get(
            entry, lambda: receipt_history.NOTHING.and_of(_advice(warehouse, "", list(receipt_history.COLUMNS)))
        )


def _advice(warehouse: str, env: str, columns: list[str]) -> list[dict[str, Any]]:
    """Return columns of all run stats in the order of their ticks.

    Run stats only influence planning, never results. Corrupt or foreign ones and those of another version are ignored.
    """
    path = path_of(warehouse, env)
    try:
        if delta_table.head(path) is None:
            return []
        rows = arrow_rows.plain(delta_table.open_table(path).scan(columns=columns).read_all())
    except Exception:  # delta-rs and Arrow raise errors of many classes for a foreign table
        return []
    return sorted((row for row in rows if isinstance(row["tick"], int)), key=lambda row: row["tick"])


def rows_of(result: TickResult, engine: str, at: datetime) -> list[dict[str, Any]]:
    """Return a row for each table that a tick wrote to or looked at."""
    return [
        {
            "tick": result.tick,
            "as_of": result.as_of,
            "written_at": at,
            "published": result.published,
            "engine": stage.engine or engine,
            "model": node.name,
            "table": stage.table,
            "strategy": stage.strategy,
            "reason": stage.reason,
            "version": stage.version,
            "rows_in": stage.rows_in,
            "rows_changed": stage.rows_changed,
            **_checks(result, stage.table),
            **{name: getattr(stage.receipt, name) for name in COSTS},
            "tick_requests": result.requests,
            "check_seconds": stage.check_seconds,
        }
        for node in result.nodes
        for stage in node.stages
    ]


def _checks(result: TickResult, table: str) -> dict[str, int]:
    """Count the checks of a table: a hidden table has none, a model's own table has the model's."""
    statuses = [check.status for check in result.checks if check.model == table]
    warned = sum(1 for status in statuses if status.level is Level.WARNING)
    failed = sum(1 for status in statuses if status.blocks)
    return {"checks": len(statuses), "checks_warned": warned, "checks_failed": failed}
