"""Project: a change maps as its row does. Pure.

The operator is linear. If an expression reads the clock, unchanged rows change as well: those whose value at this tick
differs from that at the previous one.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from sqlrun.incremental import clocks, functional_dependencies, properties, types
from sqlrun.incremental.algebra import Dependency, Keys, Node, Type, Unary
from sqlrun.incremental.file_ranges import Read
from sqlrun.incremental.operators.affected import below
from sqlrun.incremental.operators.affected_keys import of_changes
from sqlrun.incremental.script import WEIGHT, Moment, Script
from sqlrun.transpile import parameters
from sqlrun.transpile.refusals import Reason


@dataclass(frozen=True, slots=True, eq=False)
class Project(Unary):
    """Each row mapped by expressions."""

    items: tuple[tuple[str, exp.Expr], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the names of the expressions."""
        return tuple(name for name, _ in self.items)

    def rows(self, script: Script, row_set: str) -> str:
        """Return the mapped rows."""
        return f"select {self._items(script, script.time_of(row_set))} from {script.rows(self.child, row_set)}"

    def changes(self, script: Script) -> list[str]:
        """Return the mapped changes, and the pre-state rows whose values the clock alone has changed.

        With f at this tick and g at the previous one, f(new) - g(old) = f(dA) + (f(old) - g(old)). The second part is
        empty where f and g agree.
        """
        child = script.changes(self.child)
        now, before = script.clock.now, script.clock.before
        items = self._items(script, now)
        texts = [f"select {items}, {WEIGHT} from {child}"] if child else []
        clocked = self._clocked()
        if clocked and before is not None and now != before:
            old = script.rows(self.child, "old")
            differs = " or ".join(
                f"not ({script.same(f'({script.expr(item, now)})', f'({script.expr(item, before)})')})"
                for item in clocked
            )
            texts.append(f"select {items}, 1 as {WEIGHT} from {old} where {differs}")
            texts.append(f"select {self._items(script, before)}, -1 as {WEIGHT} from {old} where {differs}")
        return texts

    def _items(self, script: Script, time: parameters.Name) -> str:
        return ", ".join(f"{script.expr(item, time)} as {script.name(name)}" for name, item in self.items)

    def _clocked(self) -> list[exp.Expr]:
        return [item for _, item in self.items if clocks.reads_clock(item)]

    def _plain(self) -> dict[str, str]:
        """Return the columns that are passed through, as {own name: name in the input}."""
        return {name: item.name for name, item in self.items if isinstance(item, exp.Column)}

    def types(self) -> dict[str, Type]:
        """Return the types of the expressions."""
        inner = self.child.types()
        return {name: types.of(item, inner) for name, item in self.items}

    def grain(self) -> tuple[str, ...] | None:
        """Return the input's grain under its new names; None if a column of it is dropped."""
        unique = self.child.grain()
        names = {item.name: name for name, item in reversed(self.items) if isinstance(item, exp.Column)}
        return tuple(names[key] for key in unique) if unique is not None and all(k in names for k in unique) else None

    def has_copies(self) -> bool:
        """Return whether the input has copies: with its grain in the result, rows that differ in it stay different."""
        return self.child.has_copies()

    def dependencies(self) -> list[Dependency]:
        """Return the input's dependencies under new names, and those of each column on what it reads."""
        return functional_dependencies.through(self.items, self.child)

    def tables(self) -> tuple[str, ...]:
        """Return none of its own."""
        return ()

    def needs_state(self) -> bool:
        """Return False: a row maps to a row on its own."""
        return False

    def keeps_rows(self) -> bool:
        """Return whether no value reads the clock; otherwise the old row is deleted and a new one inserted."""
        return not self.reads_clock()

    def reads_clock(self) -> bool:
        """Return whether the clock alone can change a value."""
        return bool(self._clocked())

    def reads_everything(self) -> Reason | None:
        """Return why the tick reads all rows: the clock may have changed a value of any of them."""
        clocked = self._clocked()
        return clocks.may_change(clocked[0]) if clocked else None

    def reads_beside_changes(self, moment: Moment) -> list[Read]:
        """Return all rows where a value reads the clock, else what the input reads."""
        return properties.all_rows(self.child) if self.reads_clock() else self.child.reads_beside_changes(moment)

    def restricted(self, relation: str, keys: Keys) -> tuple[Node, bool]:
        """Restrict the input by the keys that are its columns; computed columns exist only above it."""
        plain = self._plain()
        return below(self, relation, keys, {plain[c]: k for c, k in keys.items() if c in plain})

    def support(self, keys: tuple[str, ...], script: Script) -> list[str]:
        """Return the input's affected keys if all keys are its columns and no value reads the clock.

        The clock affects rows that haven't changed below.
        """
        plain = self._plain()
        if self.reads_clock() or not all(key in plain for key in keys):
            return of_changes(self, keys, script)
        return self.child.support(tuple(plain[key] for key in keys), script)
