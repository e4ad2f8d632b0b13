"""Checks written as queries: read their files and add them to the suites. Shell: the analyst's folders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from sqlrun.errors import ProjectError
from sqlrun.load.constraints import REF
from sqlrun.load.contract_files import facts
from sqlrun.load.folder import Folder
from sqlrun.load.load import check_name
from sqlrun.project import Project, Suite

if TYPE_CHECKING:
    from sqlrun.expectations.sql_checks import SqlCheck


def attach(folder: Folder, project: Project, contracts: Mapping[str, str]) -> Project:
    """Return the project with each such check added to its model's suite."""
    del contracts
    found = {suite.model: suite for suite in project.suites}
    # Everything that a template and its query can read; contracts are hashed.
    other_environments = [
        facts(project.seen_by_templates),
        project.functions,
        [(macro.name, macro.text) for macro in project.macros],
        folder.facts,
    ]
    other_environments.append([source.table for source in project.sources])
    for file in folder.files("expectations", ".sql"):
        check_name(folder, file, "a check")
        text, name = folder.text(file), folder.name(file)
        if text is None or any(name in project.disabled for _, name in REF.findall(text)):
            continue
        from sqlrun.expectations.sql_checks import SqlCheck  # loads sqlglot, which a project without checks avoids

        make = partial(_sql_check, folder, project, file.stem, name, text)
        check = folder.cached("sql check", [name, text, *other_environments], SqlCheck | None, make)
        if check is not None:
            suite = found.get(check.model) or Suite(check.model, name, ())
            found[check.model] = replace(suite, expectations=(*suite.expectations, check.expectation))
    return replace(project, suites=tuple(found.values()))


def _sql_check(folder: Folder, project: Project, name: str, file: str, text: str) -> SqlCheck | None:
    from sqlrun.expectations import sql_checks

    try:
        return sql_checks.read(project, name, file, text)
    except ProjectError as error:
        folder.problems.extend(error.problems)
        return None
