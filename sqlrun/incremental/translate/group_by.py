"""GROUP BY to operators: keys, aggregate calls, grouping sets, groups of the whole table. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from sqlrun.incremental import clocks, column_names
from sqlrun.incremental.algebra import Node
from sqlrun.incremental.expressions import column, columns_in
from sqlrun.incremental.operators.aggregate import Aggregate
from sqlrun.incremental.operators.join import Join
from sqlrun.incremental.operators.project import Project
from sqlrun.incremental.operators.single import Single
from sqlrun.incremental.operators.union_all import UnionAll
from sqlrun.incremental.translate.from_clause import unused
from sqlrun.transpile.refusals import Refusal
from sqlrun.transpile.trees import copied, is_aggregate

Items = tuple[tuple[str, exp.Expr], ...]
# The constant key of a whole table's one group, and the number of a grouping set.
ONE, SET = "_one", "_grouping_set"
MOST_SETS = 64
# Nodes that may enclose the arguments of an aggregate.
_AROUND = (exp.AggFunc, exp.Distinct, exp.Order, exp.Ordered, exp.IgnoreNulls, exp.RespectNulls)


@dataclass(slots=True)
class Groups:
    """The keys and calls of one SELECT's groups; `pull` replaces them in an expression by their columns.

    `written` are the keys as the query writes them, `keys` as expressions over the input.
    """

    keys: Items
    written: Items
    items: Items
    marks: Mapping[str, exp.Expr] = field(default_factory=dict)
    calls: dict[str, tuple[str, exp.Expr]] = field(default_factory=dict)

    def pull(self, expression: exp.Expr) -> exp.Expr:
        """Return an expression over the grouped rows."""

        def swap(part: exp.Expr) -> exp.Expr:
            if isinstance(part, exp.Grouping | exp.GroupingId):
                return self._grouping(part)
            for name, key in self.written:
                if part == key:
                    return column(name)
            call = part.this if isinstance(part, exp.Filter | exp.WithinGroup) else part
            if is_aggregate(call) and not _is_window(part):
                name = self.calls.setdefault(part.sql("databricks"), (self._name(part), part))[0]
                return column(name)
            return part

        return copied(expression).transform(swap, copy=False)

    def _name(self, call: exp.Expr) -> str:
        """Return the name of an aggregate: that of the item that it is, else a numbered one."""
        taken = {name for name, _ in self.keys} | {name for name, _ in self.calls.values()}
        for name, item in self.items:
            if item == call and name not in taken:
                return name
        return f"_agg_{len(self.calls) + 1}"

    def _grouping(self, part: exp.Expr) -> exp.Expr:
        keys = list(part.expressions) if part.expressions else ([part.this] if part.this else [])
        if isinstance(part, exp.GroupingId) and not keys:
            return self.marks["*"].copy()
        texts = [item.sql("databricks") for item in keys]
        if len(texts) == 1 and texts[0] in self.marks:
            return self.marks[texts[0]].copy()
        raise Refusal(
            "SR520",
            f"{part.sql('databricks')} can't be maintained incrementally here",
            "Use one key of GROUP BY as the argument.",
            part,
        )


def aggregates(expression: exp.Expr) -> list[exp.Expr]:
    """Return the aggregate calls of an expression, without window functions and without those of subqueries."""
    if isinstance(expression, exp.Column):
        return []
    nodes = expression.walk(prune=lambda node: isinstance(node, exp.Query) or is_aggregate(node))
    return [call for call in nodes if is_aggregate(call) and not _is_window(call)]


# Nodes that may separate an aggregate from its OVER.
_BEFORE_OVER = (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)


def _is_window(call: exp.Expr) -> bool:
    """Return whether a call is the function of a window, `x over (...)`, and not an argument of the window."""
    while isinstance(call.parent, _BEFORE_OVER) and call.arg_key == "this":
        call = call.parent
    return isinstance(call.parent, exp.Window) and call.arg_key == "this"


def grouped(
    group: exp.Group | None, node: Node, items: Items, conditions: Mapping[str, exp.Expr],
    plain: Callable[[exp.Expr], exp.Expr],
) -> tuple[Node, Items, dict[str, exp.Expr], Groups]:  # fmt: skip
    """Group a node. Return it with the items and conditions over the groups.

    Raises: SR519 for an expression that is neither grouped nor aggregated.
    """
    sets = _sets(group, plain)
    if sets is None:
        keys = _keys(group, items, plain)
        groups = Groups(keys, keys, items)
    else:
        node, groups = _expanded(node, items, sets)
    pulled = tuple((name, groups.pull(item)) for name, item in items)
    over = {key: groups.pull(condition) for key, condition in conditions.items()}
    node, calls = _settled(node, tuple(groups.calls.values()))
    node, keys = _keys_settled(node, groups.keys)
    made = whole(node, calls) if not keys else Aggregate(node, keys, calls)
    allowed = set(made.columns)
    for name, item in (*pulled, *over.items()):
        stray = columns_in(item) - allowed
        if stray:
            raise Refusal(
                "SR519",
                f"{_item(name)} reads {', '.join(column_names.name(one, node) for one in sorted(stray))}, "
                "which is neither grouped nor aggregated",
                "Add it to GROUP BY, or use an aggregate function.",
                item,
            )
    return made, pulled, over, groups


def _item(name: str) -> str:
    """Return how a message names a part of a SELECT: an item by its name, a clause by its keyword."""
    words = {"having": "HAVING", "qualify": "QUALIFY"}
    return "ORDER BY" if name.startswith("_order_") else words.get(name, f"`{name}`")


def _settled(node: Node, calls: Items) -> tuple[Node, Items]:
    """Compute arguments that read the clock in a projection below, where the clock's effect is a change of rows."""
    added: list[tuple[str, exp.Expr]] = []

    def steady(part: exp.Expr) -> exp.Expr:
        name = unused(f"_at_{len(added) + 1}", node.columns)
        added.append((name, part))
        return column(name)

    done = []
    for name, raw in calls:
        if clocks.reads_clock(raw):
            raw = raw.copy()
            call = raw.this if isinstance(raw, exp.Filter) else raw
            for operand in list(_operands(call)):
                if clocks.reads_clock(operand):
                    operand.replace(steady(operand.copy()))
            if isinstance(raw, exp.Filter) and clocks.reads_clock(raw.expression):
                raw.expression.set("this", steady(raw.expression.this.copy()))
            if clocks.reads_clock(raw):
                raise clocks.no_rule(raw)
        done.append((name, raw))
    if added:
        node = Project(node, (*((c, column(c)) for c in node.columns), *added))
    return node, tuple(done)


def _operands(call: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the values that an aggregate reads of each row: arguments, DISTINCT expressions, sort keys."""
    for part in call.iter_expressions():
        if isinstance(part, _AROUND):
            yield from _operands(part)
        else:
            yield part


def _keys_settled(node: Node, keys: Items) -> tuple[Node, Items]:
    clocked = [(name, key) for name, key in keys if clocks.reads_clock(key)]
    if not clocked:
        return node, keys
    names = {name: unused(f"_at_{name}", node.columns) for name, _ in clocked}
    added = tuple((names[name], key) for name, key in clocked)
    node = Project(node, (*((c, column(c)) for c in node.columns), *added))
    return node, tuple((name, column(names[name]) if name in names else key) for name, key in keys)


def whole(node: Node, calls: Items) -> Node:
    """Group a whole table: always one row, even over no rows.

    The result is the single row left joined to the table's one group, if there is one. So the group is stored like
    others.
    """
    own = tuple((name, column(name)) for name in node.columns)
    keyed = Project(node, (*own, (ONE, exp.Literal.number(1))))
    groups = Aggregate(keyed, ((f"{ONE}_", column(ONE)),), calls)
    joined = Join(Single(), groups, "left", ((column(ONE), column(f"{ONE}_")),))
    return Project(joined, tuple((name, of_none(call, column(name))) for name, call in calls))


def of_none(raw: exp.Expr, value: exp.Expr) -> exp.Expr:
    """Return an aggregate's value, with its value over no rows if the group is missing."""
    call = raw.this if isinstance(raw, exp.Filter) else raw
    match call:
        case exp.Count() | exp.CountIf() | exp.ApproxDistinct():
            # Only counts and lists have a value over no rows; all other aggregates are NULL, like the padded row.
            return exp.func("coalesce", value, exp.Literal.number(0))
        case exp.ArrayAgg() | exp.ArrayUniqueAgg():
            return exp.func("coalesce", value, exp.Array(expressions=[]))
        case _:
            return value


def _keys(group: exp.Group | None, items: Items, plain: Callable[[exp.Expr], exp.Expr]) -> Items:
    if group is None:
        return ()
    if group.args.get("all"):
        return tuple((name, item) for name, item in items if not aggregates(item))
    keys: list[tuple[str, exp.Expr]] = []
    for position, raw in enumerate(group.expressions):
        key = plain(raw)
        if isinstance(key, exp.Literal) and key.is_int:
            key = items[int(key.name) - 1][1]
        named = next((name for name, item in items if item == key), None)
        if named is None:
            named = key.name if isinstance(key, exp.Column) else f"_key_{position + 1}"
        if named in {name for name, _ in keys}:
            if (named, key) in keys:
                continue
            named = f"_key_{position + 1}"
        keys.append((named, key))
    return tuple(keys)


Set = tuple[exp.Expr, ...]


def _sets(group: exp.Group | None, plain: Callable[[exp.Expr], exp.Expr]) -> list[Set] | None:
    """Return the grouping sets of a GROUP BY, as keys over the input; None if it has none."""
    if group is None or not group.find(exp.GroupingSets, exp.Rollup, exp.Cube):
        return None
    parts: list[list[Set]] = []
    for raw in group.expressions:
        parts.append(_sets_of(raw, plain))
    product = [tuple(itertools.chain.from_iterable(choice)) for choice in itertools.product(*parts)]
    sets = [_once(one) for one in product]
    if len(sets) > MOST_SETS:
        raise Refusal(
            "SR520",
            f"{len(sets)} grouping sets are more than the maximum of {MOST_SETS}",
            f"List only the grouping sets that you need, at most {MOST_SETS}.",
            group,
        )
    return sets


def _sets_of(raw: exp.Expr, plain: Callable[[exp.Expr], exp.Expr]) -> list[Set]:
    match raw:
        case exp.GroupingSets():
            return [one for part in raw.expressions for one in _sets_of(part, plain)]
        case exp.Rollup():
            units = [_unit(part, plain) for part in raw.expressions]
            return [tuple(itertools.chain.from_iterable(units[:n])) for n in range(len(units), -1, -1)]
        case exp.Cube():
            units = [_unit(part, plain) for part in raw.expressions]
            chosen = itertools.product((True, False), repeat=len(units))
            return [
                tuple(itertools.chain.from_iterable(u for u, take in zip(units, picks, strict=True) if take))
                for picks in chosen
            ]
        case _:
            return [_unit(raw, plain)]


def _unit(raw: exp.Expr, plain: Callable[[exp.Expr], exp.Expr]) -> Set:
    match raw:
        case exp.Tuple():
            return tuple(plain(part) for part in raw.expressions)
        case exp.Paren():
            return (plain(raw.this),)
        case _:
            return (plain(raw),)


def _once(keys: Set) -> Set:
    found: list[exp.Expr] = []
    for key in keys:
        if key not in found:
            found.append(key)
    return tuple(found)


def _expanded(node: Node, items: Items, sets: list[Set]) -> tuple[Node, Groups]:
    """Repeat each row for each grouping set, with the set's number and with NULL for keys outside the set.

    So all sets are one aggregate, whose key is the number and the keys.
    """
    every = _once(tuple(itertools.chain.from_iterable(sets)))
    named: list[tuple[str, exp.Expr]] = []
    for position, key in enumerate(every):
        name = next((n for n, item in items if item == key), None)
        if name is None:
            name = key.name if isinstance(key, exp.Column) else f"_key_{position + 1}"
        named.append((name, key))
    own = tuple((c, column(c)) for c in node.columns)
    stored = {name: unused(f"_set_{name}", node.columns) for name, _ in named}
    parts = []
    for number, one in enumerate(sets):
        values = tuple((stored[name], key if key in one else _null_like(key)) for name, key in named)
        parts.append(Project(node, (*own, (SET, exp.Literal.number(number)), *values)))
    union: Node = UnionAll(tuple(parts)) if len(parts) > 1 else parts[0]
    keys = ((SET, column(SET)), *((name, column(stored[name])) for name, _ in named))
    return union, Groups(keys, tuple(named), items, _marks(named, sets))


def _null_like(key: exp.Expr) -> exp.Expr:
    """Return NULL of a key's type: an unreachable branch gives it the type without naming it."""
    return exp.case().when(exp.false(), key.copy())


def _marks(named: list[tuple[str, exp.Expr]], sets: list[Set]) -> dict[str, exp.Expr]:
    """Return grouping(key) for each key, and grouping_id() under `*`, computed from the set's number."""
    marks: dict[str, exp.Expr] = {}
    for _, key in named:
        marks[key.sql("databricks")] = _by_set([0 if key in one else 1 for one in sets])
    ids = [sum((0 if key in one else 1) << (len(named) - 1 - n) for n, (_, key) in enumerate(named)) for one in sets]
    marks["*"] = _by_set(ids)
    return marks


def _by_set(values: list[int]) -> exp.Expr:
    case = exp.case(column(SET))
    for number, value in enumerate(values[:-1]):
        case = case.when(exp.Literal.number(number), exp.Literal.number(value))
    return case.else_(exp.Literal.number(values[-1])) if len(values) > 1 else exp.Literal.number(values[0])
