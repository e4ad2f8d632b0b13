"""Aggregate functions over the rows of a group or of a window's frame."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal

from sqlglot import exp

from tests.support.evaluator import functions  # noqa: F401  registers its handlers
from tests.support.evaluator.expressions import HANDLERS, evaluate, on
from tests.support.evaluator.nested import BY_ORDER, distinct
from tests.support.evaluator.scope import Scope
from tests.support.evaluator.values import Unknown, Value, order

Values = list[Value]


def total(values: Values) -> Value:
    """Return the sum; NULL over no values."""
    if not values:
        return None
    result = values[0]
    for value in values[1:]:
        result = result + value
    return result


def mean(values: Values) -> Value:
    if not values:
        return None
    summed = total(values)
    return summed / len(values) if isinstance(summed, (int, float)) else summed / Decimal(len(values))


def _moment(values: Values, less: int) -> float | None:
    """Return the variance, exact for integers and decimals; NULL for fewer than `less` + 1 rows."""
    count = len(values)
    if count <= less:
        return None
    exact = [Decimal(repr(v)) if isinstance(v, float) else Decimal(v) for v in values]
    middle = sum(exact) / count
    return float(sum((v - middle) ** 2 for v in exact) / (count - less))


def _root(value: float | None) -> float | None:
    return None if value is None else math.sqrt(value)


def _median(values: Values) -> float | None:
    if not values:
        return None
    ordered = sorted(values)
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return (float(low) + float(high)) / 2


def _truth(values: Values, every: bool) -> bool | None:
    return None if not values else (all(values) if every else any(values))


# Functions of the non-NULL values.
PLAIN: dict[type, Callable[[Values], Value]] = {
    exp.Sum: total,
    exp.Avg: mean,
    exp.Min: lambda values: min(values, key=BY_ORDER, default=None),
    exp.Max: lambda values: max(values, key=BY_ORDER, default=None),
    exp.CountIf: lambda values: sum(map(bool, values)),
    exp.LogicalAnd: lambda values: _truth(values, True),
    exp.LogicalOr: lambda values: _truth(values, False),
    exp.ArrayAgg: tuple,
    exp.ArrayUniqueAgg: lambda values: distinct(tuple(values)),
    exp.VariancePop: lambda values: _moment(values, 0),
    exp.Variance: lambda values: _moment(values, 1),
    exp.StddevPop: lambda values: _root(_moment(values, 0)),
    exp.Stddev: lambda values: _root(_moment(values, 1)),
    exp.StddevSamp: lambda values: _root(_moment(values, 1)),
    exp.Median: _median,
}
NAMED: dict[str, Callable[[Values], Value]] = {
    "bool_and": PLAIN[exp.LogicalAnd],
    "every": PLAIN[exp.LogicalAnd],
    "bool_or": PLAIN[exp.LogicalOr],
    "some": PLAIN[exp.LogicalOr],
}
KINDS = (*PLAIN, exp.Count, exp.ArgMax, exp.ArgMin, exp.AnyValue, exp.First, exp.Last, exp.FirstValue, exp.LastValue)


def is_aggregate(node: exp.Expression) -> bool:
    """Return whether a node is an aggregate call outside of a window."""
    return isinstance(node, exp.AggFunc) or (isinstance(node, exp.Anonymous) and node.name.lower() in NAMED)


def aggregate(node: exp.Expression, rows: list[Scope]) -> Value:
    """Return an aggregate's value over rows."""
    match node:
        case exp.Filter():
            condition = node.expression.this
            return aggregate(node.this, [row for row in rows if evaluate(condition, row)])
        case exp.Count():
            return _count(node, rows)
        case exp.ArgMax() | exp.ArgMin():
            return _at_extreme(node, rows)
        case exp.IgnoreNulls(this=exp.AnyValue() | exp.First() | exp.FirstValue() | exp.Last() | exp.LastValue()):
            return _only(node.this, [row for row in rows if evaluate(node.this.this, row) is not None])
        case exp.AnyValue() | exp.First() | exp.FirstValue() | exp.Last() | exp.LastValue():
            return _only(node, rows)
        case exp.Anonymous():
            return NAMED[node.name.lower()](_values(node.expressions[0], rows))
    if type(node) not in PLAIN or node.args.get("order") or node.args.get("expression"):
        raise Unknown(f"aggregate {node.sql('databricks')}")
    inner = node.this
    if isinstance(inner, exp.Distinct):
        if len(inner.expressions) != 1:
            raise Unknown(f"aggregate {node.sql('databricks')}")
        return PLAIN[type(node)](list(distinct(tuple(_values(inner.expressions[0], rows)))))
    return PLAIN[type(node)](_values(inner, rows))


def _values(node: exp.Expression, rows: list[Scope]) -> Values:
    return [value for value in (evaluate(node, row) for row in rows) if value is not None]


def _count(node: exp.Count, rows: list[Scope]) -> int:
    inner = node.this
    if isinstance(inner, exp.Star):
        return len(rows)
    parts = inner.expressions if isinstance(inner, exp.Distinct) else [inner, *node.expressions]
    if any(isinstance(p, exp.Star) for p in parts):
        raise Unknown(node.sql("databricks"))
    found = [tuple(evaluate(p, row) for p in parts) for row in rows]
    known = [values for values in found if None not in values]
    return len(distinct(tuple(known))) if isinstance(inner, exp.Distinct) else len(known)


def _at_extreme(node: exp.Expression, rows: list[Scope]) -> Value:
    pairs = [(evaluate(node.expression, row), evaluate(node.this, row)) for row in rows]
    pairs = [pair for pair in pairs if pair[0] is not None]
    if not pairs:
        return None
    best = (max if isinstance(node, exp.ArgMax) else min)((k for k, _ in pairs), key=BY_ORDER)
    answers = [value for key, value in pairs if order(key, best) == 0]
    if len(distinct(tuple(answers))) > 1:
        raise Unknown(f"a tie in {node.sql('databricks')}")
    return answers[0]


def _only(node: exp.Expression, rows: list[Scope]) -> Value:
    """Return the common value of a group: first() has no order, so it is known only if all values are equal."""
    values = [evaluate(node.this, row) for row in rows]
    if len(distinct(tuple(values))) > 1:
        raise Unknown(f"{node.sql('databricks')} over rows that differ")
    return values[0] if values else None


def _grouped(node: exp.Expression, scope: Scope) -> Value:
    if scope.group is None:
        raise Unknown(f"an aggregate outside of a group: {node.sql('databricks')}")
    return aggregate(node, scope.group.rows)


for _kind in (*KINDS, exp.Filter):
    on(_kind)(_grouped)

_function = HANDLERS[exp.Anonymous]


def _anonymous(node: exp.Expression, scope: Scope) -> Value:
    return _grouped(node, scope) if is_aggregate(node) else _function(node, scope)


HANDLERS[exp.Anonymous] = _anonymous


@on(exp.IgnoreNulls)
def _ignore_nulls(node: exp.IgnoreNulls, scope: Scope) -> Value:
    return _grouped(node, scope)


@on(exp.Grouping)
def _grouping(node: exp.Grouping, scope: Scope) -> int:
    if scope.group is None:
        raise Unknown("grouping() outside of a group")
    (column,) = node.expressions or [node.this]
    return int(id(column) in scope.group.absent)


@on(exp.GroupingId)
def _grouping_id(node: exp.GroupingId, scope: Scope) -> int:
    if scope.group is None:
        raise Unknown("grouping_id() outside of a group")
    if not node.expressions:
        return scope.group.bits
    bits = 0
    for column in node.expressions:
        bits = bits * 2 + int(id(column) in scope.group.absent)
    return bits
