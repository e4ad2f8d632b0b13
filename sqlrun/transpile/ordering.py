"""Spark's order of structs, where a NULL field comes first; in DuckDB it comes last. Pure.

DuckDB sorts by a struct that has, for each field, whether it is NULL and then its value. The fields of a struct are
read from the query's text: `text_coercion.py` refuses an order of nested values whose fields are listed nowhere.
"""

from __future__ import annotations

from typing import cast

from sqlglot import exp

from sqlrun.transpile.templates import call, piece

# The names of a struct's fields, each with the shape of the struct inside it; () for other values.
Shape = tuple[tuple[str, "Shape"], ...]
_SHAPE = "shape"
_PASSED = (
    exp.ArrayCompact, exp.ArrayDistinct, exp.ArrayFilter, exp.ArraySort, exp.Coalesce, exp.Filter, exp.Paren,
    exp.Window,
)  # fmt: skip
_OF_VALUES = (exp.Max, exp.Min, exp.ArgMax, exp.ArgMin)
_OF_LISTS = (exp.ArraySort, exp.ArrayMax, exp.ArrayMin)


def operand(node: exp.Expr) -> exp.Expr:
    """Return what an expression orders: the value itself, or an element of a list if its text shows one."""
    value: exp.Expr = node.expression if isinstance(node, exp.ArgMax | exp.ArgMin) else node.this
    if isinstance(value, exp.Distinct):
        value = value.expressions[0]
    return _element(value) or value if isinstance(node, _OF_LISTS) else value.unnest()


def _element(node: exp.Expr) -> exp.Expr | None:
    """Return the expression of a list's elements; None if the text doesn't show it."""
    while isinstance(node, _PASSED):
        node = node.this
    match node:
        case exp.ArrayAgg() | exp.ArrayUniqueAgg():
            item: exp.Expr = node.this.unnest()
            item = item.this.unnest() if isinstance(item, exp.Order) else item
            return cast(exp.Expr, item.expressions[0]) if isinstance(item, exp.Distinct) else item
        case exp.Transform(expression=exp.Lambda(this=body)):
            return cast(exp.Expr, body).unnest()
        case exp.Array() if node.expressions:
            return cast(exp.Expr, node.expressions[0]).unnest()
        case _:
            return None


def fields(node: exp.Expr) -> dict[str, exp.Expr]:
    """Return the fields of a struct literal, by name; {} for other expressions."""
    if not isinstance(node, exp.Struct):
        return {}
    named = [item for item in node.expressions if isinstance(item, exp.PropertyEQ)]
    return {item.this.name: item.expression.unnest() for item in named}


def _shape(node: exp.Expr) -> Shape:
    return tuple((name, _shape(value)) for name, value in fields(node).items())


def note(tree: exp.Expr) -> None:
    """Store the fields of ordered structs in the nodes' meta, before the structs are rewritten for DuckDB."""
    for node in tree.find_all(*_OF_VALUES, *_OF_LISTS):
        shape = _shape(operand(node))
        if shape:
            node.meta[_SHAPE] = shape


def ordered(node: exp.Expr) -> exp.Expr | None:
    """Return an order of structs in DuckDB's SQL; None if the node orders no structs."""
    shape: Shape = node.meta.get(_SHAPE, ())
    if not shape:
        return None
    match node:
        case exp.Max() | exp.Min():
            name = "arg_max" if isinstance(node, exp.Max) else "arg_min"
            value = operand(node)
            return call(name, value, _key(value, shape))
        case exp.ArgMax() | exp.ArgMin():
            name = "arg_max_null" if isinstance(node, exp.ArgMax) else "arg_min_null"
            return call(name, node.this, _key(operand(node), shape))
        case exp.ArraySort():
            return _sorted(node, shape)
        case _:
            place = "[-1]" if isinstance(node, exp.ArrayMax) else "[1]"
            known = piece("list_filter(arg_x, lambda _o: _o is not null)", x=node.this)
            return piece(f"list_sort(arg_x){place}.v", x=_keyed(known, shape, "true"))


def _sorted(node: exp.ArraySort, shape: Shape) -> exp.Expr:
    """Return a sort by pairs of a key and the element. array_sort puts NULLs last, sort_array puts them first."""
    first = node.args.get("nulls_first")
    upwards = node.args.get("asc")
    last = isinstance(first, exp.Boolean) and not first.this and upwards is None
    keyed = _keyed(node.this, shape, "_o is null" if last else "_o is not null")
    sort = "case when arg_u then list_sort(arg_x) else list_sort(arg_x, 'desc') end"
    if upwards is None or isinstance(upwards, exp.Boolean):
        sort = "list_sort(arg_x)" if upwards is None or upwards.this else "list_sort(arg_x, 'desc')"
    return piece(f"list_transform({sort}, lambda _p: _p.v)", x=keyed, u=upwards or exp.true())


def _keyed(values: exp.Expr, shape: Shape, known: str) -> exp.Expr:
    key = _key(exp.column("_o"), shape)
    return piece(f"list_transform(arg_x, lambda _o: {{'n': {known}, 'k': arg_k, 'v': _o}})", x=values, k=key)


def _key(value: exp.Expr, shape: Shape) -> exp.Expr:
    """Return a struct's sort key: for each field whether it isn't NULL, then its value."""
    written = fields(value)
    parts: list[exp.Expr] = []
    for number, (name, inner) in enumerate(shape):
        own = written.get(name) or exp.Dot(this=value.copy(), expression=exp.to_identifier(name, quoted=True))
        known = exp.Not(this=exp.Is(this=exp.paren(own.copy()), expression=exp.null()))
        parts += [_part(f"n{number}", known), _part(f"v{number}", _key(own, inner) if inner else own.copy())]
    return exp.Struct(expressions=parts)


def _part(name: str, value: exp.Expr) -> exp.PropertyEQ:
    return exp.PropertyEQ(this=exp.to_identifier(name), expression=value)
