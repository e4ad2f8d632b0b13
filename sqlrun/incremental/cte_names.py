"""Unique names for the CTEs of a query. Pure.

Spark's generator of SQL moves every CTE to the top of the text, where CTEs of different subqueries may share a name.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp


def made_unique(tree: exp.Expr, taken: set[str], prefix: str = "") -> exp.Expr:
    """Rename, in place, the CTEs of a qualified query to names that are not in `taken`, and add those names to it.

    A name is resolved as in SQL: in the enclosing WITH clauses, innermost first, among the CTEs before it. `taken` is
    in lower case.

    >>> import sqlglot
    >>> query = sqlglot.parse_one("with a as (with a as (select 1 as x) select x from a) select x from a")
    >>> made_unique(query, set()).sql()
    'WITH a AS (WITH a_2 AS (SELECT 1 AS x) SELECT x FROM a_2 AS a) SELECT x FROM a'
    """
    left: list[tuple[exp.Expr, Mapping[str, str]]] = [(tree, {})]
    while left:
        node, seen = left.pop()
        with_ = node.args.get("with_")
        if with_ is not None:
            known = dict(seen)
            for cte in with_.expressions:
                left.append((cte.this, dict(known)))
                known[cte.alias.lower()] = name = _free(f"{prefix}{cte.alias}", taken)
                if name != cte.alias:
                    cte.args["alias"].set("this", exp.to_identifier(name))
            seen = known
        if isinstance(node, exp.Table) and not node.db and seen.get(node.name.lower(), node.name) != node.name:
            if not node.alias:
                node.set("alias", exp.TableAlias(this=exp.to_identifier(node.name)))
            node.set("this", exp.to_identifier(seen[node.name.lower()]))
        left += [(child, seen) for child in node.iter_expressions() if child is not with_]
    return tree


def _free(name: str, taken: set[str]) -> str:
    found, number = name, 1
    while found.lower() in taken:
        number += 1
        found = f"{name}_{number}"
    taken.add(found.lower())
    return found
