"""The commands docs generate and docs serve. Shell: the project, the warehouse, files under target/, the network."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from sqlrun import pipeline
from sqlrun.artifacts import artifact_files
from sqlrun.docs_site import past, site_files
from sqlrun.docs_site.server import serve
from sqlrun.docs_site.subject import Subject
from sqlrun.engine_api import Dialect
from sqlrun.engines.factory import dialect_of
from sqlrun.errors import ProjectError
from sqlrun.pipeline import Prepared
from sqlrun.project import Profile
from sqlrun.publish.environment_paths import environment
from sqlrun.report.console import Console
from sqlrun.runtime import own_folders
from sqlrun.runtime.disk_cache import Cache


def generate_docs(root: Path, profile: str | None, env: str | None, now: datetime) -> int:
    """Run `sqlrun docs generate`: write the manifest, the catalog of the published tick, and the site."""
    environment(env)
    cache, console = Cache.of(root), Console()
    prepared = pipeline.prepare(root, cache)
    target = pipeline.profile_of(root, prepared, profile)
    ledger = pipeline.ledger_of(root, prepared, profile, env)
    files = [
        artifact_files.write_manifest(root, prepared.workspace, env, now),
        artifact_files.write_catalog(root, prepared.workspace, ledger, env, now),
    ]
    known = past.read_past(prepared.workspace, ledger)
    for fault in known.faults:
        console.print(fault, "warning")
    # The time of the published tick, so that the same project has the same site.
    at = known.published.as_of if known.published is not None else now
    naming = artifact_files.naming_of(prepared.project, env)
    subject = Subject(prepared, naming, known, _dialects(prepared, target, cache), at)
    files.append(site_files.write(root, subject, ledger.env, now))
    console.lines([f"Wrote {file.relative_to(root)}" for file in files])
    return 0


def _dialects(prepared: Prepared, target: Profile, cache: Cache | None) -> dict[str, Dialect]:
    """Return the dialect of each model's statements; Spark's for all if the profile's engine can't run the project."""
    try:
        pipeline.require_engine(prepared, target, cache)
    except ProjectError:
        return dict.fromkeys(prepared.names, "spark")
    spark_only_models = pipeline.spark_only_models_of(prepared, target, cache)
    return {name: dialect_of(target, name, spark_only_models) for name in prepared.names}


def serve_docs(root: Path, port: int) -> int:
    """Run `sqlrun docs serve`: serve the site on this machine until a signal.

    Raises: UsageError if there is no site, or the port is in use.
    """
    with serve(root / own_folders.TARGET / site_files.FOLDER, port) as server:
        Console().lines([f"Docs on http://127.0.0.1:{server.server_port}/; Ctrl+C ends it."])
        server.serve_forever(poll_interval=0.2)
    return 0
