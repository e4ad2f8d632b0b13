"""Checks that an analyst writes as a query: a file under expectations/ that returns the wrong rows. Pure.

Such a file is rendered and read like a model, with the same messages, and becomes an `unexpected_rows_expectation` of
the only model that it reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from sqlglot import exp

from sqlrun.errors import Place, Problem, ProjectError
from sqlrun.expectations.catalogue import QUERY
from sqlrun.expectations.sql import batch_query
from sqlrun.parse import parse
from sqlrun.parse.functions import unlike
from sqlrun.parse.source_map import source_place
from sqlrun.project import CRITICAL, Expectation, Model, Project, Rendered, follows
from sqlrun.render import render
from sqlrun.transpile.dialect import DIALECT
from sqlrun.transpile.trees import place_of

ONE = "Read one model by {{ ref('model') }}. To compare two tables, write a model that joins them, and check its rows."


@dataclass(frozen=True, slots=True)
class SqlCheck:
    """A check and its model."""

    model: str
    expectation: Expectation


def read(project: Project, name: str, file: str, text: str) -> SqlCheck | None:
    """Return a check; None if it is unknown because a file that it reads has errors, which are reported there.

    Raises: ProjectError with all errors of the check.
    """
    pseudo = Model.of_text(name, file, text)
    rendered, config = render.check(project, pseudo)
    model = _model(project, rendered)
    if not model.columns:
        return None
    tree = parse.check(rendered, parse.schema_of(project), project.functions)
    problems = [_elsewhere(rendered, node, why, instead) for node, why, instead in unlike(tree)]
    if problems:
        raise ProjectError(problems)
    query = _over_batch(tree, text)
    place = Place(file)
    try:
        batch_query(query)
    except ValueError as error:
        raise ProjectError(
            [Problem("SR711", place, str(error), "Write one SELECT that returns rows of the model.")]
        ) from None
    severity = str(config.get("severity", CRITICAL))
    on_fail = str(config.get("on_fail", follows(severity)))
    description = str(config.get("description", "")) or _comment(text)
    kwargs = {"unexpected_rows_query": query}
    return SqlCheck(model.name, Expectation(QUERY, kwargs, severity, on_fail, description, place, name))


def _model(project: Project, rendered: Rendered) -> Model:
    """Return the model of a check."""
    models = {model.name: model for model in project.models}
    file, lines = rendered.model.file, rendered.model.sql.split("\n")
    read = [*rendered.refs, *rendered.sources]
    if len(read) == 1 and read[0] in models:
        return models[read[0]]
    wrong = next((name for name in read if name not in models), read[1] if len(read) > 1 else "")
    if not read:
        message = "the check reads no model"
    elif wrong in models:
        message = f"the check reads more than one model: {' and '.join(read)}"
    else:
        message = f"the check reads `{wrong}`, which is not a model"
    word = wrong.rpartition("__")[2]
    line = next((n for n, text in enumerate(lines, 1) if word and word in text and "{{" in text), 1)
    column = lines[line - 1].find(word) + 1 if word else 1
    place = Place(file, line, max(1, column))
    raise ProjectError([Problem("SR718", place, message, ONE, lines[line - 1] if word else "")])


def _elsewhere(rendered: Rendered, node: exp.Expr, why: str, instead: str) -> Problem:
    line, column = place_of(cast(exp.Expression, node))
    place, excerpt = source_place(rendered, line or 1, column or 1)
    return Problem("SR711", place, f"{why}. Checks run on DuckDB", instead, excerpt)


def _over_batch(tree: exp.Query, text: str) -> str:
    """Return the query over `{batch}`, as a suite would have it; other braces are doubled."""
    mark = "sqlrun_batch"
    while mark in text:
        mark += "_"
    for table in list(tree.find_all(exp.Table)):
        if table.db == parse.REF:
            alias = table.alias or table.name
            table.set("db", None)
            table.set("this", exp.to_identifier(mark))
            table.set("alias", exp.TableAlias(this=exp.to_identifier(alias)))
    written = tree.sql(DIALECT, comments=False)
    return written.replace("{", "{{").replace("}", "}}").replace(mark, "{batch}")


def _comment(text: str) -> str:
    r"""Return the comment at the start of a file.

    >>> _comment("-- No order\n--   is free.\nselect 1 -- one")
    'No order is free.'
    """
    words: list[str] = []
    for line in text.split("\n"):
        if line.strip() and not line.strip().startswith("--"):
            break
        words += line.strip().lstrip("-").split()
    return " ".join(words)
