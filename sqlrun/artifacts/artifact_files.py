"""target/manifest.json and target/catalog.json, replaced atomically. Shell: files under target/, Delta's logs."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from datetime import datetime
from pathlib import Path

from sqlrun.artifacts import check_nodes, declared_checks
from sqlrun.artifacts.catalog import CatalogTable, catalog
from sqlrun.artifacts.manifest import manifest, text
from sqlrun.artifacts.nodes import Naming, Values
from sqlrun.engines.delta import table as delta_table
from sqlrun.errors import SqlrunError
from sqlrun.plan.values import Workspace
from sqlrun.project import Project
from sqlrun.publish.environment_paths import schema
from sqlrun.publish.ledger import Ledger
from sqlrun.runtime import atomic_files

MANIFEST, CATALOG, SOURCES = "manifest.json", "catalog.json", "sources.json"


def naming_of(project: Project, env: str | None) -> Naming:
    """Return the names that artifacts give to tables: an environment has a schema of its own."""
    seeds = frozenset(seed.name for seed in project.seeds)
    return Naming(project, schema(project.name, env or ""), project.adapter_type, seeds)


def write_manifest(root: Path, workspace: Workspace, env: str | None, at: datetime) -> Path:
    """Write the manifest of a project; return its file.

    Raises: SqlrunError if it can't be written.
    """
    naming = naming_of(workspace.project, env)
    return _put(root, MANIFEST, manifest(workspace, naming, at, str(uuid.uuid4())))


def node_ids(workspace: Workspace, names: Collection[str]) -> frozenset[str]:
    """Return the ids of these models and seeds in the manifest, and of their checks."""
    naming = naming_of(workspace.project, None)
    checks = (
        check_nodes.id_of(naming.project.name, model.query.rendered.model, check, columns)
        for model in workspace.models
        if model.name in names
        for check, columns in declared_checks.of(workspace, model)
    )
    return frozenset((*map(naming.id_of, names), *checks))


def write_catalog(root: Path, workspace: Workspace, ledger: Ledger, env: str | None, at: datetime) -> Path:
    """Write the catalog of the published tick; return its file. Before the first tick it has the sources alone.

    Raises: SqlrunError if it can't be written.
    """
    naming = naming_of(workspace.project, env)
    return _put(root, CATALOG, catalog(naming, _published(workspace, ledger), at, str(uuid.uuid4())))


def write_sources(root: Path, document: Values) -> Path:
    """Write the ages of sources; return the file. Raises: SqlrunError if it can't be written."""
    return _put(root, SOURCES, document)


def _published(workspace: Workspace, ledger: Ledger) -> tuple[CatalogTable, ...]:
    """Return the published tables of the project's seeds and models, and the views, in graph order."""
    published = ledger.read().published
    if published is None:
        return ()
    found = []
    for name in (*(seed.name for seed in workspace.project.seeds), *(model.name for model in workspace.models)):
        if name in workspace.views:
            contract = workspace.model(name).query.rendered.model
            found.append(CatalogTable(name, tuple((c.name, c.type) for c in contract.columns)))
        elif state := published.tables.get(name):
            rows = delta_table.rows_at(f"{ledger.warehouse}/{state.path}", state.version)
            found.append(CatalogTable(name, state.columns, rows, state.version, state.as_of))
    return tuple(found)


def _put(root: Path, name: str, document: Values) -> Path:
    file = root / "target" / name
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        atomic_files.put(file, text(document), synced=False)
    except OSError as error:
        raise SqlrunError(f"can't write {file}: {error.strerror or error}") from error
    return file
