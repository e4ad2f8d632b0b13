"""Syntax that no model may contain, Spark's and that of other databases, with advice (SR553). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlglot import exp

from sqlrun.parse import precedence, window_forms
from sqlrun.transpile.trees import every

Found = tuple[exp.Expr, str, str]
PIVOT = "Write an aggregate for each column: sum(case when kind = 'a' then amount end) as a, ..., under GROUP BY."
UNPIVOT = "Write a SELECT for each column, joined by UNION ALL."
NAMED = "Name the columns in a CTE: with x as (select id as a from ...), and read that."
STAR = "List the columns; to count rows write count(*)."
GENERATOR = "Write `from ... lateral view explode(map_entries(m)) e as entry`, and take entry.key and entry.value."
NESTED = "Write `from ... lateral view explode(x) l as element`, and compute with the element."
POSITIONS = "Write `from ... lateral view posexplode(x) e as place, element`."
DISTINCT_ON = "Rank with row_number() over (partition by ... order by ...), and keep the first under QUALIFY."
LATERAL = "Join a CTE, grouped by what ties it to the row: a subquery of FROM can't read the tables beside it."
WINDOW = "Round the time: date_trunc('hour', at), or timestamp_seconds(unix_seconds(at) div 600 * 600) for ten minutes."
WINDOWS = frozenset({"window", "session_window"})
# A call, not the clause `window w as (...)`, for which sqlglot mistakes it after GROUP BY.
WINDOW_CALL = r"\b(?:session_)?window\s*\("
# Joins that sqlglot parses and Spark doesn't have.
METHODS: Mapping[str, str] = {
    "ASOF": "Rank the rows: row_number() over (partition by ... order by at desc) in a CTE, and keep the first.",
    "POSITIONAL": "Join by a column that both tables have.",
}
# Hints and operators of other databases.
FOREIGN = (exp.JoinHint, exp.Glob, exp.ScopeResolution, exp.SimilarTo)
RECURSIVE = "Write the levels out, a CTE each, or keep each node's ancestors in a column of their own."


def refused(tree: exp.Expr) -> Iterable[Found]:
    """Yield unsupported syntax: (node, what it is, what to write instead)."""
    finders = (_pivots, _tables, _joins, _generators, _stars, _limits, _misplaced, _numbers, _others)
    for find in (*finders, window_forms.found, precedence.found):
        yield from find(tree)


def recursive(tree: exp.Expr) -> Iterable[Found]:
    """Yield recursive CTEs: their running time is unbounded, and no rule maintains them from changes."""
    for clause in every(tree, exp.With):
        if clause.args.get("recursive"):
            named = clause.expressions[0].args["alias"] if clause.expressions else clause
            yield named, "a recursive CTE may not be used in a model: nothing bounds how long it runs", RECURSIVE


def by_name(tree: exp.Expr) -> Iterable[Found]:
    """Yield set operations that match columns by name."""
    for operation in every(tree, exp.SetOperation):
        if operation.args.get("by_name") or operation.args.get("side") or operation.args.get("on"):
            why = f"Spark SQL has no {operation.key.upper()} BY NAME"
            yield operation, why, "List the columns of each branch in one order."


def _pivots(tree: exp.Expr) -> Iterable[Found]:
    for pivot in every(tree, exp.Pivot):
        word, instead = ("UNPIVOT", UNPIVOT) if pivot.args.get("unpivot") else ("PIVOT", PIVOT)
        yield pivot, f"{word} has no rule", instead


def _tables(tree: exp.Expr) -> Iterable[Found]:
    for table in every(tree, exp.Table):
        alias = table.args.get("alias")
        if alias is not None and alias.columns and not isinstance(table.this, exp.Func):
            named = f"{alias.name}({', '.join(column.name for column in alias.columns)})"
            yield alias, f"`{named}` names the columns of a table", NAMED
    for lateral in every(tree, exp.Lateral):
        if isinstance(lateral.this, exp.Query):
            yield lateral, "a LATERAL subquery has no rule", LATERAL
    for values in every(tree, exp.Values):
        alias = values.args.get("alias")
        if alias is None or not alias.columns:
            yield values, "VALUES without names for its columns", "Write `values (1, 'a'), (2, 'b') as v(x, y)`."


def _joins(tree: exp.Expr) -> Iterable[Found]:
    for join in every(tree, exp.Join):
        if (join.method or "").upper() in METHODS:
            word = join.method.upper()
            yield join.this, f"Spark SQL has no {word} JOIN", METHODS[word]


def _generators(tree: exp.Expr) -> Iterable[Found]:
    """Yield generators of the select list that return several columns."""
    for several in every(tree, exp.Aliases):
        yield several, "several names for one expression", GENERATOR
    for select in every(tree, exp.Select):
        for item in select.expressions:
            call = item.unalias()
            if isinstance(call, exp.Posexplode | exp.PosexplodeOuter):
                yield call, "posexplode() gives two columns", POSITIONS
        generators = [item for item in select.expressions if isinstance(item.unalias(), exp.Explode)]
        for item in generators[1:]:
            yield item, "two generators in one select list", "Write LATERAL VIEW for each."
    for call in every(tree, exp.Explode):
        if not isinstance(call.parent, exp.Select | exp.Alias | exp.Aliases | exp.Lateral):
            yield call, "a generator inside of an expression", NESTED


def _stars(tree: exp.Expr) -> Iterable[Found]:
    """Yield stars inside expressions: nothing says which columns they mean."""
    for star in every(tree, exp.Star):
        node: exp.Expr = star.parent if isinstance(star.parent, exp.Column) else star
        above = node.parent
        qualified = isinstance(node, exp.Column) and bool(node.table)
        if isinstance(above, exp.Select) or (isinstance(above, exp.Count) and not qualified):
            continue
        yield node, f"`{node.sql('databricks')}` stands inside of an expression", STAR


def _limits(tree: exp.Expr) -> Iterable[Found]:
    for limit in every(tree, exp.Limit, exp.Fetch, exp.Offset):
        count = limit.args.get("count") if isinstance(limit, exp.Fetch) else limit.expression
        if not (isinstance(count, exp.Literal) and count.is_int) or limit.args.get("limit_options"):
            yield limit, f"{limit.key.upper()} takes a whole number that is written out", "Write LIMIT 10."


def _misplaced(tree: exp.Expr) -> Iterable[Found]:
    """Yield aggregates and window functions under WHERE, which sees rows before groups and windows exist."""
    for where in every(tree, exp.Where):
        if not isinstance(where.parent, exp.Select):
            continue
        for node in where.walk(prune=lambda part: isinstance(part, exp.Query | exp.Window | exp.AggFunc)):
            if isinstance(node, exp.Window):
                yield node, "a window function under WHERE", "Write the condition under QUALIFY."
            elif isinstance(node, exp.AggFunc):
                yield node, "an aggregate function under WHERE", "Write the condition under HAVING."


def _numbers(tree: exp.Expr) -> Iterable[Found]:
    """Yield numbers in ORDER BY and GROUP BY that are no position of the select list."""
    for clause in every(tree, exp.Order, exp.Group):
        query = clause.parent
        if not isinstance(query, exp.Query) or query.is_star:
            continue
        known = len(query.selects)
        for item in clause.expressions:
            key = item.this if isinstance(item, exp.Ordered) else item
            if isinstance(key, exp.Literal) and key.is_int and not 1 <= int(key.name) <= known:
                word = "ORDER BY" if isinstance(clause, exp.Order) else "GROUP BY"
                why = f"{word} {key.name}: the select list has {known} column{'s' * (known != 1)}"
                yield key, why, "Count from 1, or name the column."


def _others(tree: exp.Expr) -> Iterable[Found]:
    for node in every(tree, *FOREIGN):
        if not isinstance(node.parent, exp.Hint):
            shown = node.sql("databricks")
            yield node, f"`{shown}` is no expression of Spark SQL", "Write it with functions of docs/functions.md."
    for distinct in every(tree, exp.Distinct):
        if distinct.args.get("on"):
            yield distinct.args["on"], "Spark SQL has no DISTINCT ON", DISTINCT_ON
    for between in every(tree, exp.Between):
        if between.args.get("symmetric"):
            yield (
                between,
                "Spark SQL has no BETWEEN SYMMETRIC",
                "Put the smaller bound first.",
            )
    for path in every(tree, exp.JSONExtract):
        if path.args.get("variant_extract"):
            yield (
                path,
                f"`{path.sql('databricks')}` is a path into a VARIANT",
                "Write get_json_object(x, '$.a'), or x.a for a struct.",
            )
