"""EXISTS and IN over a subquery whose number of rows is known in advance, simplified. Pure.

An aggregate without GROUP BY returns one row for any input. So EXISTS over it is true or its HAVING, and IN over it is
a comparison. EXISTS depends neither on the select list nor on the order of its subquery.
"""

from __future__ import annotations

from sqlglot import exp

from sqlrun.incremental.translate.group_by import aggregates
from sqlrun.incremental.translate.in_over_nulls import SETS, only_filters
from sqlrun.transpile.trees import every, has

# Clauses that a SELECT of one aggregated row may have.
ONE_ROW = {"expressions", "from_", "joins", "laterals", "where", "having", "distinct", "order", "limit", "offset"}


def settled(tree: exp.Expr) -> exp.Expr:
    """Rewrite, in place, the tests of a query that have a known result or a simpler form."""
    for test in list(every(tree, exp.Exists, exp.In)):
        if isinstance(test, exp.Exists) and isinstance(test.this, exp.Query):
            made = _exists(test)
        elif isinstance(test, exp.In) and isinstance(test.args.get("query"), exp.Query):
            made = _equal(test)
        else:
            continue
        if made is not None:
            test.replace(made)
    return tree


def _exists(test: exp.Exists) -> exp.Expr | None:
    query = _bare(test.this)
    if not isinstance(query, exp.Select):
        return None
    limit, offset = _number(query, "limit"), _number(query, "offset") or 0
    # LIMIT 0 has no rows, an offset skips the only row of an aggregate, and ORDER BY changes neither.
    if limit == 0:
        return exp.false()
    if _is_one_row(query):
        if offset:
            return exp.false()
        having = query.args.get("having")
        return exp.true() if having is None else _answer(query, having.this)
    if offset or (limit is None and query.args.get("limit") is not None) or query.args.get("qualify") is not None:
        return None
    for key in ("limit", "order", "offset"):
        query.set(key, None)
    if not _has_generator(query) and query.args.get("having") is None:
        group = query.args.get("group")
        if group is None or not (group.args.get("all") or has(group, *SETS)):
            query.set("group", None)
            query.set("distinct", None)
            query.set("expressions", [exp.alias_(exp.Literal.number(1), "one")])
    return None


def _answer(query: exp.Select, having: exp.Expr) -> exp.Expr:
    """Return a subquery for the value of HAVING, with NULL as false."""
    # The row exists or not by HAVING alone, so its value is what EXISTS asks for.
    made = query.copy()
    for key in ("having", "limit", "order", "distinct"):
        made.set(key, None)
    made.set("expressions", [exp.alias_(having.copy(), "kept")])
    return exp.func("coalesce", exp.Subquery(this=made), exp.false())


def _equal(test: exp.In) -> exp.Expr | None:
    """Return `x in (select max(y) ...)` as a comparison with the one value; None for another form."""
    query = _bare(test.args["query"])
    if not isinstance(query, exp.Select) or not _is_one_row(query) or not only_filters(test):
        return None
    if query.args.get("having") is not None or query.args.get("limit") is not None or query.args.get("offset"):
        return None
    own = list(test.this.expressions) if isinstance(test.this, exp.Tuple) else [test.this]
    if len(own) != len(query.expressions):
        return None
    parts = []
    for number, mine in enumerate(own):
        one = query.copy()
        one.set("expressions", [one.expressions[number]])
        for key in ("order", "distinct"):
            one.set(key, None)
        parts.append(exp.EQ(this=mine.copy(), expression=exp.Subquery(this=one)))
    return exp.paren(exp.and_(*parts, copy=False), copy=False)


def _bare(query: exp.Expr) -> exp.Expr:
    while isinstance(query, exp.Subquery) and not any(query.args.get(key) for key in ("limit", "offset", "with_")):
        query = query.this
    return query


def _is_one_row(query: exp.Select) -> bool:
    """Return whether a SELECT aggregates without groups."""
    if {key for key, value in query.args.items() if value} - ONE_ROW:
        return False
    having = query.args.get("having")
    clauses = [*query.expressions, *([having.this] if having is not None else [])]
    return any(aggregates(clause) for clause in clauses) and not _has_generator(query)


def _has_generator(query: exp.Select) -> bool:
    return any(has(item, exp.Explode, exp.UDTF) for item in query.expressions)


def _number(query: exp.Select, key: str) -> int | None:
    clause = query.args.get(key)
    number = clause.expression if clause is not None else None
    return int(number.name) if isinstance(number, exp.Literal) and number.is_int else None
