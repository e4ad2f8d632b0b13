"""`sqlrun debug`: test whether this machine can run the project. Shell: the environment, the engines, the warehouse."""

from __future__ import annotations

import platform
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import metadata
from pathlib import Path

from sqlrun.engine_api import Load, Relation, StoredColumn, TableSpec, Write
from sqlrun.engines.factory import engine_of
from sqlrun.errors import EngineError, ProjectError
from sqlrun.load import load, profile
from sqlrun.project import Profile
from sqlrun.report.console import Console
from sqlrun.runtime.text_table import counted
from sqlrun.storage.factory import storage_of

PACKAGES = ("sqlrun", "pyspark", "delta-spark", "deltalake", "sqlglot", "duckdb", "great-expectations", "jinja2")


def debug_command(root: Path, name: str | None) -> int:
    """Print versions, settings and the results of the tests; return 0 if everything works, else 1."""
    console = Console()
    console.lines([f"python            {platform.python_version()}"])
    console.lines([f"{package:<17} {_version(package)}" for package in PACKAGES])
    try:
        project = load.read(root).project
        target = profile.load(root, name or project.profile)
    except ProjectError as error:
        console.problem(error)
        return error.exit_code
    console.lines([f"project           {project.name} ({project.root})"])
    console.lines([f"profile           {target.name}: engine {target.engine}, {counted(target.threads, 'thread')}"])
    console.lines([f"warehouse         {target.warehouse}"])
    ok = True
    for line, fine in _tries(target):
        console.lines([line])
        ok = ok and fine
    console.lines(["", "All checks passed." if ok else "Something doesn't work, see above."])
    return 0 if ok else 1


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


@contextmanager
def _folder(warehouse: str) -> Iterator[str]:
    """Create a folder in a warehouse, and delete it afterwards."""
    storage, folder = storage_of(warehouse), f"{warehouse}/.debug-{uuid.uuid4().hex}"
    storage.make_folder(folder)
    try:
        yield folder
    finally:
        storage.delete_folder(folder)


def _tries(target: Profile) -> Iterator[tuple[str, bool]]:
    """Yield (result, whether it works) for Java, the engine, and a write and a read in the warehouse."""
    if target.engine == "auto":
        from sqlrun.engines.auto import of_duckdb, of_spark

        yield from _tries(replace(target, engine="duckdb", settings=of_duckdb(target.settings)))
        yield from _tries(replace(target, engine="spark", settings=of_spark(target.settings)))
        return
    if target.engine == "spark":
        from sqlrun.engines.spark.session import java_problem

        problem = java_problem()
        yield f"java              {problem or 'ok'}", problem is None
        if problem is not None:
            return
    engine = engine_of(target)
    try:
        with _folder(target.warehouse) as folder:
            engine.start()
            yield f"engine            {engine.name}: ok", True
            columns = (StoredColumn("id", "int"), StoredColumn("at", "timestamp"))
            table = TableSpec("debug", f"{folder}/table", columns)
            engine.create(table)
            written = engine.write(Write(table, 0, 1, "sqlrun.commands.debug", (), Load(((1, None),))))
            held = Relation("held", table.path, columns, "new", version=written.version)
            rows = engine.query("select id from held", (held,)).to_pylist()
            fine = rows == [{"id": 1}]
            yield f"write and read    {'ok' if fine else f'wrote 1 row, read {rows}'}", fine
    except (EngineError, OSError) as error:
        yield f"engine            {error}", False
    finally:
        engine.close()
