"""Window functions, top-k among them: touched partitions recomputed. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from sqlrun.incremental import properties, types
from sqlrun.incremental.algebra import Dependency, Keys, Node, Type, Unary
from sqlrun.incremental.file_ranges import Read
from sqlrun.incremental.operators import keyed
from sqlrun.incremental.operators.touched import below
from sqlrun.incremental.operators.touched_keys import of_changes
from sqlrun.incremental.script import Moment, Script
from sqlrun.transpile.refusals import Reason
from sqlrun.transpile.trees import place_of


@dataclass(frozen=True, slots=True, eq=False)
class Window(Unary):
    """Each row with window functions added; all share `partition` (columns of the child)."""

    partition: tuple[str, ...]
    items: tuple[tuple[str, exp.Window], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the input's columns, then those of the functions."""
        return (*self.child.columns, *(name for name, _ in self.items))

    def rows(self, script: Script, row_set: str) -> str:
        """Add the functions' columns to the rows."""
        child = script.rows(self.child, row_set)
        added = ", ".join(f"{script.expr(item)} as {script.name(name)}" for name, item in self.items)
        return f"select {script.names(self.child.columns)}, {added} from {child}"

    def changes(self, script: Script) -> list[str]:
        """Recompute the partitions that a change touches: a late row moves the rank of all that stand behind it."""
        return keyed.changes(self, self.partition, script)

    def types(self) -> dict[str, Type]:
        """Return the input's types and those of the functions."""
        inner = self.child.types()
        return inner | {name: _type(item, inner) for name, item in self.items}

    def grain(self) -> tuple[str, ...] | None:
        """Return the input's grain: each row comes out once."""
        return self.child.grain()

    def has_copies(self) -> bool:
        """Return whether the input has copies; a rank parts them, a running sum by value does not."""
        return self.child.has_copies()

    def dependencies(self) -> list[Dependency]:
        """Return the input's; of the functions' columns nothing is said."""
        return self.child.dependencies()

    def tables(self) -> tuple[str, ...]:
        """Return none of its own."""
        return ()

    def needs_state(self) -> bool:
        """Return True: what a function says of a row depends on the rows of its partition."""
        return True

    def keeps_rows(self) -> bool:
        """Return False: a row whose rank changes leaves with the old one."""
        return False

    def reads_clock(self) -> bool:
        """Return False: translate refuses a clock in a window function."""
        return False

    def reads_everything(self) -> Reason | None:
        """Return why the whole table is ranked again where nothing parts it."""
        if self.partition:
            return None
        line, column = place_of(self.items[0][1])
        why = "a window function without PARTITION BY ranks the whole table"
        return Reason("SR522", why, "Add PARTITION BY, for example the day.", line, column)

    def reads_beside_changes(self, moment: Moment) -> list[Read]:
        """Return all rows: a touched partition may have some of any time."""
        return properties.all_rows(self)

    def restricted(self, relation: str, keys: Keys) -> tuple[Node, bool]:
        """Restrict the input by columns that part it: whole partitions go. By others a partition would lose rows."""
        return below(self, relation, keys, {c: k for c, k in keys.items() if c in self.partition})

    def support(self, keys: tuple[str, ...], script: Script) -> list[str]:
        """Take the input's where all are of the partition; a change may touch other rows, with other keys, else."""
        # A changed row may change the functions of any other row in its partition. By other columns than those of the
        # partition, touched rows are only found in the changes of the answer itself.
        if not set(keys) <= set(self.partition):
            return of_changes(self, keys, script)
        return self.child.support(keys, script)


def _type(item: exp.Window, inner: Mapping[str, Type]) -> Type:
    call = item.this
    while isinstance(call, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
        call = call.this
    match call:
        case exp.RowNumber() | exp.Rank() | exp.DenseRank() | exp.Ntile():
            return Type("int", False)
        case exp.CumeDist() | exp.PercentRank():
            return Type("double", False)
        case exp.Lag() | exp.Lead() | exp.FirstValue() | exp.LastValue() | exp.NthValue() | exp.First() | exp.Last():
            return Type(types.of(call.this, inner).text, True)
        case _:
            return types.of(call, inner)
