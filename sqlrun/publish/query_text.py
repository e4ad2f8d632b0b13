"""Text of a query over a published tick's tables, read and checked like a model's, but without `ref()`. Shell: DuckDB.

DuckDB only binds the query here, to empty tables in memory.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import cast

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import traverse_scope

from sqlrun.engines.duckdb import binding
from sqlrun.errors import Problem, ProjectError
from sqlrun.incremental import clocks, cte_names
from sqlrun.parse import decimal_casts, located_problems, parse, select_list, spark_only, special_times
from sqlrun.parse.parse import Query
from sqlrun.parse.type_check import outputs
from sqlrun.project import Model, Rendered
from sqlrun.transpile import parameters
from sqlrun.transpile.dialect import DIALECT
from sqlrun.transpile.spark_types import Kind
from sqlrun.transpile.trees import every
from sqlrun.transpile.writer import expression

# The text's name in messages, and the ending of each relation's name: no CTE has it.
FILE, ENDING = "query", "__new"
ADVICE = "Or query the views of `sqlrun views` on Spark."
# Columns and their types by table.
Tables = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Readable:
    """A checked query: its SQL for DuckDB, the tables that it reads, its columns' names and types.

    A relation of the SQL has the name of its table with `ENDING`. A type is None if it isn't known.
    """

    sql: str
    tables: tuple[str, ...]
    columns: tuple[tuple[str, Kind | None], ...]


def read(text: str, tables: Tables, as_of: datetime) -> Readable:
    """Return a query that reads these tables alone, and that DuckDB answers as Spark does; its clock is `as_of`.

    Raises: ProjectError with all mistakes (SR3xx, SR5xx), each with its place in the text.
    """
    rendered = _rendered(text, tables)
    schema: parse.Schema = {parse.REF: {name: dict(columns) for name, columns in tables.items()}, parse.SOURCE: {}}
    try:
        walk = parse.walked(rendered, schema)
        kinds, clock = outputs(walk), list(special_times.found(walk))
        tree = cast(exp.Expression, decimal_casts.typed(walk))
    except RecursionError:
        hint = "Split it into CTEs."
        raise ProjectError([located_problems.problem("SR301", rendered, 0, 0, parse.TOO_DEEP, hint)]) from None
    query = Query(rendered, tree, tuple(cast(exp.Query, tree).named_selects))
    problems = [located_problems.at("SR501", rendered, node, why, special_times.HINT) for node, why in clock]
    problems += [p for p in select_list.problems(rendered, query.columns, cast(exp.Query, tree)) if p.code != "SR306"]
    problems += spark_only.problems([query], advice=ADVICE)
    problems += () if problems else spark_only.mixed_problems(query, schema, ADVICE)
    write = partial(_written, as_of=as_of)
    if not problems:
        inputs = {name: tuple(tables[name].items()) for name in rendered.refs}
        problems += binding.refusals(query, write, inputs, ADVICE)
    if problems:
        raise ProjectError(problems)
    names = _names(rendered, query.columns)
    return Readable(write(tree), rendered.refs, tuple(zip(names, kinds, strict=True)))


def _written(tree: exp.Expr, as_of: datetime) -> str:
    """Return a qualified query in DuckDB's SQL."""
    made = cte_names.made_unique(tree.copy(), set())
    for table in list(every(made, exp.Table)):
        if table.db == parse.REF:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(table.alias_or_name)))
            table.set("this", exp.to_identifier(f"{table.name}{ENDING}", quoted=True))
            table.set("db", None)
    text = expression(made.transform(partial(clocks.at_node, time="as_of"), copy=False), "duckdb")
    return parameters.filled(text, {"as_of": as_of, "previous": as_of}, "duckdb")


def _rendered(text: str, tables: Tables) -> Rendered:
    """Return the query with each table's name as `ref()` writes it. Raises: ProjectError for unknown tables (SR303)."""
    model = replace(Model.of_text(FILE, FILE, text), is_open=True)
    lines = tuple(range(1, text.count("\n") + 2))
    rendered = Rendered(model, text, (), (), lines, model.config)
    found = list(_tables(text))
    problems = [
        _unknown(rendered, table, ctes, tables) for table, ctes in found if table.db or table.name not in tables
    ]
    if problems:
        raise ProjectError(problems)
    names = dict.fromkeys(table.name for table, _ in found)
    for table, _ in sorted(found, key=lambda each: each[0].this.meta["start"], reverse=True):
        start = table.this.meta["start"]
        text = f"{text[:start]}`{parse.REF}`.{text[start:]}"
    return Rendered(model, text, tuple(names), (), lines, model.config)


def _tables(text: str) -> Iterable[tuple[exp.Table, frozenset[str]]]:
    """Yield the named tables of a query that aren't CTEs, with the CTEs in scope; none of a text that can't be read."""
    try:
        trees = [tree for tree in sqlglot.parse(text, read=DIALECT) if isinstance(tree, exp.Query)]
        scopes = [scope for tree in trees for scope in traverse_scope(tree)]
    except (SqlglotError, RecursionError, LookupError, TypeError, ValueError, AttributeError, AssertionError):
        return  # the parser reports it, with its place
    for scope in scopes:
        for table in scope.tables:
            ctes = frozenset(scope.cte_sources)
            is_cte = not table.db and not table.catalog and table.name in ctes
            if isinstance(table.this, exp.Identifier) and not is_cte and "start" in table.this.meta:
                yield table, ctes


def _unknown(rendered: Rendered, table: exp.Table, ctes: Iterable[str], tables: Tables) -> Problem:
    shown = exp.Table(**{key: table.args.get(key) for key in ("this", "db", "catalog")})
    near = difflib.get_close_matches(table.name, [*tables, *ctes], 1)
    known = f"Tables: {', '.join(sorted(tables))}. Views aren't among them, because no tick stores their rows."
    hint = f"Did you mean `{near[0]}`?" if near else known
    return located_problems.at("SR303", rendered, table.this, f"unknown table `{shown.sql(DIALECT)}`", hint)


def _names(rendered: Rendered, columns: tuple[str, ...]) -> list[str]:
    """Return the names of a query's columns; a nameless one has its text as its name."""
    tree = sqlglot.parse(rendered.model.sql, read=DIALECT)[0]
    items = [] if tree is None else cast(exp.Query, tree.unnest()).selects
    if len(items) != len(columns) or any(item.is_star for item in items):
        return list(columns)
    return [item.alias_or_name if isinstance(item, exp.Alias | exp.Column) else item.sql(DIALECT) for item in items]
