"""Latest per key: the newest row wins. Pure.

Over a table that only grows a model is kept by comparing with the stored row (`stages.py`), so stale and repeated
versions change nothing: max(A + dA) = max(max(A), max(dA)), and the stored row is max(A). Inside a query the touched
keys are recomputed.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlrun.incremental import functional_dependencies, properties
from sqlrun.incremental.algebra import Dependency, Keys, Node, Type, Unary
from sqlrun.incremental.file_ranges import Read
from sqlrun.incremental.operators import keyed
from sqlrun.incremental.operators.touched import below
from sqlrun.incremental.operators.touched_keys import of_changes
from sqlrun.incremental.script import Moment, Script
from sqlrun.transpile.refusals import Reason


@dataclass(frozen=True, slots=True)
class OrderKey:
    """One column of an ORDER BY, with the direction and the place of NULLs that the query asks for."""

    name: str
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True, eq=False)
class Latest(Unary):
    """The first row of each key of a table that only grows; `order` must leave no tie but exact copies."""

    keys: tuple[str, ...]
    order: tuple[OrderKey, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the input's columns."""
        return self.child.columns

    def rows(self, script: Script, row_set: str) -> str:
        """Keep the first row of each key in the order."""
        return self.newest(script, script.rows(self.child, row_set))

    def newest(self, script: Script, source: str) -> str:
        """Write the newest row of each key in `source`."""
        columns = script.names(self.columns)
        order = ", ".join(_written(key, script) for key in self.order)
        rank = f"row_number() over (partition by {script.names(self.keys)} order by {order})"
        # row_number, not rank: of exact copies one row is kept.
        inner = script.part(f"select {columns}, {rank} as _rank from {source}", "ranked")
        return f"select {columns} from {inner} where _rank = 1"

    def changes(self, script: Script) -> list[str]:
        """Recompute the keys that a change touches."""
        return keyed.changes(self, self.keys, script)

    def types(self) -> dict[str, Type]:
        """Return the input's types."""
        return self.child.types()

    def grain(self) -> tuple[str, ...] | None:
        """Return the keys: each has one row."""
        return self.keys

    def has_copies(self) -> bool:
        """Return False: of copies one is taken."""
        return False

    def dependencies(self) -> list[Dependency]:
        """Return the input's, and that the keys fix the row."""
        return [*self.child.dependencies(), *functional_dependencies.keyed(self.keys, self)]

    def tables(self) -> tuple[str, ...]:
        """Return none of its own."""
        return ()

    def needs_state(self) -> bool:
        """Return True: whether a row wins depends on the one that stands there."""
        return True

    def keeps_rows(self) -> bool:
        """Return False: a newer row takes the place of the one before."""
        return False

    def reads_clock(self) -> bool:
        """Return False: the order is by columns."""
        return False

    def reads_everything(self) -> Reason | None:
        """Return None: there is a key, always."""
        return None

    def reads_beside_changes(self, moment: Moment) -> list[Read]:
        """Return all rows: the one before may be of any time."""
        return properties.all_rows(self)

    def restricted(self, relation: str, keys: Keys) -> tuple[Node, bool]:
        """Restrict the input by keys: all rows of a key go together. By another column an older row would win."""
        return below(self, relation, keys, {c: k for c, k in keys.items() if c in self.keys})

    def support(self, keys: tuple[str, ...], script: Script) -> list[str]:
        """Take the input's where all are of the keys; a newer row may take away one with another value, else."""
        if not set(keys) <= set(self.keys):
            return of_changes(self, keys, script)
        return self.child.support(keys, script)


def _written(key: OrderKey, script: Script) -> str:
    direction, nulls = "desc" if key.descending else "asc", "first" if key.nulls_first else "last"
    return f"{script.name(key.name)} {direction} nulls {nulls}"
