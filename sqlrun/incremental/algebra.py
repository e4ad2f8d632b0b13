"""The operators that a query is made of. Pure.

A node's `columns` are its output names, in order; expressions hold columns without a table, by those names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from sqlglot import exp

from sqlrun.transpile.trees import copied, every


@dataclass(frozen=True, slots=True)
class Type:
    """A column's type as Spark SQL text (empty: not known) and whether it may be NULL."""

    text: str = ""
    nullable: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Scan:
    """The rows of a table: a model, a seed, or a state table of the model itself.

    `only_grows` says that rows of the table never leave; `grain` that these columns are unique together
    (`repeats`: but for exact copies).
    """

    table: str
    columns: tuple[str, ...]
    types: tuple[Type, ...]
    grain: tuple[str, ...] | None = None
    repeats: bool = False
    only_grows: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Single:
    """The one row that a SELECT without FROM reads."""

    columns: tuple[str, ...] = ("_one",)


@dataclass(frozen=True, slots=True, eq=False)
class Filter:
    """The rows for which `condition` is true."""

    child: Node
    condition: exp.Expr

    @property
    def columns(self) -> tuple[str, ...]:
        """Name the output columns."""
        return self.child.columns


@dataclass(frozen=True, slots=True, eq=False)
class Project:
    """Each row mapped through expressions."""

    child: Node
    items: tuple[tuple[str, exp.Expr], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Name the output columns."""
        return tuple(name for name, _ in self.items)


@dataclass(frozen=True, slots=True, eq=False)
class Explode:
    """Each row once for each element of an array; `position` (from 0) may be "". `outer` keeps empty arrays."""

    child: Node
    array: exp.Expr
    element: str
    position: str = ""
    outer: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Name the output columns."""
        added = (self.position, self.element) if self.position else (self.element,)
        return (*self.child.columns, *added)


@dataclass(frozen=True, slots=True, eq=False)
class UnionAll:
    """The rows of all children, columns by position, names from the first."""

    parts: tuple[Node, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Name the output columns."""
        return self.parts[0].columns


@dataclass(frozen=True, slots=True, eq=False)
class Join:
    """Pairs of rows; `keys` are the equalities (left, right), `condition` is what else must hold, or None.

    `semi` keeps the left rows that have a partner, `anti` those that have none.
    """

    left: Node
    right: Node
    kind: Literal["inner", "left", "semi", "anti"]
    keys: tuple[tuple[exp.Expr, exp.Expr], ...]
    condition: exp.Expr | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Name the output columns."""
        return self.left.columns if self.kind in ("semi", "anti") else (*self.left.columns, *self.right.columns)


@dataclass(frozen=True, slots=True, eq=False)
class Aggregate:
    """One row a group: `keys` are named expressions, `items` named aggregate calls."""

    child: Node
    keys: tuple[tuple[str, exp.Expr], ...]
    items: tuple[tuple[str, exp.Expr], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Name the output columns."""
        return tuple(name for name, _ in (*self.keys, *self.items))


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """Each row with window functions added; all share `partition` (columns of the child)."""

    child: Node
    partition: tuple[str, ...]
    items: tuple[tuple[str, exp.Window], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Name the output columns."""
        return (*self.child.columns, *(name for name, _ in self.items))


@dataclass(frozen=True, slots=True)
class Bound:
    """One side of a temporal filter: `column <op> as_of + shift`, shift an interval expression or None for 0.

    `sign` is +1 or -1: whether the shift is added or taken away.
    """

    op: Literal[">", ">=", "<", "<="]
    shift: exp.Expr | None = None
    sign: int = -1


@dataclass(frozen=True, slots=True, eq=False)
class Temporal:
    """The rows whose `time` lies in a range that moves with as_of; a missing bound is no bound."""

    child: Node
    time: exp.Expr
    lower: Bound | None
    upper: Bound | None

    @property
    def columns(self) -> tuple[str, ...]:
        """Name the output columns."""
        return self.child.columns


@dataclass(frozen=True, slots=True, eq=False)
class Moving:
    """The rows for which `condition`, which reads the clock in any way, is true."""

    child: Node
    condition: exp.Expr

    @property
    def columns(self) -> tuple[str, ...]:
        """Name the output columns."""
        return self.child.columns


@dataclass(frozen=True, slots=True)
class OrderKey:
    """One column of an ORDER BY, with the direction and the place of NULLs that the query asks for."""

    name: str
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True, eq=False)
class Latest:
    """The first row of each key of a table that only grows; `order` must leave no tie but exact copies."""

    child: Node
    keys: tuple[str, ...]
    order: tuple[OrderKey, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Name the output columns."""
        return self.child.columns


@dataclass(frozen=True, slots=True, eq=False)
class Touched:
    """The rows whose `keys` (own column, column of `relation`) stand in a relation of touched keys, NULLs too."""

    child: Node
    relation: str
    keys: tuple[tuple[str, str], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Name the output columns."""
        return self.child.columns


Node = (
    Scan
    | Single
    | Filter
    | Project
    | Explode
    | UnionAll
    | Join
    | Aggregate
    | Window
    | Temporal
    | Moving
    | Latest
    | Touched
)


def children(node: Node) -> tuple[Node, ...]:
    """List the inputs of a node."""
    match node:
        case Scan() | Single():
            return ()
        case UnionAll(parts=parts):
            return parts
        case Join(left=left, right=right):
            return (left, right)
        case _:
            return (node.child,)


def with_children(node: Node, inputs: tuple[Node, ...]) -> Node:
    """Give the same operator other inputs."""
    match node:
        case Scan() | Single():
            return node
        case UnionAll():
            return replace(node, parts=inputs)
        case Join():
            return replace(node, left=inputs[0], right=inputs[1])
        case _:
            return replace(node, child=inputs[0])


def walk(node: Node) -> Iterator[Node]:
    """Visit a node and all below it, inputs first, shared ones once for each use."""
    for child in children(node):
        yield from walk(child)
    yield node


def scans(node: Node) -> tuple[str, ...]:
    """Name the tables that a node reads, each once, in the order of first use."""
    return tuple(dict.fromkeys(n.table for n in walk(node) if isinstance(n, Scan)))


def column(name: str) -> exp.Column:
    """Make a reference to a column of the input."""
    return exp.Column(this=exp.Identifier(this=name, quoted=True))


def columns_in(expression: exp.Expr) -> frozenset[str]:
    """Name the input columns that an expression reads."""
    return frozenset([c.name for c in every(expression, exp.Column)])


def substitute(expression: exp.Expr, values: Mapping[str, exp.Expr]) -> exp.Expr:
    """Replace columns by expressions; names that are not in `values` stay."""

    def swap(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and node.name in values:
            value = values[node.name].copy()
            needs_parens = isinstance(value, exp.Binary | exp.Case)
            return exp.paren(value, copy=False) if needs_parens else value
        return node

    return copied(expression).transform(swap, copy=False)
