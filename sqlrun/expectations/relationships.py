"""Relationships: columns whose values must be in another table; their validation and SQL. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlrun.engine_api import Dialect
from sqlrun.errors import Problem
from sqlrun.expectations import validate
from sqlrun.expectations.values import family_of
from sqlrun.graph.graph import Graph
from sqlrun.load.constraints import RELATIONSHIPS
from sqlrun.load.yaml_reader import did_you_mean, listed, spelled
from sqlrun.project import Column, Expectation, Model, Project, Seed
from sqlrun.transpile.writer import anti_join, identifier, semi_join


def of(model: Model) -> tuple[Expectation, ...]:
    """Return the relationships of a contract."""
    return tuple(one for column in model.columns for one in column.promises if one.type == RELATIONSHIPS)


def target(expectation: Expectation) -> str:
    """Return the table that a relationship's values must be in."""
    return str(expectation.kwargs["to"])


def problems(project: Project, graph: Graph, views: tuple[str, ...]) -> tuple[Problem, ...]:
    """Find invalid relationships: unknown tables and columns, views, other types, tables further downstream."""
    nodes: list[Model | Seed] = [*project.models, *project.seeds]
    known = {node.name: {column.name: column for column in node.columns} for node in nodes}
    found: list[Problem] = []
    for model in project.models:
        promised = [(column, one) for column in model.columns for one in column.promises]
        below = _below(graph, model.name) if promised else set()
        for column, one in promised:
            if one.type != RELATIONSHIPS:
                found.extend(validate.promised_problems(one, model))
            else:
                found.extend(_related(one, column, known, views, below))
    return tuple(found)


def _related(
    one: Expectation,
    column: Column,
    known: Mapping[str, Mapping[str, Column]],
    views: tuple[str, ...],
    below: set[str],
) -> Iterator[Problem]:
    to, field = target(one), str(one.kwargs["field"])
    field = spelled(field, known.get(to, ()))
    if to not in known:
        hint = f"Seeds and models: {listed(sorted(known))}.{did_you_mean(to, known)}"
        yield Problem("SR202", one.place, f"unknown model or seed `{to}`", hint)
    elif to in views:
        yield Problem(
            "SR715",
            one.place,
            f"the relationship refers to `{to}`, which is a view",
            "Name a seed, or a model with `materialized: table`.",
        )
    elif to in below:
        hint = f"Move the check to `{to}`. A check can't wait for a table that depends on its own model."
        yield Problem("SR715", one.place, f"the relationship refers to `{to}`, which depends on this model", hint)
    elif field not in known[to]:
        yield Problem("SR705", one.place, f"unknown column `{field}` of `{to}`", did_you_mean(field, known[to]).strip())
    elif family_of(column.type) != family_of(known[to][field].type):
        message = (
            f"different types: `{column.name}` is {column.type}, but `{field}` of `{to}` is {known[to][field].type}"
        )
        yield Problem("SR713", one.place, message, "Cast one of the columns in its model.")


def _below(graph: Graph, name: str) -> set[str]:
    found: set[str] = set()
    waiting = [name]
    while waiting:
        for child in graph.children.get(waiting.pop(), ()):
            if child not in found:
                found.add(child)
                waiting.append(child)
    return found


def orphans(one: Expectation, rows: str, dialect: Dialect, *, but_gone: bool = False) -> str:
    """Return the query of those of `rows` without a partner in the relation `target`; NULL needs none.

    `but_gone` leaves out rows whose partner was deleted (`gone`).

    >>> from sqlrun.errors import Place
    >>> keys = {"column": "a", "to": "t", "field": "b"}
    >>> one = Expectation(RELATIONSHIPS, keys, "critical", "fail", "", Place("m.yml"))
    >>> orphans(one, "feed", "duckdb")
    'select r.* from feed as r anti join target as t on r."a" = t."b" where r."a" is not null'
    """
    column, field = _names(one, dialect)
    text = f"select r.* from {rows} as r {anti_join(dialect)} target as t on r.{column} = t.{field}"
    if but_gone:
        text += f" {anti_join(dialect)} ({gone(one, dialect)}) as g on r.{column} = g.{field}"
    return f"{text} where r.{column} is not null"


def gone(one: Expectation, dialect: Dialect) -> str:
    """Return the query of the keys that are in the relation `was` and not in `target`."""
    _, field = _names(one, dialect)
    return (
        f"select w.{field} from was as w {anti_join(dialect)} target as t on w.{field} = t.{field} "
        f"where w.{field} is not null"
    )


def rows_of_gone(one: Expectation, rows: str, dialect: Dialect) -> str:
    """Return the query of those of `rows` whose key was deleted."""
    column, field = _names(one, dialect)
    return f"select r.* from {rows} as r {semi_join(dialect)} ({gone(one, dialect)}) as g on r.{column} = g.{field}"


def _names(one: Expectation, dialect: Dialect) -> tuple[str, str]:
    return identifier(str(one.kwargs["column"]), dialect), identifier(str(one.kwargs["field"]), dialect)
