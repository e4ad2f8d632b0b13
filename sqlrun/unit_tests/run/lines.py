"""Landing of a unit test's raw lines by a model's landing query: rows or quarantine. Shell: DuckDB, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlrun.engine_api import StoredColumn
from sqlrun.incremental.compile import Compiled
from sqlrun.incremental.landing import query as landing_query
from sqlrun.incremental.landing.query import REASON
from sqlrun.transpile.writer import identifier, names, string

# Columns of a quarantined line that a test can name, in addition to the parsable part of its row.
QUARANTINE_COLUMNS = (StoredColumn(REASON, "string"), StoredColumn(landing_query.RAW, "string"))
FILE, QUARANTINE = "given", "__quarantine"


def land(connection: Any, compiled: Compiled, query: str, lines: Sequence[str], into: str) -> None:
    """Land lines in two new temporary tables: `into` has the valid rows, `<into>__quarantine` the others.

    The first has the model's columns, the second `_reason` and `_raw` before them. `query` is the landing query of
    `compiled`, a model that reads a source.
    """
    connection.execute("create or replace temp table lines (value varchar, file varchar)")
    if lines:
        rows = ", ".join(f"({string(line, 'duckdb')}, '{FILE}')" for line in lines)
        connection.execute(f"insert into lines values {rows}")
    own = [column.name for column in compiled.own.columns]
    good, bad = identifier(into, "duckdb"), identifier(f"{into}{QUARANTINE}", "duckdb")
    quarantined = names((*(column.name for column in QUARANTINE_COLUMNS), *own), "duckdb")
    connection.execute(
        f"create or replace temp table _landed as {query};"
        f"create or replace temp table {good} as select {names(own, 'duckdb')} from _landed where {REASON} is null;"
        f"create or replace temp table {bad} as select {quarantined} from _landed where {REASON} is not null;"
        "drop table _landed; drop table lines"
    )
