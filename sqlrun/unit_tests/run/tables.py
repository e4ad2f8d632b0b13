"""Rows of unit tests as multisets, compared by value and shown as text. Pure."""

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
    """A difference from the expected result: missing and unexpected rows as text over `columns`."""

    compared: str
    step: int
    columns: Texts = ()
    missing: tuple[Texts, ...] = ()
    unexpected: tuple[Texts, ...] = ()
    message: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows over columns, unordered."""

    columns: Texts
    rows: tuple[Raw, ...] = ()

    def only(self, columns: Texts) -> Table:
        """Return the table with these columns only."""
        if columns == self.columns:
            return self
        places = [self.columns.index(name) for name in columns]
        return Table(columns, tuple(tuple(row[place] for place in places) for row in self.rows))

    def less(self, other: Table) -> Table:
        """Return the rows without those of another table over the same columns, respecting multiplicity."""
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
        """Return whether two tables have the same rows with the same multiplicity."""
        return self.rows == other.rows or Counter(map(comparable, self.rows)) == Counter(map(comparable, other.rows))

    @property
    def texts(self) -> tuple[Texts, ...]:
        """Return the rows as text."""
        return tuple(sorted(tuple(map(shown, row)) for row in self.rows))


def difference(compared: str, step: int, wanted: Table, found: Table, message: str = "") -> Difference | None:
    """Return the difference of two tables over the same columns; None if they have the same rows."""
    if wanted.same(found):
        return None
    missing, unexpected = wanted.less(found).texts, found.less(wanted).texts
    return Difference(compared, step, wanted.columns, missing, unexpected, message)


def comparable(value: Any) -> Any:
    """Return a hashable form of a value; floats that differ in the last digits only are equal.

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
    """Return a message and the rows that break a contract: NULL in a `nulls: false` column, or a duplicate grain.

    Rows with NULL or missing columns in their grain are ignored, and so are exact copies if rows may `repeats`.
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
    """Return the columns to compare: those in any expected row, in the query's order; all if there are none."""
    found = {name for row in rows for name in row}
    return tuple(name for name in columns if name in found) or columns
