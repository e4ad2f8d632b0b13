"""Artifacts of an earlier run in a folder, for selectors that compare. Shell: the folder of `--state`, target/."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

from sqlrun.artifacts import earlier
from sqlrun.artifacts.artifact_files import MANIFEST, SOURCES, naming_of
from sqlrun.artifacts.manifest import SCHEMA, manifest, text
from sqlrun.artifacts.nodes import Values
from sqlrun.errors import UsageError
from sqlrun.graph import selectors
from sqlrun.graph.graph import Graph
from sqlrun.plan.values import Workspace

RESULTS = "run_results.json"


def compared(graph: Graph, workspace: Workspace, selected: Iterable[str], root: Path, state: Path | None) -> Graph:
    """Return the graph with the marks of an earlier run in `state`, if selectors need them.

    Raises: UsageError if the folder lacks an artifact, or one can't be read.
    """
    methods = selectors.compared_methods(graph, selected)
    if state is None or not methods:
        return graph
    now = _as_read(
        manifest(workspace, naming_of(workspace.project, None), datetime.now(timezone.utc), str(uuid.uuid4()))
    )
    marks: earlier.Marks = {}
    file = state
    try:
        if "state" in methods:
            file = state / MANIFEST
            marks |= earlier.states(now, _manifest(file))
        if "result" in methods:
            file = state / RESULTS
            marks |= earlier.results(_document(file), now)
        if "source_status" in methods:
            file = state / SOURCES
            before = _document(file)
            file = root / "target" / SOURCES
            marks |= earlier.source_statuses(_document(file), before, now)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise UsageError(f"{file} has another form than sqlrun writes: {error!r}. Write it again.") from error
    return replace(graph, marks={mark: frozenset(names) for mark, names in marks.items()})


def _as_read(document: Values) -> Values:
    """Return a document as a reader of its file gets it."""
    found: Values = json.loads(text(document))
    return found


def _document(file: Path) -> Values:
    try:
        found = json.loads(file.read_bytes())
    except FileNotFoundError:
        raise UsageError(f"there is no {file}. {_writes(file.name)}") from None
    except OSError as error:
        raise UsageError(f"can't read {file}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{file} isn't JSON: {error}. Write it again.") from error
    if not isinstance(found, dict):
        raise UsageError(f"{file} has no JSON object. Write it again.")
    return found


def _manifest(file: Path) -> Values:
    found = _document(file)
    version = found["metadata"]["dbt_schema_version"]
    if version != SCHEMA:
        raise UsageError(f"{file} has the format {version}; sqlrun reads {SCHEMA} only.")
    return found


def _writes(name: str) -> str:
    match name:
        case "manifest.json":
            return "`sqlrun parse` writes target/manifest.json; copy it to that folder."
        case "run_results.json":
            return "`sqlrun build` writes target/run_results.json; copy it to that folder."
        case _:
            return "`sqlrun source freshness` writes target/sources.json."
