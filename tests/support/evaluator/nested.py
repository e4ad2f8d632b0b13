"""Structs, arrays, maps and lambdas."""

from __future__ import annotations

from functools import cmp_to_key

from sqlglot import exp

from tests.support.evaluator.expressions import among, argument, equal, evaluate, on, strict
from tests.support.evaluator.scope import Scope
from tests.support.evaluator.values import Failure, MapValue, Struct, Unknown, Value, order, text_of

BY_ORDER = cmp_to_key(order)


@on(exp.Dot)
def _dot(node: exp.Dot, scope: Scope) -> Value:
    value = evaluate(node.this, scope)
    if not isinstance(node.expression, exp.Identifier):
        raise Unknown(node.sql("databricks"))
    return field_of(value, node.expression.name)


def field_of(value: Value, name: str) -> Value:
    """Return a field of a struct, of each struct of an array, or an entry of a map."""
    match value:
        case None:
            return None
        case Struct():
            return value.field(name)
        case MapValue():
            return value.get(name)
        case tuple():
            return tuple(field_of(v, name) for v in value)
    raise Unknown(f"field {name} of {value!r}")


@on(exp.Bracket)
def _bracket(node: exp.Bracket, scope: Scope) -> Value:
    value, index = evaluate(node.this, scope), evaluate(node.expressions[0], scope)
    if value is None or index is None:
        return None
    if isinstance(value, Struct):
        return value.field(index)
    if isinstance(value, MapValue):
        return value.get(index)
    start = node.args.get("offset") or 0
    place = len(value) + index if start and index < 0 else index - start
    if 0 <= place < len(value):
        return value[place]
    if node.args.get("safe"):
        return None
    raise Failure(f"an array of {len(value)} has no element {index}")


@on(exp.Struct)
def _struct(node: exp.Struct, scope: Scope) -> Struct:
    fields = []
    for position, item in enumerate(node.expressions, 1):
        if isinstance(item, exp.PropertyEQ):
            fields.append((item.this.name, evaluate(item.expression, scope)))
        else:
            fields.append((item.alias_or_name or f"col{position}", evaluate(item, scope)))
    return Struct(fields)


@on(exp.Array)
def _array(node: exp.Array, scope: Scope) -> tuple[Value, ...]:
    return tuple(evaluate(e, scope) for e in node.expressions)


@on(exp.VarMap, exp.Map)
def _map(node: exp.Expression, scope: Scope) -> Value:
    keys, values = argument(node, scope, "keys"), argument(node, scope, "values")
    return None if keys is None or values is None else MapValue(zip(keys, values, strict=True))


@on(exp.Concat, exp.DPipe)
def _concat(node: exp.Expression, scope: Scope) -> Value:
    parts = node.expressions if isinstance(node, exp.Concat) else [node.this, node.expression]
    values = [evaluate(p, scope) for p in parts]
    if any(v is None for v in values):
        return None
    if all(isinstance(v, tuple) for v in values):
        return tuple(x for v in values for x in v)
    return "".join(text_of(v) for v in values)


@on(exp.ArraySize)
def _size(node: exp.ArraySize, scope: Scope) -> int | None:
    value = evaluate(node.this, scope)
    return None if value is None else len(value)


@on(exp.ArrayContains)
def _contains(node: exp.ArrayContains, scope: Scope) -> bool | None:
    values, wanted = evaluate(node.this, scope), evaluate(node.expression, scope)
    return None if values is None or wanted is None else among(wanted, values)


@on(exp.ArraySort)
def _array_sort(node: exp.ArraySort, scope: Scope) -> Value:
    values = evaluate(node.this, scope)
    if values is None:
        return None
    compare = node.args.get("expression")
    if compare is not None:
        return tuple(sorted(values, key=cmp_to_key(lambda a, b: call(compare, scope, a, b))))
    down = argument(node, scope, "asc") is False
    rest = sorted((v for v in values if v is not None), key=BY_ORDER, reverse=down)
    nulls = [v for v in values if v is None]
    first = argument(node, scope, "nulls_first")
    return tuple([*nulls, *rest] if first is not False else [*rest, *nulls])


def call(function: exp.Expression, scope: Scope, *values: Value) -> Value:
    """Return the result of a lambda."""
    if not isinstance(function, exp.Lambda):
        raise Unknown(f"a function that is no lambda: {function.sql('databricks')}")
    names = [parameter.name for parameter in function.expressions]
    return evaluate(function.this, scope.with_names(dict(zip(names, values, strict=False))))


@on(exp.Transform)
def _transform(node: exp.Transform, scope: Scope) -> Value:
    values, function = evaluate(node.this, scope), node.expression
    return None if values is None else tuple(call(function, scope, v, i) for i, v in enumerate(values))


@on(exp.ArrayFilter)
def _filter(node: exp.ArrayFilter, scope: Scope) -> Value:
    values, function = evaluate(node.this, scope), node.expression
    return None if values is None else tuple(v for i, v in enumerate(values) if call(function, scope, v, i))


@on(exp.ArrayAny)
def any_of(node: exp.Expression, scope: Scope) -> bool | None:
    """Return exists(array, lambda): NULL if none is true and one is NULL."""
    values = evaluate(node.this, scope)
    if values is None:
        return None
    found = [call(node.expression, scope, v) for v in values]
    return True if any(found) else (None if None in found else False)


@on(exp.ArrayAll)
def _all(node: exp.Expression, scope: Scope) -> bool | None:
    return for_all(evaluate(node.this, scope), node.expression, scope)


def for_all(values: Value, function: exp.Expression, scope: Scope) -> bool | None:
    if values is None:
        return None
    found = [call(function, scope, v) for v in values]
    return False if False in found else (None if None in found else True)


@on(exp.Reduce)
def _reduce(node: exp.Reduce, scope: Scope) -> Value:
    values, total = evaluate(node.this, scope), argument(node, scope, "initial")
    if values is None:
        return None
    for value in values:
        total = call(node.args["merge"], scope, total, value)
    return call(node.args["finish"], scope, total) if node.args.get("finish") is not None else total


def distinct(values: tuple[Value, ...]) -> tuple[Value, ...]:
    """Return the values without repetitions, each at its first place."""
    found: list[Value] = []
    for value in values:
        if not any(order(value, other) == 0 for other in found):
            found.append(value)
    return tuple(found)


def _known(values: tuple[Value, ...]) -> list[Value]:
    return [v for v in values if v is not None]


strict(exp.ArrayDistinct)(distinct)
strict(exp.ArrayMax)(lambda values: max(_known(values), key=BY_ORDER, default=None))
strict(exp.ArrayMin)(lambda values: min(_known(values), key=BY_ORDER, default=None))
strict(exp.Flatten)(lambda values: None if None in values else tuple(x for v in values for x in v))
strict(exp.MapKeys)(lambda entries: tuple(k for k, _ in entries))
strict(exp.MapFromEntries)(lambda pairs: MapValue((p[0][1], p[1][1]) for p in pairs))
strict(exp.ArrayPosition, keys=("this", "expression"))(
    lambda values, wanted: next((i for i, v in enumerate(values, 1) if equal(v, wanted)), 0)
)
strict(exp.ArrayToString, keys=("this", "expression"))(
    lambda values, mark: mark.join(text_of(v) for v in _known(values))
)
strict(exp.ArrayExcept, keys=("this", "expression"))(
    lambda a, b: distinct(tuple(x for x in a if not any(order(x, y) == 0 for y in b)))
)
strict(exp.ArrayRemove, keys=("this", "expression"))(
    lambda values, gone: tuple(v for v in values if not equal(v, gone))
)


@strict(exp.GenerateSeries, keys=("start", "end"))
def _sequence(start: int, end: int) -> tuple[int, ...]:
    return tuple(range(start, end + 1) if start <= end else range(start, end - 1, -1))


@strict(exp.ArraySlice, keys=("this", "start", "end"))
def _slice(values: tuple[Value, ...], start: int, length: int) -> tuple[Value, ...]:
    if start == 0:
        raise Failure("slice begins at 1")
    begin = start - 1 if start > 0 else len(values) + start
    return () if begin < 0 else values[begin : begin + length]
