"""Explode: a change of an array is a change of each of its elements. Pure.

Each row gives its elements on its own, so the operator is linear. An updated array is a row with -1 and a row with +1;
elements that both have cancel out when their weights are added.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from sqlrun.incremental import types
from sqlrun.incremental.algebra import Dependency, Keys, Node, Type, Unary
from sqlrun.incremental.expressions import columns_in
from sqlrun.incremental.file_ranges import Read
from sqlrun.incremental.operators.affected import below
from sqlrun.incremental.operators.affected_keys import of_changes
from sqlrun.incremental.script import WEIGHT, Moment, Script
from sqlrun.transpile.refusals import Reason


@dataclass(frozen=True, slots=True, eq=False)
class Explode(Unary):
    """Each row once for each element of an array.

    `position` counts from 0 and may be "". With `outer`, a row with an empty array stays, with a NULL element.
    """

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
        """Return one row for each element."""
        child = script.rows(self.child, row_set)
        return self._exploded(script, script.names(self.child.columns), child)

    def changes(self, script: Script) -> list[str]:
        """Return one change for each element of a changed row."""
        child = script.changes(self.child)
        if child is None:
            return []
        columns = f"{script.names(self.child.columns)}, {WEIGHT}"
        inner = script.part(self._exploded(script, columns, child), "exploded")
        return [f"select {script.names(self.columns)}, {WEIGHT} from {inner}"]

    def _exploded(self, script: Script, columns: str, child: str) -> str:
        element, array = script.name(self.element), script.expr(self.array)
        position = script.name(self.position) if self.position else ""
        if script.dialect == "spark":
            call = "posexplode" if position else "explode"
            aliases = f"{position}, {element}" if position else element
            outer = "outer " if self.outer else ""
            view = f"lateral view {outer}{call}({array}) _exploded as {aliases}"
            return f"select {columns}, {aliases} from {child} {view}"
        inner = f"select unnest({array}) as {element}"
        if position:
            # Positions count from 0, as Spark's posexplode does.
            inner += f", cast(generate_subscripts({array}, 1) - 1 as integer) as {position}"
        added = f"_exploded.{position}, _exploded.{element}" if position else f"_exploded.{element}"
        join = "left join lateral" if self.outer else "join lateral"
        return f"select {columns}, {added} from {child} {join} ({inner}) as _exploded on true"

    def types(self) -> dict[str, Type]:
        """Return the input's types, an INT position, and the type of the array's elements, which may be NULL."""
        inner = self.child.types()
        array = types.parse(types.of(self.array, inner).text)
        element = array.expressions[0] if array is not None and array.expressions else None
        added = {self.position: Type("int", self.outer)} if self.position else {}
        added[self.element] = Type(types.text(element) if isinstance(element, exp.DataType) else "", True)
        return inner | added

    def grain(self) -> tuple[str, ...] | None:
        """Return the input's grain and the position, which distinguishes equal elements of one array."""
        unique = self.child.grain()
        return (*unique, self.position) if unique is not None and self.position else None

    def has_copies(self) -> bool:
        """Return whether the input has copies: their elements are copies, too."""
        return self.child.has_copies()

    def dependencies(self) -> list[Dependency]:
        """Return the input's dependencies, and that array and position determine the element."""
        own = self.child.dependencies()
        array = frozenset(columns_in(self.array))
        return [*own, (array | {self.position}, self.element)] if self.position else own

    def tables(self) -> tuple[str, ...]:
        """Return none of its own."""
        return ()

    def needs_state(self) -> bool:
        """Return False: the elements depend on their row alone."""
        return False

    def keeps_rows(self) -> bool:
        """Return True: an element leaves only with its row."""
        return True

    def reads_clock(self) -> bool:
        """Return False: `translate` refuses a clock in the array."""
        return False

    def reads_everything(self) -> Reason | None:
        """Return None."""
        return None

    def reads_beside_changes(self, moment: Moment) -> list[Read]:
        """Return what the input reads."""
        return self.child.reads_beside_changes(moment)

    def restricted(self, relation: str, keys: Keys) -> tuple[Node, bool]:
        """Restrict the input by its own columns; elements and positions exist only above it."""
        return below(self, relation, keys, {c: k for c, k in keys.items() if c in self.child.columns})

    def support(self, keys: tuple[str, ...], script: Script) -> list[str]:
        """Return the keys of the changes: a key may be an element."""
        return of_changes(self, keys, script)
