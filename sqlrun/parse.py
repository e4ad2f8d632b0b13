"""Rendered SQL to qualified trees, or every problem with its place. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import OptimizeError, ParseError, SqlglotError, TokenError
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import traverse_scope

from sqlrun.errors import Place, Problem, ProjectError
from sqlrun.functions import refusal
from sqlrun.incremental.algebra import place_of
from sqlrun.model import Column, Project, Rendered

# Spark SQL with ANSI casts; Databricks' grammar is the superset that sqlglot keeps strict.
DIALECT = "databricks"
REF, SOURCE = "ref", "source"

Schema = dict[str, dict[str, dict[str, str]]]


@dataclass(frozen=True, slots=True)
class Query:
    """A model's query: `tree` is qualified, every column has its table, every star is written out."""

    rendered: Rendered
    tree: exp.Expression
    columns: tuple[str, ...]

    @property
    def name(self) -> str:
        """Name the model."""
        return self.rendered.model.name


def project(rendered: Iterable[Rendered], nouns: Project) -> tuple[Query, ...]:
    """Parse and check every model; raise one `ProjectError` with all problems (SR3xx)."""
    queries, problems = attempt(rendered, nouns)
    if problems:
        raise ProjectError(problems)
    return queries


def attempt(rendered: Iterable[Rendered], nouns: Project) -> tuple[tuple[Query, ...], tuple[Problem, ...]]:
    """Parse what can be parsed and list what is wrong with the rest."""
    schema = schema_of(nouns)
    queries: list[Query] = []
    problems: list[Problem] = list(type_problems(nouns))
    if problems:
        return (), tuple(problems)
    for item in rendered:
        try:
            queries.append(query(item, schema))
        except ProjectError as error:
            problems.extend(error.problems)
    return tuple(queries), tuple(problems)


def syntax_problems(rendered: Iterable[Rendered]) -> tuple[Problem, ...]:
    """List the syntax errors alone: all that can be said while contracts are missing."""
    problems: list[Problem] = []
    for item in rendered:
        try:
            _parse(item)
        except ProjectError as error:
            problems.extend(error.problems)
    return tuple(problems)


def query(rendered: Rendered, schema: Schema) -> Query:
    """Parse and check one model."""
    tree = _parse(rendered)
    problems = [*_tables(tree, rendered, schema), *_functions(tree, rendered)]
    if problems:
        raise ProjectError(problems)
    tree = _qualify(tree, rendered, schema)
    columns = tuple(tree.named_selects)
    problems = list(_contract(rendered, columns, tree))
    if problems:
        raise ProjectError(problems)
    return Query(rendered, tree, columns)


def schema_of(nouns: Project) -> Schema:
    """Collect the columns and types of all that a query may read."""

    def types(columns: tuple[Column, ...]) -> dict[str, str]:
        return {column.name: column.type for column in columns}

    return {
        REF: {noun.name: types(noun.columns) for noun in (*nouns.models, *nouns.seeds)},
        SOURCE: {source.table: types(source.columns) for source in nouns.sources},
    }


def type_problems(nouns: Project) -> Iterable[Problem]:
    """Find the types in contracts that Spark SQL doesn't have (SR309)."""
    for noun in (*nouns.models, *nouns.seeds, *nouns.sources):
        for column in noun.columns:
            try:
                kind = exp.DataType.build(column.type, dialect=DIALECT)
            except SqlglotError:
                kind = None
            if kind is None or (kind.find(exp.Identifier) and kind.this == exp.DataType.Type.USERDEFINED):
                yield Problem(
                    "SR309",
                    column.place,
                    f"unknown type `{column.type}` of column `{column.name}`",
                    "Write a Spark SQL type: string, int, bigint, decimal(18,2), date, timestamp, "
                    "boolean, array<...>, struct<name:type,...>.",
                )


def _parse(rendered: Rendered) -> exp.Expression:
    try:
        statements = [s for s in sqlglot.parse(rendered.sql, read=DIALECT) if s is not None]
    except ParseError as error:
        raise ProjectError([_syntax(rendered, e) for e in error.errors]) from None
    except TokenError as error:
        found = re.search(r"(\d+):(\d+)", str(error))
        line, column = (int(found[1]), int(found[2])) if found else (1, 1)
        message = "the SQL can't be read: a quote or a comment is not closed"
        raise ProjectError([_problem("SR301", rendered, line, column, message)]) from None
    if len(statements) != 1:
        message = f"a model is one SELECT; this file holds {len(statements)} statements"
        hint = "Keep one SELECT and drop the rest (a trailing `;` is fine)."
        raise ProjectError([_problem("SR302", rendered, 1, 1, message, hint)])
    tree = statements[0]
    if not isinstance(tree, exp.Select | exp.SetOperation) or tree.find(exp.Into, exp.Command):
        message = f"a model is one SELECT, not {tree.key.upper()}"
        hint = "sqlrun writes the tables itself: keep only the query."
        raise ProjectError([_problem("SR302", rendered, 1, 1, message, hint)])
    return tree


def _syntax(rendered: Rendered, error: Mapping[str, object]) -> Problem:
    description = str(error.get("description") or "syntax error").rstrip(".")
    highlight = str(error.get("highlight") or "")
    line, column = int(str(error.get("line") or 1)), int(str(error.get("col") or 1))
    message = f"SQL syntax: {description[0].lower()}{description[1:]}"
    if highlight:
        message += f" near `{highlight}`"
    column = max(1, column - len(highlight) + 1)
    return _problem("SR301", rendered, line, column, message, "Compare with Spark SQL's grammar.")


def _tables(tree: exp.Expression, rendered: Rendered, schema: Schema) -> Iterable[Problem]:
    for scope in traverse_scope(tree):
        for table in scope.tables:
            database, name = table.db, table.name
            is_cte = not database and not table.catalog and name in scope.cte_sources
            known = not table.catalog and name in schema.get(database, {})
            if is_cte or known:
                continue
            if not isinstance(table.this, exp.Identifier):
                continue  # a table function: judged among the functions
            near = difflib.get_close_matches(name, [*schema[REF], *scope.cte_sources], 1)
            advice = f" Did you mean {{{{ ref('{near[0]}') }}}}?" if near else ""
            yield _at(
                "SR303",
                rendered,
                table.this,
                f"`{table.sql(DIALECT)}` is neither a CTE nor declared",
                "A model reads only what it names by {{ ref('model') }} or {{ source('a', 'b') }}." + advice,
            )


def _functions(tree: exp.Expression, rendered: Rendered) -> Iterable[Problem]:
    for function in tree.find_all(exp.Func):
        found = refusal(function)
        if found is not None:
            code, message, hint = found
            yield _at(code, rendered, function, message, hint)


def _qualify(tree: exp.Expression, rendered: Rendered, schema: Schema) -> exp.Expression:
    try:
        done: exp.Expression = qualify(
            tree,
            schema=schema,
            dialect=DIALECT,
            quote_identifiers=False,
            identify=False,
            validate_qualify_columns=False,
        )
    except OptimizeError as error:
        raise ProjectError([_unresolved(tree, rendered, schema, str(error))]) from None
    problems = [
        _unknown_column(column, done, rendered)
        for column in done.find_all(exp.Column)
        if not column.table and not isinstance(column.this, exp.Star)
    ]
    if problems:
        raise ProjectError(problems)
    return done


def _unresolved(tree: exp.Expression, rendered: Rendered, schema: Schema, message: str) -> Problem:
    name = message.rpartition(":")[2].strip().split(".")[-1].strip("`\"' ")
    at = next((c for c in tree.find_all(exp.Column) if c.name.lower() == name.lower()), None)
    if "mbiguous" in message:
        hint = "Write the table before the column, as in orders.order_id."
        return _at("SR308", rendered, at, f"ambiguous column `{name}`", hint)
    if at is not None:
        return _unknown_column(at, tree, rendered, schema)
    return _problem("SR304", rendered, 1, 1, message[0].lower() + message[1:])


def _unknown_column(
    column: exp.Column, tree: exp.Expression, rendered: Rendered, schema: Schema | None = None
) -> Problem:
    select = column.find_ancestor(exp.Select)
    offered: dict[str, list[str]] = {}
    for scope in traverse_scope(tree):
        if scope.expression is select:
            for alias, source in scope.sources.items():
                if isinstance(source, exp.Table):
                    known = (schema or {}).get(source.db, {}).get(source.name, {})
                    offered[alias] = list(known)
                elif hasattr(source, "expression"):
                    offered[alias] = list(source.expression.named_selects)
    names = [name for columns in offered.values() for name in columns if name != "*"]
    near = difflib.get_close_matches(column.name, names, 1)
    lists = [f"{alias} has: {', '.join(cols)}." for alias, cols in offered.items() if cols]
    hint = " ".join([*lists, *([f"Did you mean `{near[0]}`?"] if near else [])])
    return _at("SR304", rendered, column, f"unknown column `{column.sql(DIALECT)}`", hint)


def _contract(rendered: Rendered, columns: tuple[str, ...], tree: exp.Expression) -> Iterable[Problem]:
    model = rendered.model
    declared = [column.name for column in model.columns]
    selects = {s.alias_or_name: s for s in tree.selects}
    for name in columns:
        if name not in declared:
            hint = f"Add it under `columns:` in {model.contract_file}, with data_type and description."
            message = f"column `{name}` is not in the contract of {model.name}"
            yield _at("SR306", rendered, selects.get(name), message, hint)
    for column in model.columns:
        if column.name not in columns:
            near = difflib.get_close_matches(column.name, columns, 1)
            hint = f"The query gives: {', '.join(columns)}." + (f" Did you mean `{near[0]}`?" if near else "")
            message = f"the contract has a column `{column.name}` that {model.file} doesn't give"
            yield Problem("SR307", column.place, message, hint)
    for name in sorted({c for c in columns if columns.count(c) > 1}):
        message = f"two output columns are called `{name}`"
        yield _at("SR308", rendered, selects.get(name), message, "Give one of them another alias.")


def _at(code: str, rendered: Rendered, node: exp.Expression | None, message: str, hint: str = "") -> Problem:
    line, column = place_of(node)
    return _problem(code, rendered, line or 1, column or 1, message, hint, _word(node))


def _word(node: exp.Expression | None) -> str:
    identifier = node.find(exp.Identifier) if node is not None else None
    return identifier.name if identifier is not None else ""


def _problem(
    code: str,
    rendered: Rendered,
    line: int,
    column: int,
    message: str,
    hint: str = "",
    word: str = "",
) -> Problem:
    """Map a place in the rendered SQL back to the analyst's file."""
    place, excerpt = source_place(rendered, line, column, word)
    return Problem(code, place, message, hint, excerpt)


def source_place(rendered: Rendered, line: int, column: int, word: str = "") -> tuple[Place, str]:
    """Find the analyst's line and column behind a place in the rendered SQL, and the line's text."""
    lines = rendered.lines
    source_line = lines[min(line, len(lines)) - 1] if lines else line
    source = rendered.model.sql.splitlines()
    excerpt = source[source_line - 1] if source_line <= len(source) else ""
    text = rendered.sql.splitlines()
    compiled = text[line - 1] if line <= len(text) else ""
    if excerpt != compiled:  # Jinja changed the line: look the word up instead
        found = re.search(rf"\b{re.escape(word)}\b", excerpt) if word else None
        column = found.start() + 1 if found else len(excerpt) - len(excerpt.lstrip()) + 1
    return Place(rendered.model.file, source_line, column), excerpt
