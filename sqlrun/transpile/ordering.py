"""Orders of structs as Spark has them, where a field that is NULL comes first; to DuckDB it comes last. Pure.

DuckDB ranks by a struct that says of each field whether it is known, and then which value it has. What a struct's
fields are is read from the query's own text: `text_coercion.py` refuses an order over nested values that are
written out nowhere.
"""

from __future__ import annotations

from typing import cast

from sqlglot import exp

from sqlrun.transpile.templates import call, piece

# The names of a struct's fields, each with those of the struct inside of it; none for a value that holds no fields.
Shape = tuple[tuple[str, "Shape"], ...]
_SHAPE = "shape"
_PASSED = (
    exp.ArrayCompact, exp.ArrayDistinct, exp.ArrayFilter, exp.ArraySort, exp.Coalesce, exp.Filter, exp.Paren,
    exp.Window,
)  # fmt: skip
_OF_VALUES = (exp.Max, exp.Min, exp.ArgMax, exp.ArgMin)
_OF_LISTS = (exp.ArraySort, exp.ArrayMax, exp.ArrayMin)


def operand(node: exp.Expr) -> exp.Expr:
    """Return what an expression orders: the value itself, or an element of a list where its text says what that is."""
    value: exp.Expr = node.expression if isinstance(node, exp.ArgMax | exp.ArgMin) else node.this
    if isinstance(value, exp.Distinct):
        value = value.expressions[0]
    return _element(value) or value if isinstance(node, _OF_LISTS) else value.unnest()


def _element(node: exp.Expr) -> exp.Expr | None:
    """Find the text of a list's elements."""
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
    """List the fields of a struct that is written out, and what each is."""
    if not isinstance(node, exp.Struct):
        return {}
    named = [item for item in node.expressions if isinstance(item, exp.PropertyEQ)]
    return {item.this.name: item.expression.unnest() for item in named}


def _shape(node: exp.Expr) -> Shape:
    return tuple((name, _shape(value)) for name, value in fields(node).items())


def note(tree: exp.Expr) -> None:
    """Note which fields are ordered, before what holds them is written for DuckDB; the tree's meta is changed."""
    for node in tree.find_all(*_OF_VALUES, *_OF_LISTS):
        shape = _shape(operand(node))
        if shape:
            node.meta[_SHAPE] = shape


def ordered(node: exp.Expr) -> exp.Expr | None:
    """Write an order of structs for DuckDB; None where none are ordered."""
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
    """Sort by pairs of a key and the element itself. array_sort puts NULLs last, sort_array puts them first."""
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
    """Write what a struct ranks by: for each field whether it is known, then its value."""
    written = fields(value)
    parts: list[exp.Expr] = []
    for number, (name, inner) in enumerate(shape):
        own = written.get(name) or exp.Dot(this=value.copy(), expression=exp.to_identifier(name, quoted=True))
        known = exp.Not(this=exp.Is(this=exp.paren(own.copy()), expression=exp.null()))
        parts += [_part(f"n{number}", known), _part(f"v{number}", _key(own, inner) if inner else own.copy())]
    return exp.Struct(expressions=parts)


def _part(name: str, value: exp.Expr) -> exp.PropertyEQ:
    return exp.PropertyEQ(this=exp.to_identifier(name), expression=value)
