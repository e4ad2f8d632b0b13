"""Random tables and the scripts of their changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from hypothesis import strategies as st

from tests.support.case_files import Row, Step
from tests.support.memory import START, Table

Draw = Callable[[Any], Any]
Texts = tuple[str | None, ...]

# A column's name begins with its kind, so that a query's text tells its types.
KINDS = {
    "i": "int",
    "b": "bigint",
    "m": "decimal(10,2)",
    "s": "string",
    "t": "timestamp",
    "d": "date",
    "o": "boolean",
    "xs": "array<int>",
    "ls": "array<struct<x:int,y:string>>",
    "r": "struct<x:int,y:string>",
}
MINUTES = (0, 5, -5, -30, -60, -61, -120, -240, -1440, 5, 30, 60, 180, 1500)
# What a tick moves as_of by: not at all, as planned, and after an outage.
MOVES = (5, 0, 60, 30, 61, 240, 1440)


@st.composite
def tables(draw: Draw) -> list[Table]:
    """Two or three tables with a few columns each; the first has most of them."""
    made = []
    for position in range(draw(st.sampled_from((2, 2, 3)))):
        name = f"t{position}"
        grain = draw(st.sampled_from((("i0",), ("i0",), ("i0", "s0"), ())))
        extra = draw(st.lists(st.sampled_from(("i1", "s1", "m1", "t1", "b1", "o1", "d1", "xs1", "ls1", "r1")),
                              min_size=2, max_size=5 if position == 0 else 3, unique=True))  # fmt: skip
        names = [*dict.fromkeys(("i0", "s0", *extra))]
        nullable = draw(st.booleans())
        required = tuple(grain) if nullable else tuple(n for n in names if n in grain or draw(st.booleans()))
        if grain and draw(st.integers(0, 4)) == 4:
            required = tuple(n for n in required if n not in grain)
        grows = draw(st.integers(0, 3)) == 3
        made.append(
            Table(name, tuple((n, KINDS[n.rstrip("0123456789")]) for n in names), grain, grows, required=required)
        )
    return made


@dataclass
class Contents:
    """The rows of a table, as text, as a script goes on."""

    table: Table
    rows: list[Texts] = field(default_factory=list)

    def key(self, row: Texts) -> Texts:
        return tuple(v for v, (n, _) in zip(row, self.table.columns, strict=True) if n in self.table.grain)

    def has(self, row: Texts) -> bool:
        return bool(self.table.grain) and self.key(row) in {self.key(r) for r in self.rows}


def value(draw: Draw, kind: str, now: int) -> str:
    """Draw a value of a type as text; `now` is the tick's time in minutes."""
    match kind:
        case "int" | "bigint":
            return str(draw(st.sampled_from((1, 2, 3, 0, 4, 5, -1))))
        case "decimal(10,2)":
            return draw(st.sampled_from(("1.00", "2.50", "0.00", "-1.00", "7.25", "0.01")))
        case "string":
            return draw(st.sampled_from(("a", "b", "c", "d")))
        case "boolean":
            return draw(st.sampled_from(("true", "false")))
        case "timestamp":
            return time_text(now + draw(st.sampled_from(MINUTES)))
        case "date":
            return time_text(now + draw(st.sampled_from((0, -1440, 1440, -2880))))[:10]
        case "array<int>":
            items = draw(st.lists(st.integers(0, 3), max_size=3))
            return f"[{', '.join(map(str, items))}]"
        case "struct<x:int,y:string>":
            return _struct(draw)
        case "array<struct<x:int,y:string>>":
            return f"[{', '.join(_struct(draw) for _ in range(draw(st.integers(0, 2))))}]"
    raise ValueError(kind)


def _struct(draw: Draw) -> str:
    x = draw(st.sampled_from(("1", "2", "NULL")))
    return f"{{'x': {x}, 'y': {draw(st.sampled_from(('a', 'b')))}}}"


def time_text(minutes: int) -> str:
    """Write a time given in minutes after the start."""
    return (START + timedelta(minutes=minutes)).strftime("%Y-%m-%d %H:%M")


def row(draw: Draw, table: Table, now: int) -> Texts:
    """Draw a row; NULLs where they are allowed."""
    return tuple(
        None if name not in table.required and draw(st.integers(0, 6)) == 6 else value(draw, kind, now)
        for name, kind in table.columns
    )


@st.composite
def scripts(draw: Draw, made: list[Table], most: int = 4) -> list[Step]:
    """Steps of changes: rows come, leave, change and come back; some ticks are empty, some move no time."""
    contents = [Contents(table) for table in made]
    steps: list[Step] = []
    now = 720
    for number in range(draw(st.integers(2, most))):
        now += draw(st.sampled_from(MOVES)) if number else 0
        step = Step(0, START + timedelta(minutes=now))
        for one in contents:
            changes = _changes(draw, one, now, first=number == 0)
            if changes:
                step.changes.append((one.table.name, changes))
        steps.append(step)
    return steps


def _changes(draw: Draw, contents: Contents, now: int, *, first: bool) -> list[Row]:
    changes: list[Row] = []
    table = contents.table
    words = ("come",) if first or table.grows else ("come", "leave", "change", "come", "again", "flicker")
    for _ in range(draw(st.integers(0, 4 if first else 3))):
        word = draw(st.sampled_from(words))
        if word in ("come", "flicker") or not contents.rows:
            _come(draw, contents, changes, now, stays=word != "flicker" or table.grows)
            continue
        at = draw(st.integers(0, len(contents.rows) - 1))
        gone = contents.rows.pop(at)
        changes.append((-1, gone))
        if word == "again":
            contents.rows.append(gone)
            changes.append((1, gone))
        elif word == "change":
            fresh = row(draw, table, now)
            keep = {n: v for v, (n, _) in zip(gone, table.columns, strict=True) if n in table.grain}
            changed = tuple(keep.get(n, v) for v, (n, _) in zip(fresh, table.columns, strict=True))
            contents.rows.append(changed)
            changes.append((1, changed))
    return changes


def _come(draw: Draw, contents: Contents, changes: list[Row], now: int, *, stays: bool) -> None:
    fresh = row(draw, contents.table, now)
    if contents.has(fresh):
        return
    changes.append((1, fresh))
    if stays:
        contents.rows.append(fresh)
        if not contents.table.grain and draw(st.integers(0, 4)) == 4:  # an equal row
            contents.rows.append(fresh)
            changes.append((1, fresh))
    else:
        changes.append((-1, fresh))
