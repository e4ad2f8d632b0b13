"""Read a project's folder completely: entities, unit tests, and SQL checks. Shell: the project folder.

`load` reads the entities; this module attaches what later packages read from the same folder, once for all commands.
Only SQL checks and models with open contracts are rendered, so that `sqlrun serve` rarely needs the compiler.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from sqlrun.errors import ProjectError
from sqlrun.expectations import sql_check_files
from sqlrun.graph import named_selectors
from sqlrun.load import load
from sqlrun.load.folder import Folder
from sqlrun.load.load import Loaded
from sqlrun.project import Project
from sqlrun.runtime.disk_cache import Cache
from sqlrun.test_definitions import files as unit_files

# A call of config() that may say whether its model is enabled.
SWITCH = re.compile(r"\benabled\s*=")


def read(root: Path, cache: Cache | None = None) -> Loaded:
    """Return the project as far as it could be read, with its problems; see `load.read`."""
    return load.read(root, cache, (unit_files.attach, sql_check_files.attach, named_selectors.attach), _infer)


def _infer(folder: Folder, project: Project) -> Project:
    project = _enabled(project)
    if not any(model.is_open for model in project.models):
        return project
    from sqlrun.graph import inferred_columns

    return inferred_columns.complete(folder, project)


def _enabled(project: Project) -> Project:
    """Return the project without models that aren't enabled: by config(), else by their contract or their folder."""
    switched = [model for model in project.models if SWITCH.search(model.sql)]
    answers: Mapping[str, bool | None] = {}
    if switched:
        from sqlrun.render import render

        answers = render.enabled(project, switched)
    on = tuple(
        model
        for model in project.models
        if (model.config.enabled if (found := answers.get(model.file)) is None else found)
    )
    if len(on) == len(project.models):
        return project
    off = {model.name for model in project.models} - {model.name for model in on}
    return replace(project, models=on, disabled=(*project.disabled, *sorted(off)))


def project(root: Path, cache: Cache | None = None) -> Project:
    """Return the complete project.

    Raises: ProjectError with all its problems (SR1xx).
    """
    loaded = read(root, cache)
    if loaded.problems:
        raise ProjectError(loaded.problems)
    return loaded.project
