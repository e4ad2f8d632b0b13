"""Checks that only Great Expectations evaluates, in an environment without it. Shell: the installed packages."""

from __future__ import annotations

from sqlrun.check.arrow_evaluator import KINDS
from sqlrun.check.check import expectations_of
from sqlrun.errors import Place, Problem
from sqlrun.expectations.catalogue import QUERY, VOLUME
from sqlrun.load.constraints import RELATIONSHIPS
from sqlrun.plan.values import Workspace
from sqlrun.project import Expectation
from sqlrun.runtime import packages
from sqlrun.runtime.text_table import counted


def is_own(expectation: Expectation) -> bool:
    """Return whether sqlrun evaluates an expectation itself, also if it fails."""
    return expectation.type in KINDS or expectation.type in (QUERY, VOLUME, RELATIONSHIPS)


def problems(workspace: Workspace) -> tuple[Problem, ...]:
    """Return SR133 at the first check that needs Great Expectations, if it isn't installed; it counts the others."""
    if not packages.missing("gx"):
        return ()
    found: list[tuple[Place, str]] = []
    for model in workspace.tables:
        found.extend((one.place, f"`{one.type}`") for one in expectations_of(workspace, model) if not is_own(one))
        rendered = model.query.rendered
        if rendered.config.checks == "great_expectations":
            found.append((Place(rendered.model.file), "`checks: great_expectations`"))
    if not found:
        return ()
    found.sort()
    place, what = found[0]
    others = "" if len(found) == 1 else f" (as {counted(len(found) - 1, 'other')} here)"
    return (Problem("SR133", place, packages.needs(what, "gx") + others, packages.install("gx")),)
