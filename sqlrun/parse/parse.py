"""Parse rendered SQL to qualified trees, or return every problem with its place. Pure."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, cast

import sqlglot
from sqlglot import exp
from sqlglot.errors import OptimizeError, ParseError, TokenError
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, traverse_scope

from sqlrun.errors import Problem, ProjectError
from sqlrun.parse import (  # fmt: skip
    decimal_casts,
    declared_types,
    grouping_sets,
    located_problems,
    operand_types,
    restrictions,
    scopes,
    select_list,
    set_operations,
    special_times,
    syntax,
    unsupported_syntax,
    using,
)
from sqlrun.parse.functions import function_name, refusal
from sqlrun.parse.scopes import Schema as Schema
from sqlrun.parse.source_map import source_place as source_place
from sqlrun.parse.type_check import Walk, misfits
from sqlrun.project import Model, Project, Rendered, Seed
from sqlrun.runtime.serialize import Partial
from sqlrun.transpile.dialect import DIALECT as DIALECT
from sqlrun.transpile.refusals import Refusal
from sqlrun.transpile.trees import copied, every, place_of
from sqlrun.transpile.writer import identifier

# sqlglot logs errors of a query that the problems report in full.
sqlglot.logger.setLevel("ERROR")

REF, SOURCE = "ref", "source"
TOO_DEEP = "the query is nested too deeply"
# Errors of a query that is nested too deeply; sqlglot's reader of names wraps the second.
TOO_DEEP_ERRORS = (RecursionError, TokenError)
FLATTER = "Split it into CTEs or models."


@dataclass(frozen=True, slots=True)
class Query(Partial):
    """A model's query. In `tree` every column has its table and every star is expanded."""

    rendered: Rendered
    tree: exp.Expression
    columns: tuple[str, ...]

    KEPT: ClassVar = ("canonical",)

    @property
    def name(self) -> str:
        """Return the model's name."""
        return self.rendered.model.name

    @property
    def canonical(self) -> str:
        """Return the query's text without comments and formatting: equal for queries that differ in nothing else."""
        known: str | None = self.kept("canonical")
        return copied(self.tree).sql(DIALECT, copy=False, comments=False) if known is None else known


def project(rendered: Iterable[Rendered], project: Project) -> tuple[Query, ...]:
    """Parse and check every model. Raise one `ProjectError` with all problems (SR3xx)."""
    queries, problems = attempt(rendered, project)
    if problems:
        raise ProjectError(problems)
    return queries


def attempt(rendered: Iterable[Rendered], project: Project) -> tuple[tuple[Query, ...], tuple[Problem, ...]]:
    """Return the models that parse, and the problems of all others.

    A model that reads one with a missing or unreadable contract is checked as far as possible.
    """
    schema = schema_of(project)
    queries: list[Query] = []
    problems: list[Problem] = list(declared_types.problems(project))
    for item in rendered:
        try:
            queries.append(query(item, schema, project.functions))
        except ProjectError as error:
            problems.extend(error.problems)
        except Unknowable:
            continue
        except RecursionError:
            problems.append(located_problems.problem("SR301", item, 0, 0, TOO_DEEP, FLATTER))
    return tuple(queries), tuple(problems)


def deepest(queries: Iterable[Query]) -> Problem:
    """Return the problem (SR301) of the most deeply nested query, for a recursion limit that a later stage hit."""
    found = max(queries, key=lambda query: _depth(query.tree))
    return located_problems.problem("SR301", found.rendered, 0, 0, TOO_DEEP, FLATTER)


def _depth(tree: exp.Expr) -> int:
    depth, level = 0, [tree]
    while level:
        depth, level = depth + 1, [child for node in level for child in node.iter_expressions()]
    return depth


def query(rendered: Rendered, schema: Schema, admitted: tuple[str, ...] = ()) -> Query:
    """Parse and check one model. Raise `ProjectError` with its problems.

    `admitted`: functions that the project's settings add to the list.
    """
    walk = walked(rendered, schema, admitted)
    columns = tuple(walk.tree.named_selects)
    problems = list(select_list.problems(rendered, columns, walk.tree, walk))
    if rendered.config.enforced and not problems:
        problems = [located_problems.named(misfit, rendered) for misfit in misfits(rendered, walk)]
    problems += [
        located_problems.at("SR501", rendered, node, why, special_times.HINT) for node, why in special_times.found(walk)
    ]
    if problems:
        raise ProjectError(problems)
    return Query(rendered, cast(exp.Expression, decimal_casts.typed(walk)), columns)


def walked(rendered: Rendered, schema: Schema, admitted: tuple[str, ...] = ()) -> Walk:
    """Return a model's qualified tree and a lazy inference of its types, with the versions of a history.

    Raises: ProjectError; Unknowable.
    """
    tree = select_list.with_versions(_admitted(rendered, schema, admitted), rendered.config)
    read = [schema[table.db][table.name] for table in every(tree, exp.Table) if table.db]
    if not all(read) or not (rendered.model.columns or rendered.model.is_open):
        raise Unknowable
    return _qualify(tree, rendered, schema)


def check(rendered: Rendered, schema: Schema, admitted: tuple[str, ...] = ()) -> exp.Query:
    """Return the unqualified tree of a check's query, which has no contract. Raise `ProjectError` with its problems."""
    tree = _admitted(rendered, schema, admitted)
    _qualify(tree.copy(), rendered, schema)
    return tree


def qualified(rendered: Rendered, schema: Schema, admitted: tuple[str, ...] = ()) -> exp.Query:
    """Return the qualified tree of a query without a contract. Raise `ProjectError` with its problems."""
    return _qualify(_admitted(rendered, schema, admitted), rendered, schema).tree


def _admitted(rendered: Rendered, schema: Schema, admitted: tuple[str, ...]) -> exp.Query:
    """Return the tree of a query, if it calls and reads only what it may. Raise `ProjectError` otherwise."""
    tree = _parse(rendered)
    problems = [*_constructs(tree, rendered), *_tables(tree, rendered, schema), *_functions(tree, rendered, admitted)]
    if problems:
        raise ProjectError(problems)
    return tree


class Unknowable(Exception):
    """A contract is missing, so the columns of a query are unknown. Another problem reports the contract."""


def schema_of(project: Project) -> Schema:
    """Return the columns and types of every relation that a query may read; none for a missing contract."""
    tables: tuple[Model | Seed, ...] = (*project.seeds, *project.models)
    return {
        REF: {noun.name: declared_types.types_of(noun.columns) for noun in tables},
        SOURCE: {source.table: declared_types.types_of(source.columns) for source in project.sources},
    }


def _parse(rendered: Rendered) -> exp.Query:
    try:
        statements = [s for s in sqlglot.parse(rendered.sql, read=DIALECT) if s is not None and s.key != "semicolon"]
    except ParseError as error:
        raise ProjectError([syntax.wrong(rendered, e) for e in error.errors]) from None
    except TokenError as error:
        raise ProjectError([syntax.unclosed(rendered, error)]) from None
    except RecursionError:
        raise ProjectError([located_problems.problem("SR301", rendered, 0, 0, TOO_DEEP, FLATTER)]) from None
    except (LookupError, TypeError, ValueError, AttributeError, AssertionError):
        # sqlglot's readers of single functions fail on arguments that they don't expect.
        message = "syntax error: the arguments of a function call can't be read"
        raise ProjectError(
            [
                located_problems.problem(
                    "SR301", rendered, 0, 0, message, "Check the arguments of the function calls in this query."
                )
            ]
        ) from None
    if not statements:
        message = "the file has no query"
        raise ProjectError(
            [located_problems.problem("SR302", rendered, 1, 1, message, "Write one SELECT, or delete the file.")]
        )
    tree = _bare(statements[0])
    if isinstance(tree, exp.Subquery):
        message = "ORDER BY or LIMIT after a SELECT in parentheses isn't supported"
        raise ProjectError(
            [located_problems.at("SR553", rendered, tree, message, "Remove the parentheses around the SELECT.")]
        )
    if not isinstance(tree, exp.Select | exp.SetOperation):
        first = next((line for line in rendered.sql.split("\n") if line.strip()), "")
        word = first.split()[0].upper() if not isinstance(tree, exp.Command) else str(tree.this).upper()
        at = rendered.sql.split("\n").index(first) + 1
        message, hint = (
            f"the file contains {word} instead of a SELECT",
            "Leave the SELECT only: sqlrun writes the tables itself.",
        )
        raise ProjectError(
            [located_problems.problem("SR302", rendered, at, len(first) - len(first.lstrip()) + 1, message, hint)]
        )
    bare = next((cte for cte in every(tree, exp.CTE) if not isinstance(cte.this, exp.Query)), None)
    if bare is not None:
        message = f"syntax error: the CTE `{bare.alias}` has no query"
        raise ProjectError(
            [located_problems.at("SR301", rendered, bare.args["alias"], message, "Write it as: name as (select ...).")]
        )
    if isinstance(tree, exp.Select) and not tree.expressions:
        raise ProjectError(
            [
                located_problems.problem(
                    "SR302", rendered, 1, 1, "the SELECT has no columns", "List the columns to return."
                )
            ]
        )
    if len(statements) > 1:
        message = f"the file has {len(statements)} statements instead of one SELECT"
        hint = "Leave one SELECT and delete the rest. A trailing `;` is allowed."
        line, column = _behind_semicolon(rendered.sql)
        raise ProjectError([located_problems.problem("SR302", rendered, line, column, message, hint)])
    return scopes.named(tree)


def _bare(tree: exp.Expr) -> exp.Expr:
    """Remove redundant brackets around a query."""
    while isinstance(tree, exp.Subquery) and not any(value for key, value in tree.args.items() if key != "this"):
        tree = tree.this
    return tree


def _behind_semicolon(sql: str) -> tuple[int, int]:
    """Return line and column of the second statement."""
    tokens = sqlglot.tokenize(sql, read=DIALECT)
    for token, following in itertools.pairwise(tokens):
        if token.text == ";" and following.text != ";":
            return following.line, following.col - len(following.text) + 1
    return 1, 1


def _constructs(tree: exp.Expr, rendered: Rendered) -> Iterable[Problem]:
    for line, column, message in restrictions.refused(tree, rendered.sql):
        yield located_problems.problem("SR305", rendered, line, column, message, restrictions.HINT)
    for node, message, hint in unsupported_syntax.refused(tree):
        line, column = place_of(node)
        if not line:
            line, column = restrictions.found(rendered.sql, rf"{node.key}\b")
        yield located_problems.problem("SR553", rendered, line, column, message, hint, located_problems.word_of(node))
    line, column = restrictions.doubled(rendered.sql)
    if line:
        message, hint = "two adjacent quotes inside double quotes are ambiguous", "Use single quotes around the text."
        yield located_problems.problem("SR553", rendered, line, column, message, hint)
    for node, message, hint in unsupported_syntax.recursive(tree):
        yield located_problems.at("SR512", rendered, node, message, hint)
    for node, message, hint in unsupported_syntax.by_name(tree):
        yield located_problems.at("SR511", rendered, node, message, hint)


def _tables(tree: exp.Expr, rendered: Rendered, schema: Schema) -> Iterable[Problem]:
    named = {(REF, name) for name in rendered.refs} | {(SOURCE, name) for name in rendered.sources}
    try:
        scopes = traverse_scope(tree)
    except OptimizeError as error:
        yield _unresolved(tree, rendered, str(error))
        return
    namesakes = [(name, table) for scope in scopes for name, table in restrictions.namesakes(scope)]
    for name, table in namesakes:
        hint = "Give each its own alias: from a as x join b as y."
        yield located_problems.at("SR308", rendered, table, f"two tables of one FROM are called `{name}`", hint)
    if namesakes:
        return
    large = restrictions.too_large(scopes)
    if large is not None:
        message = f"the query reads tables more than {restrictions.MOST_READS:,} times after its CTEs are expanded"
        hint = "Turn the CTE that the query reads most often into a model."
        yield located_problems.at("SR301", rendered, large, message, hint)
        return
    inside = {id(table): set(scope.cte_sources) for scope in scopes for table in scope.tables}
    for table in every(tree, exp.Table):
        database, name = table.db, table.name
        if not isinstance(table.this, exp.Identifier) and not isinstance(table.this, exp.Dot):
            if isinstance(table.this, exp.Func) and refusal(table.this) is None:
                message = f"the table function {function_name(table.this)}() isn't allowed in FROM"
                yield located_problems.at(
                    "SR303", rendered, table.this, message, "Use LATERAL VIEW explode(...) after a table."
                )
            continue  # another function: `_functions` checks it
        ctes = inside.get(id(table), set())
        if not table.catalog and ((not database and name in ctes) or (database, name) in named):
            continue
        near = difflib.get_close_matches(name, [*schema[REF], *ctes], 1)
        advice = f" Did you mean {f'`{near[0]}`' if near[0] in ctes else _ref(near[0])}?" if near else ""
        shown = table.copy()
        for key in ("alias", "joins", "laterals", "sample", "version"):
            shown.set(key, None)
        hint = f"Name tables by {_ref('model')} or {{{{ source('group', 'name') }}}}.{advice}"
        yield located_problems.at("SR303", rendered, table.this, f"unknown table `{shown.sql(DIALECT)}`", hint)


def _ref(name: str) -> str:
    return f"{{{{ ref('{name}') }}}}"


def _functions(tree: exp.Expr, rendered: Rendered, admitted: tuple[str, ...]) -> Iterable[Problem]:
    for function in every(tree, exp.Func):
        # `x:y` is a function to sqlglot alone: unsupported_syntax.py reports what the analyst wrote.
        found = None if function.args.get("variant_extract") else refusal(function, admitted)
        if found is not None:
            code, message, hint = found
            yield located_problems.at(code, rendered, function, message, hint)


def _qualify(tree: exp.Query, rendered: Rendered, schema: Schema) -> Walk:
    """Qualify each column with its table. Return the tree with a lazy inference of its types."""
    # Only the tables that are read, since sqlglot walks the whole schema. One table always, or it would guess columns.
    read = [(table.db, table.name) for table in every(tree, exp.Table) if table.db]
    known: dict[str, object] = {REF: {"nothing": {"nothing": "string"}}}
    for database in {database for database, _ in read}:
        # Quoted, because sqlglot parses a schema's names, and `{x}` would be something else.
        known[database] = {
            name: {identifier(column, "spark"): kind for column, kind in schema[database][name].items()}
            for db, name in read
            if db == database
        }
    try:
        tree = using.written_out(tree, lambda database, name: schema.get(database, {}).get(name, {}), rendered.sql)
        done: exp.Query = qualify(
            tree,
            schema=known,
            dialect=DIALECT,
            quote_identifiers=False,
            identify=False,
            validate_qualify_columns=False,
            allow_partial_qualification=True,
        )
        _as_declared(done, read)
        walk = Walk(done, schema)
        problems = list(_unresolved_columns(done, rendered, schema))
        if not problems:
            grouping_sets.settle(done)
            set_operations.settle(walk)
            problems = [located_problems.at("SR555", rendered, *misfit) for misfit in operand_types.found(walk)]
    except OptimizeError as error:
        raise ProjectError([_unresolved(tree, rendered, str(error))]) from None
    except Refusal as refusal:
        found = refusal.reason
        problems = [located_problems.problem(found.code, rendered, found.line, found.column, found.why, found.instead)]
    if problems:
        raise ProjectError(problems)
    return walk


def _as_declared(tree: exp.Query, read: Iterable[tuple[str, str]]) -> None:
    """Restore the declared names of tables: sqlglot normalizes Spark's names to lower case."""
    names = {(database, name.lower()): name for database, name in read}
    for table in every(tree, exp.Table):
        if table.db and table.name != (name := names[table.db, table.name.lower()]):
            table.this.set("this", name)


def _unresolved(tree: exp.Expr, rendered: Rendered, message: str) -> Problem:
    """Return the problem that sqlglot reports. It has no place, so the name in its message is looked up."""
    name = message.rpartition(":")[2].strip().split(".")[-1].strip("`\"' ")
    at = next((i for i in tree.find_all(exp.Identifier, exp.Literal) if i.name.lower() == name.lower()), None)
    return located_problems.at("SR304", rendered, at, message[0].lower() + message[1:], "", name)


def _unresolved_columns(tree: exp.Query, rendered: Rendered, schema: Schema) -> Iterable[Problem]:
    """Yield the columns that no table has (SR304), or that two tables have (SR308)."""
    inner = {id(scope.expression): scope for scope in traverse_scope(tree)}
    known: dict[int, list[tuple[str, list[str]]]] = {}
    unknown: list[tuple[exp.Column, str, str]] = []
    for column in every(tree, exp.Column):
        if isinstance(column.this, exp.Star) or _is_output(column):
            continue
        offered = scopes.offered(column, inner, schema, known)
        holders = [table for table, names in offered.items() if column.name in names]
        if not column.table and len(holders) > 1:
            named = next((table for table in holders if not located_problems.is_source(table, rendered)), "")
            advice = f"Add the table: {named}" if named else "Give one an alias, as in `as x`, and add it: x"
            hint = f"{' and '.join(holders)} have this column. {advice}.{column.name}."
            yield located_problems.at("SR308", rendered, column, f"ambiguous column `{column.name}`", hint)
        elif column.table in holders and offered[column.table].count(column.name) > 1:
            hint = f"Rename one: {column.table} has two columns with this name."
            yield located_problems.at("SR308", rendered, column, f"ambiguous column `{column.name}`", hint)
        elif column.table and column.table not in offered:
            hint = located_problems.other_tables(column.table, offered, rendered)
            if _is_beside(column):
                hint = "Compare the columns in ON. A subquery in FROM can't read other tables of the same FROM."
            yield located_problems.at(
                "SR304",
                rendered,
                column.args["table"],
                f"unknown table `{column.table}` of column `{column.name}`",
                hint,
            )
        elif not column.table or ("*" not in offered[column.table] and column.table not in holders):
            asked = [column.table] if column.table else list(offered)
            names = [name for table in asked for name in offered[table] if name != "*"]
            near = difflib.get_close_matches(column.name, names, 1)
            lists = [f"Columns of {table}: {', '.join(offered[table])}." for table in asked if offered[table]]
            hint = " ".join([*lists, *([f"Did you mean `{near[0]}`?"] if near else [])])
            unknown.append((column, near[0] if near else "", hint))
    for column, hint in _misspelled(unknown, inner):
        yield located_problems.at("SR304", rendered, column, f"unknown column `{column.sql(DIALECT)}`", hint)


def _misspelled(
    unknown: Iterable[tuple[exp.Column, str, str]], inner: Mapping[int, Scope]
) -> Iterable[tuple[exp.Column, str]]:
    """Yield unknown columns and their hints, but no consequence of a misspelled column.

    `unknown` has a column, the similar name, and the hint; `inner` the scopes of all queries by id, inner ones first.
    If an inner query selects `custmer_id`, the outer one lacks `customer_id`, and its similar name is the wrong one.
    """
    order = {query: number for number, query in enumerate(inner)}

    def position(column: exp.Column) -> int:
        node: exp.Expr | None = column
        while node is not None and id(node) not in order:
            node = node.parent
        return order[id(node)] if node is not None else len(order)

    meant: set[tuple[str, str]] = set()
    for column, similar, hint in sorted(unknown, key=lambda one: position(one[0])):
        if (similar, column.name) not in meant:
            meant.add((column.name, similar))
            yield column, hint


def _is_beside(column: exp.Column) -> bool:
    """Return whether a column is of a table that an enclosing query reads."""
    query: exp.Expr | None = column
    while (query := query.find_ancestor(exp.Select) if query is not None else None) is not None:
        if column.table in {table.alias_or_name for table in query.find_all(exp.Table)}:
            return True
    return False


def _is_output(column: exp.Column) -> bool:
    """Return whether ORDER BY names an output column of its own query."""
    order = column.find_ancestor(exp.Order, exp.Sort, exp.Cluster, exp.Distribute, exp.Query)
    above = order.parent if not isinstance(order, exp.Query) and order is not None else None
    return not column.table and isinstance(above, exp.Query) and column.name in above.named_selects
