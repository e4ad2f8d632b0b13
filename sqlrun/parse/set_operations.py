"""Branches of UNION, INTERSECT and EXCEPT: match columns by position, take names from the first. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from sqlrun.parse.type_check import Walk, of_branches
from sqlrun.transpile.refusals import Refusal
from sqlrun.transpile.spark_types import INTEGERS, Kind
from sqlrun.transpile.trees import every

NUMBERS = {*INTEGERS, "decimal", "float", "double"}
TIMES = {"date", "timestamp", "timestamp_ntz"}


def settle(walk: Walk) -> None:
    """Rename the branches' columns to those of the first branch, and make the names inside a query unique.

    The query is qualified, and nothing refers to a column with a duplicate name. The output names of the whole query
    stay.

    Raises: `Refusal` (SR550) for branches with different numbers of columns or incompatible types.
    """
    for query in list(every(walk.tree, exp.Select, exp.SetOperation)):
        if not _is_branch(query):
            _named(query, (), keeps=query is walk.tree)
    _check_types(walk)


def _check_types(walk: Walk) -> None:
    """Raise SR550 for branches whose columns have no common type, such as text and numbers."""
    for branches in of_branches(walk):
        for position, column in enumerate(zip(*(kinds for _, kinds in branches), strict=False)):
            known = [(_family(kind), kind, at) for kind, (at, _) in zip(column, branches, strict=True) if kind]
            other = next((one for one in known[1:] if not _one_type(one[0], known[0][0])), None)
            if other is not None:
                why = f"column {position + 1} is `{known[0][1]}` in one branch and `{other[1]}` in another"
                raise Refusal(
                    "SR550", why, "Cast the column to the same type in each branch.", other[2].selects[position]
                )


def _one_type(family: str, other: str) -> bool:
    """Return whether two families are compatible; a NULL without a cast has every type."""
    return family == other or "void" in family or "void" in other


def _family(kind: Kind) -> str:
    """Return the family of types that a column may be combined with; the engines combine others differently."""
    match kind.name:
        case "struct":  # by position on Spark, by name on DuckDB
            named = zip(kind.fields, kind.parts, strict=True)
            return f"struct<{','.join(f'{name.lower()}:{_family(part)}' for name, part in named)}>"
        case "array" | "map":
            return f"{kind.name}<{','.join(_family(part) for part in kind.parts)}>"
        case name if name in NUMBERS:
            return "number"
        case name:
            return "time" if name in TIMES else name


def _is_branch(query: exp.Expr) -> bool:
    above = query.parent
    while isinstance(above, exp.Subquery) and isinstance(above.parent, exp.Subquery | exp.SetOperation):
        above = above.parent
    return isinstance(above, exp.SetOperation)


def _named(query: exp.Expr, names: Sequence[exp.Identifier], *, keeps: bool = False) -> Sequence[exp.Identifier]:
    """Rename the columns of a query, or keep its own names for (). Return the resulting names."""
    old = [item.output_name for item in _first(query)]
    match query:
        case exp.SetOperation():
            names = _named(query.left, names, keeps=keeps)
            _fits(query)
            _named(query.right, () if query.args.get("by_name") else names)
        case exp.Subquery():
            names = _named(query.this, names, keeps=keeps)
        case exp.Select():
            names = names or (() if keeps else _apart(query))
            _rename(query, names)
    _rename_order(query, dict(zip(old, names, strict=False)))
    return names or [_identifier(item) for item in _first(query)]


def _first(query: exp.Expr) -> Sequence[exp.Expr]:
    """Return the items of the branch that names the columns."""
    while isinstance(query, exp.Subquery | exp.SetOperation):
        query = query.this
    return query.expressions if isinstance(query, exp.Select) else ()


def _fits(query: exp.SetOperation) -> None:
    left, right = _first(query.left), _first(query.right)
    if query.args.get("by_name") or not left or not right or any(item.is_star for item in (*left, *right)):
        return
    if len(left) != len(right):
        why = f"the branches of {query.key.upper()} have different numbers of columns: {len(left)} and {len(right)}"
        raise Refusal(
            "SR550", why, "Select the same number of columns in each branch. Columns match by position.", right[-1]
        )


def _identifier(item: exp.Expr) -> exp.Identifier:
    made = item.args["alias"] if isinstance(item, exp.Alias) else item.this if isinstance(item, exp.Column) else None
    return made.copy() if isinstance(made, exp.Identifier) else exp.to_identifier(item.output_name)


def _apart(select: exp.Select) -> Sequence[exp.Identifier]:
    """Return unique names for the columns; () if they are unique already."""
    names = [item.output_name for item in select.expressions]
    if len(set(names)) == len(names):
        return ()
    made: list[exp.Identifier] = []
    for item in select.expressions:
        one, number = _identifier(item), 2
        while one.name in {other.name for other in made} or (number > 2 and one.name in names):
            one, number = exp.to_identifier(f"{item.output_name}_{number}", quoted=True), number + 1
        made.append(one)
    return made


def _rename(select: exp.Select, names: Sequence[exp.Identifier]) -> None:
    items = []
    for item, name in zip(select.expressions, names, strict=False):
        if item.output_name == name.name or item.is_star:
            items.append(item)
        elif isinstance(item, exp.Alias):
            item.set("alias", name.copy())
            items.append(item)
        else:
            items.append(exp.alias_(item, name.copy(), copy=False))
    if items:
        select.set("expressions", items)


def _rename_order(query: exp.Expr, names: dict[str, exp.Identifier]) -> None:
    """Rename the output columns in ORDER BY."""
    for column in list(_output_columns(query.args.get("order"))):
        if column.name in names:
            column.set("this", names[column.name].copy())


def _output_columns(order: exp.Expr | None) -> Iterator[exp.Column]:
    if order is not None:
        walked = order.walk(prune=lambda node: isinstance(node, exp.Query))
        yield from (node for node in walked if isinstance(node, exp.Column) and not node.table)
