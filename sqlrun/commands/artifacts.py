"""The command parse, and ls for programs. Shell: the project, files under target/."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from sqlrun import pipeline
from sqlrun.artifacts import artifact_files, unique_ids
from sqlrun.artifacts.manifest import manifest, text
from sqlrun.artifacts.nodes import Values
from sqlrun.commands.selected_tests import chosen_to_list
from sqlrun.report.console import Console
from sqlrun.runtime.disk_cache import Cache
from sqlrun.runtime.text_table import counted


def parse(root: Path, now: datetime) -> int:
    """Run `sqlrun parse`: check the project, and write the manifest."""
    prepared = pipeline.prepare(root, Cache.of(root))
    file = artifact_files.write_manifest(root, prepared.workspace, None, now)
    models = counted(len(prepared.workspace.models), "model")
    Console().lines([f"{models}: no problems. Wrote {file.relative_to(root)}."])
    return 0


def list_manifest(
    root: Path,
    select: tuple[str, ...],
    exclude: tuple[str, ...],
    state: Path | None,
    keys: Sequence[str] | None,
    now: datetime,
) -> int:
    """Run `sqlrun ls --output manifest`: a line of JSON for each node; with `keys` None, `--output fqn`."""
    prepared = pipeline.prepare(root, Cache.of(root))
    naming = artifact_files.naming_of(prepared.project, None)
    document = manifest(prepared.workspace, naming, now, "")
    nodes = document["nodes"] | document["unit_tests"] | document["sources"]
    sources = {one.node: unique_ids.source(prepared.project.name, one) for one in prepared.project.sources}
    names, tests = chosen_to_list(prepared, select, exclude, state)
    found = [nodes[one] for one in (*(sources.get(name) or naming.id_of(name) for name in names), *tests)]
    if keys is None:
        Console().lines([_named(node) for node in found])
    else:
        Console().raw("".join(text(_chosen(node, keys)) for node in found))
    return 0


def _named(node: Values) -> str:
    """Return a node's name with its folders, which is its selector in dbt."""
    return f"{'source:' if node['resource_type'] == 'source' else ''}{'.'.join(node['fqn'])}"


def _chosen(node: Values, keys: Sequence[str]) -> Values:
    """Return a node with these keys alone; with all keys if there are none."""
    return {key: node[key] for key in keys or node if key in node}
