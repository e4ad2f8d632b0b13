"""Window functions, including top-k: recompute affected partitions. Pure.

A window function isn't linear, since one row changes the values of others. It is a function of each partition alone, so
`keyed.changes` applies. A top-k table isn't maintained from its k rows: when one is deleted, the next isn't stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from sqlrun.incremental import properties, types
from sqlrun.incremental.algebra import Dependency, Keys, Node, Type, Unary, walk
from sqlrun.incremental.file_ranges import Read
from sqlrun.incremental.operators import keyed
from sqlrun.incremental.operators.affected import Affected, below, restrict
from sqlrun.incremental.operators.affected_keys import numbers, of_changes
from sqlrun.incremental.script import Moment, Script
from sqlrun.transpile.refusals import Reason
from sqlrun.transpile.trees import place_of


@dataclass(frozen=True, slots=True, eq=False)
class Window(Unary):
    """Each row with window functions added; all share `partition` (columns of the input)."""

    partition: tuple[str, ...]
    items: tuple[tuple[str, exp.Window], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the input's columns, then those of the functions."""
        return (*self.child.columns, *(name for name, _ in self.items))

    def rows(self, script: Script, row_set: str) -> str:
        """Return the rows with the functions' columns."""
        child = script.rows(self.child, row_set)
        added = ", ".join(f"{script.expr(item)} as {script.name(name)}" for name, item in self.items)
        return f"select {script.names(self.child.columns)}, {added} from {child}"

    def changes(self, script: Script) -> list[str]:
        """Return the affected partitions, recomputed: a late row shifts the rank of all rows behind it."""
        return keyed.changes(self, self.partition, script)

    def types(self) -> dict[str, Type]:
        """Return the input's types and those of the functions."""
        inner = self.child.types()
        return inner | {name: _type(item, inner) for name, item in self.items}

    def grain(self) -> tuple[str, ...] | None:
        """Return the input's grain: each row comes out once."""
        return self.child.grain()

    def has_copies(self) -> bool:
        """Return whether the input has copies: a rank distinguishes them, a running sum by value doesn't."""
        return self.child.has_copies()

    def dependencies(self) -> list[Dependency]:
        """Return the input's dependencies; none are known for the functions' columns."""
        return self.child.dependencies()

    def tables(self) -> tuple[str, ...]:
        """Return none of its own."""
        return ()

    def needs_state(self) -> bool:
        """Return True: a function's value depends on the other rows of the partition."""
        return True

    def keeps_rows(self) -> bool:
        """Return False: a row whose rank changes is deleted with the old rank."""
        return False

    def reads_clock(self) -> bool:
        """Return False: `translate` refuses a clock in a window function."""
        return False

    def reads_everything(self) -> Reason | None:
        """Return why the whole table is ranked again: without PARTITION BY, one change affects all rows."""
        if self.partition:
            return None
        line, column = place_of(self.items[0][1])
        why = "a window function without PARTITION BY ranks the whole table"
        return Reason("SR522", why, "Add PARTITION BY, for example the day.", line, column)

    def reads_beside_changes(self, moment: Moment) -> list[Read]:
        """Return all rows: an affected partition may have rows of any time."""
        return properties.all_rows(self)

    def restricted(self, relation: str, keys: Keys) -> tuple[Node, bool]:
        """Restrict the input by partition columns, which drops whole partitions.

        Other columns would remove rows of one.
        """
        return below(self, relation, keys, {c: k for c, k in keys.items() if c in self.partition})

    def support(self, keys: tuple[str, ...], script: Script) -> list[str]:
        """Return the input's affected keys if all are partition columns, else the keys in affected partitions."""
        # A changed row may change the functions of any other row in its partition. For other columns than those of the
        # partition, its rows before and after show which values are affected; a function's value needs computing.
        if set(keys) <= set(self.partition):
            return self.child.support(keys, script)
        if set(keys) <= set(self.child.columns):
            return keyed.support(self, self.partition, keys, script)
        return of_changes(self, keys, script)


def useful(node: Node, keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return the keys that can drop rows before a window function has computed its whole partition.

    Affected values of the other keys include all affected rows, and finding them computes no window function.
    """
    semi_joins = [one for one in walk(restrict(node, "", numbers(keys))) if isinstance(one, Affected)]
    early = {number for one in semi_joins if not isinstance(one.child, Window) for _, number in one.keys}
    return tuple(key for key, number in numbers(keys).items() if number in early) or keys


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
