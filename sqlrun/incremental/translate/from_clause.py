"""The FROM clause to operators: tables, joins of every kind, lateral views. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from sqlrun.incremental import clocks
from sqlrun.incremental.algebra import Node
from sqlrun.incremental.expressions import column, columns_in
from sqlrun.incremental.operators.explode import Explode
from sqlrun.incremental.operators.join import Join
from sqlrun.incremental.operators.project import Project
from sqlrun.incremental.operators.single import Single
from sqlrun.incremental.operators.union_all import UnionAll
from sqlrun.incremental.translate import clock_filters
from sqlrun.transpile.refusals import Refusal
from sqlrun.transpile.trees import copied, every, has

# Resolves (database, name) to a node: `ref` tables, sources, inlined views.
Resolve = Callable[[str, str], Node]
# The columns in scope, as {(table, name): name in the node below}.
Env = dict[tuple[str, str], str]
Keys = tuple[tuple[exp.Expr, exp.Expr], ...]
JoinWord = Literal["inner", "left", "right", "full", "semi", "anti"]


@dataclass(frozen=True, slots=True)
class Context:
    """The names that a query may use: the project's tables and the CTEs in scope. `query` translates a nested query."""

    resolve: Resolve
    ctes: Mapping[str, Node]
    query: Callable[[exp.Expr, Context], Node]


def plain(expression: exp.Expr, env: Env) -> exp.Expr:
    """Return an expression with `table.column` replaced by the input's own column name."""
    if isinstance(expression, exp.Column):
        return _own(expression, env)
    generator = next(iter(every(expression, exp.Explode, exp.UDTF)), None)
    if generator is not None:
        raise Refusal(
            "SR515",
            "explode in the select list can't be maintained incrementally",
            "Use `lateral view explode(array) as element`.",
            generator,
        )

    def swap(node: exp.Expr) -> exp.Expr:
        return _own(node, env) if isinstance(node, exp.Column) else node

    return copied(expression).transform(swap, copy=False)


def _own(node: exp.Column, env: Env) -> exp.Column:
    replacement = column(env.get((node.table, node.name), node.name))
    replacement.this.meta.update(node.this.meta)
    return replacement


def tables(tree: exp.Select, context: Context) -> tuple[Node, Env]:
    """Return the node of a SELECT's FROM clause and its columns in scope; a single row without FROM."""
    clause = tree.args.get("from_") or tree.args.get("from")
    if clause is None:
        return Single(), {}
    node, env = _source(clause.this, context)
    for join in tree.args.get("joins") or ():
        node, env = _join(node, env, join, context)
    for lateral in tree.args.get("laterals") or ():
        node, env = _lateral(node, env, lateral)
    return node, env


def _source(source: exp.Expr, context: Context) -> tuple[Node, Env]:
    alias = source.alias_or_name
    if isinstance(source, exp.Subquery) and isinstance(source.this, exp.Table):
        return _nested(source, context)
    if isinstance(source, exp.Subquery):
        node = context.query(source.this, context)
    elif isinstance(source, exp.Table):
        if not source.db and source.name in context.ctes:
            node = context.ctes[source.name]
        else:
            node = context.resolve(source.db, source.name)
    elif isinstance(source, exp.Values):
        return _values(source)
    else:
        raise Refusal(
            "SR517",
            f"{source.key.upper()} in FROM can't be maintained incrementally",
            "Read a ref, a CTE or a subquery.",
            source,
        )
    for key in ("pivots", "sample"):
        if source.args.get(key):
            raise Refusal(
                "SR517",
                f"{key.upper().rstrip('S')} in FROM can't be maintained incrementally",
                "Rewrite it as a query.",
                source,
            )
    env = {(alias, name): name for name in node.columns}
    if isinstance(source, exp.Table):
        for lateral in source.args.get("laterals") or ():
            node, env = _lateral(node, env, lateral)
    return node, env


def _nested(source: exp.Subquery, context: Context) -> tuple[Node, Env]:
    """Return the node of joined tables in parentheses: their names are visible outside."""
    if source.alias:
        advice = "Name the tables inside the parentheses, or move the join to a CTE."
        raise Refusal(
            "SR517", "an alias for joined tables in parentheses can't be maintained incrementally", advice, source
        )
    node, env = _source(source.this, context)
    for join in source.this.args.get("joins") or ():
        node, env = _join(node, env, join, context)
    return node, env


def _values(source: exp.Values) -> tuple[Node, Env]:
    """Return constant rows as a union of single rows."""
    names = [identifier.name for identifier in source.args["alias"].columns] if source.args.get("alias") else []
    rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in source.expressions]
    if not names or any(len(row) != len(names) for row in rows):
        raise Refusal("SR517", "VALUES lacks names for its columns", "Name the columns: `values (1) as v(a)`.", source)
    parts = tuple(Project(Single(), tuple(zip(names, row, strict=True))) for row in rows)
    node: Node = parts[0] if len(parts) == 1 else UnionAll(parts)
    return node, {(source.alias, name): name for name in names}


def _lateral(node: Node, env: Env, lateral: exp.Expr) -> tuple[Node, Env]:
    call = lateral.this
    if not isinstance(lateral, exp.Lateral) or not isinstance(call, exp.Explode):
        raise Refusal("SR515", "only LATERAL VIEW explode and posexplode can be maintained incrementally", "", lateral)
    alias = lateral.args["alias"]
    names = [identifier.name for identifier in alias.columns]
    with_position = isinstance(call, exp.Posexplode)
    if len(names) != (2 if with_position else 1):
        raise Refusal("SR515", "LATERAL VIEW lacks its column names", "Add `as position, element`.", lateral)
    if clocks.reads_clock(call.this):
        raise clocks.no_rule(call.this)
    if has(call.this, exp.Query):
        raise Refusal(
            "SR514",
            "a subquery in LATERAL VIEW can't be maintained incrementally",
            "Move the subquery to a column of a CTE.",
            call,
        )
    table = alias.name
    unique = [unused(name, node.columns) for name in names]
    exploded = Explode(
        node,
        plain(call.this, env),
        element=unique[-1],
        # The position distinguishes elements of one row, whether the query asks for it or not.
        position=unique[0] if with_position else unused("_position", (*node.columns, *unique)),
        outer=bool(lateral.args.get("outer")) or isinstance(call, exp.ExplodeOuter | exp.PosexplodeOuter),
    )
    return exploded, env | {(table, name): new for name, new in zip(names, unique, strict=True)}


def unused(name: str, taken: tuple[str, ...]) -> str:
    """Return a name that isn't in `taken`, with underscores appended if necessary."""
    while name in taken:
        name += "_"
    return name


def apart(node: Node, right: Node, alias: str) -> tuple[Node, dict[str, str]]:
    """Rename the columns of `right` that `node` has as well. Return the node and {old name: new name}."""
    renamed: dict[str, str] = {}
    for name in right.columns:
        wanted = f"{alias}__{name}" if name in node.columns else name
        renamed[name] = unused(wanted, (*node.columns, *renamed.values()))
    if any(new != name for name, new in renamed.items()):
        right = Project(right, tuple((new, column(name)) for name, new in renamed.items()))
    return right, renamed


def _join(node: Node, env: Env, join: exp.Join, context: Context) -> tuple[Node, Env]:
    if isinstance(join.this, exp.Lateral):
        return _lateral(node, env, join.this)
    kind = _join_kind(join)
    right, right_env = _source(join.this, context)
    right, renamed = apart(node, right, join.this.alias_or_name)
    both = env | {key: renamed[name] for key, name in right_env.items()}
    condition = join.args.get("on")
    written = plain(condition, both) if condition is not None else None
    if written is not None and has(written, exp.Query):
        raise Refusal(
            "SR514",
            "a subquery in a join condition can't be maintained incrementally",
            "Move the subquery to WHERE or to a CTE.",
            join,
        )
    joined = joined_by(node, right, kind, written)
    return joined, env if kind in ("semi", "anti") else both


def _join_kind(join: exp.Join) -> JoinWord:
    side, kind = (join.side or "").lower(), (join.kind or "").lower()
    if join.args.get("using") or join.method:
        word = (
            "a join with USING can't be maintained incrementally"
            if join.args.get("using")
            else f"a {join.method.upper()} join"
        )
        raise Refusal("SR518", f"{word} can't be maintained incrementally here", "Write the condition in ON.", join)
    match side, kind:
        case ("", "" | "inner" | "cross"):
            return "inner"
        case ("left" | "right" | "full", "" | "outer"):
            return side
        case ("left" | "", "semi" | "anti"):
            return kind
        case _:
            word = " ".join(part for part in (side, kind, join.method or "") if part).upper()
            raise Refusal(
                "SR518", f"{word} JOIN can't be maintained incrementally", "Use an inner or an outer join.", join
            )


def joined_by(left: Node, right: Node, kind: JoinWord, condition: exp.Expr | None) -> Node:
    """Return the join of two nodes whose column names differ.

    A right join is a left join with the sides swapped. A full join is the left join plus the right rows without a
    partner.
    """
    match kind:
        case "right":
            turned = joined_by(right, left, "left", condition)
            return Project(turned, tuple((name, column(name)) for name in (*left.columns, *right.columns)))
        case "full":
            # full(L, R) = left(L, R) + NULLs beside anti(R, L): both terms have rules, and no row is in both.
            matched = joined_by(left, right, "left", condition)
            alone = joined_by(right, left, "anti", condition)
            nulls = tuple((name, exp.null()) for name in left.columns)
            return UnionAll((matched, Project(alone, (*nulls, *((name, column(name)) for name in right.columns)))))
    # A condition over the clock would make the join itself move. Of an inner join it is a filter above; of the right
    # side of an outer, semi or anti join it is a filter below.
    clocked = [part for part in clocks.conjuncts(condition) if clocks.reads_clock(part)]
    if clocked and kind == "inner":
        steady = [part for part in clocks.conjuncts(condition) if not clocks.reads_clock(part)]
        joined = joined_by(left, right, kind, exp.and_(*steady, copy=False) if steady else None)
        return clock_filters.filtered(joined, exp.and_(*clocked, copy=False))
    if clocked:
        own = [part for part in clocked if columns_in(part) <= set(right.columns)]
        if len(own) != len(clocked):
            raise clocks.no_rule(next(part for part in clocked if part not in own))
        steady = [part for part in clocks.conjuncts(condition) if part not in own]
        right = clock_filters.filtered(right, exp.and_(*own, copy=False))
        condition = exp.and_(*steady, copy=False) if steady else None
    keys, rest = equalities(condition, left, right)
    return Join(left, right, kind, keys, rest)


def equalities(condition: exp.Expr | None, left: Node, right: Node) -> tuple[Keys, exp.Expr | None]:
    """Split a join condition into keys (left, right) and the rest."""
    keys: list[tuple[exp.Expr, exp.Expr]] = []
    rest: list[exp.Expr] = []
    for part in clocks.conjuncts(condition):
        found = _equality(part, set(left.columns), set(right.columns))
        if found is not None:
            keys.append(found)
        else:
            rest.append(part)
    return tuple(keys), exp.and_(*rest, copy=False) if rest else None


def _equality(part: exp.Expr, left: set[str], right: set[str]) -> tuple[exp.Expr, exp.Expr] | None:
    if not isinstance(part, exp.EQ):
        return None
    a, b = columns_in(part.this), columns_in(part.expression)
    if a and b and a <= left and b <= right:
        return part.this, part.expression
    if a and b and a <= right and b <= left:
        return part.expression, part.this
    return None
