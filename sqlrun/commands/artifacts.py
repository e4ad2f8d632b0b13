"""The commands parse and docs. Shell: the project, the warehouse, files under target/."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from sqlrun import pipeline
from sqlrun.artifacts import artifact_files
from sqlrun.publish.environment_paths import environment
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


def generate_docs(root: Path, profile: str | None, env: str | None, now: datetime) -> int:
    """Run `sqlrun docs generate`: write the manifest, and the catalog of the published tick."""
    environment(env)
    prepared = pipeline.prepare(root, Cache.of(root))
    ledger = pipeline.ledger_of(root, prepared, profile, env)
    files = [
        artifact_files.write_manifest(root, prepared.workspace, env, now),
        artifact_files.write_catalog(root, prepared.workspace, ledger, env, now),
    ]
    Console().lines([f"Wrote {file.relative_to(root)}" for file in files])
    return 0
