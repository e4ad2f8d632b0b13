"""Queries that unit tests run: rendered with overrides, cut down to a CTE, or of a macro. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import cast

from sqlglot import exp

from sqlrun.errors import Place, Problem, ProjectError
from sqlrun.load.yaml_reader import did_you_mean, listed
from sqlrun.parse import parse
from sqlrun.parse.parse import REF, SOURCE, Query, Schema
from sqlrun.parse.type_check import infer
from sqlrun.project import Column, Config, Model, Project, Rendered, UnitTest
from sqlrun.render import render
from sqlrun.test_definitions.misfits import misfit
from sqlrun.test_definitions.names import inner
from sqlrun.transpile.dialect import DIALECT
from sqlrun.transpile.writer import expression

# The config of the SELECT in a macro's test.
PLAIN = Config()


class Queries:
    """A project's queries as its unit tests see them, each made once."""

    def __init__(self, project: Project, queries: Mapping[str, Query]) -> None:
        self._project, self._queries = project, queries
        self._schema: Schema | None = None
        self._made: dict[str, Query] = {}
        self._rendering: dict[str, Callable[[Model], Rendered]] = {}

    def of(self, test: UnitTest) -> Mapping[str, Query]:
        """Return the project's queries by name, with those replaced that the test overrides.

        A macro's test has a query of the macro's name, which reads no table.
        Raises: ProjectError for a template or query that is invalid with the overrides, or an unknown CTE.
        """
        if test.macro:
            made = self._cached(["macro", test.name], lambda: self._of_macro(test))
            return {**self._queries, test.model: _fitting(made, test)}
        queries = self._queries
        if test.vars or test.macros:
            queries = {**queries, **{name: self._overridden(name, test) for name in self._between(test)}}
        if not test.cte:
            return queries
        whole = queries[test.model]
        key = ["cte", test.model, test.cte, _overrides(test), sorted(test.expect.columns.items())]
        cut = self._cached(key, lambda: self._cut(whole, test))
        return {**queries, test.model: _fitting(cut, test)}

    def _cached(self, source: object, make: Callable[[], Query]) -> Query:
        key = repr(source)
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def _between(self, test: UnitTest) -> Iterable[str]:
        """Return the names of the tested model and of the models between it and the given inputs."""
        given = {inner(one.input) for one in test.given}
        left, seen = [test.model], {test.model}
        while left:
            name = left.pop()
            yield name
            new = [ref for ref in self._queries[name].rendered.refs if ref in self._queries and ref not in given]
            left += [ref for ref in new if ref not in seen]
            seen.update(new)

    def _overridden(self, name: str, test: UnitTest) -> Query:
        """Return a model's query with the test's vars and macros; the original object if they change nothing."""
        return self._cached(["model", name, _overrides(test)], lambda: self._rendered(name, test))

    def _rendered(self, name: str, test: UnitTest) -> Query:
        own, overrides = self._queries[name], repr(_overrides(test))
        if overrides not in self._rendering:
            self._rendering[overrides] = render.overridden(self._project, test.vars, test.macros)
        rendered = self._rendering[overrides](own.rendered.model)
        if (rendered.sql, rendered.config) == (own.rendered.sql, own.rendered.config):
            return own
        return parse.query(rendered, self._types(), self._project.functions)

    def _types(self) -> Schema:
        if self._schema is None:
            self._schema = parse.schema_of(self._project)
        return self._schema

    def _cut(self, whole: Query, test: UnitTest) -> Query:
        """Return a query of a CTE, preceded by the CTEs that it reads."""
        tree = cast(exp.Query, whole.tree)
        ctes = {cte.alias: cte for cte in tree.ctes}
        if test.cte not in ctes:
            hint = f"CTEs: {listed(ctes)}.{did_you_mean(test.cte, ctes)}"
            message = f"unknown CTE `{test.cte}` of {test.model}"
            raise ProjectError([Problem("SR112", test.place, message, hint)])
        names = list(ctes)
        before = names[: names.index(test.cte)]
        cut = ctes[test.cte].this.copy()
        read = _read(cut, before, ctes)
        if read:
            above = cut.args.get("with_")
            own = above.expressions if above is not None else []
            recursive = tree.args["with_"].args.get("recursive")
            cut.set("with_", exp.With(expressions=[*(ctes[n].copy() for n in before if n in read), *own],
                                      recursive=recursive))  # fmt: skip
        return self._typed(whole.rendered, cut, test)

    def _of_macro(self, test: UnitTest) -> Query:
        """Return the query of a macro's test, with the given rows as CTEs."""
        place = test.place
        pseudo = Model.of_text(test.model, place.file, test.sql)
        rendered, _ = render.check(self._project, pseudo, test.vars, test.macros)
        refuse_refs(rendered, test)
        tree = parse.qualified(over_given(rendered, test), {REF: {}, SOURCE: {}}, self._project.functions)
        return self._typed(rendered, tree, test)

    def _typed(self, rendered: Rendered, tree: exp.Query, test: UnitTest) -> Query:
        """Return a query whose contract has the types that are inferred or that the test declares."""
        names = tuple(tree.named_selects)
        kinds = dict(zip(names, infer(tree, self._types()), strict=True))
        columns = []
        for name in names:
            kind = test.expect.columns.get(name) or str(kinds[name] or "")
            if not kind or "void" in kind:
                message = f"the type of the column `{name}` is unknown"
                hint = f"Declare it: expect: {{columns: {{{name}: decimal(18,2)}}, rows: ...}}"
                raise ProjectError([Problem("SR112", test.place, message, hint)])
            columns.append(Column(name, kind, "", test.place))
        model = replace(
            rendered.model,
            name=test.model,
            columns=tuple(columns),
            grain=(),
            repeats=False,
            event_time="",
            freshness=None,
        )
        tables = [(table.db, table.name) for table in tree.find_all(exp.Table)]
        made = Rendered(
            model,
            rendered.sql,
            tuple(name for name in rendered.refs if (REF, name) in tables),
            tuple(name for name in rendered.sources if (SOURCE, name) in tables),
            rendered.lines,
            PLAIN,
        )
        return Query(made, cast(exp.Expression, tree), names)


def given_sql(text: str) -> str:
    """Return a SELECT of rows in DuckDB's SQL; its columns keep their names.

    >>> given_sql("select timestamp '2026-01-01' as since, array(1) as a")
    "SELECT CAST('2026-01-01' AS TIMESTAMPTZ) AS since, [1] AS a"
    """
    import sqlglot

    return expression(sqlglot.parse_one(text, read=DIALECT), "duckdb")


def over_given(rendered: Rendered, test: UnitTest) -> Rendered:
    """Prepend the given rows of a macro's test to its SELECT, as CTEs on a line of their own."""
    if not test.given:
        return rendered
    ctes = ", ".join(f"`{one.input}` as ({one.sql})" for one in test.given)
    own = re.match(r"((?:\s|--[^\n]*\n|/\*.*?\*/)*)with\b", rendered.sql, re.IGNORECASE | re.DOTALL)
    sql = rendered.sql
    if own:
        sql = f"{own[1]}   ,{sql[own.end() :]}"
    return replace(rendered, sql=f"with {ctes}\n{sql}", lines=(1, *rendered.lines))


def refuse_refs(rendered: Rendered, test: UnitTest) -> None:
    """Reject a macro's test that reads a table of the project (SR121)."""
    read = [*rendered.refs, *rendered.sources]
    if read:
        hint = f"Add rows, given: [{{input: given, columns: ref('{read[0]}'), rows: [...]}}], and select from given."
        raise _wrong("SR121", test.place, f"the test of {test.macro} reads `{read[0]}`, which is not an input", hint)


def _overrides(test: UnitTest) -> object:
    return [sorted(test.vars.items()), sorted(test.macros.items())] if test.vars or test.macros else []


def _read(tree: exp.Expr, before: list[str], ctes: Mapping[str, exp.CTE]) -> set[str]:
    """Return the names of the CTEs that a query reads, directly or through others."""
    found: set[str] = set()
    left = [tree]
    while left:
        for table in left.pop().find_all(exp.Table):
            if not table.db and table.name in before and table.name not in found:
                found.add(table.name)
                left.append(ctes[table.name].this)
    return found


def _fitting(query: Query, test: UnitTest) -> Query:
    """Return a query without a contract of its own if the expected rows match its columns.

    Raises: ProjectError for an unknown column or a value of another type.
    """
    kinds = {column.name: column.type for column in query.rendered.model.columns}
    what = f"the CTE `{test.cte}`" if test.cte else f"the test's query of {test.macro}"
    expected = [test.expect, *(step.expect for step in test.steps)]
    rows = [row for one in expected for part in (one.rows, one.came, one.left) for row in part or ()]
    for row in rows:
        for name, value in row.items():
            hint = f"{what} has: {', '.join(kinds)}.{did_you_mean(name, kinds)}"
            if name not in kinds:
                raise _wrong("SR112", test.place, f"unknown column `{name}` of {what}", hint)
            wrong = misfit(value, kinds[name])
            if wrong is not None:
                message = f"{wrong.message} (column `{name}`)"
                raise _wrong(
                    "SR119", test.place, message, f"Write a value of the type of `{name}` in {what}: {kinds[name]}."
                )
    return query


def _wrong(code: str, place: Place, message: str, hint: str) -> ProjectError:
    return ProjectError([Problem(code, place, message, hint)])
