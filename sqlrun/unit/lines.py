"""A unit test's raw lines through a landing model's own landing query: rows or quarantine. Shell: DuckDB, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlrun import landing, plan
from sqlrun.engines.protocol import StoredColumn
from sqlrun.incremental import compile as compiler
from sqlrun.incremental.compile import Compiled
from sqlrun.incremental.sql import identifier, names, string
from sqlrun.landing import REASON, Rule
from sqlrun.model import Project
from sqlrun.parse import Query

# What a test can say of a line that was set aside, beside as much of its row as could be read.
TOLD = (StoredColumn(REASON, "string"), StoredColumn(landing.RAW, "string"))
FILE, QUARANTINE = "given", "__quarantine"


def land(
    connection: Any, compiled: Compiled, rules: Sequence[Rule], lines: Sequence[str], as_of: datetime, into: str
) -> None:
    """Land lines in two temporary tables made anew: `into` has the good rows, `<into>__quarantine` the others.

    The first has the model's columns, the second `_reason` and `_raw` before them. `compiled` is a model that reads a
    source, `rules` are `plan.rules_of` it.
    """
    assert compiled.source is not None
    connection.execute("create or replace temp table lines (value varchar, file varchar)")
    if lines:
        rows = ", ".join(f"({string(line, 'duckdb')}, '{FILE}')" for line in lines)
        connection.execute(f"insert into lines values {rows}")
    query = landing.query(compiled.own, compiled.source, rules, "duckdb", as_of)
    own = [column.name for column in compiled.own.columns]
    good, bad = identifier(into, "duckdb"), identifier(f"{into}{QUARANTINE}", "duckdb")
    told = names((*(column.name for column in TOLD), *own), "duckdb")
    connection.execute(
        f"create or replace temp table _landed as {query};"
        f"create or replace temp table {good} as select {names(own, 'duckdb')} from _landed where {REASON} is null;"
        f"create or replace temp table {bad} as select {told} from _landed where {REASON} is not null;"
        "drop table _landed; drop table lines"
    )


def landed(connection: Any, nouns: Project, query: Query, lines: Sequence[str], as_of: datetime, into: str) -> None:
    """Land lines for a model's query that reads their source, under the rules of its expectations.

    Raises: ProjectError where the query can't be a landing.
    """
    compiled = compiler.model(query, compiler.new_catalog(nouns))
    land(connection, compiled, plan.rules_of(nouns, compiled), lines, as_of, into)
