"""Branches of a model's query, and a query that returns the taken ones. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from sqlglot import exp

from sqlrun.errors import Place
from sqlrun.parse.parse import Query
from sqlrun.parse.scopes import written
from sqlrun.parse.source_map import source_place
from sqlrun.project import Column, Config
from sqlrun.transpile.trees import place_of

TAKEN = "taken"
NEVER = "never taken"
# Clauses that don't affect a row's branch, or that would hide it.
AFTERWARDS = ("order", "limit", "offset", "distinct", "sort", "cluster", "distribute", "hint")


@dataclass(frozen=True, slots=True)
class Branch:
    """One branch of a CASE, a coalesce, a filter or a left join. `never` is the message if no row took it."""

    place: Place
    what: str
    never: str


@dataclass(frozen=True, slots=True)
class Fork:
    """Branches of one place in the query; `probe` returns the numbers of taken ones, and is None if it can't."""

    branches: tuple[Branch, ...]
    probe: exp.Select | None


def forks(query: Query) -> tuple[Fork, ...]:
    """Return the places where a query branches, in the order of its text."""
    found: list[Fork] = []
    for select in query.tree.find_all(exp.Select, bfs=False):
        found += [*_filters(query, select), *_joins(query, select), *_values(query, select)]
    return tuple(sorted(found, key=lambda fork: fork.branches[0].place))


def asking(query: Query, numbered: Sequence[tuple[int, Fork]]) -> Query:
    """Return the query that lists, in one text column, `fork:branch` for each branch that a row took."""
    names: dict[str, exp.CTE] = {}
    legs: list[exp.Select] = []
    for number, fork in numbered:
        assert fork.probe is not None
        leg = fork.probe.copy()
        for cte in leg.ctes:
            names[cte.alias] = cte.copy()
        leg.set("with_", None)
        leg.args["expressions"] = [_numbered(leg.expressions[0], number)]
        legs.append(leg)
    tree: exp.Query = legs[0]
    for leg in legs[1:]:
        tree = exp.Union(this=tree, expression=leg, distinct=False)
    if names:
        tree.set("with_", exp.With(expressions=list(names.values())))
    column = Column(TAKEN, "string", "", Place(query.rendered.model.file))
    model = replace(query.rendered.model, columns=(column,), grain=(), config=Config())
    rendered = replace(query.rendered, model=model, config=Config())
    return Query(rendered, cast(exp.Expression, tree), (TAKEN,))


def _numbered(alias: exp.Expr, number: int) -> exp.Expr:
    """Prefix a branch's number with that of its fork; a row that reaches no branch stays NULL."""
    text = exp.DPipe(this=exp.Literal.string(f"{number}:"), expression=alias.this.copy(), safe=True)
    return exp.alias_(text, TAKEN, quoted=True)


def _fork(
    query: Query,
    select: exp.Select,
    ways: Sequence[tuple[exp.Expr, str, str]],
    case: exp.Expr | None,
    without: tuple[str, ...],
) -> Fork:
    """Return a fork. `ways` has for each branch its node, its description, and the message if no row took it."""
    branches = tuple(Branch(_place(query, node), what, never) for node, what, never in ways)
    return Fork(branches, None if case is None else _probe(select, case, without))


def _place(query: Query, node: exp.Expr) -> Place:
    line, column = place_of(node)
    return source_place(query.rendered, line or 1, column or 1)[0]


def _probe(select: exp.Select, case: exp.Expr, without: tuple[str, ...]) -> exp.Select | None:
    """Return a SELECT with a CASE for its columns; None if names in it might have another meaning elsewhere."""
    probe = select.copy()
    for key in (*AFTERWARDS, *without):
        probe.set(key, None)
    probe.set("expressions", [exp.alias_(case, TAKEN, quoted=True)])
    probe.set("distinct", exp.Distinct())
    levels: list[list[exp.CTE]] = []
    above: exp.Expr | None = select
    while above is not None:
        levels += [list(above.ctes)] if isinstance(above, exp.Query) else []
        above = above.parent
    listed = [cte for level in reversed(levels) for cte in level]
    if len({cte.alias for cte in listed}) < len(listed):
        return None
    read = _read(probe, {cte.alias: cte for cte in listed})
    kept = [cte.copy() for cte in listed if cte.alias in read]
    probe.set("with_", exp.With(expressions=kept) if kept else None)
    return probe


def _read(probe: exp.Expr, ctes: Mapping[str, exp.CTE]) -> set[str]:
    """Return the names of the CTEs that a query reads, directly or through others."""
    probe.set("with_", None)
    found: set[str] = set()
    left = [probe]
    while left:
        names = {table.name for table in left.pop().find_all(exp.Table) if not table.db and table.name in ctes} - found
        found |= names
        left += [ctes[name].this for name in names]
    return found


def _cased(conditions: Sequence[exp.Expr], of: exp.Expr | None = None) -> exp.Case:
    """Return a CASE that numbers conditions from 0; its default is the number after the last."""
    ifs = [exp.If(this=one.copy(), true=exp.Literal.string(str(number))) for number, one in enumerate(conditions)]
    other = exp.Literal.string(str(len(conditions)))
    return exp.Case(this=of.copy() if of is not None else None, ifs=ifs, default=other)


def _filters(query: Query, select: exp.Select) -> Iterator[Fork]:
    for key, word in (("where", "filter"), ("having", "having"), ("qualify", "qualify")):
        clause = select.args.get(key)
        if clause is None:
            continue
        text = f"{word} `{written(clause.this)}`"
        ways = [(clause.this, text, "never keeps a row"), (clause.this, text, "never drops a row")]
        groups = () if key != "where" or not _groups(select) else ("group", "having")
        yield _fork(query, select, ways, _cased([clause.this]), (key, "qualify", *groups))


def _joins(query: Query, select: exp.Select) -> Iterator[Fork]:
    """Return left joins on equal columns: a row has no match exactly if the condition doesn't hold for it."""
    for place, join in enumerate(select.args.get("joins") or []):
        on = join.args.get("on")
        if join.side != "LEFT" or join.kind in ("SEMI", "ANTI") or on is None:
            continue
        equal = any(isinstance(one.this, exp.Column) and isinstance(one.expression, exp.Column) for one in _anded(on))
        probe = _probe(select, _cased([on]), ("where", "group", "having", "qualify", "laterals")) if equal else None
        if probe is not None:
            # A later join might drop the row again.
            probe.set("joins", probe.args["joins"][: place + 1])
        ways = [(on, f"left join on `{written(on)}`", f"never {how} a match") for how in ("with", "without")]
        yield Fork(tuple(Branch(_place(query, node), what, never) for node, what, never in ways), probe)


def _anded(on: exp.Expr) -> list[exp.EQ]:
    return [one for one in (on.flatten() if isinstance(on, exp.And) else [on]) if isinstance(one, exp.EQ)]


def _values(query: Query, select: exp.Select) -> Iterator[Fork]:
    for node in select.find_all(exp.Case, exp.If, exp.Coalesce, bfs=False):
        if node.find_ancestor(exp.Select) is not select or (isinstance(node, exp.If) and node.arg_key == "ifs"):
            continue
        ways, case = _ways(node)
        probe = _reached(node, case, select) if _may_ask(node, select) else None
        yield _fork(query, select, ways, probe, _without(node, select))


def _reached(node: exp.Expr, probe: exp.Expr, select: exp.Select) -> exp.Expr:
    """Restrict a probe to the rows that reach a node: inside another fork, the rows that take its branch."""
    below, above = node, node.parent
    while above is not None and above is not select:
        outer = above.parent if isinstance(above, exp.If) and above.arg_key == "ifs" else above
        if isinstance(outer, exp.Case | exp.If | exp.Coalesce):
            allowed = _leading_to(below, above, outer)
            if allowed is not None:
                numbers = [exp.Literal.string(str(number)) for number in allowed]
                here = exp.In(this=_ways(outer)[1], expressions=numbers)
                probe = exp.Case(ifs=[exp.If(this=here, true=probe)])
        below, above = outer or above, (outer or above).parent
    return probe


def _leading_to(below: exp.Expr, above: exp.Expr, outer: exp.Expr) -> Sequence[int] | None:
    """Return the branches of a fork that evaluate a part of it; None if all do."""
    count = len(_ways(outer)[0])
    if isinstance(outer, exp.Coalesce):
        return None if below.arg_key == "this" else range((below.index or 0) + 1, count)
    if isinstance(outer, exp.If):
        return {"true": (0,), "false": (1,)}.get(str(below.arg_key))
    if above is outer:
        return (count - 1,) if below.arg_key == "default" else None
    place = above.index or 0
    return (place,) if below.arg_key == "true" else range(place, count)


def _ways(node: exp.Expr) -> tuple[list[tuple[exp.Expr, str, str]], exp.Case]:
    if isinstance(node, exp.Coalesce):
        values = [node.this, *node.expressions]
        named = [(one, f"coalesce's `{written(one)}`", NEVER) for one in values]
        # No value follows the last one, so it is taken even if it is NULL.
        return named, _cased([exp.Is(this=one.copy(), expression=exp.Null()).not_() for one in values[:-1]])
    of = node.this if isinstance(node, exp.Case) else None
    ifs = node.args["ifs"] if isinstance(node, exp.Case) else [node]
    default = node.args.get("default") if isinstance(node, exp.Case) else node.args.get("false")
    word = "case branch" if isinstance(node, exp.Case) else "if"
    ways = [(one.this, f"{word} `{written(one.this)}`", NEVER) for one in ifs]
    ways.append((default if default is not None else ifs[-1].this, f"{word.partition(' ')[0]}'s else", NEVER))
    return ways, _cased([one.this for one in ifs], of)


def _clause(node: exp.Expr, select: exp.Select) -> str:
    """Return the name of the clause of a SELECT that contains a node."""
    while node.parent is not None and node.parent is not select:
        node = node.parent
    return str(node.arg_key)


def _may_ask(node: exp.Expr, select: exp.Select) -> bool:
    """Return whether the node's names mean the same in the SELECT's columns; not so in joins and lambdas."""
    if _clause(node, select) not in ("expressions", "where", "having", "group", "qualify"):
        return False
    above = node.parent
    while above is not None and above is not select:
        if isinstance(above, exp.Lambda):
            return False
        if isinstance(above, exp.AggFunc) and above.find_ancestor(exp.Window) is not None and _groups(select):
            return False
        above = above.parent
    return True


def _without(node: exp.Expr, select: exp.Select) -> tuple[str, ...]:
    """Return the clauses to drop, so that the probe sees each row once, or each group where it looks at groups."""
    clause = _clause(node, select)
    above, aggregated = node.parent, False
    while above is not None and above is not select:
        aggregated = aggregated or isinstance(above, exp.AggFunc)
        above = above.parent
    by_row = aggregated or clause in ("where", "group")
    return ("qualify", *(("group", "having") if by_row else ()), *((clause,) if clause in ("where", "having") else ()))


def _groups(select: exp.Select) -> bool:
    return select.args.get("group") is not None or any(
        one.find_ancestor(exp.Select) is select and not isinstance(one.parent, exp.Window)
        for each in select.expressions
        for one in each.find_all(exp.AggFunc)
    )
