"""Suggested suite for a published table. Shell: DuckDB."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from sqlrun.engine_api import Engine, Relation
from sqlrun.errors import UsageError
from sqlrun.expectations.values import Family, family_of
from sqlrun.project import Column, Expectation, Model, Value
from sqlrun.runtime import arrow_rows
from sqlrun.transpile.writer import identifier

# A set of texts has at most this number of values, each with at least this number of rows on average.
MOST_VALUES, OFTEN = 10, 3
LONGEST_VALUE = 40
# Minimum number of rows to suggest that a column is unique.
MANY_ROWS = 100
# Minimum share of values to suggest that a column is filled.
LEAST_SHARE = 0.5
PLAIN = re.compile(r"(?!(?:y|n|yes|no|on|off|true|false|null)$)[a-z_][a-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Profiled:
    """Statistics of one column: number of values and of distinct values, minimum and maximum, all values if few."""

    name: str
    family: Family
    values: int
    distinct: int
    least: Value = None
    greatest: Value = None
    few: tuple[str, ...] = ()


def suggest(engine: Engine, table: Relation, model: Model, known: Collection[Expectation], as_of: datetime) -> str:
    """Return a suite, as YAML, that passes on a table, without checks that are `known` already.

    It reveals no contents of columns tagged pii. Raises: UsageError if there are no rows.
    """
    columns = [column for column in model.columns if column.name in {c.name for c in table.columns}]
    rows, profiled = _profiled(engine, table, columns)
    if not rows:
        raise UsageError(
            f"`{model.name}` has no rows at this tick, so sqlrun can't suggest checks. Choose another tick with --tick."
        )
    existing = {(e.type, str(e.kwargs.get("column", ""))) for e in known}
    lines = ["expectations:"]
    for kind, column, kwargs, why in _suggested(rows, profiled, as_of):
        if (kind, column) in existing:
            continue
        arguments = ", ".join([*([f"column: {_text(column)}"] if column else []), *kwargs])
        lines += [
            f"  - type: {kind}",
            f"    kwargs: {{{arguments}}}",
            "    severity: warning",
            f"    description: {why}",
        ]
    return "\n".join(lines if len(lines) > 1 else ["expectations: []"])


def _profiled(engine: Engine, table: Relation, columns: list[Column]) -> tuple[int, list[Profiled]]:
    items, families = ["count(*) as n"], [family_of(column.type) for column in columns]
    for place, (column, family) in enumerate(zip(columns, families, strict=True)):
        name = identifier(column.name, "duckdb")
        items.append(f"count({name}) as v{place}")
        if family != "other" and not column.is_private:
            items += [f"count(distinct {name}) as d{place}", f"min({name}) as l{place}", f"max({name}) as g{place}"]
    found = arrow_rows.plain(
        engine.query(f"select {', '.join(items)} from {identifier(table.name, 'duckdb')}", (table,))
    )[0]
    profiled = []
    for place, (column, family) in enumerate(zip(columns, families, strict=True)):
        values, distinct = found[f"v{place}"], found.get(f"d{place}", 0)
        few: tuple[str, ...] = ()
        if family == "text" and 0 < distinct <= MOST_VALUES and values >= OFTEN * distinct:
            name = identifier(column.name, "duckdb")
            sql = f"select distinct {name} as v from {identifier(table.name, 'duckdb')} order by 1 nulls last"
            few = tuple(row["v"] for row in arrow_rows.plain(engine.query(sql, (table,))))[:distinct]
        ends = (found.get(f"l{place}"), found.get(f"g{place}"))
        profiled.append(Profiled(column.name, family, values, distinct, *ends, few))
    return found["n"], profiled


_Suggested = tuple[str, str, list[str], str]  # type, column, further arguments as YAML, description


def _suggested(rows: int, profiled: list[Profiled], as_of: datetime) -> Iterator[_Suggested]:
    yield "expect_table_row_count_to_be_between", "", ["min_value: 1"], "The table is never empty."
    for column in profiled:
        yield from _filled(column, rows)
        if column.few and all(value.isprintable() and len(value) <= LONGEST_VALUE for value in column.few):
            listed = ", ".join(_quoted(value) for value in column.few)
            yield (
                "expect_column_values_to_be_in_set",
                column.name,
                [f"value_set: [{listed}]"],
                "There are no other values.",
            )
        yield from _between(column, as_of)
        if column.family in ("text", "integer") and rows >= MANY_ROWS and column.distinct == rows:
            yield "expect_column_values_to_be_unique", column.name, [], "No value occurs twice."


def _filled(column: Profiled, rows: int) -> Iterator[_Suggested]:
    share = math.floor(column.values / rows * 100) / 100
    if column.values == rows:
        yield "expect_column_values_to_not_be_null", column.name, [], "No row lacks a value."
    elif share >= LEAST_SHARE:
        yield "expect_column_values_to_not_be_null", column.name, [f"mostly: {share}"], "Most rows have a value."


def _between(column: Profiled, as_of: datetime) -> Iterator[_Suggested]:
    kind, least, greatest = "expect_column_values_to_be_between", column.least, column.greatest
    match least, greatest:
        case (datetime(), datetime()):
            past = column.family == "timestamp" and greatest <= as_of
        case (date(), date()):
            past = greatest <= as_of.date()
        case (int() | Decimal() | float(), int() | Decimal() | float()) if column.family != "boolean":
            past = False
            if all(math.isfinite(end) for end in (least, greatest)):
                ends = [f"min_value: {_number(least)}", f"max_value: {_number(greatest)}"]
                yield kind, column.name, ends, "The range of the values when this check was written."
        case _:
            past = False
    if past:
        yield kind, column.name, ["max_value: {$PARAMETER: as_of}"], "No value is in the future."


def _number(value: int | Decimal | float) -> str:
    """Return a number as YAML; quoted if YAML would lose digits."""
    text = format(value, "f") if isinstance(value, Decimal) else repr(value)
    exact = isinstance(value, int) or (Decimal(str(float(value))) == Decimal(text) and "e" not in text)
    return text if exact else _quoted(text)


def _text(name: str) -> str:
    return name if PLAIN.fullmatch(name) else _quoted(name)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
