"""The analysts' unit tests, offline: rows given, the model's whole query, rows expected. Shell: DuckDB."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from sqlglot import exp

from sqlrun import spark_alone
from sqlrun.errors import EngineError
from sqlrun.incremental import types
from sqlrun.incremental.compile import whole_query
from sqlrun.incremental.script import Moment
from sqlrun.incremental.sql import identifier, type_name
from sqlrun.model import Column, Project, UnitTest
from sqlrun.parse import Query
from sqlrun.ticks import parse_time
from sqlrun.unit.lines import TOLD, landed
from sqlrun.unit.names import inner
from sqlrun.unit.queries import given_sql
from sqlrun.unit.results import TestResult
from sqlrun.unit.values import literal, shown

# What a model may do was checked when it was read; a query that got past that still finds no file and no network here.
LOCKED: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": False,
    "python_enable_replacements": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "memory_limit": "2GB",
    "max_temp_directory_size": "0B",
    "threads": 1,
}
LONGEST = 60.0
# The time of a test that doesn't say one and whose model doesn't ask.
NO_TIME = "2000-01-01 00:00:00"


def run(nouns: Project, queries: Mapping[str, Query], tests: Iterable[tuple[UnitTest, Query]]) -> Iterable[TestResult]:
    """Run tests one by one; each comes with its model's query (rendered with the test's own vars)."""
    import duckdb

    connection = duckdb.connect(config=LOCKED)
    connection.execute("set TimeZone = 'UTC'")
    connection.execute("set lock_configuration = true")
    for test, query in tests:
        # A recursive query may never end; nobody waits longer for rows that are typed by hand.
        watch = threading.Timer(LONGEST, connection.interrupt)
        watch.start()
        try:
            yield _one(connection, nouns, {**queries, query.name: query}, test, query)
        finally:
            watch.cancel()
    connection.close()


def _one(connection: Any, nouns: Project, queries: Mapping[str, Query], test: UnitTest, query: Query) -> TestResult:
    started = time.perf_counter()

    def result(status: str, **details: Any) -> TestResult:
        return TestResult(test.name, test.model, test.place, status, time.perf_counter() - started, **details)

    other = spark_alone.problems([query], nouns.functions)
    if other:
        return result("error", message=f"{other[0].code} {other[0].place}  {other[0].message}. {other[0].hint}")
    clock = query.tree.find(exp.CurrentTimestamp, exp.CurrentDate) is not None
    if clock and not test.as_of:
        return result("error", message="the model asks for the tick's time: give the test an `as_of`")
    moment = Moment(parse_time(test.as_of or NO_TIME), None)
    try:
        direct = {*query.rendered.refs, *query.rendered.sources}
        if test.steps or not (test.macro or {inner(one.input) for one in test.given} <= direct):
            raise ValueError("`then:` and models in between are not played yet")
        _give(connection, nouns, query, test)
        text = whole_query(queries, query.name, (), moment, "duckdb")
        lines = next((one.lines for one in test.given if one.lines is not None), None)
        if lines is not None:
            landed(connection, nouns, query, lines, moment.as_of, "_rows")
            text = "from _rows"
        aside = _set_aside(connection, test, query) if lines is not None else None
        if aside is not None:
            return result("fail", compared="quarantined", **aside)
        if test.expect.rows is None and not test.expect.sql:
            return result("pass")
        columns = expected_columns(connection, test, query)
        actual = _actual(connection, text, columns, query)
        expected = _expected(connection, test, columns, query)
    except (duckdb_error(), ValueError, EngineError) as error:
        return result("error", message=str(error).strip().splitlines()[0])
    missing, unexpected = expected - actual, actual - expected
    if not missing and not unexpected:
        return result("pass")
    return result("fail", columns=columns, missing=_shown(missing), unexpected=_shown(unexpected))


def duckdb_error() -> type[Exception]:
    """Name DuckDB's errors without importing it before it is used."""
    import duckdb

    return duckdb.Error


def _give(connection: Any, nouns: Project, query: Query, test: UnitTest) -> None:
    """Make each input of the model a table: the rows given, or none."""
    given = {inner(g.input): g for g in test.given}
    for name, columns in _inputs(nouns, query):
        kinds = [(c.name, types.parse(c.type)) for c in columns]
        shape = ", ".join(f"{identifier(c.name, 'duckdb')} {type_name(c.type, 'duckdb')}" for c in columns)
        table = identifier(f"{name}__new", "duckdb")
        connection.execute(f"create or replace temp table {table} ({shape})")
        one = given.get(name)
        if one is not None and one.sql:
            connection.execute(f"insert into {table} by name {given_sql(one.sql)}")
        elif one is not None and one.rows:
            values = ", ".join("(" + ", ".join(literal(row.get(n), k) for n, k in kinds) + ")" for row in one.rows)
            connection.execute(f"insert into {table} values {values}")


def _inputs(nouns: Project, query: Query) -> Iterable[tuple[str, tuple[Column, ...]]]:
    known: dict[str, tuple[Column, ...]] = {}
    known.update({m.name: m.columns for m in nouns.models})
    known.update({s.name: s.columns for s in nouns.seeds})
    for name in query.rendered.refs:
        yield name, known[name]
    for source in nouns.sources:
        if source.table in query.rendered.sources:
            yield source.table, source.columns


def expected_columns(connection: Any, test: UnitTest, query: Query) -> tuple[str, ...]:
    """List the columns to compare: those that any expected row names, in the query's order; all if none does."""
    named = {name for row in test.expect.rows or () for name in row}
    if test.expect.sql:
        described = connection.execute(f"describe {given_sql(test.expect.sql)}").fetchall()
        named = {row[0] for row in described}
    return tuple(c for c in query.columns if c in named) or query.columns


def _actual(connection: Any, text: str, columns: tuple[str, ...], query: Query) -> Counter[tuple[str, ...]]:
    model = query.rendered.model
    items = []
    for name in columns:
        column = model.column(name)
        assert column is not None
        items.append(f"cast({identifier(name, 'duckdb')} as {type_name(column.type, 'duckdb')})")
    rows = connection.execute(f"select {', '.join(items)} from ({text})").fetchall()
    return Counter(tuple(shown(v) for v in row) for row in rows)


def _expected(connection: Any, test: UnitTest, columns: tuple[str, ...], query: Query) -> Counter[tuple[str, ...]]:
    if test.expect.sql:
        return _actual(connection, given_sql(test.expect.sql), columns, query)
    kinds = {c.name: types.parse(c.type) for c in query.rendered.model.columns}
    found: Counter[tuple[str, ...]] = Counter()
    for row in test.expect.rows or ():
        values = ", ".join(literal(row.get(name), kinds[name]) for name in columns)
        found[tuple(shown(v) for v in connection.execute(f"select {values}").fetchall()[0])] += 1
    return found


def _set_aside(connection: Any, test: UnitTest, query: Query) -> dict[str, Any] | None:
    """Compare the lines that were set aside with those that are expected to be; None where they are the same."""
    if test.expect.quarantined is None:
        return None
    own = tuple((c.name, c.type) for c in query.rendered.model.columns)
    kinds = dict((*((c.name, c.type) for c in TOLD), *own))
    named = {name for row in test.expect.quarantined for name in row}
    columns = tuple(name for name in kinds if name in named) or tuple(kinds)
    listed = ", ".join(identifier(name, "duckdb") for name in columns)
    found = connection.execute(f"select {listed} from _rows__quarantine").fetchall()
    actual = Counter(tuple(shown(value) for value in row) for row in found)
    expected: Counter[tuple[str, ...]] = Counter()
    for row in test.expect.quarantined:
        values = ", ".join(literal(row.get(name), types.parse(kinds[name])) for name in columns)
        expected[tuple(shown(v) for v in connection.execute(f"select {values}").fetchall()[0])] += 1
    missing, unexpected = expected - actual, actual - expected
    if not missing and not unexpected:
        return None
    return {"columns": columns, "missing": _shown(missing), "unexpected": _shown(unexpected)}


def _shown(rows: Counter[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    return tuple(sorted(rows.elements()))
