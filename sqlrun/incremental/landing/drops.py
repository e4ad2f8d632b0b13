"""Drop rules of a source: conditions over its typed columns, checked like a staging model's WHERE. Pure.

A rule is parsed as the WHERE of a query over its source, so it may call what a model may call, and means the same on
both engines.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

from sqlglot import exp

from sqlrun.errors import Problem, ProjectError
from sqlrun.incremental import determinism, types
from sqlrun.incremental.algebra import Node, Type
from sqlrun.incremental.operators.filter import Filter
from sqlrun.incremental.operators.scan import Scan
from sqlrun.incremental.stages import collapse
from sqlrun.incremental.translate.translate import translate
from sqlrun.parse import declared_types, located_problems, parse, spark_only
from sqlrun.parse.parse import SOURCE, Query
from sqlrun.project import Column, Config, Drop, Model, Rendered, Source
from sqlrun.transpile.dialect import DIALECT
from sqlrun.transpile.refusals import Refusal
from sqlrun.transpile.trees import copied
from sqlrun.transpile.writer import identifier

CODE = "SR750"
HINT = "Write one boolean expression over the columns of the line itself, without subqueries, aggregates or the time."
# A source's line is text: a rule that only one engine can evaluate would make tables depend on the engine.
ADVICE = "A drop rule must mean the same on both engines."
# Parts that the query of a rule has.
CLAUSES = {"kind", "expressions", "from_", "from", "where"}
# The condition begins in this line of its query.
_FIRST = 2


def problems(sources: Iterable[Source]) -> tuple[Problem, ...]:
    """Return the problems of all drop rules, at their places."""
    return tuple(found for source in sources for rule in source.drop_where for found in _problems(source, rule))


def _problems(source: Source, rule: Drop) -> list[Problem]:
    if not source.columns or not all(declared_types.is_type(column.type) for column in source.columns):
        return []  # another problem reports the columns
    try:
        _condition(source, rule)
    except ProjectError as error:
        written = _rendered(source, rule, rule.where)
        return [located_problems.named(_shown(rule, one), written) for one in error.problems]
    except parse.TOO_DEEP_ERRORS:
        return [Problem("SR301", rule.place, parse.TOO_DEEP, HINT)]
    return []


@lru_cache(256)
def conditions(source: Source) -> tuple[tuple[str, exp.Expr], ...]:
    """Return (reason, condition) of each drop rule, the condition over the source's columns.

    Raises: ProjectError if a rule is wrong, which `problems` reports.
    """
    return tuple((rule.reason, _condition(source, rule)) for rule in source.drop_where)


def canonical(source: Source) -> list[str]:
    """Return the conditions without comments and formatting, in an order that doesn't depend on the file's."""
    return sorted(copied(tree).sql(DIALECT, copy=False, comments=False) for _, tree in conditions(source))


def _condition(source: Source, rule: Drop) -> exp.Expr:
    # Without brackets, so that a text that closes them is no condition; `_only_filter` refuses other clauses.
    relation = f"{identifier(SOURCE, 'spark')}.{identifier(source.table, 'spark')}"
    rendered = _rendered(source, rule, f"select 1 as kept from {relation} where\n{rule.where}\n")
    tables = {SOURCE: {source.table: {column.name: column.type for column in source.columns}}}
    query = parse.query(rendered, {parse.REF: {}, **tables})
    try:
        determinism.check(query.tree)
        root = translate(query.tree, lambda _, name: _scan(source))
    except Refusal as refusal:
        raise ProjectError([_refused(rule, _why_not(query.tree) or refusal.reason.why)]) from None
    unlike = spark_only.problems([query], (), ADVICE) or spark_only.mixed_problems(query, tables, ADVICE)
    if unlike:
        raise ProjectError(unlike)
    return _only_filter(query, root, rule)


def _only_filter(query: Query, root: Node, rule: Drop) -> exp.Expr:
    """Return the condition of operators that are one filter over the source."""
    why = _why_not(query.tree)
    if why:
        raise ProjectError([_refused(rule, why)])
    _, below = collapse(root)
    if not isinstance(below, Filter) or not isinstance(below.child, Scan):
        raise ProjectError([_refused(rule, "it is no test of a line")])
    kind = types.of(below.condition, below.child.types()).text
    if kind not in ("", "boolean"):
        raise ProjectError([_refused(rule, f"it is {kind}, not boolean")])
    return below.condition


def _why_not(tree: exp.Expr) -> str:
    """Return why the WHERE of a query is no test of one line; "" if it is."""
    where = tree.args.get("where")
    if where is None or {name for name, value in tree.args.items() if value} - CLAUSES:
        return "it is more than one condition"
    if where.find(exp.Query):
        return "it has a subquery"
    return "it reads the time of the tick" if where.find(exp.CurrentTimestamp, exp.CurrentDate) else ""


def _refused(rule: Drop, why: str) -> Problem:
    return Problem(CODE, rule.place, f"the drop rule `{rule.where}` isn't supported: {why}", HINT)


def _scan(source: Source) -> Scan:
    known = tuple(Type(column.type, column.nullable) for column in source.columns)
    return Scan(source.table, tuple(column.name for column in source.columns), known, only_grows=True)


def _rendered(source: Source, rule: Drop, text: str) -> Rendered:
    """Return a text as a rendered model, to parse it like one."""
    kept = Column("kept", "int", "", rule.place)
    model = replace(Model.of_text("drop_where", rule.place.file, text), columns=(kept,))
    return Rendered(model, text, (), (source.table,), (), Config())


def _shown(rule: Drop, problem: Problem) -> Problem:
    """Return a problem of the query at its place in the source's file."""
    if problem.place.file != rule.place.file or problem.code == CODE:
        return problem
    line, column = problem.place.line, problem.place.column
    if line != _FIRST or not rule.place.exact or not problem.place.exact:
        return replace(problem, place=rule.place, excerpt="")
    return replace(problem, place=replace(rule.place, column=rule.place.column + column - 1), excerpt="")
