"""`sqlrun debug`: test whether this machine can run the project. Shell: the environment, the engines, the warehouse."""

from __future__ import annotations

import platform
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import metadata
from pathlib import Path

from sqlrun.engine_api import Append, Engine, Load, Relation, StoredColumn, TableSpec, Write
from sqlrun.engines.factory import engine_of
from sqlrun.errors import EngineError, ProjectError
from sqlrun.load import load, profile
from sqlrun.project import Profile
from sqlrun.report.console import Console
from sqlrun.runtime import packages
from sqlrun.runtime.text_table import counted
from sqlrun.storage.factory import storage_of

PACKAGES = ("sqlrun", "pyspark", "delta-spark", "deltalake", "sqlglot", "duckdb", "great-expectations", "jinja2")


def debug_command(root: Path, name: str | None) -> int:
    """Print versions, settings and the results of the tests; return 0 if everything works, else 1."""
    console = Console()
    console.lines([f"python            {platform.python_version()}"])
    console.lines([f"{package:<17} {_version(package)}" for package in PACKAGES])
    there = [extra for extra in packages.EXTRAS if not packages.missing(extra)]
    absent = [extra for extra in packages.EXTRAS if extra not in there]
    more = f". Not installed: {', '.join(absent)}" if absent else ""
    console.lines([f"extras            {', '.join(there) or 'none'}{more}"])
    try:
        project = load.read(root).project
        target = profile.load(root, name or project.profile)
    except ProjectError as error:
        console.problem(error)
        return error.exit_code
    console.lines([f"project           {project.name} ({project.root})"])
    console.lines([f"profile           {target.name}: engine {target.engine}, {counted(target.threads, 'thread')}"])
    console.lines([f"warehouse         {target.warehouse}"])
    if target.storage:
        options = ", ".join(f"{key} {value}" for key, value in sorted(target.storage.items()))
        console.lines([f"storage           {options}"])
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
    if target.engine == "spark" and (lack := packages.needs("`engine: spark`", "spark")):
        yield f"engine            SR133 {lack}. {packages.install('spark')}", False
        return
    if target.engine == "spark" and "spark.remote" not in target.settings:
        from sqlrun.engines.spark.session import java_problem

        problem = java_problem()
        yield f"java              {problem or 'ok'}", problem is None
        if problem is not None:
            return
    engine = engine_of(target)
    try:
        # Before anything is written: a cluster that doesn't answer or doesn't fit is reported here.
        engine.start()
        yield f"engine            {engine.name}: ok", True
        with _folder(target.warehouse) as folder:
            yield _race(target.warehouse, folder)
            yield from _table_tries(engine, folder)
        if target.engine == "spark":
            yield _workers(engine)
    except (EngineError, OSError) as error:
        yield f"engine            {error}", False
    finally:
        engine.close()


def _workers(engine: Engine) -> tuple[str, bool]:
    """Return what is wrong with the executors' Python; only sources that sqlrun's own readers read need it."""
    from sqlrun.engines.spark.engine import SparkEngine

    problem = engine.worker_problem() if isinstance(engine, SparkEngine) else ""
    if not problem:
        return "workers           ok", True
    note = "Sources that sqlrun itself reads, such as those in Avro, can't land on Spark: use `engine: auto`"
    return f"workers           without sqlrun: {problem}. {note}", True


def _race(warehouse: str, folder: str) -> tuple[str, bool]:
    """Try to write one new file twice, as two writers of one commit do."""
    storage, file = storage_of(warehouse), f"{folder}/race"
    answers = [storage.put_if_absent(file, text, synced=False) for text in (b"first", b"second")]
    fine = answers == [True, False] and storage.read(file) == b"first"
    outcome = (
        "ok"
        if fine
        else (
            "the second of two writers of one file wasn't refused: commits would be lost. Use a store that supports "
            "writes on condition (If-None-Match)"
        )
    )
    return f"commit race       {outcome}", fine


def _table_tries(engine: Engine, folder: str) -> Iterator[tuple[str, bool]]:
    """Write a table by the driver and by a statement of the engine, read it, and read its past."""
    columns = (StoredColumn("id", "int"), StoredColumn("at", "timestamp"))
    table = TableSpec("debug", f"{folder}/table", columns)
    engine.create(table)
    written = engine.write(Write(table, 0, 1, "sqlrun.commands.debug", (), Load(((1, None),))))
    held = Relation("held", table.path, columns, "new", version=written.version)
    added = Append("select cast(held.id + 1 as int) as id, held.at from held")
    written = engine.write(Write(table, written.version, 2, "sqlrun.commands.debug", (held,), added))
    for name, version, expected in (
        ("write and read", written.version, [1, 2]),
        ("time travel", written.version - 1, [1]),
    ):
        held = Relation("held", table.path, columns, "new", version=version)
        rows = sorted(row["id"] for row in engine.query("select id from held", (held,)).to_pylist())
        yield f"{name:<17} {'ok' if rows == expected else f'expected {expected}, read {rows}'}", rows == expected
