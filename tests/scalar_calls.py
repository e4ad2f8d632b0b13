"""Every scalar function of the list called with columns of every type: NULL, empty, usual and extreme values.

`python -m tests.scalar_calls NAME...` asks Spark and prints where DuckDB, as sqlrun writes its SQL, answers otherwise;
tests/spark/test_scalar_calls_spark.py holds a sample of the functions to it.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from typing import Any

from sqlrun.transpile.function_arity import takes
from sqlrun.transpile.function_catalogue import SPARK_ONLY, THEMES
from tests.support.both_engines import Row, Rows, on_duckdb, plain

COLUMNS = (
    ("r", "int"), ("s", "string"), ("i", "int"), ("b", "bigint"), ("x", "double"), ("d", "decimal(10,2)"),
    ("da", "date"), ("at", "timestamp"), ("o", "boolean"), ("ia", "array<int>"), ("sa", "array<string>"),
)  # fmt: skip
# A row a value: of each type something usual, nothing, something empty, something extreme.
ROWS: tuple[Row, ...] = (
    (1, "'Ab c'", "2", "3", "0.5D", "1.25", "'2024-02-29'", "'2026-01-02 03:04:05'", "true", "array(3, 1, 1)",
     "array('b', 'a')"),
    (2, *[None] * 10),
    (3, "''", "0", "0", "0.0D", "0", "'1970-01-01'", "'1970-01-01 00:00:00'", "false", "array()", "array()"),
    (4, "'ß→ 12'", "-7", "-9000000000", "-2.5D", "-99999.99", "'1969-12-31'", "'1969-12-31 23:59:59.5'", "false",
     "array(null, 5)", "array(null, '')"),
    (5, "'12'", "1", "40", "double('NaN')", "0.01", "'2026-12-31'", "'2026-12-31 23:59:59.999999'", "true",
     "array(-2)", "array('x')"),
    (6, "'2026-01-02'", "31", "1", "1e20D", "7.50", "'0100-01-01'", "'1900-01-01 12:30:00'", "true",
     "array(1, 2)", "array('y', 'Y')"),
)  # fmt: skip
TYPES = tuple(name for name, _ in COLUMNS[1:])
# Second arguments: of many functions only a value that is written out makes sense.
MORE = ("s", "i", "d", "da", "ia", "'a'", "1", "-1")
# These are operators, casts and generators, or take a unit, a lambda or a schema.
_LEFT_OUT = frozenset(
    [
        "and",
        "or",
        "not",
        "in",
        "case",
        "cast",
        "try_cast",
        "explode",
        "explode_outer",
        "posexplode",
        "posexplode_outer",
        "inline",
        "inline_outer",
        "stack",
        "current_date",
        "current_timestamp",
        "curdate",
        "now",
        "extract",
        "exists",
        "filter",
        "forall",
        "transform",
        "aggregate",
        "reduce",
        "zip_with",
        "map_filter",
        "map_zip_with",
        "transform_keys",
        "transform_values",
        "from_json",
        "schema_of_json",
        "timestampadd",
        "timestampdiff",
        "rlike",
        "like",
        "ilike",
        "regexp",
        "if",
        "date_part",
        "datepart",
        "struct",
        "named_struct",
        "map",
        "array",
    ]
)
# Errors that sqlrun makes on purpose where DuckDB has another value: cases/functions/ has examples of each.
_MEANT = (
    "Spark writes so small and so large a double",
    "Spark writes arrays, structs, maps",
    "of two dates it is an interval",
    "Unimplemented type for cast",
)
NAMES = tuple(
    name
    for theme in ("text", "numbers", "conditions and casts", "dates and times", "arrays, maps and structs")
    for name in THEMES[theme].split()
    if name not in SPARK_ONLY and name not in _LEFT_OUT
)


def calls(names: tuple[str, ...] = NAMES) -> Iterator[str]:
    """List calls with one argument of each type, and with two."""
    for name in names:
        if takes(name, 1):
            yield from (f"{name}({one})" for one in TYPES)
        if takes(name, 2):
            yield from (f"{name}({one}, {two})" for one, two in itertools.product(TYPES, MORE))


def table() -> Rows:
    return Rows("called", COLUMNS, ROWS)


def statement(items: list[str], source: str) -> str:
    return f"select r, {', '.join(f'{call} as c{number}' for number, call in enumerate(items))} from {source}"


def names(items: list[str]) -> list[str]:
    return ["r", *(f"c{number}" for number in range(len(items)))]


def accepted(session: Any, listed: list[str], view: str) -> list[str]:
    """Leave out the calls that Spark's analyzer refuses: DuckDB has to refuse them too, which other tests see to."""
    found = []
    for call in listed:
        try:
            session.sql(statement([call], view)).schema  # noqa: B018
        except Exception:
            continue
        found.append(call)
    return found


def spark_values(session: Any, listed: list[str], view: str) -> dict[str, dict[int, Any] | None]:
    """Give Spark's values by row; None for a row whose call is an error."""
    found: dict[str, dict[int, Any] | None] = {}

    def ask(part: list[str]) -> None:
        try:
            rows = [tuple(row) for row in session.sql(statement(part, view)).collect()]
        except Exception:
            if len(part) == 1:
                found[part[0]] = None
                return
            ask(part[: len(part) // 2])
            ask(part[len(part) // 2 :])
            return
        for number, call in enumerate(part, 1):
            found[call] = {row[0]: plain(row[number]) for row in rows}

    for start in range(0, len(listed), 40):
        ask(listed[start : start + 40])
    return found


def differences(session: Any, listed: list[str]) -> list[str]:
    """Say where DuckDB gives another value than Spark, or one of them an error where the other gives values."""
    made = table()
    rows = session.sql(made.on_spark())
    rows.createOrReplaceTempView("called")
    connection = made.on_duckdb(tuple(row) for row in rows.collect())
    lines = []
    for call, spark in spark_values(session, accepted(session, listed, "called"), "called").items():
        found = on_duckdb(connection, statement([call], "ref.called"), names([call]), made)
        if isinstance(found, str):
            if found.startswith("error") and spark is not None and not any(stop in found for stop in _MEANT):
                lines.append(f"{call}: {found}, Spark {list(spark.values())[:3]}")
            continue
        if spark is None and any("(BC)" in str(value) for _, value in found):
            continue  # Spark has the date, Python has none before the year 1
        if spark is None:
            lines.append(f"{call}: {[plain(row[1]) for row in found][:4]}, Spark an error")
            continue
        wrong = [f"{plain(v)!r} not {spark[r]!r}" for r, v in found if plain(v) != spark[r]]
        if wrong:
            lines.append(f"{call}: {'; '.join(wrong)}"[:200])
    return lines


def main(wanted: list[str]) -> None:
    from sqlrun.engines.spark.engine import SparkEngine

    engine = SparkEngine({"spark.driver.memory": "2g"})
    engine.start()
    with engine._session() as session:
        for name in wanted or NAMES:
            for line in differences(session, list(calls((name,)))):
                print(line, flush=True)
    engine.close()


if __name__ == "__main__":
    main(sys.argv[1:])
