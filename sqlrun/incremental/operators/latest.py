"""Latest row per key: the greatest version wins. Pure.

Over append-only input the stored row is enough (`stages.py`), because max is associative: max(A + dA) = max(max(A),
max(dA)), and the stored row is max(A). Late and repeated versions change nothing. Inside a query, affected keys are
recomputed.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlrun.incremental import functional_dependencies, properties
from sqlrun.incremental.algebra import Dependency, Keys, Node, Type, Unary
from sqlrun.incremental.file_ranges import Read
from sqlrun.incremental.operators import keyed
from sqlrun.incremental.operators.affected import below
from sqlrun.incremental.operators.affected_keys import of_changes
from sqlrun.incremental.script import Moment, Script
from sqlrun.transpile.refusals import Reason


@dataclass(frozen=True, slots=True)
class OrderKey:
    """One column of an ORDER BY, with the direction and the place of NULLs."""

    name: str
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True, eq=False)
class Latest(Unary):
    """The first row of each key of an append-only input; `order` may leave no ties but exact copies."""

    keys: tuple[str, ...]
    order: tuple[OrderKey, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the input's columns."""
        return self.child.columns

    def rows(self, script: Script, row_set: str) -> str:
        """Return the first row of each key."""
        return self.newest(script, script.rows(self.child, row_set))

    def newest(self, script: Script, source: str) -> str:
        """Return a SELECT of the latest row of each key in `source`."""
        columns = script.names(self.columns)
        order = ", ".join(_written(key, script) for key in self.order)
        rank = f"row_number() over (partition by {script.names(self.keys)} order by {order})"
        # row_number, not rank: exactly one of several copies is retained.
        inner = script.part(f"select {columns}, {rank} as _rank from {source}", "ranked")
        return f"select {columns} from {inner} where _rank = 1"

    def changes(self, script: Script) -> list[str]:
        """Return the affected keys: post-state with +1, pre-state with -1."""
        return keyed.changes(self, self.keys, script)

    def types(self) -> dict[str, Type]:
        """Return the input's types."""
        return self.child.types()

    def grain(self) -> tuple[str, ...] | None:
        """Return the keys: each has one row."""
        return self.keys

    def has_copies(self) -> bool:
        """Return False: one of several copies is retained."""
        return False

    def dependencies(self) -> list[Dependency]:
        """Return the input's dependencies, and that the keys determine the row."""
        return [*self.child.dependencies(), *functional_dependencies.keyed(self.keys, self)]

    def tables(self) -> tuple[str, ...]:
        """Return none of its own."""
        return ()

    def needs_state(self) -> bool:
        """Return True: whether a row wins depends on the current winner."""
        return True

    def keeps_rows(self) -> bool:
        """Return False: a newer row replaces the previous winner."""
        return False

    def reads_clock(self) -> bool:
        """Return False: the order reads columns alone."""
        return False

    def reads_everything(self) -> Reason | None:
        """Return None: there is always a key."""
        return None

    def reads_beside_changes(self, moment: Moment) -> list[Read]:
        """Return all rows: the previous winner may be of any time."""
        return properties.all_rows(self)

    def restricted(self, relation: str, keys: Keys) -> tuple[Node, bool]:
        """Restrict the input by `keys`, which drops whole groups. By another column an older row would win."""
        return below(self, relation, keys, {c: k for c, k in keys.items() if c in self.keys})

    def support(self, keys: tuple[str, ...], script: Script) -> list[str]:
        """Return the input's affected keys if all are in `self.keys`, else those of the changes.

        A newer row may delete a winner that has other values.
        """
        if not set(keys) <= set(self.keys):
            return of_changes(self, keys, script)
        return self.child.support(keys, script)


def _written(key: OrderKey, script: Script) -> str:
    direction, nulls = "desc" if key.descending else "asc", "first" if key.nulls_first else "last"
    return f"{script.name(key.name)} {direction} nulls {nulls}"
