"""One tick's query under construction: named parts, each a row set of a node. Pure.

A script knows nothing of a node but how to write it, so operators may import scripts and not the reverse.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from sqlglot import exp

from sqlrun.engine_api import Dialect, StoredColumn
from sqlrun.incremental import clocks
from sqlrun.incremental.parts import joined
from sqlrun.runtime.text_lines import text_lines
from sqlrun.transpile import parameters
from sqlrun.transpile import writer as sql

WEIGHT = "_weight"


@dataclass(frozen=True, slots=True)
class Moment:
    """The time of the tick and of the previous tick (None if there is none), both UTC."""

    as_of: datetime
    previous: datetime | None

    @property
    def clock(self) -> Clock:
        """Return the names of the times that a statement needs."""
        if self.previous is None:
            return Clock(None)
        return Clock("as_of" if self.previous == self.as_of else "previous")

    @property
    def parameters(self) -> Mapping[str, datetime]:
        """Return the values of a statement's parameters."""
        return {"as_of": self.as_of} if self.previous is None else {"as_of": self.as_of, "previous": self.previous}


@dataclass(frozen=True, slots=True)
class Clock:
    """The parameters of the two times: one name if they are equal; `before` is None in the first tick."""

    before: parameters.Name | None
    now: parameters.Name = "as_of"


class Writable(Protocol):
    """A node that can be written into a script; every operator is one."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the names of the output columns, in order."""

    def rows(self, script: Script, row_set: str) -> str:
        """Return a SELECT of the rows of a row set."""

    def changes(self, script: Script) -> list[str]:
        """Return the SELECTs whose union is the change."""


@dataclass(slots=True)
class Script:
    """Collects the parts of one statement; each (node, row set), and each text, is written once under a name.

    `changed` names the tables with a change. With `fresh`, every row of `new` counts as an inserted row: the first
    build of a table.
    """

    dialect: Dialect
    clock: Clock
    changed: frozenset[str]
    fresh: bool = False
    parts: list[tuple[str, str]] = field(default_factory=list)
    _names: dict[tuple[int, str], str | None] = field(default_factory=dict)
    _nodes: list[Writable] = field(default_factory=list)
    _named: dict[str, str] = field(default_factory=dict)
    used: set[tuple[str, str]] = field(default_factory=set)

    def rows(self, node: Writable, row_set: str) -> str:
        """Return the name of the part with a node's rows, `old` or `new`."""
        key = (id(node), row_set)
        if key not in self._names:
            self._nodes.append(node)  # ids stay unique only while the nodes live
            self._names[key] = self.part(node.rows(self, row_set), row_set)
        name = self._names[key]
        assert name is not None
        return name

    def changes(self, node: Writable) -> str | None:
        """Return the name of the part with a node's changes; None if nothing can have changed."""
        key = (id(node), "changes")
        if key not in self._names:
            self._nodes.append(node)
            if self.fresh:
                columns = self.names(node.columns)
                # In a first build the pre-state is empty, so the change of any node is its rows.
                pieces = [f"select {columns}, 1 as {WEIGHT} from {self.rows(node, 'new')}"]
            else:
                pieces = node.changes(self)
            self._names[key] = self.union(pieces, "changes")
        return self._names[key]

    def union(self, pieces: Iterable[str], name: str) -> str | None:
        """Return the name of one part made of several SELECTs; None if there are none."""
        texts = list(pieces)
        return self.part("\nunion all\n".join(texts), name) if texts else None

    def distinct(self, pieces: Iterable[str], name: str) -> str:
        """Return the name of one part with the distinct rows of SELECTs, each of which has distinct rows."""
        return self.part("\nunion\n".join(dict.fromkeys(pieces)), name)

    def stored(self, text: str, column: StoredColumn) -> str:
        """Return a value as a column stores it: in its type, under its name."""
        return f"{sql.cast(text, column.type, self.dialect)} as {self.name(column.name)}"

    def part(self, text: str, name: str) -> str:
        """Add a SELECT and return its name; an equal one that is there already is used again."""
        if text in self._named:
            return self._named[text]
        unique = f"_{name}_{len(self.parts) + 1}"
        self.parts.append((unique, text))
        self._named[text] = unique
        return unique

    def table(self, table: str, row_set: str) -> str:
        """Return the name of a relation that the engine supplies, and record it as used."""
        self.used.add((table, row_set))
        return sql.identifier(f"{table}__{row_set}", self.dialect)

    def text(self, final: str) -> str:
        """Return the statement that ends in the SELECT `final`."""
        return joined(((name, _indent(text)) for name, text in self.parts), final)

    def names(self, columns: Iterable[str], table: str = "") -> str:
        """Return quoted names, joined by commas."""
        return sql.names(columns, self.dialect, table)

    def name(self, column: str) -> str:
        """Return a quoted name."""
        return sql.identifier(column, self.dialect)

    def expr(self, expression: exp.Expr, time: parameters.Name | None = None) -> str:
        """Return an expression in the engine's SQL, with the parameter `time` for the clock."""
        return sql.expression(clocks.at(expression, time) if time else expression, self.dialect)

    def groups(self, keys: Iterable[exp.Expr]) -> str:
        """Return the expressions of GROUP BY; a bare whole number would be a position, so it is cast."""
        texts = []
        for key in keys:
            plain = key.unnest()
            number = plain.this if isinstance(plain, exp.Neg) else plain
            is_position = isinstance(number, exp.Literal) and number.is_int
            texts.append(sql.cast(self.expr(plain), "bigint", self.dialect) if is_position else self.expr(key))
        return ", ".join(texts)

    def time_of(self, row_set: str) -> parameters.Name:
        """Return the parameter of a row set's time; before the first tick, `old` has none and gets that of `new`."""
        return self.clock.now if row_set == "new" else self.clock.before or self.clock.now

    def same(self, left: str, right: str) -> str:
        """Return SQL that compares two expressions, NULL equal to NULL."""
        return sql.same(left, right, self.dialect)

    def matching(self, pairs: Iterable[tuple[str, str]], nullable: Container[str]) -> str:
        """Return the condition that columns of `l` equal those of `r`, NULL equal to NULL.

        A column of `l` that isn't in `nullable` is compared by `=`: engines then read only the other columns' values of
        matched rows.
        """
        names = [(a, f"l.{self.name(a)}", f"r.{self.name(b)}") for a, b in pairs]
        return " and ".join(self.same(a, b) if name in nullable else f"{a} = {b}" for name, a, b in names) or "true"

    def semi_join(self, left: str, relation: str, keys: Iterable[tuple[str, str]], nullable: Container[str]) -> str:
        """Return FROM for the rows of `left` whose keys are in `relation`; `nullable` is that of `matching`."""
        condition = self.matching(keys, nullable)
        return f"{left} as l {sql.semi_join(self.dialect)} {relation} as r on {condition}"

    def affected(
        self, left: str, relation: str, keys: Iterable[tuple[str, str]], nullable: Container[str], columns: str
    ) -> str:
        """Return the SELECT of columns of `l`: the rows of a table whose keys are in `relation`.

        DuckDB passes keys to the scan of a table only if they are compared by `=`. So rows without NULL in their keys
        are found by that, and the others, which are few, by a comparison in which NULL equals NULL.
        """
        pairs = list(keys)
        unsure = [(f"l.{self.name(a)}", self.name(b)) for a, b in pairs if a in nullable]
        if not unsure or self.dialect != "duckdb":
            return f"select {columns} from {self.semi_join(left, relation, pairs, nullable)}"
        known = f"(select * from {relation} where {' and '.join(f'{b} is not null' for _, b in unsure)})"
        return (
            f"select {columns} from {self.semi_join(left, known, pairs, ())}\nunion all\n"
            f"select {columns} from {self.semi_join(left, relation, pairs, nullable)} "
            f"where {' or '.join(f'{a} is null' for a, _ in unsure)}"
        )


def _indent(text: str) -> str:
    return "\n".join("    " + line for line in text_lines(text))
