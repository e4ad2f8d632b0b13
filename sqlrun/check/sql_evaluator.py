"""Custom SQL of checks, run on the rows. Shell: DuckDB, in memory and without access to files and network."""

from __future__ import annotations

import atexit
import functools
import threading
import time
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from sqlrun.engines.duckdb import data_errors
from sqlrun.expectations.sql import BATCH, batch_query, condition_tree, literal
from sqlrun.runtime import arrow_rows
from sqlrun.runtime.stopping import limited
from sqlrun.runtime.text_lines import text_lines
from sqlrun.transpile import writer as sql

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

_LOCK = threading.Lock()


class OfAValue(ValueError):
    """An error about a value; its text may quote the value."""


@functools.cache
def _connection() -> duckdb.DuckDBPyConnection:
    import duckdb

    connection = duckdb.connect(
        ":memory:", config={"enable_external_access": False, "python_enable_replacements": False}
    )
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET lock_configuration = true")
    atexit.register(connection.close)  # this deletes its spilled data
    return connection


def unexpected(
    rows: pa.Table, query: str, as_of: datetime, samples: int, check_timeout: float
) -> tuple[int, list[dict[str, object]]]:
    """Run an unexpected_rows_query; return its number of rows, and the first ones. Raises: ValueError."""
    end = time.monotonic() + check_timeout
    sql = _query(query, as_of)
    counted = int(_ask(rows, f"SELECT count(*) AS n FROM ({sql}) AS q", check_timeout, _number))
    if not counted:
        return 0, []
    few = _ask(rows, f"SELECT * FROM ({sql}) AS q LIMIT {samples}", end - time.monotonic(), _table)
    return counted, arrow_rows.plain(few)


def kept(rows: pa.Table, condition: str, as_of: datetime, check_timeout: float) -> pa.Table:
    """Return the rows for which a `row_condition` is true. Raises: ValueError."""
    return _ask(rows, f"SELECT * FROM {BATCH} WHERE {_condition(condition, as_of)}", check_timeout, _table)


def _query(text: str, as_of: datetime) -> str:
    return _timeless(text, batch_query) or _duckdb(batch_query(text), as_of)


def _condition(text: str, as_of: datetime) -> str:
    return _timeless(text, condition_tree) or _duckdb(condition_tree(text), as_of)


@functools.lru_cache(1024)  # the same in each tick
def _timeless(text: str, read: Callable[[str], exp.Expr]) -> str | None:
    """Return a text without clocks in DuckDB's SQL; None for a text with a clock."""
    tree = read(text)
    return None if any(_is_clock(node) for node in tree.walk()) else sql.expression(tree, "duckdb")


def _is_clock(node: exp.Expr) -> bool:
    named_now = isinstance(node, exp.Anonymous) and node.name.lower() == "now"
    return named_now or isinstance(node, (exp.CurrentDate, exp.CurrentTimestamp))


def _duckdb(tree: exp.Expr, as_of: datetime) -> str:
    """Return a tree in DuckDB's SQL; its only clock is the tick's."""

    def clock(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.CurrentDate):
            return literal(as_of.date(), "date")
        return literal(as_of, "timestamp") if _is_clock(node) else node

    return sql.expression(tree.transform(clock), "duckdb")


def _table(connection: duckdb.DuckDBPyConnection, sql: str) -> pa.Table:
    return connection.sql(sql).to_arrow_table()


def _number(connection: duckdb.DuckDBPyConnection, sql: str) -> Any:
    """Return the only value of a result; fetching it through Arrow would plan the statement twice."""
    return connection.execute(sql).fetchall()[0][0]


def _ask(rows: pa.Table, sql: str, seconds: float, take: Callable[[duckdb.DuckDBPyConnection, str], Any]) -> Any:
    """Run a query over the rows, at most for `seconds`. Raises: ValueError."""
    import duckdb

    with _LOCK:
        connection = _connection()
        connection.register(BATCH, rows)
        try:
            # A late interrupt doesn't affect the next check: it is withdrawn before the lock is released.
            with limited(connection.interrupt, seconds):
                return take(connection, sql)
        except (duckdb.BinderException, duckdb.CatalogException, duckdb.ParserException) as error:
            raise ValueError(text_lines(str(error))[0]) from error
        except duckdb.InterruptException:
            raise ValueError(f"it ran longer than {seconds:g} s and was stopped") from None
        except duckdb.Error as error:
            raise OfAValue(text_lines(str(data_errors.as_engine_error(error)))[0]) from error
        finally:
            connection.unregister(BATCH)
