"""The engine without a JVM: DuckDB computes, delta-rs or sqlrun commits. Shell: DuckDB and Delta files."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlrun.engine_api import (
    NONE_GIVEN,
    Append,
    Dialect,
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
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.delta import table_pool
from sqlrun.engines.duckdb import data_errors, remote
from sqlrun.engines.duckdb import landing as duckdb_landing
from sqlrun.engines.duckdb import relations as duckdb_relations
from sqlrun.engines.duckdb import scan as duckdb_scan
from sqlrun.engines.duckdb import write as duckdb_write
from sqlrun.errors import DataError, EngineError, UnsuitedError, first_line
from sqlrun.runtime.stopping import limited, out_of_time
from sqlrun.transpile import parameters
from sqlrun.transpile.writer import string

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


# The engine may read Parquet and landed files; it fetches nothing and reads no Python variable.
CLOSED: dict[str, str | bool] = {
    "python_enable_replacements": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
}
# Maximum number of sessions before the database is opened again: DuckDB keeps about 1 KB of each COPY until it closes.
SESSIONS = 2000


def refusal(settings: dict[str, str]) -> str:
    """Return DuckDB's error about settings; "" if it accepts them."""
    import duckdb

    try:
        duckdb.connect(config={**CLOSED, **settings}).close()
    except duckdb.Error as error:
        return first_line(error)
    return ""


class DuckDBEngine:
    """Runs change queries in DuckDB over the tables' Parquet files and commits the results."""

    name = "duckdb"
    dialect: Dialect = "duckdb"

    def __init__(self, settings: dict[str, str] | None = None, own_commits: bool = True, folder: str = "") -> None:
        """Keep the settings for the database; with `folder`, it may open files below this folder alone."""
        self._settings, self._own_commits, self._folder = dict(settings or {}), own_commits, folder
        self._root: duckdb.DuckDBPyConnection | None = None
        self._lock = threading.RLock()
        self._numbers = itertools.count(1)
        # Sessions opened in this database, and sessions in use: garbage collection may end one while the lock is held.
        self._given, self._busy = 0, 0

    def start(self) -> None:
        """Open the in-memory database; do nothing if it is open.

        Raises: EngineError if DuckDB rejects the profile's settings.
        """
        with self._lock:
            self._opened()

    def _opened(self) -> duckdb.DuckDBPyConnection:
        import duckdb

        if self._root is None:
            try:
                self._root = duckdb.connect(config={**CLOSED, **self._settings})
            except duckdb.Error as error:
                names = ", ".join(sorted(self._settings))
                message = f"DuckDB rejects the profile's settings ({names}): {first_line(error)}"
                raise EngineError(message) from error
            self._root.execute("set TimeZone = 'UTC'")
            self._root.execute("set preserve_insertion_order = false")
            if self._folder:
                self._root.execute(f"set allowed_directories = [{string(self._folder, 'duckdb')}]")
                self._root.execute("set enable_external_access = false")
            self._root.execute("set lock_configuration = true")
        # The first object store may be in use only after the database was opened.
        remote.register(self._root)
        return self._root

    @contextmanager
    def _session(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Lend a session of the database, which is opened again after many sessions if none is in use."""
        with self._lock:
            if self._given >= SESSIONS and not self._busy:
                self._let_go()
            session = self._opened().cursor()
            self._given += 1
            self._busy += 1
        try:
            yield session
        finally:
            session.close()
            with self._lock:
                self._busy -= 1

    @contextmanager
    def lent(self, name: str, statement: str = "") -> Iterator[duckdb.DuckDBPyConnection]:
        """Lend a session for one statement, with the time limit of statements."""
        with self._session() as session, self._limited(session.interrupt, name, statement):
            yield session

    @contextmanager
    def _limited(self, interrupt: Callable[[], object], name: str, statement: str) -> Iterator[None]:
        """Explain a statement's errors, and interrupt it after its time limit."""
        with limited(interrupt) as limit:
            try:
                yield
            except self._errors() as error:
                if limit.over:
                    raise EngineError(out_of_time(limit), model=name, statement=statement) from error
                raise self._wrapped(error, name, statement) from error

    def create(self, table: TableSpec) -> None:
        """Create the empty table as version 0; do nothing if it exists."""
        delta_create.create(table)

    def head(self, path: str) -> int | None:
        """Return the newest version of a table; None if there is no table."""
        return delta_table.head(path)

    def restore(self, path: str, version: int, head: int | None = None) -> None:
        """Restore the table's contents at `version` in a new commit; with `head`, only if it is the newest version."""
        self._require_written(delta_table.open_table(path), path)
        delta_table.restore(path, version, head)

    def land(self, landing: Landing) -> Written:
        """Land the files that are in no batch yet; replay a batch that was planned and not committed."""
        started = time.perf_counter()
        if landed_elsewhere.nothing_waits(landing, self.name):
            version = delta_table.head(landing.table.path) or 0
            return Written(version, Receipt(time.perf_counter() - started))
        sessions: list[duckdb.DuckDBPyConnection] = []

        def interrupt() -> None:
            for each in sessions:
                each.interrupt()

        with ExitStack() as lent, self._limited(interrupt, landing.table.name, landing.sql):

            def session() -> duckdb.DuckDBPyConnection:
                sessions.extend([] if sessions else [lent.enter_context(self._session())])
                return sessions[0]

            commit = partial(duckdb_landing.commit, session)
            landed = planned_landing.land(commit, replace(landing, own_commit=self._own_commits))
        seconds = time.perf_counter() - started
        receipt = Receipt(seconds, rows_written=landed.rows, commits=1 if landed.rows else 0)
        return Written(landed.version, receipt, landed.notes, landed.batches)

    def write(self, write: Write) -> Written:
        """Execute one statement and check that its commit is the one after `base`."""
        write = replace(parameters.bound_write(write, self.dialect), own_commit=self._own_commits)
        with table_pool.writing(write.table.path, base=write.base) as table:
            return self._written(table, write)

    def _written(self, table: Any, write: Write) -> Written:
        started = time.perf_counter()
        if table.version() != write.base:
            raise EngineError(
                f"{write.table.name} is at version {table.version()}, but this tick began at {write.base}: "
                "another writer changed it",
                model=write.table.name,
            )
        self._require_written(table, write.table.name)
        reads = duckdb_scan.Reads()
        with self.lent(write.table.name, _text(write)) as session:
            written = self._carry_out(session, table, _over(session, write, reads), reads)
        # A commit is its own proof: whether another writer's follows, the next tick looks.
        version = table_pool.version_made(table)
        if version != write.base + (1 if written else 0):
            raise EngineError(
                f"{write.table.name} is at version {version} after the write instead of {write.base + 1}",
                model=write.table.name,
            )
        receipt = Receipt(
            time.perf_counter() - started,
            rows_read=reads.rows,
            bytes_read=reads.bytes,
            files_read=reads.files,
            rows_written=written,
            commits=1 if written else 0,
        )
        return Written(version, receipt)

    def _carry_out(self, session: Any, table: Any, write: Write, reads: duckdb_scan.Reads) -> int:
        """Run the statement; return the number of rows written, 0 for no commit."""
        commit = delta_table.commit(write.app_id, write.tick, write.metadata)
        if not isinstance(write.statement, Merge):
            write.may_commit()  # delta-rs writes and commits in one step
        match write.statement:
            case Append(sql=sql):
                return duckdb_write.append(session, table, sql, commit)
            case Replace(sql=sql):
                return duckdb_write.replace(session, table, sql, commit)
            case Overwrite():
                partitions = write.table.partition_by
                return duckdb_write.overwrite(session, table, write.statement, partitions, commit)
            case Load(rows=rows):
                return duckdb_write.load(table, rows, commit)
            case Merge():
                return duckdb_write.merge(session, table, write, write.statement, commit, reads)

    def query(self, sql: str, relations: tuple[Relation, ...], given: Mapping[str, pa.Table] = NONE_GIVEN) -> pa.Table:
        """Run a SELECT over the relations and the given rows, and return its rows."""
        with self.lent("", sql) as session:
            for name, rows in given.items():
                session.register(name, rows)
            whole = duckdb_relations.over(session, relations, duckdb_scan.Reads(), sql)
            return session.sql(whole).to_arrow_table()

    def parts(self, sql: str, relations: tuple[Relation, ...], rows: int) -> Iterator[pa.Table]:
        """Run a SELECT over the relations and return its rows, at most `rows` at a time; only those are in memory."""
        import pyarrow as pa

        with self._session() as session:
            with self._limited(session.interrupt, "", sql):
                duckdb_relations.register(session, relations, duckdb_scan.Reads())
                batches = iter(session.sql(sql).to_arrow_reader(rows))
            while True:
                with self._limited(session.interrupt, "", sql):
                    batch = next(batches, None)
                if batch is None:
                    return
                yield pa.Table.from_batches([batch])

    def close(self) -> None:
        """Close the database."""
        with self._lock:
            self._let_go()

    def _let_go(self) -> None:
        if self._root is not None:
            self._root.close()
            self._root, self._given = None, 0

    def _require_written(self, table: Any, name: str) -> None:
        """Reject a table with features that delta-rs can't write, before anything is computed."""
        foreign = delta_features.foreign(table)
        if foreign:
            raise UnsuitedError(
                f"{name} uses features of Delta that delta-rs can't write: {', '.join(foreign)}", model=name
            )

    def _errors(self) -> tuple[type[Exception], ...]:
        import duckdb
        from deltalake.exceptions import DeltaError

        return (duckdb.Error, DeltaError, OSError)

    def _wrapped(self, error: Exception, model: str, statement: str) -> EngineError:
        import duckdb

        message = f"{type(error).__name__}: {first_line(error)}"
        if isinstance(error, duckdb.OutOfMemoryException) or "Resources exhausted" in str(error):
            # Only the settings cause this: by default DuckDB uses most of the available memory.
            hint = ". Increase `memory_limit` in the profile's settings" if "memory_limit" in self._settings else ""
            return UnsuitedError(message + hint, model=model, statement=statement)
        value = data_errors.found(error)
        if value is not None:
            return DataError(*value, model=model, statement=statement)
        return EngineError(message, model=model, statement=statement)


def _over(session: Any, write: Write, reads: duckdb_scan.Reads) -> Write:
    """Bind the relations that a write's statement reads."""
    match write.statement:
        case Merge(delta=sql) as merge:
            delta = duckdb_relations.over(session, write.relations, reads, sql)
            return replace(write, statement=replace(merge, delta=delta))
        case _:
            duckdb_relations.register(session, write.relations, reads)
            return write


def _text(write: Write) -> str:
    match write.statement:
        case Merge(delta=sql) | Append(sql=sql) | Replace(sql=sql) | Overwrite(sql=sql):
            return sql
        case Load():
            return ""
