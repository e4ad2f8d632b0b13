"""`Affected`: a semi join with the keys that a tick affects, pushed down to the tables. Pure.

Without it, recomputing would read whole tables. A semi join passes most operators, since whether a row's key is
affected doesn't depend on other rows. It has to stop where rows of one key are computed from rows of other keys.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlrun.incremental.algebra import Dependency, Keys, Node, Type, Unary
from sqlrun.incremental.file_ranges import Read
from sqlrun.incremental.operators.affected_keys import of_changes
from sqlrun.incremental.script import WEIGHT, Moment, Script
from sqlrun.transpile.refusals import Reason


@dataclass(frozen=True, slots=True, eq=False)
class Affected(Unary):
    """The rows whose `keys` (own column, column of `relation`) are in a relation of affected keys; NULL equals NULL."""

    relation: str
    keys: tuple[tuple[str, str], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the input's columns."""
        return self.child.columns

    def rows(self, script: Script, row_set: str) -> str:
        """Return the rows with affected keys."""
        child = script.rows(self.child, row_set)
        columns = script.names(self.columns, "l")
        if self.child.children():
            return f"select {columns} from {self._joined(child, script)}"
        return script.affected(child, self.relation, self.keys, self._nullable(), columns)

    def changes(self, script: Script) -> list[str]:
        """Return the changes with affected keys."""
        child = script.changes(self.child)
        if child is None:
            return []
        columns = script.names(self.columns, "l")
        return [f"select {columns}, l.{WEIGHT} from {self._joined(child, script)}"]

    def _joined(self, rows: str, script: Script) -> str:
        return script.semi_join(rows, self.relation, self.keys, self._nullable())

    def _nullable(self) -> set[str]:
        return {name for name, kind in self.child.types().items() if kind.nullable}

    def types(self) -> dict[str, Type]:
        """Return the input's types."""
        return self.child.types()

    def grain(self) -> tuple[str, ...] | None:
        """Return the input's grain: columns that are unique among all rows are unique among some."""
        return self.child.grain()

    def has_copies(self) -> bool:
        """Return whether the input has copies; a semi join makes none."""
        return self.child.has_copies()

    def dependencies(self) -> list[Dependency]:
        """Return the input's dependencies, which hold for fewer rows, too."""
        return self.child.dependencies()

    def tables(self) -> tuple[str, ...]:
        """Return (): the relation is a part of the statement."""
        return ()

    def needs_state(self) -> bool:
        """Return False: the affected keys are fixed within a tick, and a semi join is linear in its left side."""
        return False

    def keeps_rows(self) -> bool:
        """Return False: the next tick affects other keys."""
        return False

    def reads_clock(self) -> bool:
        """Return False."""
        return False

    def reads_everything(self) -> Reason | None:
        """Return None: the operator exists to avoid that."""
        return None

    def reads_beside_changes(self, moment: Moment) -> list[Read]:
        """Return what the input reads."""
        return self.child.reads_beside_changes(moment)

    def restricted(self, relation: str, keys: Keys) -> tuple[Node, bool]:
        """Put one semi join over the other."""
        return Affected(self, relation, tuple(keys.items())), True

    def support(self, keys: tuple[str, ...], script: Script) -> list[str]:
        """Return the keys of the changes."""
        return of_changes(self, keys, script)


def restrict(node: Node, relation: str, keys: Keys) -> Node:
    """Return a node with only the rows whose `keys` are affected, restricted as near to the tables as possible."""
    pushed, complete = push(node, relation, keys)
    return pushed if complete else Affected(pushed, relation, tuple(keys.items()))


def push(node: Node, relation: str, keys: Keys) -> tuple[Node, bool]:
    """Return the node with restricted inputs, and whether that restricts it completely; without keys it doesn't."""
    return node.restricted(relation, keys) if keys else (node, False)


def below(node: Unary, relation: str, keys: Keys, mapped: Keys) -> tuple[Node, bool]:
    """Restrict an operator's input by `mapped`: the keys that are columns of the input, under their names there.

    The operator is restricted completely if `mapped` has all keys.
    """
    pushed, complete = push(node.child, relation, mapped)
    # Two columns of the operator may map to one column of the input; restricting by one of them is not enough then.
    whole = len(mapped) == len(keys)
    if mapped and not complete:
        pushed, complete = Affected(pushed, relation, tuple(mapped.items())), True
    return node.with_children((pushed,)), complete and whole
