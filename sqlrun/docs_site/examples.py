"""Unit tests as examples: the rows that a model reads and returns, as JSON values. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from sqlrun.project import Change, Expected, Given, Row, Step, UnitTest, Value

Values = dict[str, Any]


def example(test: UnitTest) -> Values:
    """Return a unit test. Values of rows are text, because JavaScript would round a long number; NULL is None."""
    first = {"as_of": test.as_of, "changes": [], "expect": expected(test.expect)}
    return {
        "name": test.name,
        "description": test.description,
        "place": str(test.place),
        "cte": test.cte,
        "sql": test.sql,
        "tags": list(test.tags),
        "overrides": [[name, shown(value)] for name, value in {**test.vars, **test.macros}.items()],
        "given": [_given(one) for one in test.given],
        "ticks": [first, *(_step(step) for step in test.steps)],
    }


def _given(one: Given) -> Values:
    return {"input": one.input, **_rows(one.rows, one.sql, one.lines)}


def _rows(rows: Iterable[Row] | None, sql: str = "", lines: Iterable[str] | None = None) -> Values:
    """Return rows in one of their forms: a table, a SELECT, or raw lines."""
    if sql:
        return {"sql": sql}
    if lines is not None:
        return {"lines": list(lines)}
    return {"rows": None if rows is None else table(rows)}


def table(rows: Iterable[Row]) -> Values:
    """Return rows as a table: a column that a row doesn't name has no value there, and no NULL.

    >>> table([{"id": 1, "paid": True}, {"id": 12345678901234567890, "at": None}])
    {'columns': ['id', 'paid', 'at'], 'rows': [['1', 'true', False], ['12345678901234567890', False, None]]}
    """
    given = list(rows)
    columns = list(dict.fromkeys(name for row in given for name in row))
    return {
        "columns": columns,
        "rows": [[shown(row[name]) if name in row else False for name in columns] for row in given],
    }


def shown(value: Value) -> str | None:
    """Return a value as text.

    >>> shown([1, None]), shown("x"), shown(None)
    ('[1, null]', 'x', None)
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping | list | tuple):
        return json.dumps(value, default=str, ensure_ascii=False)
    return str(value)


def expected(one: Expected) -> Values:
    """Return what a unit test expects of a tick; parts that it doesn't check are absent."""
    parts: dict[str, Values] = {}
    if one.rows is not None or one.sql:
        parts["whole"] = _rows(one.rows, one.sql)
    for word, rows in (("added", one.came), ("removed", one.left), ("quarantined", one.quarantined)):
        if rows is not None:
            parts[word] = _rows(rows)
    return parts


def _step(step: Step) -> Values:
    return {"as_of": step.as_of, "changes": [_change(one) for one in step.changes], "expect": expected(step.expect)}


def _change(one: Change) -> Values:
    rows = {"added": one.came, "removed": one.left, "updated": one.updated}
    parts = {word: _rows(found) for word, found in rows.items() if found}
    if one.lines is not None:
        parts["landed"] = _rows(None, "", one.lines)
    return {"input": one.input, "parts": parts}
