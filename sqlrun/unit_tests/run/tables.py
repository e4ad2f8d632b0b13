"""Rows of unit tests as bags that are compared by value and shown as text. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlrun.project import Column
from sqlrun.test_definitions.values import shown

Texts = tuple[str, ...]
Raw = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """What is not as it has to be: rows as text over `columns`, those that lack and those that are too many."""

    compared: str
    step: int
    columns: Texts = ()
    missing: tuple[Texts, ...] = ()
    unexpected: tuple[Texts, ...] = ()
    message: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows over columns, in no order."""

    columns: Texts
    rows: tuple[Raw, ...] = ()

    def only(self, columns: Texts) -> Table:
        """Leave out other columns."""
        if columns == self.columns:
            return self
        places = [self.columns.index(name) for name in columns]
        return Table(columns, tuple(tuple(row[place] for place in places) for row in self.rows))

    def less(self, other: Table) -> Table:
        """Take away the rows of another table over the same columns, each as often as it is there."""
        taken = Counter(map(comparable, other.rows))
        left = []
        for row in self.rows:
            value = comparable(row)
            if taken[value]:
                taken[value] -= 1
            else:
                left.append(row)
        return Table(self.columns, tuple(left))

    def same(self, other: Table) -> bool:
        """Return whether two tables hold the same rows, each as often."""
        return self.rows == other.rows or Counter(map(comparable, self.rows)) == Counter(map(comparable, other.rows))

    @property
    def texts(self) -> tuple[Texts, ...]:
        """Return the rows as text."""
        return tuple(sorted(tuple(map(shown, row)) for row in self.rows))


def difference(compared: str, step: int, wanted: Table, found: Table, message: str = "") -> Difference | None:
    """Compare two tables over the same columns; None where they hold the same rows."""
    if wanted.same(found):
        return None
    missing, unexpected = wanted.less(found).texts, found.less(wanted).texts
    return Difference(compared, step, wanted.columns, missing, unexpected, message)


def comparable(value: Any) -> Any:
    """Make a value of a result hashable; floats are equal that differ in the last digits alone.

    >>> comparable([0.1 + 0.2, {"a": None}]) == comparable([0.3, {"a": None}])
    True
    """
    match value:
        case float():
            return f"{value:.12g}"
        case list() | tuple():
            return tuple(map(comparable, value))
        case dict():
            return tuple((comparable(k), comparable(v)) for k, v in value.items())
        case _:
            return value


def broken(table: Table, columns: Sequence[Column], grain: Texts, *, repeats: bool) -> tuple[str, Table] | None:
    """Find rows that a contract forbids: NULL where there is never one, and rows that share their grain.

    Rows whose grain is not known whole are left alone, and exact copies where rows may `repeats`.
    """
    for column in columns:
        if not column.nullable and column.name in table.columns:
            place = table.columns.index(column.name)
            nulls = tuple(row for row in table.rows if row[place] is None)
            if nulls:
                return f"{column.name} is NULL, but its contract has `nulls: false`", Table(table.columns, nulls)
    if not grain or not set(grain) <= set(table.columns):
        return None
    groups: dict[Any, list[Raw]] = {}
    for row, keys in zip(table.rows, table.only(grain).rows, strict=True):
        if None not in keys:
            groups.setdefault(comparable(keys), []).append(row)
    for group in groups.values():
        if len(set(map(comparable, group))) > 1 or (len(group) > 1 and not repeats):
            return f"several rows have the same grain, {', '.join(grain)}", Table(table.columns, tuple(group))
    return None


def named(rows: Iterable[Iterable[str]], columns: Texts) -> Texts:
    """List the columns to compare: those that any expected row names, in the query's order; all if none does."""
    found = {name for row in rows for name in row}
    return tuple(name for name in columns if name in found) or columns
