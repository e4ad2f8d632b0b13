"""Find the expression that failed on a row's value in the analyst's files. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from sqlrun.errors import DataError, Place, Problem
from sqlrun.graph.graph import reach
from sqlrun.parse import located_problems
from sqlrun.parse.parse import Query
from sqlrun.project import Project
from sqlrun.transpile.trees import nodes

_HINT = (
    "Correct the value, filter such rows, or use a function that returns NULL instead, such as try_cast, try_divide, "
    "try_add, try_multiply or try_element_at."
)
_HIDDEN = "its message is hidden, because it may quote a column that is tagged pii"
# Beginnings of the messages of both engines that name no expression, and the kinds that they are about.
_KINDS: Mapping[str, tuple[type[exp.Expr], ...]] = {
    "Overflow in multiplication": (exp.Mul,),
    "Overflow in addition": (exp.Add, exp.Sum),
    "Overflow in subtraction": (exp.Sub,),
    "Overflow in negation": (exp.Neg,),
    "Casting value": (exp.Cast,),
    "Could not convert": (exp.Cast,),
    "[CAST_OVERFLOW": (exp.Cast,),
    "[INVALID_ARRAY_INDEX": (exp.Bracket,),
    "[SCALAR_SUBQUERY": (exp.Subquery,),
    "[INVALID_TIMEZONE": (exp.AtTimeZone, exp.FromTimeZone, exp.ConvertTimezone),
    "Could not cast value": (exp.Cast,),
    "Malformed JSON": (exp.JSONExtractScalar, exp.JSONExtract),
    "More than one row": (exp.Subquery,),
    "Unknown TimeZone": (exp.AtTimeZone, exp.FromTimeZone, exp.ConvertTimezone),
}
MOST_PLACES = 5


def problem(error: DataError, query: Query, views: Mapping[str, Query], *, private: bool = False) -> Problem:
    """Return SR533 at the failed expression of a model, or of a view that it reads.

    If several expressions may be the failed one, the hint names their places, and the problem is at the first line of
    the file. `views` are all views of the project, by name. `private` hides the engine's message, which quotes values.
    """
    queries = _above(query, views)
    equal = _equal(error.expression, queries)
    found = equal or _of_column(error.expression, query) or _of_kind(error.reason, queries)
    message = f"fails on a value of a row: {_HIDDEN if private else error.reason}"
    if len(found) == 1:
        each, node = found[0]
        what = "this expression" if equal else "an expression, probably this one,"
        return located_problems.at("SR533", each.rendered, node, f"{what} {message}", _HINT)
    places = [str(located_problems.at("SR533", each.rendered, node, "").place) for each, node in found]
    hint = f"It is one of {', '.join(places)}. {_HINT}" if 0 < len(places) <= MOST_PLACES else _HINT
    return Problem("SR533", Place(query.rendered.model.file, exact=False), f"an expression {message}", hint)


def is_private(query: Query, queries: Mapping[str, Query], project: Project) -> bool:
    """Return whether a column of a model, or of what it reads directly or through other models, is tagged pii."""
    above = _above(query, queries)
    refs = {name for each in above for name in each.rendered.refs}
    sources = {name for each in above for name in each.rendered.sources}
    columns = [column for each in above for column in each.rendered.model.columns]
    columns += [column for seed in project.seeds if seed.name in refs for column in seed.columns]
    columns += [column for source in project.sources if source.table in sources for column in source.columns]
    return any(column.is_private for column in columns)


def _above(query: Query, queries: Mapping[str, Query]) -> tuple[Query, ...]:
    """Return a query and those of the given ones that it reads, directly or through others."""
    known = {**queries, query.name: query}
    edges = {name: tuple(ref for ref in each.rendered.refs if ref in known) for name, each in known.items()}
    return query, *(known[name] for name in sorted(reach(edges, {query.name}) - {query.name}))


def _equal(text: str, queries: Sequence[Query]) -> list[tuple[Query, exp.Expr]]:
    """Return the expressions that are equal to a text; if there is none, the ones with other names of columns.

    The compiled statement may call a column by another name than the query does.
    """
    wanted = _forms(text)
    if wanted is None:
        return []
    found = [
        (query, node, _forms(_written(node))) for query in queries for node in nodes(query.tree) if _may_fail(node)
    ]
    exact = [(query, node) for query, node, forms in found if forms is not None and forms[0] == wanted[0]]
    return exact or [(query, node) for query, node, forms in found if forms is not None and forms[1] == wanted[1]]


def _of_column(text: str, query: Query) -> list[tuple[Query, exp.Expr]]:
    """Return the expressions of a column of the model, if a text casts that column to the type of the table.

    Spark blames this outer cast for what fails inside of it.
    """
    tree = _parsed(text)
    if not isinstance(tree, exp.Cast) or not isinstance(tree.this, exp.Column) or tree.this.name not in query.columns:
        return []
    position = query.columns.index(tree.this.name)
    selects = [each for each in nodes(query.tree) if isinstance(each, exp.Select) and _is_outermost(each)]
    return [(query, each.selects[position].unalias()) for each in selects]


def _is_outermost(select: exp.Select) -> bool:
    above = select.parent
    while isinstance(above, exp.SetOperation):
        above = above.parent
    return above is None


def _of_kind(reason: str, queries: Sequence[Query]) -> list[tuple[Query, exp.Expr]]:
    kinds = next((kinds for beginning, kinds in _KINDS.items() if reason.startswith(beginning)), ())
    return [(query, node) for query in queries for node in nodes(query.tree) if isinstance(node, kinds)]


def _may_fail(node: exp.Expr) -> bool:
    return isinstance(node, exp.Condition) and not isinstance(node, exp.Column | exp.Literal | exp.Star)


def _written(node: exp.Expr) -> str:
    return node.sql("spark", comments=False)


def _forms(text: str) -> tuple[str, str] | None:
    """Return an expression in one way of writing, without tables and then without names; None if it is no expression.

    Both sides are parsed again, because sqlglot may read what it writes as another node.
    """
    tree = _parsed(text)
    if tree is None:
        return None
    for identifier in tree.find_all(exp.Identifier):
        identifier.set("quoted", False)
    for column in tree.find_all(exp.Column):
        column.set("table", None)
    named = _written(tree).lower()
    for column in tree.find_all(exp.Column):
        column.set("this", exp.to_identifier("_"))
    return named, _written(tree).lower()


def _parsed(text: str) -> exp.Expr | None:
    try:
        return sqlglot.parse_one(text, read="spark") if text else None
    except SqlglotError:
        return None
