"""Compare a query's columns with the contract (SR306 to SR308), and add the columns of a history. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import cast

from sqlglot import exp

from sqlrun.errors import Problem
from sqlrun.parse.located_problems import at
from sqlrun.project import HISTORY, Config, Rendered
from sqlrun.transpile.dialect import DIALECT

# The name of the analyst's query inside a history's.
VERSIONS = "versions"


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


def problems(rendered: Rendered, columns: tuple[str, ...], tree: exp.Query) -> Iterable[Problem]:
    """Yield the columns that the contract or the query lacks, and duplicate columns."""
    model = rendered.model
    declared = [column.name for column in model.columns]
    written = without_versions(tree, rendered.config)
    if written is not tree:
        # Another problem reports the ones of these columns that the contract lacks.
        columns = tuple(name for name in columns if name in declared or name not in rendered.config.version_columns)
    selects = {s.alias_or_name: s for s in cast(exp.Query, written).selects}
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
            hint = f"Write cast(... as TYPE) as {name}, or list the column with its data_type in a contract."
            yield at("SR312", rendered, selects.get(name), f"the type of column `{name}` can't be inferred", hint)
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
        if written is not tree and name in rendered.config.version_columns:
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
