"""Single: one row without data, which never changes. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from sqlrun.incremental import functional_dependencies
from sqlrun.incremental.algebra import Dependency, Keys, Node, Type
from sqlrun.incremental.file_ranges import Read
from sqlrun.incremental.operators.affected import Affected
from sqlrun.incremental.operators.affected_keys import of_changes
from sqlrun.incremental.script import Moment, Script
from sqlrun.transpile.refusals import Reason


@dataclass(frozen=True, slots=True, eq=False)
class Single(Node):
    """The one row that a SELECT without FROM reads."""

    columns: tuple[str, ...] = ("_one",)

    def children(self) -> tuple[Node, ...]:
        """Return none."""
        return ()

    def with_children(self, inputs: tuple[Node, ...]) -> Node:
        """Return the same row."""
        return self

    def rows(self, script: Script, row_set: str) -> str:
        """Return the row, the same in every tick."""
        return f"select 1 as {script.name(self.columns[0])}"

    def changes(self, script: Script) -> list[str]:
        """Return []: the row came with the first build."""
        return []

    def types(self) -> dict[str, Type]:
        """Return INT, never NULL."""
        return {name: Type("int", False) for name in self.columns}

    def grain(self) -> tuple[str, ...] | None:
        """Return (): there is one row."""
        return ()

    def has_copies(self) -> bool:
        """Return False: there is one row."""
        return False

    def dependencies(self) -> list[Dependency]:
        """Return that each column is a constant, which depends on nothing."""
        return functional_dependencies.keyed((), self)

    def tables(self) -> tuple[str, ...]:
        """Return none."""
        return ()

    def needs_state(self) -> bool:
        """Return False: nothing changes."""
        return False

    def keeps_rows(self) -> bool:
        """Return True: the row never leaves."""
        return True

    def reads_clock(self) -> bool:
        """Return False."""
        return False

    def reads_everything(self) -> Reason | None:
        """Return None."""
        return None

    def reads_beside_changes(self, moment: Moment) -> list[Read]:
        """Return []: there is no table."""
        return []

    def restricted(self, relation: str, keys: Keys) -> tuple[Node, bool]:
        """Put the semi join over the row."""
        return Affected(self, relation, tuple(keys.items())), True

    def support(self, keys: tuple[str, ...], script: Script) -> list[str]:
        """Return the keys of the changes: there are none."""
        return of_changes(self, keys, script)
