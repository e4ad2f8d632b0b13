"""`sqlrun run-operation`: a macro that runs outside of models. Shell: the project, published tables, the terminal."""

from __future__ import annotations

import re
import textwrap
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlrun import pipeline, project_files
from sqlrun.errors import Problem, ProjectError, UsageError
from sqlrun.load import settings
from sqlrun.load.yaml_reader import did_you_mean, listed
from sqlrun.project import Project
from sqlrun.render import operation
from sqlrun.render.operation import Outside
from sqlrun.render.results import Table
from sqlrun.report.console import Console
from sqlrun.runtime import arrow_rows, text_table
from sqlrun.runtime.disk_cache import Cache
from sqlrun.runtime.text_lines import text_lines

if TYPE_CHECKING:
    from sqlrun.publish.ledger import Ledger

# Maximum number of rows of a query: they are in memory as values of Python.
MOST_ROWS = 100_000


def run_macro(root: Path, name: str, arguments: str, profile: str | None, env: str | None) -> int:
    """Run `sqlrun run-operation`."""
    given = settings.overrides(arguments, "--args")
    project = project_files.project(root, Cache.of(root))
    name = _known(project, name)
    console = Console()

    @cache
    def ledger() -> Ledger:
        # A macro without a query needs no published tick.
        return pipeline.published_ledger(root, profile, env)

    def query(text: str) -> tuple[tuple[str, ...], list[list[Any]]]:
        from sqlrun.publish import query as published

        try:
            table = published.run(text, ledger().warehouse, None, ledger().env).table
        except ProjectError as error:
            raise ProjectError([_explained(problem, project) for problem in error.problems]) from None
        if table.num_rows > MOST_ROWS:
            raise UsageError(
                f"a query of the macro returns {table.num_rows:,} rows, more than {MOST_ROWS:,}. Add a LIMIT"
            )
        return tuple(table.column_names), [list(map(_plain, arrow_rows.values(each))) for each in table.columns]

    def columns(table: str) -> list[tuple[str, str]]:
        from sqlrun.publish import reader

        found = reader.find(reader.tick_of(ledger()), ledger().warehouse, table)
        return [(column.name, column.type) for column in found.columns]

    said = [""]

    def say(text: str) -> None:
        said[0] = text
        console.lines([text])

    found = operation.run(project, name, given, Outside(query, columns, say))
    match found:
        case None:
            pass
        case str() if found == said[0]:
            pass  # macros of dbt print a text and return it, because dbt shows what is printed alone
        case Table():
            found.print_table()
        case str():
            console.lines(_lines(found))
        case _:
            console.lines([text_table.json_text(found)])
    return 0


def _explained(problem: Problem, project: Project) -> Problem:
    """Return a problem of a query, with another hint for a model without rows."""
    found = re.fullmatch(r"unknown table `(\w+)`", problem.message) if problem.code == "SR303" else None
    if found is None or not any(model.name == found[1] for model in project.models):
        return problem
    return replace(problem, hint="It is a view, which stores no rows, or no build has published it yet. Read a table.")


def _known(project: Project, name: str) -> str:
    """Return a macro's name as it is called in a template. Raises: UsageError that suggests similar names."""
    known = [f"{m.package}.{m.name}" if m.package else m.name for m in (*project.macros, *project.built_in)]
    name = name.removeprefix(f"{project.name}.")
    if name in known:
        return name
    own = sorted(macro.name for macro in project.macros)
    advice = f" Macros: {listed(own)}." if own else " The project has no macros: write one in macros/NAME.sql."
    raise UsageError(f"unknown macro `{name}`.{did_you_mean(name, known)}{advice}")


def _lines(text: str) -> list[str]:
    """Return the lines of a text without what the tags around it leave: empty lines and an indentation."""
    lines = textwrap.dedent("\n".join(line.rstrip() for line in text_lines(text))).split("\n")
    while lines and not lines[0]:
        lines.pop(0)
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _plain(value: Any) -> Any:
    """Return a value that a template can handle: a day or a time that Python has no value for is its text."""
    match value:
        case None | bool() | int() | float() | str() | Decimal() | date() | datetime() | list() | dict():
            return value
        case _:
            return text_table.value_text(value)
