"""Syntax that no model may contain, Spark's and that of other databases, with advice (SR553). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlglot import exp

from sqlrun.parse import precedence, window_forms
from sqlrun.transpile import patterns
from sqlrun.transpile.trees import COMPARISONS, every

Found = tuple[exp.Expr, str, str]
PIVOT = "Write an aggregate for each column: sum(case when kind = 'a' then amount end) as a, ..., with GROUP BY."
UNPIVOT = "Write a SELECT for each column, and combine them by UNION ALL."
NAMED = "Rename the columns in a CTE: with x as (select id as a from ...)."
STAR = "List the columns. To count rows, use count(*)."
GENERATOR = "Use `from ... lateral view explode(map_entries(m)) e as entry`, with entry.key and entry.value."
NESTED = "Use `from ... lateral view explode(x) l as element`, and compute with the element."
POSITIONS = "Use `from ... lateral view posexplode(x) e as place, element`."
DISTINCT_ON = "Rank with row_number() over (partition by ... order by ...), and select the first row with QUALIFY."
LATERAL = "Join a CTE that groups by the join key. A subquery in FROM can't read other tables of the same FROM."
WINDOW = (
    "Truncate the time: date_trunc('hour', at), or timestamp_seconds(unix_seconds(at) div 600 * 600) for 10 minutes."
)
WINDOWS = frozenset({"window", "session_window"})
# A call, not the clause `window w as (...)`, for which sqlglot mistakes it after GROUP BY.
WINDOW_CALL = r"\b(?:session_)?window\s*\("
# Joins that sqlglot parses and Spark doesn't have.
METHODS: Mapping[str, str] = {
    "ASOF": "Rank the rows in a CTE, row_number() over (partition by ... order by at desc), and select the first.",
    "POSITIONAL": "Join on a column that both tables have.",
}
# Hints and operators of other databases.
FOREIGN = (exp.JoinHint, exp.Glob, exp.ScopeResolution, exp.SimilarTo)
# LIKE ANY compares with several patterns.
OF_PATTERNS = (exp.Like, exp.ILike, exp.SimilarTo, exp.RegexpLike)
QUANTIFIED = "Use IN, or compare with one value: x > (select max(y) from ...)."
RECURSIVE = "Write a CTE for each level, or store each node's ancestors in a column."


def refused(tree: exp.Expr) -> Iterable[Found]:
    """Yield unsupported syntax: (node, what it is, what to write instead)."""
    finders = (_pivots, _tables, _joins, _generators, _stars, _limits, _misplaced, _numbers, _others)
    for find in (*finders, window_forms.found, precedence.found, patterns.invalid):
        yield from find(tree)


def recursive(tree: exp.Expr) -> Iterable[Found]:
    """Yield recursive CTEs: their running time is unbounded, and no rule maintains them from changes."""
    for clause in every(tree, exp.With):
        if clause.args.get("recursive"):
            named = clause.expressions[0].args["alias"] if clause.expressions else clause
            yield named, "recursive CTEs aren't supported: their run time has no limit", RECURSIVE


def by_name(tree: exp.Expr) -> Iterable[Found]:
    """Yield set operations that match columns by name."""
    for operation in every(tree, exp.SetOperation):
        if operation.args.get("by_name") or operation.args.get("side") or operation.args.get("on"):
            why = f"Spark SQL has no {operation.key.upper()} BY NAME"
            yield operation, why, "List the columns of each branch in the same order."


def _pivots(tree: exp.Expr) -> Iterable[Found]:
    for pivot in every(tree, exp.Pivot):
        word, instead = ("UNPIVOT", UNPIVOT) if pivot.args.get("unpivot") else ("PIVOT", PIVOT)
        yield pivot, f"{word} isn't supported", instead


def _tables(tree: exp.Expr) -> Iterable[Found]:
    for table in every(tree, exp.Table):
        alias = table.args.get("alias")
        if alias is not None and alias.columns and not isinstance(table.this, exp.Func):
            named = f"{alias.name}({', '.join(column.name for column in alias.columns)})"
            yield alias, f"column aliases of a table aren't supported: `{named}`", NAMED
    for lateral in every(tree, exp.Lateral):
        if isinstance(lateral.this, exp.Query):
            yield lateral, "LATERAL subqueries aren't supported", LATERAL
    for values in every(tree, exp.Values):
        alias = values.args.get("alias")
        # sqlglot reads the name of the table as that of the last value.
        single = [row.expressions[0] for row in values.expressions if len(row.expressions) == 1]
        bare = next((value for value in single if isinstance(value, exp.Alias)), None)
        if bare is not None:
            yield bare, "VALUES without parentheses isn't supported", "Write each row so: `values (1), (2) as v(x)`."
        elif alias is None or not alias.columns:
            yield (
                values,
                "VALUES without column names isn't supported",
                "Name the columns: `values (1, 'a'), (2, 'b') as v(x, y)`.",
            )


def _joins(tree: exp.Expr) -> Iterable[Found]:
    for join in every(tree, exp.Join):
        if (join.method or "").upper() in METHODS:
            word = join.method.upper()
            yield join.this, f"Spark SQL has no {word} JOIN", METHODS[word]


def _generators(tree: exp.Expr) -> Iterable[Found]:
    """Yield generators of the select list that return several columns."""
    for several in every(tree, exp.Aliases):
        yield several, "several aliases for one expression aren't supported", GENERATOR
    for select in every(tree, exp.Select):
        for item in select.expressions:
            call = item.unalias()
            if isinstance(call, exp.Posexplode | exp.PosexplodeOuter):
                yield call, "posexplode() in the select list isn't supported: it returns two columns", POSITIONS
        generators = [item for item in select.expressions if isinstance(item.unalias(), exp.Explode)]
        for item in generators[1:]:
            yield item, "two generators in one select list aren't supported", "Use LATERAL VIEW for each."
    for call in every(tree, exp.Explode):
        if not isinstance(call.parent, exp.Select | exp.Alias | exp.Aliases | exp.Lateral):
            yield call, "a generator inside an expression isn't supported", NESTED


def _stars(tree: exp.Expr) -> Iterable[Found]:
    """Yield stars inside expressions: nothing says which columns they mean."""
    for star in every(tree, exp.Star):
        node: exp.Expr = star.parent if isinstance(star.parent, exp.Column) else star
        above = node.parent
        qualified = isinstance(node, exp.Column) and bool(node.table)
        if isinstance(above, exp.Select) or (isinstance(above, exp.Count) and not qualified):
            continue
        yield node, f"`{node.sql('databricks')}` inside an expression isn't supported", STAR


def _limits(tree: exp.Expr) -> Iterable[Found]:
    for limit in every(tree, exp.Limit, exp.Fetch, exp.Offset):
        count = limit.args.get("count") if isinstance(limit, exp.Fetch) else limit.expression
        if not (isinstance(count, exp.Literal) and count.is_int) or limit.args.get("limit_options"):
            yield (
                limit,
                f"{limit.key.upper()} takes a literal whole number only",
                "Write a number, for example LIMIT 10.",
            )


def _misplaced(tree: exp.Expr) -> Iterable[Found]:
    """Yield aggregates and window functions under WHERE, which sees rows before groups and windows exist."""
    for where in every(tree, exp.Where):
        if not isinstance(where.parent, exp.Select):
            continue
        for node in where.walk(prune=lambda part: isinstance(part, exp.Query | exp.Window | exp.AggFunc)):
            if isinstance(node, exp.Window):
                yield node, "window functions aren't allowed in WHERE", "Move the condition to QUALIFY."
            elif isinstance(node, exp.AggFunc):
                yield node, "aggregate functions aren't allowed in WHERE", "Move the condition to HAVING."


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
            yield node, f"Spark SQL doesn't have the expression `{shown}`", "Use the functions of docs/functions.md."
    for distinct in every(tree, exp.Distinct):
        if distinct.args.get("on"):
            yield distinct.args["on"], "Spark SQL has no DISTINCT ON", DISTINCT_ON
    for between in every(tree, exp.Between):
        if between.args.get("symmetric"):
            yield (
                between,
                "Spark SQL has no BETWEEN SYMMETRIC",
                "Use BETWEEN with the smaller bound first.",
            )
    for quantified in every(tree, exp.Any, exp.All):
        word = quantified.key
        if isinstance(quantified.parent, COMPARISONS):
            yield quantified.parent, f"Spark SQL has no comparison with {word.upper()}", QUANTIFIED
        elif not isinstance(quantified.parent, OF_PATTERNS):
            of_rows = "bool_or" if word == "any" else "bool_and"
            yield quantified, f"{word}() isn't supported", f"Use {of_rows}(x)."
    for path in every(tree, exp.JSONExtract):
        if path.args.get("variant_extract"):
            yield (
                path,
                f"paths into a VARIANT aren't supported: `{path.sql('databricks')}`",
                "Use get_json_object(x, '$.a'), or x.a for a struct.",
            )
