"""Explode: a change of an array is a change of each of its elements. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from sqlrun.incremental import types
from sqlrun.incremental.algebra import Dependency, Keys, Node, Type, Unary
from sqlrun.incremental.expressions import columns_in
from sqlrun.incremental.file_ranges import Read
from sqlrun.incremental.operators.touched import below
from sqlrun.incremental.operators.touched_keys import of_changes
from sqlrun.incremental.script import WEIGHT, Moment, Script
from sqlrun.transpile.refusals import Reason


@dataclass(frozen=True, slots=True, eq=False)
class Explode(Unary):
    """Each row once for each element of an array; `position` (from 0) may be "". `outer` keeps empty arrays."""

    array: exp.Expr
    element: str
    position: str = ""
    outer: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the input's columns, then position and element."""
        added = (self.position, self.element) if self.position else (self.element,)
        return (*self.child.columns, *added)

    def rows(self, script: Script, row_set: str) -> str:
        """Write one row for each element."""
        child = script.rows(self.child, row_set)
        return self._exploded(script, script.names(self.child.columns), child)

    def changes(self, script: Script) -> list[str]:
        """Write one change for each element of a changed row; elements that stay the same cancel out."""
        child = script.changes(self.child)
        if child is None:
            return []
        kept = f"{script.names(self.child.columns)}, {WEIGHT}"
        inner = script.part(self._exploded(script, kept, child), "exploded")
        return [f"select {script.names(self.columns)}, {WEIGHT} from {inner}"]

    def _exploded(self, script: Script, kept: str, child: str) -> str:
        element, array = script.name(self.element), script.expr(self.array)
        position = script.name(self.position) if self.position else ""
        if script.dialect == "spark":
            call = "posexplode" if position else "explode"
            aliases = f"{position}, {element}" if position else element
            outer = "outer " if self.outer else ""
            view = f"lateral view {outer}{call}({array}) _exploded as {aliases}"
            return f"select {kept}, {aliases} from {child} {view}"
        inner = f"select unnest({array}) as {element}"
        if position:
            # Positions count from 0, as Spark's posexplode does.
            inner += f", cast(generate_subscripts({array}, 1) - 1 as integer) as {position}"
        added = f"_exploded.{position}, _exploded.{element}" if position else f"_exploded.{element}"
        join = "left join lateral" if self.outer else "join lateral"
        return f"select {kept}, {added} from {child} {join} ({inner}) as _exploded on true"

    def types(self) -> dict[str, Type]:
        """Return the input's types, and that of the array's elements, any of which may be NULL."""
        inner = self.child.types()
        array = types.parse(types.of(self.array, inner).text)
        element = array.expressions[0] if array is not None and array.expressions else None
        added = {self.position: Type("int", self.outer)} if self.position else {}
        added[self.element] = Type(types.text(element) if isinstance(element, exp.DataType) else "", True)
        return inner | added

    def grain(self) -> tuple[str, ...] | None:
        """Return the input's grain with the position, which tells an element from its twins in the same array."""
        unique = self.child.grain()
        return (*unique, self.position) if unique is not None and self.position else None

    def has_copies(self) -> bool:
        """Return whether the input has copies; their elements are copies, too."""
        return self.child.has_copies()

    def dependencies(self) -> list[Dependency]:
        """Return the input's, and that array and position together fix the element."""
        own = self.child.dependencies()
        array = frozenset(columns_in(self.array))
        return [*own, (array | {self.position}, self.element)] if self.position else own

    def tables(self) -> tuple[str, ...]:
        """Return none of its own."""
        return ()

    def needs_state(self) -> bool:
        """Return False: a row gives its elements, whatever stands beside it."""
        return False

    def keeps_rows(self) -> bool:
        """Return True: elements go with their row alone."""
        return True

    def reads_clock(self) -> bool:
        """Return False: translate refuses a clock in the array."""
        return False

    def reads_everything(self) -> Reason | None:
        """Return None."""
        return None

    def reads_beside_changes(self, moment: Moment) -> list[Read]:
        """Return what the input reads."""
        return self.child.reads_beside_changes(moment)

    def restricted(self, relation: str, keys: Keys) -> tuple[Node, bool]:
        """Restrict the input by its own columns; elements and positions are there only up here."""
        return below(self, relation, keys, {c: k for c, k in keys.items() if c in self.child.columns})

    def support(self, keys: tuple[str, ...], script: Script) -> list[str]:
        """Take the keys of the changes: a key may be an element."""
        return of_changes(self, keys, script)
