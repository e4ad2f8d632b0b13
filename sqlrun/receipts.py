"""What each table cost in each tick, as rows of a Delta table beside the ledger. Shell: Delta files.

Written after a tick has ended, so that no reader waits for it. Nothing is decided by these rows: a build that can't
write them says so and goes on.
"""

from __future__ import annotations

from dataclasses import fields
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlrun.engines import delta_files
from sqlrun.engines.protocol import Receipt, StoredColumn, TableSpec
from sqlrun.errors import EngineError
from sqlrun.events import TickResult

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
    *(StoredColumn(name, "double" if name == "seconds" else "bigint") for name in COSTS),
)
COMPACT_EVERY = 100
# So many past ticks say what the next one will cost.
LOOK_BACK = 50


def path_of(warehouse: str) -> str:
    """Tell where the receipts of a warehouse are."""
    return str(Path(warehouse) / "_sqlrun" / "receipts")


def write(warehouse: str, result: TickResult, engine: str, at: datetime) -> None:
    """Append a tick's receipts in one commit; nothing where no table was touched.

    Raises: EngineError if they can't be written.
    """
    rows = rows_of(result, engine, at)
    if not rows:
        return
    from deltalake.exceptions import DeltaError

    path = path_of(warehouse)
    try:
        delta_files.create(TableSpec("receipts", path, COLUMNS))
        delta_files.append_rows(delta_files.open_table(path), rows)
        if result.tick % COMPACT_EVERY == 0:
            delta_files.compact(path)
    except (DeltaError, OSError) as error:
        raise EngineError(f"the receipts of tick {result.tick} can't be written to {path}: {error}") from error


def totals(warehouse: str) -> dict[int, tuple[int, float]]:
    """Add up rows changed and seconds of all tables, by tick."""
    import pyarrow as pa

    if delta_files.head(path_of(warehouse)) is None:
        return {}
    table = delta_files.open_table(path_of(warehouse))
    found: dict[int, tuple[int, float]] = {}
    for row in pa.table(table.scan(columns=["tick", "rows_changed", "seconds"]).read_all()).to_pylist():
        rows, seconds = found.get(row["tick"], (0, 0.0))
        found[row["tick"]] = rows + row["rows_changed"], seconds + row["seconds"]
    return found


def read_for_changes(warehouse: str, table: str, strategy: str) -> list[tuple[int | None, int | None]]:
    """List how many rows past ticks read for how many changed ones of a table's inputs, newest last."""
    import pyarrow as pa

    if delta_files.head(path_of(warehouse)) is None:
        return []
    opened = delta_files.open_table(path_of(warehouse))
    if "rows_in" not in [field.name for field in opened.schema().fields]:
        return []
    columns = ["tick", "table", "strategy", "rows_read", "rows_in"]
    rows = pa.table(opened.scan(columns=columns).read_all()).to_pylist()
    mine = [r for r in rows if r["table"] == table and r["strategy"] == strategy]
    return [(r["rows_read"], r["rows_in"]) for r in sorted(mine, key=lambda r: r["tick"])[-LOOK_BACK:]]


def rows_of(result: TickResult, engine: str, at: datetime) -> list[dict[str, Any]]:
    """Make a row of each table that a tick wrote to or looked at."""
    return [
        {
            "tick": result.tick,
            "as_of": result.as_of,
            "written_at": at,
            "published": result.published,
            "engine": engine,
            "model": node.name,
            "table": stage.table,
            "strategy": stage.strategy,
            "reason": stage.reason,
            "version": stage.version,
            "rows_in": stage.rows_in,
            "rows_changed": stage.rows_changed,
            **{name: getattr(stage.receipt, name) for name in COSTS},
        }
        for node in result.nodes
        for stage in node.stages
    ]
