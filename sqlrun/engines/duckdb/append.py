"""Appends: DuckDB writes a table's inserted rows as new files. Shell: DuckDB, Delta files.

Files exist before a commit names them (decision 26). delta-rs appends to tables that sqlrun didn't create.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from sqlrun.engine_api import Write
from sqlrun.engines.delta import commit as delta_commit
from sqlrun.engines.delta import deletion_vectors
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.delta.commit import Change, File
from sqlrun.engines.duckdb import copy as duckdb_copy
from sqlrun.engines.duckdb import write as duckdb_write
from sqlrun.errors import SqlrunError
from sqlrun.storage.factory import storage_of
from sqlrun.storage.stages import Stage, staged
from sqlrun.transpile.writer import identifier, type_name


class Coming:
    """Rows to append to a table, collected query by query and committed at once."""

    def __init__(self, session: Any, table: Any, write: Write, stage: Stage) -> None:
        self._session, self._table, self._write, self._stage = session, table, write, stage
        self._ours = not write.table.partition_by and delta_commit.ours(table, write)
        self._started = time.perf_counter()
        self._rows, self._made = 0, False
        self._files: list[File] = []
        self.paths: list[str] = []

    def add(self, sql: str) -> None:
        """Compute and write the rows of a query over the table's columns."""
        items = ", ".join(
            f"cast({name} as {type_name(column.type, 'duckdb')}) as {name}"
            for column in self._write.table.columns
            for name in [identifier(column.name, "duckdb")]
        )
        if self._ours:
            self._copy(f"select {items} from ({sql})")
            return
        verb = "insert into _coming" if self._made else "create or replace temp table _coming as"
        self._made = True
        self._rows += int(self._session.execute(f"{verb} select {items} from ({sql})").fetchall()[0][0])

    def _copy(self, sql: str) -> None:
        for file in duckdb_copy.copied(self._session, self._write, sql, "", {}, self.paths, self._stage):
            self._files.append(file)
            self._rows += file.rows

    def withdraw(self) -> None:
        """Delete the files of rows that won't be committed."""
        with suppress(OSError, SqlrunError):
            self._stage.wait()
        for file in self.paths:
            storage_of(file).delete(file)
        self.paths.clear()

    def commit(self, metadata: Mapping[str, str]) -> int:
        """Commit all rows as the table's next version, even if there are none; return their number."""
        write = replace(self._write, metadata=metadata)
        if not self._ours:
            commit = delta_table.commit(write.app_id, write.tick, metadata)
            duckdb_write.append_table(self._session, self._table, "_coming", commit)
            return self._rows
        metrics = {
            "num_added_files": len(self._files),
            "num_removed_files": 0,
            "num_added_rows": self._rows,
            "execution_time_ms": int((time.perf_counter() - self._started) * 1000),
        }
        change = Change("WRITE", {"mode": "Append"}, metrics, tuple(self._files))
        deleted = deletion_vectors.deleted(self._table)
        self._stage.wait()
        # From here on a commit may name the files, so they must stay even after an error.
        self.paths.clear()
        delta_commit.commit(self._table, write, change)
        deletion_vectors.keep(self._table, deleted, write.base + 1)
        return self._rows


@contextmanager
def coming(session: Any, table: Any, write: Write) -> Iterator[Coming]:
    """Collect rows for a table; on an error before the commit, delete their files."""
    with staged(write.table.path) as stage:
        rows = Coming(session, table, write, stage)
        try:
            yield rows
        except BaseException:
            rows.withdraw()
            raise
