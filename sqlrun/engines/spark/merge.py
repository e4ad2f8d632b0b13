"""A MERGE on Spark as two jobs: one collects the delta, one finds changed rows. Shell: Spark, DuckDB, Delta files.

Delta's own MERGE takes seven jobs a table and replays the table's log in each of them. Here delta-rs lists the files
that can contain a row of the delta, and Spark finds the replaced rows there and computes the new values. The changed
rows, which are few, are written and committed as on the DuckDB engine (`duckdb_rewrite`). Delta's own MERGE handles
large deltas and tables that sqlrun didn't create.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from sqlrun.engine_api import Merge, Prune, StoredColumn, Write
from sqlrun.engines.delta import commit as delta_commit
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.delta.merge_sql import operation, same
from sqlrun.engines.duckdb import merge as duckdb_merge
from sqlrun.engines.duckdb import scan as duckdb_scan
from sqlrun.engines.spark import conf as spark_conf
from sqlrun.engines.spark import views as spark_views
from sqlrun.engines.spark.file_names import path_of
from sqlrun.runtime import arrow_rows
from sqlrun.runtime.far_times import ordered
from sqlrun.transpile.writer import identifier, type_name

if TYPE_CHECKING:
    import pyarrow as pa

# Maximum number of rows of a delta and of a target; Delta's MERGE takes any size, in bounded memory.
MOST_DELTA = 200_000
MOST_TARGET = 5_000_000
# Maximum number of partitions written one by one; Delta's MERGE writes any number of them.
MOST_PARTITIONS = 400
# Maximum number of the target's rows that one task reads: up to it a second task costs more than it saves.
ONE_TASK = 300_000
# Columns of the result: a row's operation, its values and its position.
OP, NEW, OLD, FILE, ROW = "_sqlrun.op", "_sqlrun.new.", "_sqlrun.old.", spark_views.FILE, spark_views.ROW

# A column of the target in an expression.
NAMED = re.compile(r"\bt\.(?:`((?:[^`]|``)+)`|(\w+))")

# Lends a session of DuckDB, which writes rows to files.
Lend = Callable[[str], AbstractContextManager[Any]]


@dataclass(frozen=True, slots=True)
class Target:
    """The files that a delta can affect, as delta-rs lists them, and their number of rows."""

    files: tuple[dict[str, Any], ...]
    rows: int


def merge(session: Any, lend: Lend, table: Any, write: Write, statement: Merge, frame: Any) -> bool:
    """Execute a MERGE into the open table; return False, without any effect, if Delta's own MERGE has to do it."""
    import pyarrow.compute as pc

    if not delta_commit.ours(table, write):
        return False
    delta = spark_views.arrow(frame.limit(MOST_DELTA + 1))
    if delta.num_rows > MOST_DELTA:
        return False
    if not delta.num_rows:
        return True
    target = _target(table, statement.prune, delta)
    files = [unquote(file["path"]) for file in target.files]
    if target.rows > MOST_TARGET or not spark_views.direct(table, target.files):
        return False
    spark_conf.choose(session, target.rows + delta.num_rows)
    source = session.createDataFrame(delta, schema=frame.schema)
    read = _read(write, statement)
    old = spark_views.live(session, table, files, places=True)
    names = [identifier(name, "spark") for name in (*read, FILE, ROW)]
    found = _placed(_hits(session, write, statement, source, old.select(*names), read, target.rows))
    if not found.num_rows:
        return True
    with lend(write.table.name) as writer:
        writer.register("_found", found)
        matched = [path for path in pc.unique(found[FILE]).to_pylist() if path is not None]
        writer.execute(f"create or replace temp table _hits as {_typed(write, statement, read, matched)}")
        plan = duckdb_merge.planned(writer, table, write, list(target.files), MOST_PARTITIONS)
        if plan is None or not plan.fits:
            return False
        duckdb_merge.carry_out(writer, table, _with_metadata(write), statement, plan)
    return True


def _target(table: Any, prune: Prune, delta: pa.Table) -> Target:
    """Return the files that can contain a row of the delta, by their partitions and statistics."""
    import pyarrow.compute as pc

    parts = set(table.metadata().partition_columns)
    partition_values = {
        name: {ordered(value) for value in arrow_rows.values(pc.unique(delta[name]))}
        for name in prune.partitions
        if name in parts
    }
    ranges = [(key, low, high) for key, group in prune.ranges for low, high in _ranges(delta, key, group)]
    near = duckdb_scan.overlapping(ranges) if ranges and all(low is not None for _, low, _ in ranges) else None

    def keep(file: Mapping[str, Any]) -> bool:
        if any(ordered(file.get(f"partition.{name}")) not in partition_values[name] for name in partition_values):
            return False
        return near is None or near(dict(file))

    files = tuple(filter(keep, delta_table.files_at(table, {key for key, _, _ in ranges})))
    return Target(files, spark_conf.rows_in(files))


def _ranges(delta: pa.Table, key: str, group: str) -> Iterator[tuple[Any, Any]]:
    """Yield the ranges of a key, one for each group of the delta."""
    keys = delta.select([key]).append_column("_group", delta[group])
    found = keys.group_by("_group").aggregate([(key, "min"), (key, "max")])
    return zip(arrow_rows.values(found[f"{key}_min"]), arrow_rows.values(found[f"{key}_max"]), strict=True)


def _read(write: Write, statement: Merge) -> list[str]:
    """Return the target's columns that decide the operation; the others are read only for changed rows."""
    columns, updates = [c.name for c in write.table.columns], dict(statement.update)
    texts = [statement.delete_when, statement.update_when, statement.insert_when]
    texts += [*updates.values(), *dict(statement.insert).values()]
    found = {(quoted.replace("``", "`") or plain).lower() for text in texts for quoted, plain in NAMED.findall(text)}
    needed = {*found, *(name.lower() for name in (*statement.key, *write.table.partition_by))}
    return [name for name in columns if name.lower() in needed or name not in updates]


def _hits(session: Any, write: Write, statement: Merge, source: Any, old: Any, read: list[str], rows: int) -> pa.Table:
    """Return each changed row: its operation, its new and old values, and its position."""
    if rows > ONE_TASK:
        on = " and ".join(same(statement, "spark"))
        # Each task filters its files by the delta; the few matches are joined with the delta in one task.
        source.hint("broadcast").createOrReplaceTempView("_delta")
        old.createOrReplaceTempView("_old")
        old = session.sql(f"select t.* from _old as t left semi join _delta as s on {on}").repartition(1)
    old.coalesce(1).createOrReplaceTempView("_old")
    # The delta is the hashed side, so that neither side is sorted or shuffled.
    source.coalesce(1).hint("shuffle_hash").createOrReplaceTempView("_delta")
    try:
        return spark_views.arrow(session.sql(_text(write.table.columns, statement, read)))
    finally:
        session.catalog.dropTempView("_old")
        session.catalog.dropTempView("_delta")


def _text(columns: tuple[StoredColumn, ...], statement: Merge, read: list[str]) -> str:
    """Return the query of the operation and the values for each changed row."""
    updates = {name: text for name, text in statement.update if name not in statement.key}
    inserts = dict(statement.insert)
    op, file, row = (identifier(name, "spark") for name in (OP, FILE, ROW))
    # Deleted rows keep their key.
    items = [f"{operation(statement, f't.{file} is null')} as {op}"]
    for column in columns:
        name = identifier(column.name, "spark")
        inserted, updated = inserts.get(column.name, "null"), updates.get(column.name, f"t.{name}")
        stays = f"else t.{name}" if column.name in statement.key else f"when 'u' then cast({updated} as {column.type})"
        new = identifier(NEW + column.name, "spark")
        items.append(f"case {op} when 'i' then cast({inserted} as {column.type}) {stays} end as {new}")
        if column.name in read:
            items.append(f"t.{name} as {identifier(OLD + column.name, 'spark')}")
    joined = f"from _delta as s left join _old as t on {' and '.join(same(statement, 'spark'))}"
    return f"select * from (select {', '.join(items)}, t.{file}, t.{row} {joined}) where {op} is not null"


def _placed(found: pa.Table) -> pa.Table:
    """Replace Spark's URIs of files by paths."""
    import pyarrow as pa
    import pyarrow.compute as pc

    uris = found[FILE].combine_chunks()
    known = pc.unique(uris).drop_null()
    paths = pa.array([path_of(uri) for uri in known.to_pylist()], pa.string())
    return found.set_column(found.schema.get_field_index(FILE), FILE, paths.take(pc.index_in(uris, known)))


def _typed(write: Write, statement: Merge, read: list[str], files: list[str]) -> str:
    """Return the query of changed rows with DuckDB's types, and with the columns that Spark hasn't read."""
    items = [f"_found.{identifier(name, 'duckdb')}" for name in (OP, FILE, ROW)]
    for column in write.table.columns:
        name = identifier(column.name, "duckdb")
        new, old = (f"_found.{identifier(prefix + column.name, 'duckdb')}" for prefix in (NEW, OLD))
        kind, before = type_name(column.type, "duckdb"), identifier(OLD + column.name, "duckdb")
        was = old if column.name in read else f"t.{name}" if files else "null"
        items += [f"cast({new} as {kind}) as {name}", f"cast({was} as {kind}) as {before}"]
    joined = "_found"
    if files and len(read) < len(write.table.columns):
        file, row = identifier(FILE, "duckdb"), identifier(ROW, "duckdb")
        on = f"t.filename = _found.{file} and t.file_row_number = _found.{row}"
        joined += f" left join {duckdb_scan.parquet(files, {}, write.table.columns)} as t on {on}"
    return f"select {'distinct ' if statement.repeats else ''}{', '.join(items)} from {joined}"


def _with_metadata(write: Write) -> Write:
    """Return the write with its metadata as Spark's own commits have it, so that DESCRIBE HISTORY shows it."""
    metadata = json.dumps({**write.metadata, "sqlrun.tick": str(write.tick)})
    return replace(write, metadata={**write.metadata, "userMetadata": metadata})
