"""Compare a query's columns with the contract (SR306 to SR308, SR312), and add the columns of a history. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import cast

from sqlglot import exp
from sqlglot.optimizer.scope import Scope

from sqlrun.errors import Problem
from sqlrun.parse.function_types import SAME, WIDEST
from sqlrun.parse.functions import function_name
from sqlrun.parse.located_problems import at
from sqlrun.parse.scopes import selects as branches
from sqlrun.parse.scopes import source_of, written
from sqlrun.parse.type_check import LONGEST, Walk
from sqlrun.parse.unsupported_syntax import GENERATOR, NESTED
from sqlrun.project import HISTORY, Config, Rendered
from sqlrun.transpile import spark_types as spark
from sqlrun.transpile.dialect import DIALECT
from sqlrun.transpile.spark_types import Kind

# The name of the analyst's query inside a history's.
VERSIONS = "versions"
# Nodes that return an interval for intervals.
_OF_INTERVALS = (
    *SAME, *WIDEST, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg, exp.Abs, exp.Sum, exp.Avg, exp.Median,
)  # fmt: skip


def with_versions(tree: exp.Query, config: Config) -> exp.Query:
    """Return a history's query: the analyst's rows, each as a version that begins now, or when it was updated.

    Any other query is returned as it is.
    """
    if config.materialized != HISTORY:
        return tree
    kind = exp.DataType.build("timestamp", dialect=DIALECT)
    begin: exp.Expr = exp.CurrentTimestamp()
    if config.updated_at:
        begin = exp.column(exp.to_identifier(config.updated_at), table=VERSIONS)
    values = (begin, exp.Null(), exp.true(), exp.false())
    items: list[exp.Expr] = [exp.Column(this=exp.Star(), table=exp.to_identifier(VERSIONS))]
    for name, value in zip(config.version_columns, values, strict=False):
        typed = value if isinstance(value, exp.Boolean) else exp.cast(value, kind.copy())
        items.append(exp.alias_(typed, name))
    return exp.select(*items).from_(exp.Subquery(this=tree, alias=exp.TableAlias(this=exp.to_identifier(VERSIONS))))


def without_versions(tree: exp.Expr, config: Config) -> exp.Expr:
    """Return a copy of the analyst's query inside a history's. Any other query is returned as it is."""
    if config.materialized != HISTORY:
        return tree
    inner: exp.Query = tree.args["from_"].this.this
    return inner.copy()


def problems(
    rendered: Rendered, columns: tuple[str, ...], tree: exp.Query, walk: Walk | None = None
) -> Iterable[Problem]:
    """Yield the columns that the contract or the query lacks, duplicate columns, and those without a type.

    `walk` has the types of the tree.
    """
    model = rendered.model
    declared = [column.name for column in model.columns]
    query = without_versions(tree, rendered.config)
    if query is not tree:
        # Another problem reports the ones of these columns that the contract lacks.
        columns = tuple(name for name in columns if name in declared or name not in rendered.config.version_columns)
    selects = {s.alias_or_name: s for s in cast(exp.Query, query).selects}
    nameless = [name for name in columns if name not in declared and _is_nameless(selects.get(name))]
    for name in nameless:
        item = selects[name].unalias()
        wanted = next((c for c in declared if c not in columns), "a_name")
        shown = item.sql(DIALECT)
        yield at("SR306", rendered, item, f"the column `{shown}` has no name", f"Add a name: {shown} as {wanted}.")
    untyped = {column.name for column in model.columns if not column.type}
    for name in columns:
        if name not in declared and name not in nameless and not (model.is_open and not declared):
            hint = f"Add it under `columns:` in {model.contract_file}, with its data_type and description."
            message = f"column `{name}` is not in the contract of `{model.name}`"
            yield at("SR306", rendered, selects.get(name), message, hint)
        elif name in untyped:
            yield at("SR312", rendered, selects.get(name), *_untyped(name, selects.get(name), walk))
    for column in model.columns if not nameless else ():
        if column.name not in columns:
            listed = {c.name for c in model.columns if c.place.file != model.file}
            free = [name for name in columns if name not in listed]
            near = difflib.get_close_matches(column.name, free, 1)
            hint = f"Select the column, or remove it from the contract. The query returns: {', '.join(columns)}." + (
                f" Did you mean `{near[0]}`?" if near else ""
            )
            message = f"column `{column.name}` of the contract is missing in the query, {model.file}"
            yield Problem("SR307", column.place, message, hint)
    for name in sorted({c for c in columns if columns.count(c) > 1}):
        message, hint = f"duplicate output column `{name}`", "Give one of them another alias."
        if query is not tree and name in rendered.config.version_columns:
            message = f"the history `{model.name}` has a column `{name}` that sqlrun computes"
            hint = "Give the query's column another alias, and list it in the contract."
        yield at("SR308", rendered, selects.get(name), message, hint)


def are_valid_names(tree: exp.Query, config: Config) -> bool:
    """Return whether each column of a query has a name of its own."""
    written, names = without_versions(tree, config), tree.named_selects
    return len(set(names)) == len(names) and not any(map(_is_nameless, cast(exp.Query, written).selects))


def _is_nameless(item: exp.Expr | None) -> bool:
    """Return whether sqlglot named an item of the select list: such a name has no place."""
    if not isinstance(item, exp.Alias) or isinstance(item.this, exp.Column | exp.Dot):
        return False
    return "line" not in item.args["alias"].meta


def _untyped(name: str, item: exp.Expr | None, walk: Walk | None) -> tuple[str, str]:
    """Return what is wrong with a column without a type, and what to write instead."""
    value = item.unalias() if item is not None else None
    if isinstance(value, exp.Inline):
        return "inline() returns a column for each field of a struct", NESTED
    if isinstance(value, exp.Explode) and walk is not None and _is_map(walk.anywhere(value.this)):
        return f"{function_name(value)}() of a map returns two columns, the key and the value", GENERATOR
    if value is None or walk is None or not _is_interval(value, walk):
        hint = f"Write cast(... as TYPE) as {name}, or list the column with its data_type in a contract."
        return f"the type of column `{name}` can't be inferred", hint
    message = f"column `{name}` is an interval, which a Delta table can't store"
    value = value.this if isinstance(value, exp.Cast) else value
    if isinstance(value, exp.Sub) and _is_between_times(value, walk):
        later, earlier = written(value.this), written(value.expression)
        days = {walk.anywhere(value.this), walk.anywhere(value.expression)} == {spark.DATE}
        if len(later) + len(earlier) <= LONGEST:
            if days:
                return message, f"Write datediff({later}, {earlier}) as {name}, the number of days."
            return message, f"Write timestampdiff(second, {earlier}, {later}) as {name}, or another unit."
    return message, f"Write a number, such as timestampdiff(second, begin, end) as {name}."


def _is_map(kind: Kind | None) -> bool:
    return kind is not None and kind.name == "map"


def _is_interval(value: exp.Expr, walk: Walk) -> bool:
    """Return whether a value is an interval, as far as that is known."""
    if spark.span(value) is not None:
        return True
    if isinstance(value, exp.Column):
        return any(_is_interval(origin, walk) for origin in _origins(value, walk))
    if isinstance(value, exp.Sub) and _is_between_times(value, walk):
        return True
    operands = list(value.iter_expressions()) if isinstance(value, _OF_INTERVALS) else []
    if isinstance(value, exp.Add | exp.Sub) and any(walk.anywhere(operand) in spark.TIMES for operand in operands):
        return False
    return any(_is_interval(operand, walk) for operand in operands)


def _is_between_times(value: exp.Sub, walk: Walk) -> bool:
    return all(walk.anywhere(operand) in spark.TIMES for operand in (value.this, value.expression))


def _origins(column: exp.Column, walk: Walk) -> list[exp.Expr]:
    """Return the expressions that a column of a subquery or a CTE is made of."""
    scope = walk.scopes.inner.get(id(column.parent_select))
    source = source_of(scope, column.table) if scope is not None else None
    if not isinstance(source, Scope) or not isinstance(source.expression, exp.Query):
        return []
    names = source.expression.named_selects
    if column.name not in names:
        return []
    queries = [cast(exp.Query, branch.expression) for branch in branches(source)]
    return [query.selects[names.index(column.name)].unalias() for query in queries]
