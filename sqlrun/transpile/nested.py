"""Spark's functions on arrays, maps and JSON in DuckDB's SQL. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from sqlrun.transpile.templates import Translation, UnlikeSparkError, call, of, piece
from sqlrun.transpile.trees import may_be_variable

# Whether a list contains a value, NULL equal to NULL.
_HOLDS = "(case when arg_v is null then len(arg_a) <> list_count(arg_a) else list_contains(arg_a, arg_v) end)"
# The same inside a list's own lambda, where the value is `_x`.
_AMONG = "(case when _x is null then len({0}) <> list_count({0}) else list_contains({0}, _x) end)"
_DISTINCT = "list_filter({0}, lambda _x, _i: _i = 1 or not " + _AMONG.replace("{0}", "{0}[1:_i - 1]") + ")"
_OPERATORS: Mapping[str, str] = {
    "array_distinct": f"case when arg_a is not null then {_DISTINCT.format('arg_a')} end",
    "array_except": (
        f"case when arg_b is not null then list_filter({_DISTINCT.format('arg_a')}, "
        f"lambda _x: not {_AMONG.format('arg_b')}) end"
    ),
    "array_intersect": (
        f"case when arg_b is not null then list_filter({_DISTINCT.format('arg_a')}, "
        f"lambda _x: {_AMONG.format('arg_b')}) end"
    ),
    "array_union": (
        "case when arg_a is not null and arg_b is not null then "
        f"list_transform([list_concat(arg_a, arg_b)], lambda _u: {_DISTINCT.format('_u')})[1] end"
    ),
}


def quantified(array: exp.Expr, condition: exp.Expr, *, every: bool) -> exp.Expr:
    """Return exists() or forall(), with Spark's three-valued logic."""
    met = call("list_transform", array, condition)
    decisive = "false" if every else "true"
    other = "true" if every else "false"
    template = (
        f"case when arg_m is null then null when list_contains(arg_m, {decisive}) then {decisive} "
        f"when len(arg_m) <> list_count(arg_m) then null else {other} end"
    )
    return piece(template, m=met)


def contains(node: exp.ArrayContains) -> exp.Expr:
    """Return array_contains(): NULL if the value isn't found and the array contains a NULL."""
    template = (
        "case when arg_a is null or arg_v is null then null when list_contains(arg_a, arg_v) then true "
        "when len(arg_a) <> list_count(arg_a) then null else false end"
    )
    return piece(template, a=node.this, v=node.expression)


def indexed(node: exp.Expr) -> exp.Expr:
    """Return transform() or filter(): an index counts from 0 in Spark, from 1 in DuckDB."""
    function = node.expression
    if not isinstance(function, exp.Lambda) or len(function.expressions) != 2:
        return node
    function = function.copy()
    index = function.expressions[1].name
    for place in _variables(function, index):
        place.replace(exp.paren(exp.Sub(this=place.copy(), expression=exp.Literal.number(1)), copy=False))
    return call("list_filter" if isinstance(node, exp.ArrayFilter) else "list_transform", node.this, function)


def _variables(function: exp.Lambda, name: str) -> list[exp.Expr]:
    """Return the identifiers in a lambda's body that refer to a variable."""
    return [node for node in function.this.find_all(exp.Identifier) if node.name == name and may_be_variable(node)]


def _over_fields(function: exp.Expr, fields: tuple[exp.Expr, ...]) -> exp.Lambda:
    """Return a lambda of several variables as one over a struct with these fields."""
    if not isinstance(function, exp.Lambda) or len(function.expressions) != len(fields):
        raise UnlikeSparkError("it requires a lambda with all variables")
    names = [variable.name for variable in function.expressions]
    entry = "_" + "_".join(names)
    body = exp.Lambda(this=exp.paren(function.this.copy()), expressions=[exp.to_identifier(entry)])
    for name, field in zip(names, fields, strict=True):
        for place in _variables(body, name):
            if isinstance(field, exp.Literal):
                place.replace(exp.Bracket(this=exp.to_identifier(entry), expressions=[field.copy()], offset=1))
            else:
                place.replace(exp.Dot(this=exp.to_identifier(entry), expression=field.copy()))
    return body


_ENTRY = (exp.to_identifier("key"), exp.to_identifier("value"))
_PAIR = (exp.Literal.number(1), exp.Literal.number(2))


def _map_filter(arguments: list[exp.Expr]) -> exp.Expr:
    entries = call("list_filter", call("map_entries", arguments[0]), _over_fields(arguments[1], _ENTRY))
    return call("map_from_entries", entries)


def _map_transform(template: str) -> Translation:
    def build(arguments: list[exp.Expr]) -> exp.Expr:
        made = call("list_transform", call("map_entries", arguments[0]), _over_fields(arguments[1], _ENTRY))
        return piece(template, m=arguments[0], x=made)

    return build


def _zip_with(arguments: list[exp.Expr]) -> exp.Expr:
    pairs = piece("case when arg_a is not null and arg_b is not null then list_zip(arg_a, arg_b) end",
                  a=arguments[0], b=arguments[1])  # fmt: skip
    return call("list_transform", pairs, _over_fields(arguments[2], _PAIR))


def reduced(node: exp.Reduce) -> exp.Expr:
    """Return aggregate(), with its finish function applied to the result."""
    done = call("list_reduce", node.this, node.args["merge"], node.args["initial"])
    finish = node.args.get("finish")
    if finish is None:
        return done
    last = call("list_transform", exp.Array(expressions=[done]), finish)
    return exp.Bracket(this=last, expressions=[exp.Literal.number(1)], offset=1)


def sliced(node: exp.ArraySlice) -> exp.Expr:
    """Return slice(): a start of 0 and a negative length are errors."""
    start, length = node.args["start"], node.args["end"]
    template = (
        "case when arg_s = 0 or arg_n < 0 then error('slice: it starts at 1, and its length is not negative') "
        "when arg_s > 0 then list_slice(arg_a, arg_s, arg_s + arg_n - 1) "
        "when -arg_s > len(arg_a) then list_slice(arg_a, 1, 0) "
        "else list_slice(arg_a, len(arg_a) + arg_s + 1, len(arg_a) + arg_s + arg_n) end"
    )
    return piece(template, a=node.this, s=start, n=length)


def sequence(node: exp.GenerateSeries) -> exp.Expr:
    """Return sequence(): also downwards; a step in the wrong direction is an error."""
    start, end, step = node.args["start"], node.args["end"], node.args.get("step")
    if step is None:
        return piece("generate_series(arg_a, arg_b, case when arg_a <= arg_b then 1 else -1 end)", a=start, b=end)
    if step.find(exp.Interval):
        raise UnlikeSparkError("a sequence of dates or times with a step has other types and month ends")
    template = (
        "case when arg_a <> arg_b and (arg_s = 0 or (arg_a < arg_b) <> (arg_s > 0)) "
        "then error('sequence: the step leads away from the end') else generate_series(arg_a, arg_b, arg_s) end"
    )
    return piece(template, a=start, b=end, s=step)


def json_value(node: exp.JSONExtractScalar) -> exp.Expr:
    """Return get_json_object(): a path with a star returns other texts."""
    if "*" in node.expression.sql("spark"):
        raise UnlikeSparkError("a path with `*` returns a list", "Write the index, or use from_json() on Spark.")
    return node


def _map_concat(arguments: list[exp.Expr]) -> exp.Expr:
    if len(arguments) != 2:
        raise UnlikeSparkError("it accepts only two maps", "Nest: map_concat(map_concat(a, b), c).")
    template = (
        "case when arg_a is null or arg_b is null then null "
        "when list_has_any(map_keys(arg_a), map_keys(arg_b)) then error('map_concat: a key is in both maps') "
        "else map_concat(arg_a, arg_b) end"
    )
    return piece(template, a=arguments[0], b=arguments[1])


def _json_of(kind: str, function: str) -> Translation:
    return of(f"case when json_type(arg_x) = '{kind}' then {function}(arg_x) end", "x")


CALLS: Mapping[str, Translation] = {
    "array_distinct": of(_OPERATORS["array_distinct"], "a"),
    "array_except": of(_OPERATORS["array_except"], "ab"),
    "array_intersect": of(_OPERATORS["array_intersect"], "ab"),
    "array_max": of("list_max(arg_a)", "a"),
    "array_min": of("list_min(arg_a)", "a"),
    "array_position": of(
        "case when arg_a is not null and arg_v is not null then coalesce(list_position(arg_a, arg_v), 0) end", "av"
    ),
    "array_remove": of(
        "case when arg_v is not null then list_filter(arg_a, lambda _x: _x is null or _x <> arg_v) end", "av"
    ),
    "array_repeat": of("list_transform(range(cast(arg_n as bigint)), lambda _x: arg_v)", "vn"),
    "array_union": of(_OPERATORS["array_union"], "ab"),
    "arrays_overlap": of(
        "case when arg_a is null or arg_b is null then null when list_has_any(arg_a, arg_b) then true "
        "when len(arg_a) > 0 and len(arg_b) > 0 and "
        "(len(arg_a) <> list_count(arg_a) or len(arg_b) <> list_count(arg_b)) then null else false end",
        "ab",
    ),
    # DuckDB's result is unsigned: it can't be negated, and subtracting a greater number fails.
    "cardinality": of("cast(cardinality(arg_a) as integer)", "a"),
    "flatten": of("case when len(arg_a) = list_count(arg_a) then flatten(arg_a) end", "a"),
    "forall": lambda a: quantified(a[0], a[1], every=True),
    "get": of("case when arg_i >= 0 then list_extract(arg_a, arg_i + 1) end", "ai"),
    "json_array_length": _json_of("ARRAY", "json_array_length"),
    "json_object_keys": _json_of("OBJECT", "json_keys"),
    "map_concat": _map_concat,
    "map_contains_key": of(_HOLDS.replace("arg_a", "map_keys(arg_a)"), "av"),
    "map_filter": _map_filter,
    "transform_keys": _map_transform("map(arg_x, map_values(arg_m))"),
    "transform_values": _map_transform("map(map_keys(arg_m), arg_x)"),
    "zip_with": _zip_with,
}
