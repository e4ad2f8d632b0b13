"""The suite's contenders, and how each runs: as a warm process, or as a command for each tick.

A contender's folder has `data/orders`, where files arrive, and `seeds`. `benchmarks/rivals/<name>` has a rival's
requirements and its users' files.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks import mart_readers

ROOT = Path(__file__).parent.parent
RIVALS = ROOT / "benchmarks" / "rivals"
Rows = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Place:
    """A contender's resources: its environment's Python, its folder, its memory limit."""

    python: Path
    folder: Path
    memory: str

    def program(self, name: str) -> str:
        """Return the path of a program of the environment."""
        return str(self.python.parent / name)


@dataclass(frozen=True, slots=True)
class Contender:
    """A contender. `environment` is the rival whose requirements it runs with; "" is the suite's own environment.

    A warm contender has `resident`, the module that answers requests, and its arguments. Others have `commands`, run
    for each tick, and `rows`, which reads their mart. `loads_as` names the contender whose state after the history it
    uses.
    """

    name: str
    title: str
    what: str
    environment: str = ""
    packages: tuple[str, ...] = ()
    resident: tuple[str, ...] = ()
    commands: Callable[[Place, datetime], list[list[str]]] | None = None
    rows: Callable[[Path], Rows] | None = None
    variables: Callable[[Place], dict[str, str]] = lambda _: {}
    loads_as: str = ""
    at_once: bool = False  # it loads its history in one portion
    needs_java: bool = False

    @property
    def way(self) -> str:
        """Return how a tick is run, as text."""
        return "warm" if self.resident else "command"


def stamp(as_of: datetime) -> str:
    """Return a tick's time as SQL reads it."""
    return f"{as_of:%Y-%m-%d %H:%M:%S}"


def _sqlrun(engine: str) -> Contender:
    where = {"auto": "the engine chosen automatically", "duckdb": "on DuckDB", "spark": "on Spark"}[engine]
    return Contender(
        f"sqlrun_{engine}",
        f"sqlrun, {engine}",
        f"the reference project without guests, {where}: landing, models, checks, ledger, publish; a warm process",
        packages=("sqlrun", "duckdb", "deltalake", "pyspark", "delta-spark"),
        resident=("benchmarks.rivals.sqlrun", f"bench_{engine}"),
        needs_java=engine == "spark",
    )


def _sqlrun_command(engine: str) -> Contender:
    def commands(place: Place, as_of: datetime) -> list[list[str]]:
        profile = ["--profile", f"bench_{engine}", "--as-of", f"{as_of:%Y-%m-%dT%H:%M}"]
        return [[sys.executable, "-m", "sqlrun", "build", *profile]]

    return Contender(
        f"sqlrun_{engine}_command",
        f"sqlrun build, {engine}",
        "the same as a command from the shell: start, unit tests where something changed, tick, report",
        packages=("sqlrun", "duckdb", "deltalake", "pyspark", "delta-spark"),
        commands=commands,
        rows=mart_readers.of_sqlrun,
        variables=lambda _: {"PYTHONPATH": str(ROOT)},
        loads_as=f"sqlrun_{engine}",
        needs_java=engine == "spark",
    )


def _dbt(place: Place, as_of: datetime) -> list[list[str]]:
    return [[place.program("dbt"), "build", "--vars", f"{{as_of: '{stamp(as_of)}'}}"]]


def _sqlmesh(place: Place, as_of: datetime) -> list[list[str]]:
    time = ["--execution-time", stamp(as_of)]
    return [[place.program("sqlmesh"), "plan", "--run", "--auto-apply", "--no-prompts", "--no-diff", *time]]


def _sqlmesh_variables(place: Place) -> dict[str, str]:
    """Return variables for SQLMesh. It tracks every five minutes since a model's start; late orders precede it."""
    first = min(file.name for file in (place.folder / "data" / "orders").glob("*.jsonl")).partition("-")[2]
    start = datetime.strptime(first[:8], "%Y%m%d") - timedelta(days=8)
    return {"BENCH_START": f"{start:%Y-%m-%d}", "SQLMESH__DISABLE_ANONYMIZED_ANALYTICS": "true"}


def _sdp(place: Place, as_of: datetime) -> list[list[str]]:
    settings = {
        "spark.bench.as_of": stamp(as_of),
        "spark.bench.folder": str(place.folder),
        "spark.driver.memory": place.memory,
        "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
        # Without a metastore, tables are lost at the end of a run.
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.warehouse.dir": str(place.folder / "spark-warehouse"),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.ui.enabled": "false",
    }
    options = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    return [[place.program("spark-pipelines"), "run", "--remote", "local[2]", *options]]


def _sdp_variables(place: Place) -> dict[str, str]:
    """Return variables for SDP, whose scripts look for Python on the path, and for Spark beside it."""
    home = next(place.python.parent.parent.glob("lib/python*/site-packages/pyspark"), place.folder)
    return {"PATH": f"{place.python.parent}:{os.environ['PATH']}", "SPARK_HOME": str(home)}


ENGINES = ("auto", "duckdb", "spark")
CONTENDERS = (
    *(_sqlrun(engine) for engine in ENGINES),
    *(_sqlrun_command(engine) for engine in ENGINES),
    Contender(
        "duckdb_by_hand",
        "DuckDB, incremental by hand",
        "hand-written DuckDB SQL in one file: newest versions, net changes merged into facts; no checks, no ledger",
        "duckdb_by_hand",
        ("duckdb",),
        resident=("benchmarks.rivals.duckdb_by_hand",),
    ),
    Contender(
        "duckdb_full",
        "DuckDB, full recompute",
        "parsed events in a DuckDB file; each tick computes hours and mart from all of them",
        "duckdb_full",
        ("duckdb",),
        resident=("benchmarks.rivals.duckdb_full",),
    ),
    Contender(
        "dbt_duckdb",
        "dbt + DuckDB",
        "`dbt build`: incremental models with look-back, tests of the keys; a command a tick",
        "dbt_duckdb",
        ("dbt-core", "dbt-duckdb", "duckdb"),
        commands=_dbt,
        rows=lambda folder: mart_readers.of_duckdb(folder / "bench.duckdb", "restaurant_windows"),
        variables=lambda _: {"DBT_PROFILES_DIR": ".", "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"},
        # In portions that end at one time, its look-back would find only the last days.
        at_once=True,
    ),
    Contender(
        "sqlmesh",
        "SQLMesh + DuckDB",
        "`sqlmesh plan --run --auto-apply`: incremental by time range and by unique key; a command a tick",
        "sqlmesh",
        ("sqlmesh", "duckdb"),
        commands=_sqlmesh,
        rows=lambda folder: mart_readers.of_duckdb(folder / "tables.duckdb", "bench.restaurant_windows"),
        variables=_sqlmesh_variables,
        at_once=True,
    ),
    Contender(
        "expert",
        "Structured Streaming by an expert",
        "a hand-written, tuned job: one `foreachBatch` with MERGEs into Delta tables; no checks, no ledger",
        "expert",
        ("pyspark", "delta-spark"),
        resident=("benchmarks.rivals.expert",),
        needs_java=True,
    ),
    Contender(
        "spark_full",
        "Spark, full recompute",
        "parsed events in a Delta table; each tick computes hours and mart from all of them",
        "spark_full",
        ("pyspark", "delta-spark"),
        resident=("benchmarks.rivals.spark_full",),
        needs_java=True,
    ),
    Contender(
        "sdp",
        "Spark Declarative Pipelines",
        "`spark-pipelines run`: a streaming table of events, materialized views over it; a command a tick",
        "sdp",
        ("pyspark",),
        commands=_sdp,
        rows=lambda folder: mart_readers.of_parquet(folder / "spark-warehouse" / "restaurant_windows"),
        variables=_sdp_variables,
        needs_java=True,
    ),
    Contender(
        "dbt_spark",
        "dbt + Spark",
        "`dbt build` in a Spark session on Delta: incremental models by merge and by partition; a command a tick",
        "dbt_spark",
        ("dbt-core", "dbt-spark", "pyspark", "delta-spark"),
        commands=_dbt,
        rows=lambda folder: mart_readers.of_delta(folder / "spark-warehouse" / "bench.db" / "restaurant_windows"),
        variables=lambda place: {"DBT_PROFILES_DIR": ".", "PWD": str(place.folder)},
        at_once=True,
        needs_java=True,
    ),
)
BY_NAME = {contender.name: contender for contender in CONTENDERS}
