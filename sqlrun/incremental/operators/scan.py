"""Scan: a table's rows and its change feed. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlrun.incremental import functional_dependencies
from sqlrun.incremental.algebra import Dependency, Keys, Node, Type
from sqlrun.incremental.file_ranges import Read
from sqlrun.incremental.operators.touched import Touched
from sqlrun.incremental.operators.touched_keys import of_changes
from sqlrun.incremental.script import WEIGHT, Moment, Script
from sqlrun.transpile.refusals import Reason


@dataclass(frozen=True, slots=True, eq=False)
class Scan(Node):
    """The rows of a table: a model, a seed, or a state table of the model itself.

    `only_grows` says that rows of the table never leave; `unique` that these columns are unique together
    (`repeats`: but for exact copies).
    """

    table: str
    columns: tuple[str, ...] = field()  # in the place of the property
    kinds: tuple[Type, ...]
    unique: tuple[str, ...] | None = None
    repeats: bool = False
    only_grows: bool = False

    def children(self) -> tuple[Node, ...]:
        """Return none: a table is where the tree ends."""
        return ()

    def with_children(self, inputs: tuple[Node, ...]) -> Node:
        """Return the same table."""
        return self

    def rows(self, script: Script, row_set: str) -> str:
        """Read the table as of the previous tick or of this one."""
        return f"select {script.names(self.columns)} from {script.table(self.table, row_set)}"

    def changes(self, script: Script) -> list[str]:
        """Read what came and left."""
        if self.table not in script.changed:
            return []
        source = script.table(self.table, "changes")
        return [f"select {script.names(self.columns)}, {WEIGHT} from {source}"]

    def types(self) -> dict[str, Type]:
        """Return the types of the table's contract."""
        return dict(zip(self.columns, self.kinds, strict=True))

    def grain(self) -> tuple[str, ...] | None:
        """Return the grain of the table's contract."""
        return self.unique

    def has_copies(self) -> bool:
        """Return whether the contract says that rows repeat."""
        return self.repeats

    def dependencies(self) -> list[Dependency]:
        """Return that the grain fixes all columns."""
        return functional_dependencies.keyed(self.unique, self) if self.unique is not None else []

    def tables(self) -> tuple[str, ...]:
        """Return the table."""
        return (self.table,)

    def needs_state(self) -> bool:
        """Return False: the change feed is the change."""
        return False

    def keeps_rows(self) -> bool:
        """Return whether the table does."""
        return self.only_grows

    def reads_clock(self) -> bool:
        """Return False: in a tick the table's versions stand still."""
        return False

    def reads_everything(self) -> Reason | None:
        """Return None."""
        return None

    def reads_beside_changes(self, moment: Moment) -> list[Read]:
        """Return nothing: the change feed is not pruned."""
        return []

    def restricted(self, relation: str, keys: Keys) -> tuple[Node, bool]:
        """Put the semi join here, as near to the table as can be."""
        return Touched(self, relation, tuple(keys.items())), True

    def support(self, keys: tuple[str, ...], script: Script) -> list[str]:
        """Take the keys of the changes."""
        return of_changes(self, keys, script)
