"""The default engine: Spark computes and commits, on one machine or a cluster. Shell: Spark."""

from __future__ import annotations

import itertools
import json
import queue
import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from sqlrun.engine_api import (
    NONE_GIVEN,
    Append,
    Dialect,
    LandedBatch,
    Landing,
    Load,
    Merge,
    Overwrite,
    Receipt,
    Relation,
    Replace,
    TableSpec,
    Write,
    Written,
)
from sqlrun.engines import landed_elsewhere, planned_landing
from sqlrun.engines.delta import create as delta_create
from sqlrun.engines.delta import features as delta_features
from sqlrun.engines.delta import foreign_commits, table_pool
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.duckdb import write as duckdb_write
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.engines.spark import (
    conf as spark_conf,
)
from sqlrun.engines.spark import data_errors, remote
from sqlrun.engines.spark import (
    landing as spark_landing,
)
from sqlrun.engines.spark import (
    metrics as spark_metrics,
)
from sqlrun.engines.spark import (
    parts as spark_parts,
)
from sqlrun.engines.spark import planned as spark_planned
from sqlrun.engines.spark import (
    views as spark_views,
)
from sqlrun.engines.spark import (
    write as spark_write,
)
from sqlrun.engines.spark.cancellation import Cancel
from sqlrun.engines.spark.catalog import SparkCatalog
from sqlrun.errors import DataError, EngineError
from sqlrun.runtime.stopping import limited, out_of_time
from sqlrun.runtime.text_lines import text_lines
from sqlrun.transpile import parameters
from sqlrun.transpile.writer import identifier

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

APP_ID = "spark.databricks.delta.write.txnAppId"
APP_VERSION = "spark.databricks.delta.write.txnVersion"
ANSI = "spark.sql.ansi.enabled"
METADATA = "spark.databricks.delta.commitInfo.userMetadata"


class SparkEngine:
    """Runs change queries as Spark SQL over Delta tables at pinned versions."""

    name = "spark"
    dialect: Dialect = "spark"

    def __init__(self, settings: dict[str, str] | None = None, own_commits: bool = True) -> None:
        self._settings, self._own_commits = dict(settings or {}), own_commits
        self._spark: SparkSession | None = None
        self._lock = threading.Lock()
        self._idle: queue.SimpleQueue[SparkSession] = queue.SimpleQueue()
        self._numbers = itertools.count(1)
        # Writes the rows that a MERGE changes to files.
        self._files = DuckDBEngine()
        # Unique, because a borrowed JVM still has the jobs of earlier borrowers.
        self._group = f"sqlrun-{secrets.token_hex(4)}"

    @property
    def is_up(self) -> bool:
        """Return whether the JVM runs."""
        return self._spark is not None

    def start(self) -> None:
        """Start the JVM; do nothing if it runs."""
        with self._lock:
            if self._spark is None:
                if remote.REMOTE in self._settings:
                    self._spark = remote.session_of(self._settings)
                    return
                from sqlrun.engines.spark.session import session_of

                self._spark = session_of(self._settings)

    @contextmanager
    def _session(self) -> Iterator[SparkSession]:
        """Lend a separate session: settings and temporary views are per session, and writes run in threads."""
        self.start()
        assert self._spark is not None
        try:
            session = self._idle.get_nowait()
        except queue.Empty:
            session = self._another()
        try:
            yield session
        finally:
            self._idle.put(session)

    def _another(self) -> SparkSession:
        assert self._spark is not None
        return remote.another(self._settings) if remote.is_remote(self._spark) else self._spark.newSession()

    def worker_problem(self) -> str:
        """Return what is wrong with the Python of a cluster's executors; "" if nothing, or on this machine alone."""
        if remote.REMOTE not in self._settings and self._settings.get("spark.master", "local").startswith("local"):
            return ""
        from sqlrun.engines.spark import probe

        with self._session() as session, self._limited(session, "", "the versions of the executors"):
            return probe.pythons(session)

    def create(self, table: TableSpec) -> None:
        """Create the empty table as version 0; do nothing if it exists. This needs no Spark job."""
        delta_create.create(table)

    def head(self, path: str) -> int | None:
        """Return the newest version of a table; None if there is no table."""
        return delta_table.head(path)

    def restore(self, path: str, version: int, head: int | None = None) -> None:
        """Restore the table's contents at `version` in a new commit; with `head`, only if it is the newest version.

        delta-rs writes the commit, which needs no Spark job; Spark does if delta-rs can't write the table.
        """
        if not delta_features.foreign(delta_table.open_table(path)):
            delta_table.restore(path, version, head)
            return
        delta_table.require_head(path, head)
        with self._session() as session, self._limited(session, "", "restore"):
            session.conf.set(METADATA, json.dumps({foreign_commits.BY: "recovery"}))
            try:
                session.sql(f"restore table {table_name(path)} to version as of {int(version)}")
            finally:
                session.conf.unset(METADATA)

    def land(self, landing: Landing) -> Written:
        """Land new lines: with Structured Streaming, `availableNow`, or in planned batches."""
        if landing.source.streaming is None:
            return self._planned(landing)
        started = time.perf_counter()
        before = delta_table.head(landing.table.path)
        assert before is not None
        if landed_elsewhere.nothing_waits(landing, self.name):
            return Written(before, Receipt(time.perf_counter() - started))
        spark_landing.require_own(landing)
        known = spark_landing.look(landing)
        spark_landing.require_parts(landing, known)
        notes = spark_landing.notes(landing, known)
        if spark_landing.nothing_new(landing, known):
            return Written(before, Receipt(time.perf_counter() - started), notes)
        with self._session() as session, self._limited(session, landing.table.name, landing.sql) as (_, cancel):
            counts = spark_landing.stream(session, landing, known, cancel)
        after = delta_table.head(landing.table.path)
        assert after is not None
        receipt = Receipt(time.perf_counter() - started, commits=after - before)
        commits = tuple(range(before + 1, after + 1))
        batches = (LandedBatch(commits, known.pending.ready, {}, counts),) if commits else ()
        return Written(after, receipt, notes, batches)

    def _planned(self, landing: Landing) -> Written:
        started = time.perf_counter()
        before = delta_table.head(landing.table.path)
        with ExitStack() as lent:

            @cache
            def session() -> SparkSession:
                found = lent.enter_context(self._session())
                lent.enter_context(self._limited(found, landing.table.name, landing.sql))
                return found

            landed = planned_landing.land(partial(spark_planned.commit, session), landing)
        after = delta_table.head(landing.table.path)
        assert before is not None and after is not None
        receipt = Receipt(time.perf_counter() - started, rows_written=landed.rows, commits=after - before)
        return Written(after, receipt, landed.notes, landed.batches)

    def write(self, write: Write) -> Written:
        """Execute one statement and check that its commit is the one after `base`."""
        write = replace(parameters.bound_write(write, self.dialect), own_commit=self._own_commits)
        write.may_commit()  # Spark writes and commits in one step
        with table_pool.writing(write.table.path) as table:
            return self._written(table, write)

    def _written(self, table: Any, write: Write) -> Written:
        started = time.perf_counter()
        if table.version() != write.base:
            raise EngineError(
                f"{write.table.name} is at version {table.version()}, but this tick began at {write.base}: "
                "another writer changed it",
                model=write.table.name,
            )
        used = table.transaction_version(write.app_id)
        if used is not None and used >= write.tick:
            raise EngineError(f"tick {write.tick} was already written to {write.table.name}", model=write.table.name)
        if isinstance(write.statement, Load):
            return _load(table, write, write.statement, started)
        name, text = write.table.name, spark_write.text_of(write)
        with self._session() as session, self._limited(session, name, text) as (group, _):
            with _views(session, write.relations), _transaction(session, write):
                self._carry_out(session, table, write)
            costs = spark_metrics.costs(session, group)
        delta_table.follow(write.table.path, table)
        if table.version() not in (write.base, write.base + 1):
            raise EngineError(
                f"{write.table.name} is at version {table.version()} after the write instead of {write.base + 1}",
                model=write.table.name,
            )
        seconds = time.perf_counter() - started
        return Written(table.version(), spark_metrics.receipt(seconds, costs, write, table.version()))

    def _carry_out(self, session: SparkSession, table: Any, write: Write) -> None:
        match write.statement:
            case Append(sql=sql):
                frame = spark_parts.frame(session, sql)
                if not frame.isEmpty():
                    frame.write.format("delta").mode("append").save(write.table.path)
            case Replace(sql=sql):
                frame = spark_parts.frame(session, sql)
                frame.write.format("delta").mode("overwrite").save(write.table.path)
            case Overwrite():
                spark_write.overwrite(session, write, write.statement)
            case Load():
                raise AssertionError("rows of Python values are written without Spark")
            case Merge():
                spark_write.merge(session, self._files.lent, table, write, write.statement)

    def query(self, sql: str, relations: tuple[Relation, ...], given: Mapping[str, pa.Table] = NONE_GIVEN) -> pa.Table:
        """Run a SELECT over the relations and the given rows, and return its rows."""
        with self._session() as session, self._limited(session, "", sql), _views(session, relations, given):
            return spark_views.arrow(spark_parts.frame(session, sql))

    def parts(self, sql: str, relations: tuple[Relation, ...], rows: int) -> Iterator[pa.Table]:
        """Run a SELECT over the relations and return its rows, at most `rows` at a time; all of them are in memory."""
        found = self.query(sql, relations)
        for start in range(0, found.num_rows, rows):
            yield found.slice(start, rows)

    def catalog(self, name: str) -> SparkCatalog:
        """Return a catalog by its name in Spark's settings."""

        def run(statement: str) -> list[Any]:
            with self._session() as session, self._limited(session, "", statement):
                return session.sql(statement).collect()

        return SparkCatalog(name, run)

    def close(self) -> None:
        """Stop Spark and its JVM; a borrowed JVM continues."""
        with self._lock:
            if self._spark is not None:
                if remote.is_remote(self._spark):
                    remote.end(self._spark, self._idle)
                else:
                    from sqlrun.engines.spark.session import end

                    end(self._spark)
                self._spark = None
                self._idle = queue.SimpleQueue()
        self._files.close()

    @contextmanager
    def _limited(self, session: SparkSession, model: str, statement: str) -> Iterator[tuple[str, Cancel]]:
        """Run a statement's jobs as a group, explain their errors, and cancel them after the time limit."""
        group = f"{self._group}-{next(self._numbers)}"
        with _grouped(session, group, model) as cancel, limited(cancel) as limit:
            try:
                with self._explained(model, statement):
                    yield group, cancel
            except EngineError as error:
                if limit.over:
                    raise EngineError(out_of_time(limit), model=model, statement=statement) from error
                raise

    @contextmanager
    def _explained(self, model: str, statement: str) -> Iterator[None]:
        """Turn errors of Spark and Java into one short line; the stack stays in `__cause__`."""
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        try:
            yield
        except (PySparkException, Py4JError) as error:
            value = data_errors.found(str(error))
            if value is not None:
                raise DataError(*value, model=model, statement=statement) from error
            raise EngineError(_first_line(error), model=model, statement=statement) from error


@contextmanager
def _grouped(session: SparkSession, group: str, model: str) -> Iterator[Cancel]:
    """Run jobs as a group, which can be cancelled; on Spark Connect a tag of the session's statements is one."""
    if not remote.is_remote(session):
        session.sparkContext.setJobGroup(group, model, interruptOnCancel=True)
        yield Cancel(session.sparkContext.cancelJobGroup, group)
        return
    session.addTag(group)
    try:
        yield Cancel(session.interruptTag, group)
    finally:
        session.removeTag(group)


def _load(table: Any, write: Write, statement: Load, started: float) -> Written:
    """Write a seed's few rows without a job, because the first job of a new Spark takes ten seconds."""
    commit = delta_table.commit(write.app_id, write.tick, write.metadata)
    rows = duckdb_write.load(table, statement.rows, commit)
    delta_table.follow(write.table.path, table)
    receipt = Receipt(time.perf_counter() - started, rows_written=rows, jobs=0, commits=1)
    return Written(table.version(), receipt)


def _first_line(error: Exception) -> str:
    text = str(error).strip()
    _, traceback, python = text.partition("\nTraceback (most recent call last):\n")
    if traceback:
        # An executor's Python: the line after the indented frames says what happened, after the error's class.
        cause = next((line for line in text_lines(python) if line[:1].strip()), text)
        return (cause.partition(": ")[2] if cause.startswith("sqlrun.") else cause)[:500]
    lines = [line.strip() for line in text_lines(text) if line.strip()]
    messages = [line for line in lines if not line.startswith(("at ", "An error occurred while calling", "Suppressed"))]
    first = (messages or lines or [type(error).__name__])[0].removeprefix(": ")
    # `org.apache.spark.SomeException: [ERROR_CLASS] what happened`: the part from the bracket on suffices.
    return first[first.index("[") :][:500] if "[" in first else first[:500]


def table_name(path: str) -> str:
    """Return a table's name in SQL, by its path."""
    return f"delta.{identifier(path, 'spark')}"


@contextmanager
def _views(session: Any, relations: tuple[Relation, ...], given: Mapping[str, pa.Table] = NONE_GIVEN) -> Iterator[None]:
    """Register relations and given rows for one statement, and configure the session for its size."""
    names = (*(relation.name for relation in relations), *given)
    try:
        spark_conf.choose(session, spark_views.register(session, relations))
        spark_views.give(session, given)
        yield
    finally:
        spark_views.forget(session, names)


@contextmanager
def _transaction(session: Any, write: Write) -> Iterator[None]:
    """Set the transaction id and metadata for one write, and unset them: they would leak to the next."""
    session.conf.set(APP_ID, write.app_id)
    session.conf.set(APP_VERSION, str(write.tick))
    session.conf.set(METADATA, json.dumps({**write.metadata, "sqlrun.tick": str(write.tick)}))
    if write.lenient:
        session.conf.set(ANSI, "false")
    try:
        yield
    finally:
        if write.lenient:
            session.conf.unset(ANSI)
        for key in (APP_ID, APP_VERSION, METADATA):
            session.conf.unset(key)
