"""Arithmetic: exact decimals, doubles, times and intervals."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal

from sqlglot import exp

from tests.support.evaluator.expressions import evaluate, on
from tests.support.evaluator.scope import Scope
from tests.support.evaluator.values import Failure, Interval, Unknown, Value, alike, instant, shift, truncated


@on(exp.Add, exp.Sub)
def _add(node: exp.Expression, scope: Scope) -> Value:
    a, b = evaluate(node.this, scope), evaluate(node.expression, scope)
    return None if a is None or b is None else added(a, b, 1 if isinstance(node, exp.Add) else -1)


def added(a: Value, b: Value, sign: int) -> Value:
    """Return the sum or difference of numbers, intervals or times."""
    if isinstance(b, Interval):
        if isinstance(a, Interval):
            return Interval(a.months + sign * b.months, a.time + sign * b.time)
        return shift(instant(a) if isinstance(a, str) else a, b, sign)
    if isinstance(a, Interval) and isinstance(b, date) and sign == 1:
        return shift(b, a)
    if isinstance(a, datetime) and isinstance(b, datetime) and sign == -1:
        return Interval(0, a - b)
    if isinstance(a, date) and not isinstance(a, datetime) and isinstance(b, int):
        return a + sign * timedelta(days=b)
    a, b = numbers(a, b)
    return a + sign * b


def numbers(a: Value, b: Value) -> tuple[Value, Value]:
    """Return two values as numbers of one kind."""
    a, b = (Decimal(v) if isinstance(v, str) else v for v in (a, b))
    if any(isinstance(v, bool) or not isinstance(v, (int, float, Decimal)) for v in (a, b)):
        raise Unknown(f"arithmetic with {a!r} and {b!r}")
    return alike(a, b)


@on(exp.Mul)
def _multiply(node: exp.Mul, scope: Scope) -> Value:
    a, b = evaluate(node.this, scope), evaluate(node.expression, scope)
    if a is None or b is None:
        return None
    if isinstance(b, Interval):
        a, b = b, a
    if isinstance(a, Interval):
        return Interval(a.months * b, a.time * b)
    a, b = numbers(a, b)
    return a * b


@on(exp.Div, exp.SafeDivide)
def _divide(node: exp.Expression, scope: Scope) -> Value:
    a, b = evaluate(node.this, scope), evaluate(node.expression, scope)
    if a is None or b is None:
        return None
    a, b = numbers(a, b)
    if b == 0:
        if isinstance(node, exp.SafeDivide):
            return None
        raise Failure("division by zero")
    # Two integers return a double, a decimal returns a decimal.
    return (
        a / b
        if isinstance(a, float) or isinstance(b, float) or (isinstance(a, int) and isinstance(b, int))
        else (Decimal(a) / Decimal(b))
    )


@on(exp.IntDiv)
def _whole_part(node: exp.IntDiv, scope: Scope) -> int | None:
    a, b = evaluate(node.this, scope), evaluate(node.expression, scope)
    if a is None or b is None:
        return None
    if b == 0:
        raise Failure("division by zero")
    return int(truncated(Decimal(a) / Decimal(b)))


@on(exp.Mod)
def _rest(node: exp.Mod, scope: Scope) -> Value:
    a, b = evaluate(node.this, scope), evaluate(node.expression, scope)
    return None if a is None or b is None else remainder(a, b)


def remainder(a: Value, b: Value) -> Value:
    """Return the remainder of a division, with the sign of the dividend."""
    a, b = numbers(a, b)
    if b == 0:
        raise Failure("division by zero")
    rest = abs(a) % abs(b)
    return -rest if a < 0 else rest


@on(exp.Neg)
def _negative(node: exp.Neg, scope: Scope) -> Value:
    value = evaluate(node.this, scope)
    if isinstance(value, Interval):
        return Interval(-value.months, -value.time)
    return None if value is None else -value
