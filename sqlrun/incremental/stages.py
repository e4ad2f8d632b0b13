"""A model's query parted into tables that are each kept by one statement a tick. Pure.

What needs a state is kept where it is cheapest. An inner aggregate that adds up has a small state, its sums: as a table
of its own it has a change feed, and the operators above it see a scan like any other. So a query of several levels is
several queries of one level each, every one with a memory of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from sqlglot import exp

from sqlrun.engine_api import StoredColumn
from sqlrun.incremental import column_names, properties, types
from sqlrun.incremental.algebra import Node, Type
from sqlrun.incremental.expressions import column
from sqlrun.incremental.operators.aggregate import Aggregate
from sqlrun.incremental.operators.latest import Latest
from sqlrun.incremental.operators.project import Project
from sqlrun.incremental.operators.scan import Scan
from sqlrun.incremental.translate.translate import inline
from sqlrun.project import state_table
from sqlrun.runtime.serialize import Partial
from sqlrun.transpile.refusals import Reason, Refusal

Strategy = Literal["append", "merge", "keys", "partitions", "full"]
# The hidden key of a table that has one row.
ONE = "_one"
Method = Literal["land", "append", "additive", "newest", "rows", "keys", "partitions", "full"]
ORDER: tuple[Strategy, ...] = ("append", "merge", "keys", "partitions", "full")


@dataclass(frozen=True, slots=True)
class Stage(Partial):
    """One table of a model: its own, or a hidden one that holds an inner result.

    `node` gives the public columns; None for `full`, where the query runs as the analyst wrote it. `key` is what a
    MERGE matches by, `null_safe` those of it that may be NULL, `hidden` the columns of `node` that readers don't see.
    """

    name: str
    model: str
    strategy: Strategy
    method: Method
    reason: Reason
    columns: tuple[StoredColumn, ...]
    node: Node | None
    inputs: tuple[str, ...]
    key: tuple[str, ...] = ()
    null_safe: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    moves: bool = False
    hidden: tuple[str, ...] = ()

    KEPT: ClassVar = ("public",)

    @property
    def public(self) -> tuple[StoredColumn, ...]:
        """List the columns that readers see."""
        known: tuple[StoredColumn, ...] | None = self.kept("public")
        if known is not None:
            return known
        if self.node is None:
            return self.columns
        shown = set(self.node.columns) - set(self.hidden)
        return tuple(c for c in self.columns if c.name in shown)

    @property
    def is_hidden(self) -> bool:
        """Return whether the table is a state table beside the model's own."""
        return self.name != self.model


def split(model: str, root: Node) -> tuple[Node, tuple[tuple[str, Node], ...]]:
    """Replace inner additive aggregates and inner newest-per-key by scans of hidden tables, innermost first."""
    hidden: list[tuple[str, Node]] = []
    replaced: dict[int, Node] = {}  # a CTE that is used twice stays one node

    def visit(node: Node, at_root: bool) -> Node:
        if id(node) in replaced:
            return replaced[id(node)]
        # Above a kept aggregate the clock would change rows that no change of its input touches.
        keeps_root = at_root and isinstance(node, Project) and not node.reads_clock()
        made = node.with_children(tuple(visit(child, keeps_root) for child in node.children()))
        kept = (isinstance(made, Aggregate) and made.is_additive()) or isinstance(made, Latest)
        if at_root:
            return made
        if not kept:
            replaced[id(node)] = made
            return made
        name = state_table(model, len(hidden) + 1)
        hidden.append((name, made))
        replaced[id(node)] = scan_of(name, made)
        return replaced[id(node)]

    return visit(root, True), tuple(hidden)


def scan_of(name: str, node: Node) -> Scan:
    """Read a hidden table in place of the node that it holds."""
    known = node.types()
    for output, kind in known.items():
        if not kind.text:
            called = column_names.name(output, node)
            raise Refusal(
                "SR524",
                f"the type of `{called}` is unknown, and sqlrun must store it between ticks",
                "Cast it to its type, for example cast(... as bigint) or cast(... as decimal(18, 2)).",
            )
    return Scan(name, node.columns, tuple(known.values()), unique=node.grain())


@dataclass(frozen=True, slots=True)
class Target:
    """What the contract says of a model's own table: its columns in order, grain and partitioning."""

    columns: tuple[StoredColumn, ...]
    grain: tuple[str, ...]
    partition_by: tuple[str, ...]


def hidden_stage(name: str, model: str, node: Node) -> Stage:
    """Make the stage of an inner aggregate or an inner newest-per-key."""
    known = node.types()
    columns = tuple(StoredColumn(c, known[c].text, known[c].nullable) for c in node.columns)
    target = Target(columns, node.grain() or (), ())
    projected = Project(node, tuple((c, column(c)) for c in node.columns))
    reason = Reason("SR540", "sqlrun stores an intermediate result of the query in a hidden table")
    return own_stage(name, model, projected, target, reason)


def own_stage(name: str, model: str, root: Node, target: Target, reason: Reason | None = None) -> Stage:
    """Choose the cheapest way to keep a query whose inner results are tables already."""
    top, below = collapse(root)
    inputs, moving = properties.tables(root), properties.moves(root)

    everything = properties.reads_everything(root)

    def stage(method: Method, strategy: Strategy, why: Reason, columns: tuple[StoredColumn, ...] | None = None,
              node: Node = root, key: tuple[str, ...] = (), null_safe: tuple[str, ...] = ()) -> Stage:  # fmt: skip
        if everything is not None:
            strategy, why = "full", everything
        because = why if everything else reason or why
        return Stage(
            name=name,
            model=model,
            strategy=strategy,
            method=method,
            reason=because,
            columns=columns or target.columns,
            node=node,
            inputs=inputs,
            key=key,
            null_safe=null_safe,
            partition_by=target.partition_by,
            moves=moving,
        )

    # From the cheapest method to the dearest: each asks for less of the query than the one before, and costs more.
    if isinstance(below, Aggregate) and below.is_additive():
        state = additive(top, below, target)
        why = Reason("SR541", "sqlrun adds the change of each group to its stored sums and counts")
        return stage("additive", "merge", why, state.columns, Project(below, top), state.key, state.null_safe)
    if isinstance(below, Latest):
        state = newest(top, below, target)
        why = Reason("SR542", "sqlrun replaces a stored row by a newer version of the same key")
        return stage("newest", "merge", why, state.columns, Project(below, top), state.key, state.null_safe)
    # Linear: the change of the answer is the query over the change. Growing inputs: that change has no -1.
    if properties.is_linear(root) and properties.only_grows(root):
        return stage("append", "append", Reason("SR543", "sqlrun appends new rows, because the inputs are append-only"))
    copies = root.has_copies()
    # A grain that the contract declares is checked; one that the compiler derives is proved.
    key = target.grain or (None if copies else root.grain())
    if key == ():
        return _one_row(stage, target, root)
    if key is None:
        return _without_key(stage, target, root, copies)
    null_safe = tuple(c.name for c in target.columns if c.name in key and c.nullable)
    if properties.is_linear(root):
        why = Reason("SR544", "sqlrun replaces the rows of each changed input row, found by the grain")
        return stage("rows", "merge", why, key=key, null_safe=null_safe)
    why = Reason("SR545", "sqlrun recomputes the affected groups from their inputs")
    return stage("keys", "keys", why, key=key, null_safe=null_safe)


def _without_key(make: Callable[..., Stage], target: Target, root: Node, copies: bool) -> Stage:
    """Keep rows that no column which readers see finds again: by hidden columns, by whole partitions, or all anew."""
    top, below = collapse(root)
    hidden_key = _with_hidden_key(top, below) if not copies and properties.is_linear(root) else None
    if hidden_key is not None:
        node, hidden, key = hidden_key
        why = Reason("SR544", "sqlrun replaces the rows of each changed input row, found by the key of the inputs")
        unsure = tuple(c.name for c in hidden if c.nullable)
        shown = tuple(c.name for c in target.columns if c.name in key and c.nullable)
        made = make("rows", "merge", why, (*target.columns, *hidden), node, key, (*shown, *unsure))
        return replace(made, hidden=tuple(c.name for c in hidden))
    if target.partition_by and properties.reads_everything(root) is None:
        why = Reason(
            "SR549", "the rows have no key, so sqlrun recomputes the affected partitions",
            "Declare `grain:` in the contract.",
        )  # fmt: skip
        return make("partitions", "partitions", why)
    return make("full", "full", Reason("SR525", "the rows have no key", "Declare `grain:` in the contract."))


def _with_hidden_key(
    top: tuple[tuple[str, exp.Expr], ...], below: Node
) -> tuple[Node, tuple[StoredColumn, ...], tuple[str, ...]] | None:
    """Add what the select list leaves out of the key of the rows below it; None where that is not known."""
    grain = below.grain()
    if grain is None:
        return None
    known = below.types()
    shown = {item.name: name for name, item in reversed(top) if isinstance(item, exp.Column)}
    missing = [name for name in grain if name not in shown]
    if not all(known[name].text for name in missing):
        return None
    items = (*top, *((f"_key_{name}", column(name)) for name in missing))
    hidden = tuple(StoredColumn(f"_key_{n}", known[n].text, known[n].nullable) for n in missing)
    return Project(below, items), hidden, tuple(shown.get(name, f"_key_{name}") for name in grain)


def _one_row(make: Callable[..., Stage], target: Target, root: Node) -> Stage:
    """Keep a table of one row at most, under a constant key that readers don't see."""
    columns = (*target.columns, StoredColumn(ONE, "int", False))
    if properties.is_linear(root):
        why = Reason("SR544", "sqlrun replaces the rows of each changed input row, found by the grain")
        return make("rows", "merge", why, columns, key=(ONE,))
    why = properties.reads_everything(root) or Reason(
        "SR526", "an aggregate over the whole table that isn't a sum or count"
    )
    return make("full", "full", why, columns, key=(ONE,))


def collapse(root: Node) -> tuple[tuple[tuple[str, exp.Expr], ...], Node]:
    """Merge the projections at the top into one over what lies below them."""
    if not isinstance(root, Project):
        return tuple((c, column(c)) for c in root.columns), root
    items, below = root.items, root.child
    while isinstance(below, Project):
        items, below = inline(items, below.items), below.child
    return items, below


@dataclass(frozen=True, slots=True)
class State:
    """The stored columns of a kept query, hidden ones last, and its key."""

    columns: tuple[StoredColumn, ...]
    key: tuple[str, ...]
    null_safe: tuple[str, ...]


TermKind = Literal["sum", "count", "min", "max"]


@dataclass(frozen=True, slots=True)
class Term:
    """A column of state: `name` adds up `argument` (None: the weights themselves) where it is not NULL.

    `kind` says whether it sums values, counts them, or keeps the least or the greatest (of rows that never leave).
    """

    name: str
    type: str
    argument: exp.Expr | None
    kind: TermKind


@dataclass(frozen=True, slots=True)
class Sums:
    """The kept terms of an additive aggregate, and each item's value in terms of their columns."""

    terms: tuple[Term, ...]
    values: dict[str, exp.Expr]


def sums(node: Aggregate) -> Sums:
    """Part aggregates into terms that add up, with a count for each argument that may be NULL.

    A sum over no value but NULLs is NULL and not 0, and a stored 0 doesn't tell the two apart: the count does.
    """
    inner = node.child.types()
    terms: dict[tuple[str, TermKind], Term] = {}
    values: dict[str, exp.Expr] = {}

    def term(argument: exp.Expr, kind: TermKind, type_text: str) -> exp.Expr:
        key = (argument.sql("databricks"), kind)
        if key not in terms:
            terms[key] = Term(f"_{kind}_{len(terms) + 1}", type_text, argument, kind)
        return column(terms[key].name)

    for name, raw in node.items:
        call, argument = _argument(raw)
        match call:
            case exp.Count():
                if argument is not None and types.of(argument, inner).nullable:
                    values[name] = term(argument, "count", "bigint")
                else:
                    values[name] = column("_n")
            case exp.CountIf():
                assert argument is not None
                values[name] = term(_ones(argument), "sum", "bigint")
            case exp.LogicalAnd() | exp.LogicalOr():
                assert argument is not None
                values[name] = _all_or_any(call, argument, term)
            case exp.Min() | exp.Max():
                assert argument is not None
                kind: TermKind = "min" if isinstance(call, exp.Min) else "max"
                values[name] = term(argument, kind, types.of(argument, inner).text)
            case _:
                values[name] = _sum_value(call, argument, inner, term)
    return Sums((Term("_n", "bigint", None, "count"), *terms.values()), values)


def _ones(condition: exp.Expr) -> exp.Expr:
    return exp.case().when(condition, "1").else_("0")


def _all_or_any(call: exp.Expr, condition: exp.Expr, term: Callable[[exp.Expr, TermKind, str], exp.Expr]) -> exp.Expr:
    """Write bool_and and bool_or by how often the condition is known and how often it holds."""
    known, true = term(condition, "count", "bigint"), term(_ones(condition.copy()), "sum", "bigint")
    zero = exp.Literal.number(0)
    value = (
        exp.EQ(this=true, expression=known.copy())
        if isinstance(call, exp.LogicalAnd)
        else exp.GT(this=true, expression=zero.copy())
    )
    return exp.case().when(exp.GT(this=known, expression=zero), value)


def _argument(raw: exp.Expr) -> tuple[exp.Expr, exp.Expr | None]:
    call = raw.this if isinstance(raw, exp.Filter) else raw
    argument = (
        None
        if isinstance(call.this, exp.Star) or (isinstance(call.this, exp.Literal) and isinstance(call, exp.Count))
        else call.this
    )
    if isinstance(raw, exp.Filter):
        condition = raw.expression.this
        argument = exp.case().when(condition, argument if argument is not None else exp.Literal.number(1))
    return call, argument


def _sum_value(
    call: exp.Expr,
    argument: exp.Expr | None,
    inner: dict[str, Type],
    term: Callable[[exp.Expr, TermKind, str], exp.Expr],
) -> exp.Expr:
    assert argument is not None
    kind = types.of(argument, inner)
    size = types.decimal(kind)
    if size is None:
        text = argument.sql("databricks")
        if kind.text in ("double", "float", "real"):
            why, instead = (
                f"an incremental sum over {kind.text} accumulates rounding errors",
                "Cast the values to decimal.",
            )
            raise Refusal("SR503", why, instead, call)
        why = f"the type of `{text}` is unknown, and sqlrun must sum it exactly"
        raise Refusal("SR524", why, f"Cast it: cast({text} as {types.advised(argument, inner)}).", call)
    total_type = "bigint" if types.is_integer(kind) else f"decimal(38,{size[1]})"
    total = term(argument, "sum", total_type)
    count = term(argument, "count", "bigint") if kind.nullable else column("_n")
    value = total if isinstance(call, exp.Sum) else average(total, count, kind)
    if not kind.nullable:
        return value
    return exp.case().when(exp.GT(this=count.copy(), expression=exp.Literal.number(0)), value)


def average(total: exp.Expr, count: exp.Expr, argument: Type) -> exp.Expr:
    """Divide a sum by a count, as the average of values of a type."""
    value = exp.Div(this=total, expression=count.copy())
    size = types.decimal(argument)
    if size is not None and not types.is_integer(argument):
        value.meta["average"] = (types.average(argument), min(18, size[1] + 14), size)
    return value


def additive(top: tuple[tuple[str, exp.Expr], ...], node: Aggregate, target: Target) -> State:
    """Lay out the table of an additive aggregate: its columns, group keys that it doesn't show, and the sums."""
    inner = node.child.types()
    shown = {item.name: name for name, item in reversed(top) if isinstance(item, exp.Column)}
    hidden, key, null_safe = [], [], []
    certain = {c.name for c in target.columns if not c.nullable}
    for name, expression in node.keys:
        kind = types.of(expression, inner)
        stored = shown.get(name, f"_key_{name}")
        key.append(stored)
        # A key that the contract calls never NULL is checked before the tick is published.
        if kind.nullable and stored not in certain:
            null_safe.append(stored)
        if name not in shown:
            if not kind.text:
                why = f"the type of the group key `{column_names.text(expression, node.child)}` is unknown"
                raise Refusal("SR524", why, "Add it to the select list, or cast it.", expression)
            hidden.append(StoredColumn(stored, kind.text, kind.nullable))
    groups = {name for name, _ in node.keys}
    for name, item in top:
        if name in target.partition_by and name not in key and types._columns(item) <= groups:
            key.append(name)
            if name not in certain:
                null_safe.append(name)
    kept = sums(node)
    terms = [StoredColumn(t.name, t.type, t.kind in ("min", "max")) for t in kept.terms]
    return State((*target.columns, *hidden, *terms), tuple(key), tuple(null_safe))


def newest(top: tuple[tuple[str, exp.Expr], ...], node: Latest, target: Target) -> State:
    """Lay out the table of a newest-per-key query: its columns, and what of key and order it doesn't show."""
    inner = node.child.types()
    shown = {item.name: name for name, item in reversed(top) if isinstance(item, exp.Column)}
    hidden = []
    for name in dict.fromkeys([*node.keys, *(one.name for one in node.order)]):
        if name not in shown:
            kind = inner[name]
            if not kind.text:
                raise Refusal(
                    "SR524",
                    f"the type of `{column_names.name(name, node)}` is unknown",
                    "Add it to the select list.",
                )
            shown[name] = f"_{name}" if not name.startswith("_") else name
            hidden.append(StoredColumn(shown[name], kind.text, kind.nullable))
    key = tuple(shown[name] for name in node.keys)
    null_safe = tuple(shown[name] for name in node.keys if inner[name].nullable)
    return State((*target.columns, *hidden), key, null_safe)
