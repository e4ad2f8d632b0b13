"""Write expressions as text in an engine's dialect. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timezone
from functools import lru_cache

from sqlglot import exp

from sqlrun.engine_api import Dialect
from sqlrun.transpile import calls as duckdb_calls
from sqlrun.transpile import windows as duckdb_windows
from sqlrun.transpile.trees import COMPARISONS, copied, may_be_variable


def identifier(name: str, dialect: Dialect) -> str:
    """Return a quoted name.

    >>> identifier("a", "spark"), identifier("a", "duckdb")
    ('`a`', '"a"')
    """
    mark = "`" if dialect == "spark" else '"'
    return mark + name.replace(mark, mark + mark) + mark


def names(columns: Iterable[str], dialect: Dialect, table: str = "") -> str:
    """Return quoted names, joined by commas, each with the table's alias before it if there is one."""
    prefix = f"{table}." if table else ""
    return ", ".join(prefix + identifier(name, dialect) for name in columns)


def same(left: str, right: str, dialect: Dialect) -> str:
    """Return a comparison of two expressions, NULL equal to NULL.

    >>> same("a", "b", "spark"), same("a", "b", "duckdb")
    ('a <=> b', 'a is not distinct from b')
    """
    return f"{left} {'<=>' if dialect == 'spark' else 'is not distinct from'} {right}"


def semi_join(dialect: Dialect) -> str:
    """Return the keywords of a join that returns the left rows with a partner."""
    return "left semi join" if dialect == "spark" else "semi join"


def anti_join(dialect: Dialect) -> str:
    """Return the keywords of a join that returns the left rows without a partner."""
    return "left anti join" if dialect == "spark" else "anti join"


def timestamp(moment: datetime, dialect: Dialect) -> str:
    """Return a UTC time as a literal."""
    text = moment.astimezone(timezone.utc).replace(tzinfo=None).isoformat(" ", "microseconds")
    if dialect == "spark":
        return f"timestamp '{text}Z'"
    return f"timestamptz '{text}+00'"


def string(text: str, dialect: Dialect) -> str:
    """Return a string literal; Spark reads backslashes as escapes, DuckDB doesn't."""
    text = text.replace("\\", "\\\\").replace("'", "\\'") if dialect == "spark" else text.replace("'", "''")
    return f"'{text}'"


def expression(tree: exp.Expr, dialect: Dialect) -> str:
    """Return an expression or a query in the engine's SQL."""
    if dialect == "spark":
        return tree.sql("spark")
    return _for_duckdb(tree).sql("duckdb")


def attempted(tree: exp.Expr, dialect: Dialect, kind: str = "boolean") -> str:
    """Return an expression of a landing query as a value of a Spark SQL type, NULL instead of an error.

    The landing session of Spark runs without ANSI errors, so a call that fails is NULL. DuckDB's `try` accepts no
    volatile function. `error()` is one, so the errors that sqlrun itself writes become NULL directly.
    """
    if dialect == "spark":
        return cast(tree.sql("spark"), kind, dialect)
    translated = _for_duckdb(tree)
    for call in list(translated.find_all(exp.Anonymous)):
        if call.name.lower() == "error":
            call.replace(exp.null())
    return f"try({cast(translated.sql('duckdb'), kind, dialect)})"


@lru_cache(1024)  # every statement over a partitioned table needs its columns' types
def type_name(spark_type: str, dialect: Dialect) -> str:
    """Return a Spark SQL type as the engine writes it."""
    kind = exp.DataType.build(spark_type, dialect="databricks")
    return kind.sql("spark" if dialect == "spark" else "duckdb")


def cast(text: str, spark_type: str, dialect: Dialect) -> str:
    """Return a cast of an expression's text to a Spark SQL type."""
    return f"cast({text} as {type_name(spark_type, dialect)})"


def _for_duckdb(tree: exp.Expr) -> exp.Expr:
    """Return a tree in DuckDB's SQL as far as sqlglot doesn't translate it: first calls, then clauses."""
    return duckdb_calls.translated(_own_variables(copied(tree)), tree).transform(_translated_clause, copy=False)


def _own_variables(tree: exp.Expr) -> exp.Expr:
    """Rename lambda variables to names that no column has: DuckDB would read the column."""
    for function in reversed(list(tree.find_all(exp.Lambda, bfs=False))):
        names = {variable.name for variable in function.expressions}
        for identifier in [*function.expressions, *function.this.find_all(exp.Identifier)]:
            if identifier.name in names and may_be_variable(identifier):
                identifier.set("this", f"_of_lambda_{identifier.name}")
    return tree


def _translated_clause(node: exp.Expr) -> exp.Expr:
    match node:
        case exp.CurrentTimestamp() | exp.CurrentDate():
            raise AssertionError("as_of must be a literal before a query reaches an engine")
        case exp.Window():
            return duckdb_windows.settled(node)
        case exp.Binary() if isinstance(node, COMPARISONS):
            return _apart(node)
        case exp.Distinct() if len(node.expressions) > 1 and not node.args.get("on"):
            return _distinct_rows(node)
        case exp.Select():
            return _without_empty_total(_lateral_joins(node) if node.args.get("laterals") else node)
        case _:
            return node


def _distinct_rows(node: exp.Distinct) -> exp.Distinct:
    """Return count(distinct a, b) over rows without a NULL; sqlglot's version parses its text in another dialect."""
    some = exp.or_(*(item.copy().is_(exp.null()) for item in node.expressions))
    whole = exp.Tuple(expressions=[item.copy() for item in node.expressions])
    return exp.Distinct(expressions=[exp.case().when(some, exp.null(), copy=False).else_(whole, copy=False)])


def _apart(node: exp.Binary) -> exp.Binary:
    """Put brackets around a comparison that is compared: DuckDB has no chained comparisons."""
    for key in ("this", "expression"):
        if isinstance(node.args[key], exp.Predicate) and not isinstance(node.args[key], exp.Paren):
            node.set(key, exp.paren(node.args[key], copy=False))
    return node


def _without_empty_total(select: exp.Select) -> exp.Select:
    """Exclude the grand total over no rows: Spark returns none for grouping sets, DuckDB one."""
    group = select.args.get("group")
    if group is not None and group.find(exp.GroupingSets, exp.Rollup, exp.Cube):
        some = exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(0))
        having = select.args.get("having")
        condition = exp.and_(exp.paren(having.this), some) if having is not None else some
        select.set("having", exp.Having(this=condition))
    return select


def _lateral_joins(select: exp.Select) -> exp.Select:
    """Rewrite LATERAL VIEW as a lateral join under the view's alias; positions count from 0."""
    joins = list(select.args.get("joins") or ())
    for lateral in select.args["laterals"]:
        call, alias = lateral.this, lateral.args["alias"]
        array = call.this
        names = [identifier.copy() for identifier in alias.columns]
        items: list[exp.Expr] = [exp.alias_(exp.Anonymous(this="unnest", expressions=[array.copy()]), names[-1])]
        if isinstance(call, exp.Posexplode):
            index = exp.Anonymous(this="generate_subscripts", expressions=[array.copy(), exp.Literal.number(1)])
            counted = exp.cast(exp.Sub(this=index, expression=exp.Literal.number(1)), "int")
            items.insert(0, exp.alias_(counted, names[0]))
        inner = exp.Lateral(this=exp.Subquery(this=exp.select(*items)), alias=exp.TableAlias(this=alias.this))
        outer = lateral.args.get("outer") or isinstance(call, exp.ExplodeOuter | exp.PosexplodeOuter)
        joins.append(exp.Join(this=inner, side="LEFT" if outer else None, on=exp.true()))
    select.set("laterals", None)
    select.set("joins", joins)
    return select
