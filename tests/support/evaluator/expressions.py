"""Expressions over one row: three-valued logic, exact arithmetic, CASE, casts, subqueries."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import date, datetime, timedelta
from decimal import Decimal

from sqlglot import exp

from tests.support.evaluator.scope import Scope
from tests.support.evaluator.values import Failure, Interval, Unknown, Value, day, order, to_type

# Arguments that would change a result and that no handler reads.
UNREAD = (
    "symmetric", "format", "zone", "count", "step", "occurrence", "parameters", "modifiers", "truncate", "limit",
    "full_match", "flag", "is_multiset", "zero_based", "collation", "null", "unnest", "field",
    "zero_start", "json_query", "action", "date_part_boundary", "culture", "binary", "is_end_exclusive", "exclude",
)  # fmt: skip
READ = (exp.TimeToStr, exp.Select, exp.Subquery)
Handler = Callable[[exp.Expression, Scope], Value]
HANDLERS: dict[type, Handler] = {}


def on(*kinds: type) -> Callable[[Handler], Handler]:
    """Register the handler of a kind of node."""

    def register(handler: Handler) -> Handler:
        for kind in kinds:
            assert kind not in HANDLERS, kind
            HANDLERS[kind] = handler
        return handler

    return register


def evaluate(node: exp.Expression, scope: Scope) -> Value:
    """Return the value of an expression. Raises: `Unknown` for a node without a handler."""
    if scope.group is not None and id(node) in scope.group.keys:
        return scope.group.keys[id(node)]
    handler = HANDLERS.get(type(node))
    if handler is None:
        raise Unknown(f"{type(node).__name__}: {node.sql('databricks')}")
    stray = next((key for key in UNREAD if node.args.get(key)), None)
    if stray is not None and not isinstance(node, READ):
        raise Unknown(f"{stray} of {type(node).__name__}: {node.sql('databricks')}")
    return handler(node, scope)


def argument(node: exp.Expression, scope: Scope, key: str = "this") -> Value:
    """Return the value of one argument; None if it is missing."""
    part = node.args.get(key)
    return None if part is None else evaluate(part, scope)


def strict(*kinds: type, keys: tuple[str, ...] = ("this",)) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
    """Register a function of values that returns NULL if an argument is NULL."""

    def register(function: Callable[..., Value]) -> Callable[..., Value]:
        def handler(node: exp.Expression, scope: Scope) -> Value:
            values = [argument(node, scope, key) for key in keys if node.args.get(key) is not None]
            return None if any(v is None for v in values) else function(*values)

        on(*kinds)(handler)
        return function

    return register


@on(exp.Column)
def _column(node: exp.Column, scope: Scope) -> Value:
    return scope.column(node.table, node.name)


@on(exp.Identifier)
def _variable(node: exp.Identifier, scope: Scope) -> Value:
    if node.name not in scope.names:
        raise Unknown(f"variable {node.name}")
    return scope.names[node.name]


@on(exp.Paren, exp.Alias)
def _inside(node: exp.Expression, scope: Scope) -> Value:
    return evaluate(node.this, scope)


@on(exp.Literal)
def _literal(node: exp.Literal, scope: Scope) -> Value:
    if node.is_string:
        return node.this
    if "e" in node.this.lower():
        return float(node.this)
    return int(node.this) if node.this.isdigit() else Decimal(node.this)


@on(exp.Null)
def _null(node: exp.Null, scope: Scope) -> None:
    return None


@on(exp.Boolean)
def _boolean(node: exp.Boolean, scope: Scope) -> bool:
    return bool(node.this)


@on(exp.CurrentTimestamp)
def _now(node: exp.Expression, scope: Scope) -> datetime:
    return scope.world.as_of


@on(exp.CurrentDate)
def _today(node: exp.Expression, scope: Scope) -> date:
    return day(scope.world.as_of)


@on(exp.Interval)
def _interval(node: exp.Interval, scope: Scope) -> Value:
    count = argument(node, scope)
    if count is None:
        return None
    if isinstance(count, str):
        if not re.fullmatch(r"[-+]?\d+", count.strip()):
            raise Unknown(f"interval {node.sql('databricks')}")
        count = int(count)
    unit = node.args["unit"].name.lower().rstrip("s")
    if unit in ("month", "quarter", "year"):
        return Interval(int(count) * {"month": 1, "quarter": 3, "year": 12}[unit], timedelta())
    if unit not in ("microsecond", "millisecond", "second", "minute", "hour", "day", "week"):
        raise Unknown(f"interval of {unit}")
    return Interval(0, timedelta(**{unit + "s": float(count) if isinstance(count, Decimal) else count}))


# Logic


@on(exp.And)
def _and(node: exp.And, scope: Scope) -> bool | None:
    left = evaluate(node.this, scope)
    if left is False:
        return False
    right = evaluate(node.expression, scope)
    return False if right is False else (None if left is None or right is None else True)


@on(exp.Or)
def _or(node: exp.Or, scope: Scope) -> bool | None:
    left = evaluate(node.this, scope)
    if left is True:
        return True
    right = evaluate(node.expression, scope)
    return True if right is True else (None if left is None or right is None else False)


@on(exp.Not)
def _not(node: exp.Not, scope: Scope) -> bool | None:
    value = evaluate(node.this, scope)
    return None if value is None else not value


def equal(a: Value, b: Value) -> bool | None:
    """Return the result of `=`: NULL if one side is NULL; rows of values are compared column by column."""
    if isinstance(a, list) or isinstance(b, list):
        if not (isinstance(a, list) and isinstance(b, list) and len(a) == len(b)):
            raise Unknown("a row compared with something else")
        found = [equal(x, y) for x, y in zip(a, b, strict=True)]
        return False if False in found else (None if None in found else True)
    return None if a is None or b is None else order(a, b) == 0


@on(exp.EQ)
def _eq(node: exp.EQ, scope: Scope) -> bool | None:
    return equal(evaluate(node.this, scope), evaluate(node.expression, scope))


@on(exp.NEQ)
def _neq(node: exp.NEQ, scope: Scope) -> bool | None:
    found = equal(evaluate(node.this, scope), evaluate(node.expression, scope))
    return None if found is None else not found


@on(exp.LT, exp.LTE, exp.GT, exp.GTE)
def _less(node: exp.Expression, scope: Scope) -> bool | None:
    a, b = evaluate(node.this, scope), evaluate(node.expression, scope)
    if a is None or b is None:
        return None
    found = order(a, b)
    return {exp.LT: found < 0, exp.LTE: found <= 0, exp.GT: found > 0, exp.GTE: found >= 0}[type(node)]


@on(exp.NullSafeEQ, exp.EqualNull)
def _same(node: exp.Expression, scope: Scope) -> bool:
    return order(evaluate(node.this, scope), evaluate(node.expression, scope)) == 0


@on(exp.NullSafeNEQ)
def _distinct_from(node: exp.Expression, scope: Scope) -> bool:
    return not _same(node, scope)


@on(exp.Is)
def _is(node: exp.Is, scope: Scope) -> bool:
    value = evaluate(node.this, scope)
    negated = bool(node.args.get("negate"))
    match node.expression:
        case exp.Null():
            return (value is None) != negated
        case exp.Boolean(this=truth):
            return (value is not None and value == truth) != negated
    raise Unknown(node.sql("databricks"))


@on(exp.Between)
def _between(node: exp.Between, scope: Scope) -> bool | None:
    value, low, high = (argument(node, scope, key) for key in ("this", "low", "high"))
    above = None if value is None or low is None else order(value, low) >= 0
    below = None if value is None or high is None else order(value, high) <= 0
    return False if above is False or below is False else (None if above is None or below is None else True)


@on(exp.In)
def _in(node: exp.In, scope: Scope) -> bool | None:
    value = evaluate(node.this, scope)
    query = node.args.get("query")
    if query is not None:
        from tests.support.evaluator.queries import subquery

        rows = subquery(query, scope).rows
        return among(value, (list(r) if isinstance(value, list) else r[0] for r in rows))
    if node.args.get("unnest") or node.args.get("field"):
        raise Unknown(node.sql("databricks"))
    return among(value, (evaluate(e, scope) for e in node.expressions))


def among(value: Value, others: Iterable[Value]) -> bool | None:
    """Return whether a value is in a list; NULL if that is unknown."""
    answer: bool | None = False
    for other in others:
        found = equal(value, other)
        if found:
            return True
        if found is None:
            answer = None
    return answer


@on(exp.Tuple)
def _tuple(node: exp.Tuple, scope: Scope) -> list[Value]:
    return [evaluate(e, scope) for e in node.expressions]


@on(exp.Exists)
def _exists(node: exp.Exists, scope: Scope) -> bool | None:
    if node.args.get("expression") is not None:
        from tests.support.evaluator.nested import any_of

        return any_of(node, scope)
    from tests.support.evaluator.queries import subquery

    return bool(subquery(node.this, scope).rows)


@on(exp.Subquery)
def _scalar(node: exp.Subquery, scope: Scope) -> Value:
    from tests.support.evaluator.queries import subquery

    found = subquery(node, scope)
    if len(found.rows) > 1:
        raise Failure(f"more than one row: {node.sql('databricks')}")
    return found.rows[0][0] if found.rows else None


@on(exp.Like, exp.ILike)
def _like(node: exp.Expression, scope: Scope) -> bool | None:
    text, pattern = evaluate(node.this, scope), evaluate(node.expression, scope)
    if text is None or pattern is None:
        return None
    parts = re.findall(r"\\(.)|(.)", pattern, re.DOTALL)
    regex = "".join(re.escape(e) if e else {"%": ".*", "_": "."}.get(c, re.escape(c)) for e, c in parts)
    flags = re.DOTALL | (re.IGNORECASE if isinstance(node, exp.ILike) else 0)
    return (re.fullmatch(regex, text, flags) is not None) != bool(node.args.get("negate"))


# Choice


@on(exp.Case)
def _case(node: exp.Case, scope: Scope) -> Value:
    subject = node.this
    for branch in node.args["ifs"]:
        met = evaluate(branch.this, scope)
        if subject is not None:
            met = equal(evaluate(subject, scope), met)
        if met:
            return evaluate(branch.args["true"], scope)
    return argument(node, scope, "default")


@on(exp.If)
def _if(node: exp.If, scope: Scope) -> Value:
    return argument(node, scope, "true" if evaluate(node.this, scope) else "false")


@on(exp.Coalesce)
def _coalesce(node: exp.Coalesce, scope: Scope) -> Value:
    return next((v for v in (evaluate(e, scope) for e in (node.this, *node.expressions)) if v is not None), None)


@on(exp.Nullif)
def _nullif(node: exp.Nullif, scope: Scope) -> Value:
    value = evaluate(node.this, scope)
    return None if equal(value, evaluate(node.expression, scope)) else value


@on(exp.Nvl2)
def _nvl2(node: exp.Nvl2, scope: Scope) -> Value:
    return argument(node, scope, "true" if evaluate(node.this, scope) is not None else "false")


@on(exp.Cast)
def _cast(node: exp.Cast, scope: Scope) -> Value:
    return to_type(evaluate(node.this, scope), node.to)


@on(exp.TryCast)
def _try_cast(node: exp.TryCast, scope: Scope) -> Value:
    try:
        return to_type(evaluate(node.this, scope), node.to)
    except Failure:
        return None
