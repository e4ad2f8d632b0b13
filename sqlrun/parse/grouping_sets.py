"""Normalize GROUP BY: resolve positions in grouping sets, move ROLLUP and CUBE before their keys. Pure.

`group by a, b with rollup` becomes `rollup (a, b)`, `group by a, b grouping sets (...)` becomes `grouping sets (...)`.
Both engines read the results in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from sqlrun.transpile.refusals import Refusal
from sqlrun.transpile.trees import every, has, is_aggregate

SETS = (exp.GroupingSets, exp.Rollup, exp.Cube)
TAILS = ("rollup", "cube", "grouping_sets")
CLAUSES = ("expressions", "having", "qualify", "order")


def settle(tree: exp.Query) -> None:
    """Normalize every GROUP BY of a qualified query, in place. Raise SR551 for forms that Spark doesn't have."""
    for group in every(tree, exp.Group):
        select = group.parent
        if isinstance(select, exp.Select) and not group.args.get("all"):
            _settle(select, group)


def _settle(select: exp.Select, group: exp.Group) -> None:
    if group.args.get("totals"):
        raise Refusal("SR551", "Spark SQL has no WITH TOTALS", "Use WITH ROLLUP.", group)
    tails = [(key, part) for key in TAILS for part in group.args.get(key) or ()]
    sets = [part for part in group.expressions if isinstance(part, SETS)]
    empty = next((key for key in group.expressions if isinstance(key, exp.Tuple) and not key.expressions), None)
    if empty is not None:
        raise Refusal(
            "SR551", "Spark SQL has no GROUP BY ()", "Remove GROUP BY to compute one row over the whole table.", group
        )
    if not tails and not sets:
        return
    outer = _outer(select)
    if outer is not None:
        why = f"a correlated subquery with grouping sets isn't supported: it reads {outer.sql('databricks')}"
        raise Refusal("SR551", why, "Group in a CTE, and join the CTE.", outer)
    for part in (*sets, *(part for _, part in tails)):
        _resolve(part, select)
    if tails:
        _put_before(select, group, tails, sets)
    _settle_ids(select, group)


def _outer(select: exp.Select) -> exp.Column | None:
    """Return a column of a table that the query itself doesn't read; None if there is none."""
    own = {source.alias_or_name for source in every(select, exp.Table, exp.Subquery, exp.Values)}
    own |= {lateral.alias for lateral in every(select, exp.Lateral)}
    return next((column for column in every(select, exp.Column) if column.table and column.table not in own), None)


def _resolve(part: exp.Expr, select: exp.Select) -> None:
    """Replace positions in grouping sets by the items of the select list."""
    for key in list(_keys(part)):
        number = key.this if isinstance(key, exp.Neg) else key
        if not isinstance(number, exp.Literal) or not number.is_int:
            continue
        items = select.expressions
        position = int(number.name) if number is key else -int(number.name)
        if not 1 <= position <= len(items):
            raise Refusal(
                "SR551",
                f"GROUP BY position {position} isn't in the select list",
                "Use a position of the select list, or name the column.",
                key,
            )
        item = items[position - 1].unalias()
        if isinstance(item, exp.Literal):
            raise Refusal(
                "SR551", f"GROUP BY position {position} is a constant", "Remove it from the grouping sets.", key
            )
        if any(is_aggregate(one) for one in item.walk()):
            raise Refusal(
                "SR551",
                f"GROUP BY position {position} is an aggregate",
                "Group by expressions without aggregates.",
                key,
            )
        key.replace(item.copy())


def _keys(part: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the keys of grouping sets."""
    match part:
        case exp.GroupingSets() | exp.Rollup() | exp.Cube() | exp.Tuple():
            for one in part.expressions:
                yield from _keys(one)
        case exp.Paren():
            yield from _keys(part.this)
        case _:
            yield part


def _put_before(
    select: exp.Select, group: exp.Group, tails: Sequence[tuple[str, exp.Expr]], sets: Sequence[exp.Expr]
) -> None:
    """Replace `keys with rollup`, `keys with cube` and `keys grouping sets (...)` by the normalized form."""
    (word, tail), listed = tails[0], list(group.expressions)
    advice = "Use one of ROLLUP (...), CUBE (...), GROUPING SETS (...), or several separated by commas."
    if len(tails) > 1 or sets or any(isinstance(key, exp.Tuple) for key in listed):
        raise Refusal(
            "SR551", "Spark SQL doesn't support this form of GROUP BY", advice, tail if tail.expressions else group
        )
    if word != "grouping_sets":
        if tail.expressions:
            raise Refusal("SR551", "Spark SQL doesn't support this form of GROUP BY", advice, tail)
        group.set(word, None)
        group.set("expressions", [type(tail)(expressions=listed)])
        return
    if any(isinstance(one, SETS) for one in tail.expressions):
        raise Refusal(
            "SR551", f"Spark SQL doesn't support a list of keys before nested {tail.key.upper()}", advice, tail
        )
    found = _once(_keys(tail))
    for key in found:
        if key not in listed:
            raise Refusal("SR551", f"`{key.sql('databricks')}` is missing before GROUPING SETS", advice, key)
    for key in listed:
        if key not in found and (_is_shown(key, select) or any(_own(select))):
            why = f"`{key.sql('databricks')}` isn't in any grouping set, so it is NULL in every row"
            raise Refusal("SR551", why, "Remove it from GROUP BY, and select NULL instead.", key)
    group.set(word, None)
    group.set("expressions", [tail])
    if found != _once(listed) and len(found) == len(_once(listed)):
        _write_ids(select, _once(listed))


def _hides(node: exp.Expr) -> bool:
    return is_aggregate(node) and not isinstance(node, exp.Grouping)


def _is_shown(key: exp.Expr, select: exp.Select) -> bool:
    """Return whether a SELECT reads a key outside its aggregates."""
    for name in CLAUSES:
        value = select.args.get(name)
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, exp.Expr) and any(node == key for node in part.walk(prune=_hides)):
                return True
    return False


def _once(keys: Iterator[exp.Expr] | list[exp.Expr]) -> list[exp.Expr]:
    found: list[exp.Expr] = []
    for key in keys:
        if key not in found:
            found.append(key)
    return found


def _own(select: exp.Select) -> Iterator[exp.GroupingId]:
    """Yield the calls of grouping_id() that belong to a SELECT."""
    for key in CLAUSES:
        value = select.args.get(key)
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, exp.Expr) and has(part, exp.GroupingId):
                calls = [one for one in part.find_all(exp.GroupingId) if one.parent_select is select]
                yield from calls


def _settle_ids(select: exp.Select, group: exp.Group) -> None:
    """Remove the arguments of grouping_id(): they must be the keys in order, else raise SR551."""
    keys = _once([key for part in group.expressions for key in _keys(part)])
    for call in _own(select):
        if call.expressions and list(call.expressions) != keys:
            listed = ", ".join(key.sql("databricks") for key in keys)
            raise Refusal(
                "SR551",
                "the arguments of grouping_id() differ from the keys of GROUP BY",
                f"Write these keys, in this order: {listed}.",
                call,
            )
        call.set("expressions", None)


def _write_ids(select: exp.Select, keys: list[exp.Expr]) -> None:
    """Write grouping_id() as its sum of bits if the list of keys has another order than the sets."""
    for call in list(_own(select)):
        if call.expressions and list(call.expressions) != keys:
            listed = ", ".join(key.sql("databricks") for key in keys)
            raise Refusal(
                "SR551",
                "the arguments of grouping_id() differ from the keys of GROUP BY",
                f"Write these keys, in this order: {listed}.",
                call,
            )
        bits = [
            exp.Mul(this=exp.Grouping(expressions=[key.copy()]), expression=exp.Literal.number(2**place))
            for place, key in enumerate(reversed(keys))
        ]
        total: exp.Expr = bits[0]
        for bit in bits[1:]:
            total = exp.Add(this=total, expression=bit)
        call.replace(exp.paren(exp.cast(total, "bigint")))
