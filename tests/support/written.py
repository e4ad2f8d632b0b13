"""Queries in analysts' style, played over changing tables, for oracles that read the text itself.

`cases/written.sql` has them, modelled on the test suites of several engines: each uses a construct that a parser may
read differently from Spark. A query is maintained over five ticks; then its table must equal the oracle's.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from tests.fuzz.running import shared
from tests.support.case_files import Row
from tests.support.memory import START, Bag, Memory, Table, View

FILE = Path(__file__).parents[1] / "cases" / "written.sql"
TICKS = 5
TABLES = [
    Table(
        "t", (("k", "int"), ("a", "int"), ("s", "string"), ("x", "string"), ("m", "decimal(10,2)")), ("k",),
        required=("k",),
    ),
    Table("u", (("k", "int"), ("a", "int"), ("s", "string"), ("b", "int"))),
    Table("w", (("k", "int"), ("a", "int"), ("c", "int")), ("k",), required=("k",)),
    Table(
        "g", (("k", "int"), ("v", "int"), ("s", "string"), ("x", "string"), ("n", "int")), ("n",), grows=True,
        required=("n",),
    ),
    Table("t2", (("k", "int"), ("v", "int"), ("n", "int")), ("n",), required=("n",)),
]  # fmt: skip
Changes = list[tuple[str, list[Row]]]


@dataclass(frozen=True)
class Written:
    """A query; `refused` is the code of its rejection, empty if it is maintained."""

    sql: str
    refused: str = ""


def queries() -> list[Written]:
    """Return the queries of the file, split at semicolons; `-- refused CODE` precedes a rejected one."""
    found = []
    for text in FILE.read_text().split(";"):
        lines = [line for line in text.strip().split("\n") if line]
        code = next((line.split()[-1] for line in lines if line.startswith("-- refused")), "")
        sql = "\n".join(line for line in lines if not line.startswith("--"))
        if sql:
            found.append(Written(sql, code))
    return found


def _value(draw: random.Random, kind: str) -> str | None:
    if draw.random() < 0.2:
        return None
    if kind == "int":
        return str(draw.randint(0, 5))
    return draw.choice(("a", "b", "c", "s", "x") if kind == "string" else ("1.00", "2.50", "0.00", "7.25"))


def _row(draw: random.Random, table: Table, key: str) -> tuple[str | None, ...]:
    return tuple(key if name in table.grain else _value(draw, kind) for name, kind in table.columns)


def _changes(draw: random.Random, table: Table, rows: list[tuple[str | None, ...]], tick: int) -> Iterator[Row]:
    """Yield rows that are added, updated and deleted; an append-only table only gets more."""
    place = next((n for n, (name, _) in enumerate(table.columns) if name in table.grain), None)
    for number in range(5 if not tick else draw.randint(1, 3)):
        key = str(10 * tick + number if table.grows else draw.randint(1, 9))
        if place is None or all(row[place] != key for row in rows):
            rows.append(_row(draw, table, key))
            yield 1, rows[-1]
    for _ in range(draw.randint(0, 2) if tick and not table.grows else 0):
        if rows:
            gone = rows.pop(draw.randrange(len(rows)))
            yield -1, gone
            if place is not None and draw.random() < 0.5:
                rows.append(_row(draw, table, str(gone[place])))
                yield 1, rows[-1]


def script(seed: int) -> tuple[list[Changes], dict[str, list[tuple[str | None, ...]]]]:
    """Draw the changes of each tick; the second value is the tables' final content."""
    draw, rows = random.Random(seed), {table.name: list[tuple[str | None, ...]]() for table in TABLES}
    ticks = [
        [(table.name, list(_changes(draw, table, rows[table.name], tick))) for table in TABLES] for tick in range(TICKS)
    ]
    return ticks, rows


def made(query: str) -> Memory:
    """Return a compiled query, in its own schema."""
    connection = shared()
    connection.execute("drop schema if exists fuzz cascade; create schema fuzz; set schema = 'fuzz'")
    return Memory(TABLES, [View("m", query)], connection)


def kept(memory: Memory, seed: int) -> Bag:
    """Maintain a query over the ticks; return its final table."""
    for tick, changes in enumerate(script(seed)[0]):
        for table, rows in changes:
            memory.change(table, rows)
        memory.step(last(tick))
    return memory.kept("m")


def last(tick: int = TICKS - 1) -> Any:
    """Return a tick's time."""
    return START + timedelta(minutes=5 * tick)


def plain(rows: Bag) -> Counter[tuple[str | None, ...]]:
    """Return rows as text that engines agree on: numbers without trailing zeros, times without a zone."""
    found: Counter[tuple[str | None, ...]] = Counter()
    for row, number in rows.items():
        found[tuple(_text(value) for value in row)] += number
    return found


def _text(value: Any) -> str | None:
    if isinstance(value, tuple | list):  # DuckDB's structs are pairs of names and values, Spark's rows are values
        pairs = bool(value) and all(isinstance(v, tuple) and len(v) == 2 and isinstance(v[0], str) for v in value)
        return ", ".join(str(_text(v[1] if pairs else v)) for v in value)
    if value is None or isinstance(value, bool):
        return None if value is None else str(value)
    if isinstance(value, float | int | Decimal):
        try:
            return str(round(Decimal(str(value)), 9).normalize() + 0)
        except InvalidOperation:
            return str(value)
    return str(value).removesuffix("+00:00")
