"""`from a, b where a.x = b.x` to joins: equalities of WHERE become join conditions. Pure.

A cross join under a filter has the same rows. But its change would pair each changed row with every row of the other
table, and no functional dependency between the two would be known.
"""

from __future__ import annotations

import itertools

from sqlglot import exp

from sqlrun.incremental import clocks
from sqlrun.transpile.trees import copied, every, has


def joined(tree: exp.Expr) -> exp.Expr:
    """Return a query whose comma-separated tables are joined by the equalities of WHERE.

    The order is that of FROM, except that a table without an equality to those before it moves behind one that has one.
    """
    made = copied(tree)
    for select in every(made, exp.Select):
        _rewrite(select)
    return made


def _rewrite(select: exp.Select) -> None:
    source = select.args.get("from_") or select.args.get("from")
    where, joins = select.args.get("where"), list(select.args.get("joins") or ())
    if source is None or where is None or not any(_is_bare(join) for join in joins):
        return
    if any(join.side in ("RIGHT", "FULL") for join in joins):  # WHERE has to filter the rows that such a join adds
        return
    parts = clocks.conjuncts(where.this)
    ties = [part for part in parts if _is_tie(part)]
    implied = [tie for part in parts if isinstance(part, exp.Or) for tie in _in_all_branches(part)]
    used: set[int] = set()
    seen, done, waiting = {source.this.alias_or_name}, [], joins
    while waiting:
        join = _next(waiting, seen, [*ties, *implied])
        waiting = [other for other in waiting if other is not join]
        name = join.this.alias_or_name
        if _is_inner(join):
            found = [t for t in (*ties, *implied) if id(t) not in used and _ties(t, seen, name)]
            used |= {id(tie) for tie in found}
            _add(join, found)
        seen.add(name)
        done.append(join)
    select.set("joins", done)
    rest = [part for part in parts if id(part) not in used]
    select.set("where", exp.Where(this=exp.and_(*rest, copy=False)) if rest else None)


def _is_inner(join: exp.Join) -> bool:
    special = join.side or join.method or join.args.get("using") or isinstance(join.this, exp.Lateral)
    return not special and join.kind in ("", "INNER", "CROSS")


def _is_bare(join: exp.Join) -> bool:
    return _is_inner(join) and join.args.get("on") is None


def _is_tie(part: exp.Expr) -> bool:
    """Return whether a condition equates an expression of one table with one of another table."""
    if not isinstance(part, exp.EQ) or has(part, exp.Query) or clocks.reads_clock(part):
        return False
    left, right = _tables(part.this), _tables(part.expression)
    return bool(left and right) and not left & right


def _tables(expression: exp.Expr) -> set[str]:
    return {column.table for column in every(expression, exp.Column)}


def _ties(tie: exp.Expr, seen: set[str], name: str) -> bool:
    tables = _tables(tie)
    return name in tables and tables <= seen | {name}


def _in_all_branches(part: exp.Expr) -> list[exp.Expr]:
    """Return the equalities that every branch of an OR contains: they hold wherever the OR does."""
    branches = [clocks.conjuncts(branch) for branch in part.flatten()]
    first, *others = branches
    common = [one for one in first if _is_tie(one) and all(one in other for other in others)]
    return [one.copy() for one in common]


def _next(waiting: list[exp.Join], seen: set[str], ties: list[exp.Expr]) -> exp.Join:
    """Return the next table to join: the first of a run of inner joins with an equality to the joined tables."""
    run = list(itertools.takewhile(_is_inner, waiting))
    for join in run:
        name = join.this.alias_or_name
        own = join.args.get("on")
        if own is not None and not _tables(own) <= seen | {name}:
            continue
        if own is not None or any(_ties(tie, seen, name) for tie in ties):
            return join
    return waiting[0]


def _add(join: exp.Join, ties: list[exp.Expr]) -> None:
    if not ties:
        return
    own = join.args.get("on")
    join.set("on", exp.and_(*([own] if own is not None else []), *ties, copy=False))
    join.set("kind", None)
