"""What past ticks say about a project: sizes, last results of checks, run stats. Shell: Delta files, DuckDB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlrun.docs_site.subject import Past
from sqlrun.engine_api import Relation
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.errors import EngineError
from sqlrun.plan import strategy_cost
from sqlrun.plan.values import Workspace
from sqlrun.publish.ledger import Ledger
from sqlrun.runtime import arrow_rows
from sqlrun.system_tables import check_results, receipts

# Number of ticks of each table that a page shows.
TICKS = 5
CHECKS = ("check_id", "tick", "as_of", "published", "status", "evaluated", "unexpected", "message")
STATS = (
    "table", "model", "tick", "as_of", "published", "engine", "strategy", "reason", "rows_in", "rows_changed",
    "rows_read", "rows_written", "files_written", "bytes_written", "seconds",
)  # fmt: skip


def read_past(workspace: Workspace, ledger: Ledger) -> Past:
    """Return what the warehouse of a ledger knows about the tables of a project, hidden tables included."""
    published = ledger.read().published
    faults: list[str] = []
    last = _last(check_results.path_of(ledger.warehouse, ledger.env), CHECKS, "check_id", 1, faults)
    stats: dict[str, list[Mapping[str, Any]]] = {}
    for row in _last(receipts.path_of(ledger.warehouse, ledger.env), STATS, '"table"', TICKS, faults):
        stats.setdefault(row["model"], []).append(row)
    states = {} if published is None else published.tables
    rows = {
        name: delta_table.rows_at(f"{ledger.warehouse}/{state.path}", state.version)
        for name, state in states.items()
        if workspace.has(name)
    }
    return Past(
        published, rows, _rates(workspace, ledger), {row["check_id"]: row for row in last}, stats, tuple(faults)
    )


def _rates(workspace: Workspace, ledger: Ledger) -> dict[str, float]:
    found = {}
    for model in workspace.tables:
        for stage in model.stages:
            reads = receipts.read_for_changes(ledger.warehouse, stage.name, stage.strategy)
            rate = strategy_cost.amplification(reads)
            if rate is not None:
                found[stage.name] = rate
    return found


def _last(path: str, columns: Sequence[str], key: str, count: int, faults: list[str]) -> list[dict[str, Any]]:
    """Return the newest rows of each key of a table beside the ledger; none if there is no such table."""
    names = ", ".join(f'"{name}"' for name in columns)
    sql = f"""
        select {names} from book
        qualify row_number() over (partition by {key} order by tick desc, written_at desc) <= {count}
        order by {key}, tick desc
    """
    try:
        head = delta_table.head(path)
        if head is None:
            return []
        book = Relation("book", path, delta_table.columns_at(path, head), "new", version=head)
        engine = DuckDBEngine()
        try:
            return arrow_rows.plain(engine.query(sql, (book,)))
        finally:
            engine.close()
    except EngineError as error:
        faults.append(str(error))
        return []
