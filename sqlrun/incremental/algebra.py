"""What an operator is: the questions that each answers for itself. Pure.

A query is a tree of operators. The compiler asks the tree how to write its rows and its changes, which columns are
unique, what a tick has to read. Every question is an abstract method without a default, since no default is harmless:
an operator that forgot to say that the clock moves it would be kept wrong without a word. Such an operator can't be
made, and mypy reports its line in `operators/registry.py`.

Why changes can be computed at all: tables are bags of rows with signed weights, and most operators are linear over
them, op(A + dA) = op(A) + op(dA). Such an operator's change is the operator over the change. An inner join is linear in
each side, so its change telescopes (`operators/join.py`). What is not linear needs a memory of rows that stood still:
an aggregate, a window function, the newest row of a key. There the groups that a change touches are computed again,
before and after (`operators/keyed.py`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace

from sqlrun.incremental.file_ranges import Read
from sqlrun.incremental.script import Moment, Script
from sqlrun.transpile.refusals import Reason


@dataclass(frozen=True, slots=True)
class Type:
    """A column's type as Spark SQL text (empty: not known) and whether it may be NULL."""

    text: str = ""
    nullable: bool = True


# Rows that are equal in these columns are equal in that one.
Dependency = tuple[frozenset[str], str]
# An operator's own columns, each with the column of a relation of touched keys that it is looked up in.
Keys = dict[str, str]


class Node(ABC):
    """An operator over its inputs; expressions hold columns of the inputs by name, without a table.

    `tables`, `needs_state`, `keeps_rows`, `reads_clock` and `reads_everything` are said of the operator alone, and
    `properties.py` asks them of a whole tree. All other answers are those of the tree that ends in the operator.
    """

    __slots__ = ()

    # The shape of the tree.

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Return the names of the output columns, in order."""

    @abstractmethod
    def children(self) -> tuple[Node, ...]:
        """Return the inputs."""

    @abstractmethod
    def with_children(self, inputs: tuple[Node, ...]) -> Node:
        """Return the same operator over other inputs."""

    # The statement.

    @abstractmethod
    def rows(self, script: Script, row_set: str) -> str:
        """Return a SELECT of the rows, over the `old` or the `new` rows of the inputs."""

    @abstractmethod
    def changes(self, script: Script) -> list[str]:
        """Return the SELECTs whose union is the change, with `_weight`; none where nothing can have changed.

        Rows that come and leave in one tick may stand there side by side: whoever reads the changes adds up weights.
        """

    # What holds of each row.

    @abstractmethod
    def types(self) -> dict[str, Type]:
        """Return the type of each output column, in their order; one that isn't known has an empty text."""

    @abstractmethod
    def grain(self) -> tuple[str, ...] | None:
        """Return columns that are unique together, exact copies aside.

        No column at all stands for one row at most, None for a grain that isn't known.
        """

    @abstractmethod
    def has_copies(self) -> bool:
        """Return whether exact copies of a row may stand beside each other although there is a grain."""

    @abstractmethod
    def dependencies(self) -> list[Dependency]:
        """Return which columns are fixed by which others; fewer than there are is safe."""

    # How it can be kept.

    @abstractmethod
    def tables(self) -> tuple[str, ...]:
        """Return the tables that the operator itself reads: those of its inputs are theirs to name."""

    @abstractmethod
    def needs_state(self) -> bool:
        """Return whether the inputs' changes alone don't tell the operator's change.

        An operator that needs no state is linear in each of its inputs while the others stand still.
        """

    @abstractmethod
    def keeps_rows(self) -> bool:
        """Return whether rows, once in, never leave, given that none ever leaves an input.

        The changes of such an operator are appended as they are: each has the weight +1, and none takes another back.
        """

    @abstractmethod
    def reads_clock(self) -> bool:
        """Return whether the answer changes with as_of alone, over inputs that stand still."""

    @abstractmethod
    def reads_everything(self) -> Reason | None:
        """Return why a tick must look at whole tables, however little has changed; None where it need not."""

    # What of its inputs a tick needs.

    @abstractmethod
    def reads_beside_changes(self, moment: Moment) -> list[Read]:
        """Return what `changes` reads of tables beside their changes, in a tick that has one before it.

        A read that is left out lets files be skipped that the tick needs; one too many only costs time.
        """

    @abstractmethod
    def restricted(self, relation: str, keys: Keys) -> tuple[Node, bool]:
        """Return the operator over inputs with fewer rows, and whether only rows of touched `keys` are left.

        Every row whose keys stand in `relation` must come out as before, so an input may lose a row only if that row
        has no part in any such row. `keys` is never empty; `touched.restrict` is what others call.
        """

    @abstractmethod
    def support(self, keys: tuple[str, ...], script: Script) -> list[str]:
        """Return SELECTs of the key values that a tick may have touched: all of them, seldom more.

        The values of `keys` (own columns) come in that order under the names `k1`, `k2`, ...
        """


@dataclass(frozen=True, slots=True, eq=False)
class Unary(Node):
    """An operator over one input. It says nothing but that: the answers are left to each operator."""

    child: Node

    def children(self) -> tuple[Node, ...]:
        """Return the one input."""
        return (self.child,)

    def with_children(self, inputs: tuple[Node, ...]) -> Node:
        """Return the same operator over another input."""
        (child,) = inputs
        return replace(self, child=child)


def walk(node: Node) -> Iterator[Node]:
    """Visit a node and all below it, inputs first, shared ones once for each use."""
    for child in node.children():
        yield from walk(child)
    yield node
