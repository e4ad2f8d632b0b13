"""The interface of an operator: the questions that each operator answers for itself. Pure.

A query is a tree of operators. The compiler asks the tree how to write its rows and its changes, which columns are
unique, and what a tick has to read. Every question is an abstract method without a default, because no default is
harmless: an operator that forgot to declare that it reads the clock would silently go stale. Such an operator can't be
instantiated, and mypy reports its line in `operators/registry.py`.

The algebra is that of Z-sets (DBSP, Budiu et al. 2023): a table is a bag of rows with signed weights, a change is
another such bag, and post-state = pre-state + change. An operator is linear if op(A + dA) = op(A) + op(dA). Then
d(op(A)) = op(dA): its change is the operator applied to the change, and it needs no state. An inner join is linear in
each side, so its change is a sum of terms (`operators/join.py`). Aggregates, window functions and the latest row per
key aren't linear: their change depends on rows that did not change. These operators recompute the groups that a change
affects, once over the pre-state and once over the post-state (`operators/keyed.py`).
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
    """A column's type as Spark SQL text ("" if unknown) and whether the column may be NULL."""

    text: str = ""
    nullable: bool = True


# A functional dependency: rows that agree in all columns of the set agree in the column.
Dependency = tuple[frozenset[str], str]
# An operator's columns, each mapped to the column of the relation of affected keys that has its values.
Keys = dict[str, str]


class Node(ABC):
    """An operator over its inputs. Its expressions name columns of the inputs without a table.

    `tables`, `needs_state`, `keeps_rows`, `reads_clock` and `reads_everything` describe the operator alone;
    `properties.py` evaluates them over a whole tree. All other answers describe the tree whose root is the operator.
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
        """Return a SELECT of the rows, over the pre-state (`old`) or the post-state (`new`) of the inputs."""

    @abstractmethod
    def changes(self, script: Script) -> list[str]:
        """Return the SELECTs whose union is the change, with the column `_weight`; [] if nothing can have changed.

        The same row may occur several times, with weights of either sign. Readers of the changes add the weights up.
        """

    # Properties of each row.

    @abstractmethod
    def types(self) -> dict[str, Type]:
        """Return the type of each output column, in order; an unknown type has an empty text."""

    @abstractmethod
    def grain(self) -> tuple[str, ...] | None:
        """Return columns that are unique together, exact copies aside.

        (): the result has at most one row. None: no unique columns are known.
        """

    @abstractmethod
    def has_copies(self) -> bool:
        """Return whether the result may contain exact copies of a row in spite of its grain."""

    @abstractmethod
    def dependencies(self) -> list[Dependency]:
        """Return functional dependencies between the columns; leaving some out is safe."""

    # How the result can be maintained.

    @abstractmethod
    def tables(self) -> tuple[str, ...]:
        """Return the tables that this operator reads itself; tables of its inputs are left out."""

    @abstractmethod
    def needs_state(self) -> bool:
        """Return whether the change of the result depends on more than the changes of the inputs.

        An operator without state is linear in each input while the other inputs are fixed.
        """

    @abstractmethod
    def keeps_rows(self) -> bool:
        """Return whether the result is append-only if all inputs are.

        All changes of such an operator have the weight +1, so they are appended as they are.
        """

    @abstractmethod
    def reads_clock(self) -> bool:
        """Return whether the result depends on as_of, even over inputs that don't change."""

    @abstractmethod
    def reads_everything(self) -> Reason | None:
        """Return why a tick must read whole tables even for a small change; None if it needn't."""

    # What a tick needs of its inputs.

    @abstractmethod
    def reads_beside_changes(self, moment: Moment) -> list[Read]:
        """Return what `changes` reads of tables in addition to their changes, in any tick but the first.

        A missing read makes sqlrun skip files that the tick needs. A superfluous read only costs time.
        """

    @abstractmethod
    def restricted(self, relation: str, keys: Keys) -> tuple[Node, bool]:
        """Return the operator over inputs with fewer rows, and whether only rows with affected `keys` remain.

        Every row whose keys are in `relation` must come out unchanged, so an input may drop a row only if no such row
        depends on it. `keys` is never empty. Callers use `affected.restrict`.
        """

    @abstractmethod
    def support(self, keys: tuple[str, ...], script: Script) -> list[str]:
        """Return SELECTs of the key values that a tick may affect: a superset of the affected values.

        The values of `keys` (columns of the operator) come in that order under the names `k1`, `k2`, ...
        """


@dataclass(frozen=True, slots=True, eq=False)
class Unary(Node):
    """An operator over one input. All questions but the shape are left to the operator."""

    child: Node

    def children(self) -> tuple[Node, ...]:
        """Return the one input."""
        return (self.child,)

    def with_children(self, inputs: tuple[Node, ...]) -> Node:
        """Return the same operator over another input."""
        (child,) = inputs
        return replace(self, child=child)


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and all nodes below it, inputs first; a shared node once for each use."""
    for child in node.children():
        yield from walk(child)
    yield node
