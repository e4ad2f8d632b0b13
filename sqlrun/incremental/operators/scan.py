"""Scan: a table's rows and its change feed. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlrun.incremental import functional_dependencies
from sqlrun.incremental.algebra import Dependency, Keys, Node, Type
from sqlrun.incremental.file_ranges import Read
from sqlrun.incremental.operators.affected import Affected
from sqlrun.incremental.operators.affected_keys import of_changes
from sqlrun.incremental.script import WEIGHT, Moment, Script
from sqlrun.transpile.refusals import Reason


@dataclass(frozen=True, slots=True, eq=False)
class Scan(Node):
    """The rows of a table: a model, a seed, or a state table of the model itself.

    `only_grows`: the table is append-only. `unique`: these columns are unique together, exact copies aside if
    `repeats`.
    """

    table: str
    columns: tuple[str, ...] = field()  # overrides the property
    kinds: tuple[Type, ...]
    unique: tuple[str, ...] | None = None
    repeats: bool = False
    only_grows: bool = False

    def children(self) -> tuple[Node, ...]:
        """Return (): a table is a leaf of the tree."""
        return ()

    def with_children(self, inputs: tuple[Node, ...]) -> Node:
        """Return the same table."""
        return self

    def rows(self, script: Script, row_set: str) -> str:
        """Return the table's rows as of the previous tick (`old`) or of this one (`new`)."""
        return f"select {script.names(self.columns)} from {script.table(self.table, row_set)}"

    def changes(self, script: Script) -> list[str]:
        """Return the table's change feed; [] if the table hasn't changed."""
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
        """Return that the grain determines all columns."""
        return functional_dependencies.keyed(self.unique, self) if self.unique is not None else []

    def tables(self) -> tuple[str, ...]:
        """Return the table."""
        return (self.table,)

    def needs_state(self) -> bool:
        """Return False: the change feed is the change."""
        return False

    def keeps_rows(self) -> bool:
        """Return whether the table is append-only."""
        return self.only_grows

    def reads_clock(self) -> bool:
        """Return False: a tick reads pinned versions of the table."""
        return False

    def reads_everything(self) -> Reason | None:
        """Return None."""
        return None

    def reads_beside_changes(self, moment: Moment) -> list[Read]:
        """Return []: files of the change feed aren't pruned."""
        return []

    def restricted(self, relation: str, keys: Keys) -> tuple[Node, bool]:
        """Put the semi join here, directly over the table."""
        return Affected(self, relation, tuple(keys.items())), True

    def support(self, keys: tuple[str, ...], script: Script) -> list[str]:
        """Return the keys of the changes."""
        return of_changes(self, keys, script)
