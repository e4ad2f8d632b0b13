"""One tick's query under construction: named parts, each a row set of a node. Pure.

A script knows of a node only that it can be written, so operators may know scripts and not the other way round.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from sqlglot import exp

from sqlrun.engine_api import Dialect
from sqlrun.incremental import clocks
from sqlrun.incremental.parts import joined
from sqlrun.runtime.text_lines import text_lines
from sqlrun.transpile import parameters
from sqlrun.transpile import writer as sql

WEIGHT = "_weight"


@dataclass(frozen=True, slots=True)
class Moment:
    """The tick's time and that of the tick before (None: there is none), both UTC."""

    as_of: datetime
    previous: datetime | None

    @property
    def clock(self) -> Clock:
        """Return what a statement knows of it."""
        if self.previous is None:
            return Clock(None)
        return Clock("as_of" if self.previous == self.as_of else "previous")

    @property
    def parameters(self) -> Mapping[str, datetime]:
        """Return the values of a statement's parameters."""
        return {"as_of": self.as_of} if self.previous is None else {"as_of": self.as_of, "previous": self.previous}


@dataclass(frozen=True, slots=True)
class Clock:
    """The names of the tick's time and of that of the tick before: one name where the clock stood, None for none."""

    before: parameters.Name | None
    now: parameters.Name = "as_of"


class Writable(Protocol):
    """What can be written into a script: the operators are."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the names of the output columns, in order."""

    def rows(self, script: Script, row_set: str) -> str:
        """Return a SELECT of the rows of a row set."""

    def changes(self, script: Script) -> list[str]:
        """Return the SELECTs whose union is the change."""


@dataclass(slots=True)
class Script:
    """Collects the parts of one statement; each (node, row set) is written once and named.

    `changed` names the tables whose changes are not empty. `fresh` treats every row of `new` as a change that
    came: the first build of a table.
    """

    dialect: Dialect
    clock: Clock
    changed: frozenset[str]
    fresh: bool = False
    parts: list[tuple[str, str]] = field(default_factory=list)
    _names: dict[tuple[int, str], str | None] = field(default_factory=dict)
    _nodes: list[Writable] = field(default_factory=list)
    used: set[tuple[str, str]] = field(default_factory=set)

    def rows(self, node: Writable, row_set: str) -> str:
        """Return the name of the part that holds a node's rows, `old` or `new`."""
        key = (id(node), row_set)
        if key not in self._names:
            self._nodes.append(node)  # ids stay unique only while the nodes live
            self._names[key] = self.part(node.rows(self, row_set), row_set)
        name = self._names[key]
        assert name is not None
        return name

    def changes(self, node: Writable) -> str | None:
        """Return the name of the part that holds a node's changes; None where nothing can have changed."""
        key = (id(node), "changes")
        if key not in self._names:
            self._nodes.append(node)
            if self.fresh:
                columns = self.names(node.columns)
                pieces = [f"select {columns}, 1 as {WEIGHT} from {self.rows(node, 'new')}"]
            else:
                pieces = node.changes(self)
            self._names[key] = self.union(pieces, "changes")
        return self._names[key]

    def union(self, pieces: Iterable[str], name: str) -> str | None:
        """Make one part of several SELECTs; None where there is none."""
        texts = list(pieces)
        return self.part("\nunion all\n".join(texts), name) if texts else None

    def part(self, text: str, name: str) -> str:
        """Add a SELECT and give its name."""
        unique = f"_{name}_{len(self.parts) + 1}"
        self.parts.append((unique, text))
        return unique

    def table(self, table: str, row_set: str) -> str:
        """Return the name of a relation that the engine supplies."""
        self.used.add((table, row_set))
        return sql.identifier(f"{table}__{row_set}", self.dialect)

    def text(self, final: str) -> str:
        """Write the statement that ends in the SELECT `final`."""
        return joined(((name, _indent(text)) for name, text in self.parts), final)

    def names(self, columns: Iterable[str], table: str = "") -> str:
        """Quote names and join them by commas."""
        return sql.names(columns, self.dialect, table)

    def name(self, column: str) -> str:
        """Quote one name."""
        return sql.identifier(column, self.dialect)

    def expr(self, expression: exp.Expr, time: parameters.Name | None = None) -> str:
        """Write an expression in the engine's SQL, the clock as the time of that name."""
        return sql.expression(clocks.at(expression, time) if time else expression, self.dialect)

    def groups(self, keys: Iterable[exp.Expr]) -> str:
        """Write what GROUP BY names; a whole number alone would be read as a position, so it is cast."""
        texts = []
        for key in keys:
            plain = key.unnest()
            number = plain.this if isinstance(plain, exp.Neg) else plain
            is_position = isinstance(number, exp.Literal) and number.is_int
            texts.append(sql.cast(self.expr(plain), "bigint", self.dialect) if is_position else self.expr(key))
        return ", ".join(texts)

    def time_of(self, row_set: str) -> parameters.Name:
        """Name the time of the old or the new rows' clock; before the first tick there are no old ones."""
        return self.clock.now if row_set == "new" else self.clock.before or self.clock.now

    def same(self, left: str, right: str) -> str:
        """Compare two expressions, NULL equal to NULL."""
        return sql.same(left, right, self.dialect)

    def semi_join(self, left: str, relation: str, keys: Iterable[tuple[str, str]]) -> str:
        """Write FROM for the rows of `left` whose keys stand in `relation`, NULL equal to NULL."""
        pairs = [(f"l.{self.name(a)}", f"r.{self.name(b)}") for a, b in keys]
        condition = " and ".join(self.same(a, b) for a, b in pairs) or "true"
        return f"{left} as l {sql.semi_join(self.dialect)} {relation} as r on {condition}"


def _indent(text: str) -> str:
    return "\n".join("    " + line for line in text_lines(text))
