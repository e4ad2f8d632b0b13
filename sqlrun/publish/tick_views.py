"""SQL statements that define a published tick's tables as views, for notebooks and BI. Shell: the ledger."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sqlrun.errors import UsageError
from sqlrun.project import is_state_table
from sqlrun.publish import catalog_tables, duckdb_views
from sqlrun.publish.ledger import Ledger
from sqlrun.publish.reader import tick_of
from sqlrun.publish.table_state import Published
from sqlrun.storage.urls import is_url
from sqlrun.transpile.writer import identifier

# Dialects of the statements. Those of a catalog follow the ticks; the last needs DuckDB's extension for Delta.
DIALECTS = ("spark", "spark-catalog", "spark-tables", "duckdb", "duckdb-delta")


def of_tick(warehouse: str, tick: int | None, env: str, dialect: str = DIALECTS[0]) -> list[str]:
    """Return the statements for a published tick, the latest by default.

    Raises: UsageError if the warehouse has no published tick, or not the given one, or there is no such dialect.
    """
    where = warehouse if is_url(warehouse) else str(Path(warehouse).resolve())
    match dialect:
        case "spark":
            return list(statements(tick_of(Ledger(warehouse, "", env), tick), where))
        case "spark-catalog" | "spark-tables":
            if tick is not None:
                raise UsageError("the tables of a catalog show the newest tick. Remove --tick, or use --dialect spark")
            write = catalog_tables.of_whole_ticks if dialect == "spark-catalog" else catalog_tables.statements
            return list(write(where, env))
        case "duckdb" | "duckdb-delta":
            return duckdb_views.of_tick(where, tick, env, by_extension=dialect == "duckdb-delta")
        case _:
            raise UsageError(f"unknown dialect `{dialect}`. Dialects: {', '.join(DIALECTS)}.")


def statements(published: Published, warehouse: str) -> Iterator[str]:
    """Return a temporary view for each table, pinned to its version, so that later builds don't change it.

    The views need a session with Delta Lake's extension. `warehouse` is a path as Spark sees it.

    >>> from sqlrun.publish.table_state import TableState
    >>> state = TableState("orders/0a1b2c3d4e5f", 7, None, columns=(("id", "int"),), where="_reason is null")
    >>> print(*statements(Published(3, None, {"orders": state}), "/w"))
    create or replace temporary view `orders` as
    select `id` from delta.`/w/orders/0a1b2c3d4e5f` version as of 7 where _reason is null
    """
    for name, state in sorted(published.tables.items()):
        if not is_state_table(name):
            columns = ", ".join(identifier(column, "spark") for column, _ in state.columns)
            where = f" where {state.where}" if state.where else ""
            yield (
                f"create or replace temporary view {identifier(name, 'spark')} as\n"
                f"select {columns} from delta.{identifier(f'{warehouse}/{state.path}', 'spark')} "
                f"version as of {state.version}{where}"
            )
