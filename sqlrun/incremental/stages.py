"""Split a model's query into tables, each maintained by one statement per tick. Pure.

State belongs where it is smallest. An inner additive aggregate has a small state, its sums. As a table of its own it
has a change feed, and the operators above it see an ordinary scan. So a query of several levels becomes several queries
of one level each, each with its own state.
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
from sqlrun.project import NEW_RECORD, state_table
from sqlrun.runtime.serialize import Partial
from sqlrun.transpile.refusals import Reason, Refusal

Strategy = Literal["append", "merge", "keys", "partitions", "full"]
# The hidden key of a table with one row.
ONE = "_one"
Method = Literal["land", "append", "additive", "newest", "rows", "keys", "partitions", "history", "full"]
ORDER: tuple[Strategy, ...] = ("append", "merge", "keys", "partitions", "full")


@dataclass(frozen=True, slots=True)
class History:
    """How a history's versions begin and end, as in `project.Config`: `tracked` are the columns that begin a version.

    `updated_at` is the column that does so instead; "" if there is none. The version of a row that is gone ends if
    `ends_deleted`, and another begins if `marks_deleted`.
    """

    tracked: tuple[str, ...]
    updated_at: str
    ends_deleted: bool
    marks_deleted: bool

    @property
    def hard_deletes(self) -> str:
        """Return the setting `hard_deletes`."""
        return NEW_RECORD if self.marks_deleted else "invalidate" if self.ends_deleted else "ignore"


@dataclass(frozen=True, slots=True)
class Earlier:
    """The table of a history before its new one; `marks_deleted` as in `History`."""

    columns: tuple[StoredColumn, ...]
    marks_deleted: bool


@dataclass(frozen=True, slots=True)
class Stage(Partial):
    """One table of a model: its own, or a hidden one with an inner result.

    `node` computes the public columns; it is None for `full`, where the analyst's query runs as it is. `key` is what
    MERGE matches by, `null_safe` its nullable columns, `hidden` the columns of `node` that readers don't see.
    `history`: the table has the versions of the node's rows.
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
    history: History | None = None

    KEPT: ClassVar = ("public",)

    @property
    def public(self) -> tuple[StoredColumn, ...]:
        """Return the columns that readers see."""
        known: tuple[StoredColumn, ...] | None = self.kept("public")
        if known is not None:
            return known
        if self.node is None or self.history is not None:
            return self.columns
        visible = set(self.node.columns) - set(self.hidden)
        return tuple(c for c in self.columns if c.name in visible)

    @property
    def is_hidden(self) -> bool:
        """Return whether the table is a state table of the model rather than its own table."""
        return self.name != self.model


def split(model: str, root: Node) -> tuple[Node, tuple[tuple[str, Node], ...]]:
    """Replace inner additive aggregates and inner latest-row-per-key operators by scans of hidden tables.

    Return the rest of the query and the hidden tables (name, node), innermost first.
    """
    hidden: list[tuple[str, Node]] = []
    replaced: dict[int, Node] = {}  # a CTE that is used twice stays one node

    def visit(node: Node, at_root: bool) -> Node:
        if id(node) in replaced:
            return replaced[id(node)]
        # A projection that reads the clock changes rows of a stored aggregate that no change of its input affects.
        keeps_root = at_root and isinstance(node, Project) and not node.reads_clock()
        made = node.with_children(tuple(visit(child, keeps_root) for child in node.children()))
        is_stored = (isinstance(made, Aggregate) and made.is_additive()) or isinstance(made, Latest)
        if at_root:
            return made
        if not is_stored:
            replaced[id(node)] = made
            return made
        name = state_table(model, len(hidden) + 1)
        hidden.append((name, made))
        replaced[id(node)] = scan_of(name, made)
        return replaced[id(node)]

    return visit(root, True), tuple(hidden)


def scan_of(name: str, node: Node) -> Scan:
    """Return a scan of the hidden table that stores a node. Raise SR524 if a column's type is unknown."""
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
    """The contract of a model's own table: its columns in order, its grain and its partitioning.

    `place` says to people where it is.
    """

    columns: tuple[StoredColumn, ...]
    grain: tuple[str, ...]
    partition_by: tuple[str, ...]
    place: str = "in the contract"


def hidden_stage(name: str, model: str, node: Node) -> Stage:
    """Return the stage of an inner aggregate or an inner latest row per key."""
    known = node.types()
    columns = tuple(StoredColumn(c, known[c].text, known[c].nullable) for c in node.columns)
    target = Target(columns, node.grain() or (), ())
    projected = Project(node, tuple((c, column(c)) for c in node.columns))
    reason = Reason("SR540", "sqlrun stores an intermediate result of the query in a hidden table")
    return own_stage(name, model, projected, target, reason)


def own_stage(name: str, model: str, root: Node, target: Target, reason: Reason | None = None) -> Stage:
    """Return the stage with the cheapest method that can maintain a query whose inner results are tables."""
    top, below = collapse(root)
    inputs, moving = properties.tables(root), properties.moves(root)

    everything = properties.reads_everything(root)

    def stage(method: Method, strategy: Strategy, why: Reason, columns: tuple[StoredColumn, ...] | None = None,
              node: Node = root, key: tuple[str, ...] = (), null_safe: tuple[str, ...] = ()) -> Stage:  # fmt: skip
        if everything is not None:
            # The method is still correct, but a tick that reads whole tables costs as much as `full`: the plan reports
            # that.
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

    # Methods from cheap to expensive: each requires less of the query than the one before.
    if isinstance(below, Aggregate) and below.is_additive():
        state = additive(top, below, target)
        why = Reason("SR541", "sqlrun adds the change of each group to its stored sums and counts")
        return stage("additive", "merge", why, state.columns, Project(below, top), state.key, state.null_safe)
    if isinstance(below, Latest):
        state = newest(top, below, target)
        why = Reason("SR542", "sqlrun replaces a stored row by a newer version of the same key")
        return stage("newest", "merge", why, state.columns, Project(below, top), state.key, state.null_safe)
    # A linear query's change is the query over the change. With append-only inputs that change has no -1.
    if properties.is_linear(root) and properties.only_grows(root):
        return stage("append", "append", Reason("SR543", "sqlrun appends new rows, because the inputs are append-only"))
    copies = root.has_copies()
    # A declared grain is checked; a derived one is proved.
    key = target.grain or (None if copies else root.grain())
    if key == ():
        return _one_row(stage, target, root)
    if key is None:
        return _without_key(stage, target, root, copies)
    known = root.types()
    null_safe = tuple(c.name for c in target.columns if c.name in key and c.nullable and known[c.name].nullable)
    if properties.is_linear(root):
        why = Reason("SR544", "sqlrun replaces the rows of each changed input row, found by the grain")
        return stage("rows", "merge", why, key=key, null_safe=null_safe)
    why = Reason("SR545", "sqlrun recomputes the affected groups from their inputs")
    return stage("keys", "keys", why, key=key, null_safe=null_safe)


def _without_key(make: Callable[..., Stage], target: Target, root: Node, copies: bool) -> Stage:
    """Return the stage of a query whose public columns don't identify a row: by hidden key, by partition, or full."""
    top, below = collapse(root)
    hidden_key = _with_hidden_key(top, below) if not copies and properties.is_linear(root) else None
    if hidden_key is not None:
        node, hidden, key = hidden_key
        why = Reason("SR544", "sqlrun replaces the rows of each changed input row, found by the key of the inputs")
        unsure = tuple(c.name for c in hidden if c.nullable)
        nullable = tuple(c.name for c in target.columns if c.name in key and c.nullable)
        made = make("rows", "merge", why, (*target.columns, *hidden), node, key, (*nullable, *unsure))
        return replace(made, hidden=tuple(c.name for c in hidden))
    if target.partition_by and properties.reads_everything(root) is None:
        recomputed = "the rows have no key, so sqlrun recomputes the affected partitions"
        why = Reason("SR549", recomputed, f"Declare `grain:` {target.place}.")
        return make("partitions", "partitions", why)
    return make("full", "full", Reason("SR525", "the rows have no key", f"Declare `grain:` {target.place}."))


def _with_hidden_key(
    top: tuple[tuple[str, exp.Expr], ...], below: Node
) -> tuple[Node, tuple[StoredColumn, ...], tuple[str, ...]] | None:
    """Add the columns of the input's grain that the select list drops, as a hidden key.

    Return the node, the hidden columns and the key; None if the grain or a type isn't known.
    """
    grain = below.grain()
    if grain is None:
        return None
    known = below.types()
    public = {item.name: name for name, item in reversed(top) if isinstance(item, exp.Column)}
    missing = [name for name in grain if name not in public]
    if not all(known[name].text for name in missing):
        return None
    items = (*top, *((f"_key_{name}", column(name)) for name in missing))
    hidden = tuple(StoredColumn(f"_key_{n}", known[n].text, known[n].nullable) for n in missing)
    return Project(below, items), hidden, tuple(public.get(name, f"_key_{name}") for name in grain)


def _one_row(make: Callable[..., Stage], target: Target, root: Node) -> Stage:
    """Return the stage of a table of at most one row, under a constant key that readers don't see."""
    columns = (*target.columns, StoredColumn(ONE, "int", False))
    if properties.is_linear(root):
        why = Reason("SR544", "sqlrun replaces the rows of each changed input row, found by the grain")
        return make("rows", "merge", why, columns, key=(ONE,))
    why = properties.reads_everything(root) or Reason(
        "SR526", "an aggregate over the whole table that isn't a sum or count"
    )
    return make("full", "full", why, columns, key=(ONE,))


def collapse(root: Node) -> tuple[tuple[tuple[str, exp.Expr], ...], Node]:
    """Return the projections at the top merged into one, and the node below them."""
    if not isinstance(root, Project):
        return tuple((c, column(c)) for c in root.columns), root
    items, below = root.items, root.child
    while isinstance(below, Project):
        items, below = inline(items, below.items), below.child
    return items, below


@dataclass(frozen=True, slots=True)
class State:
    """The stored columns of a maintained query, hidden ones last, and its key."""

    columns: tuple[StoredColumn, ...]
    key: tuple[str, ...]
    null_safe: tuple[str, ...]


TermKind = Literal["sum", "count", "min", "max"]


@dataclass(frozen=True, slots=True)
class Term:
    """A column of state: `name` accumulates `argument` (None: the weights) where it isn't NULL.

    `kind` is the aggregation: a sum, a count, or the least or greatest value of append-only input.
    """

    name: str
    type: str
    argument: exp.Expr | None
    kind: TermKind


@dataclass(frozen=True, slots=True)
class Sums:
    """The stored terms of an additive aggregate, and each item's value as an expression over them."""

    terms: tuple[Term, ...]
    values: dict[str, exp.Expr]


def sums(node: Aggregate) -> Sums:
    """Split aggregates into terms that add up, with a count for each nullable argument.

    A sum over NULLs alone is NULL, not 0, and a stored 0 can't distinguish the two: the count of values does.
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
                # count(x) counts values; of a column that is never NULL that is the number of rows, which `_n` has.
                if argument is not None and types.of(argument, inner).nullable:
                    values[name] = term(argument, "count", "bigint")
                else:
                    values[name] = column("_n")
            case exp.CountIf():
                assert argument is not None
                # count_if(c) = sum(case when c then 1 else 0 end)
                values[name] = term(_ones(argument), "sum", "bigint")
            case exp.LogicalAnd() | exp.LogicalOr():
                assert argument is not None
                values[name] = _all_or_any(call, argument, term)
            case exp.Min() | exp.Max():
                assert argument is not None
                # Only over append-only input: `Aggregate.is_additive` admits no other extremes.
                kind: TermKind = "min" if isinstance(call, exp.Min) else "max"
                values[name] = term(argument, kind, types.of(argument, inner).text)
            case _:
                values[name] = _sum_value(call, argument, inner, term)
    return Sums((Term("_n", "bigint", None, "count"), *terms.values()), values)


def _ones(condition: exp.Expr) -> exp.Expr:
    return exp.case().when(condition, "1").else_("0")


def _all_or_any(call: exp.Expr, condition: exp.Expr, term: Callable[[exp.Expr, TermKind, str], exp.Expr]) -> exp.Expr:
    """Return bool_and or bool_or as an expression over two counts: condition not NULL, condition true."""
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
        # Addition of floats isn't associative, so subtracting a deleted value doesn't restore the sum.
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
    """Return a sum divided by a count, as the average of values of a type."""
    value = exp.Div(this=total, expression=count.copy())
    size = types.decimal(argument)
    if size is not None and not types.is_integer(argument):
        value.meta["average"] = (types.average(argument), min(18, size[1] + 14), size)
    return value


def additive(top: tuple[tuple[str, exp.Expr], ...], node: Aggregate, target: Target) -> State:
    """Return the layout of an additive aggregate's table: columns, hidden group keys, sums."""
    inner = node.child.types()
    public = {item.name: name for name, item in reversed(top) if isinstance(item, exp.Column)}
    hidden, key, null_safe = [], [], []
    certain = {c.name for c in target.columns if not c.nullable}
    for name, expression in node.keys:
        kind = types.of(expression, inner)
        stored = public.get(name, f"_key_{name}")
        key.append(stored)
        # A key that the contract declares NOT NULL is checked before the tick is published.
        if kind.nullable and stored not in certain:
            null_safe.append(stored)
        if name not in public:
            if not kind.text:
                why = f"the type of the group key `{column_names.text(expression, node.child)}` is unknown"
                raise Refusal("SR524", why, "Add it to the select list, or cast it.", expression)
            hidden.append(StoredColumn(stored, kind.text, kind.nullable))
    groups = {name for name, _ in node.keys}
    for name, item in top:
        # A column that is computed from group keys is constant in each group, so it may join the key and prune the
        # MERGE.
        if name in target.partition_by and name not in key and types._columns(item) <= groups:
            key.append(name)
            if name not in certain:
                null_safe.append(name)
    state = sums(node)
    terms = [StoredColumn(t.name, t.type, t.kind in ("min", "max")) for t in state.terms]
    return State((*target.columns, *hidden, *terms), tuple(key), tuple(null_safe))


def newest(top: tuple[tuple[str, exp.Expr], ...], node: Latest, target: Target) -> State:
    """Return the layout of a latest-row-per-key table: columns, and hidden columns of the key and the order."""
    inner = node.child.types()
    public = {item.name: name for name, item in reversed(top) if isinstance(item, exp.Column)}
    hidden = []
    for name in dict.fromkeys([*node.keys, *(one.name for one in node.order)]):
        if name not in public:
            kind = inner[name]
            if not kind.text:
                raise Refusal(
                    "SR524",
                    f"the type of `{column_names.name(name, node)}` is unknown",
                    "Add it to the select list.",
                )
            public[name] = f"_{name}" if not name.startswith("_") else name
            hidden.append(StoredColumn(public[name], kind.text, kind.nullable))
    key = tuple(public[name] for name in node.keys)
    null_safe = tuple(public[name] for name in node.keys if inner[name].nullable)
    return State((*target.columns, *hidden), key, null_safe)
