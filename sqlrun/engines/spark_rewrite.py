"""A MERGE on Spark as two jobs: the delta is collected, the files that it touches are rewritten. Shell: Spark, files.

Delta's own MERGE takes seven jobs a table and replays the table's log in each of them. Here the files come from the log
as delta-rs has read it, Spark joins them with the delta and writes the new files and the change files beside the table,
and the driver puts them into their folders and commits them (`delta_commit`). What is large, or not a table that sqlrun
has made, is left to Delta's MERGE.
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from sqlrun.engines import (
    deletion_vectors,
    delta_commit,
    delta_files,
    delta_stats,
    duckdb_files,
    spark_modes,
    spark_views,
)
from sqlrun.engines.delta_commit import Change, Gone
from sqlrun.engines.protocol import Merge, Prune, StoredColumn, Write
from sqlrun.incremental.sql import identifier

if TYPE_CHECKING:
    import pyarrow as pa

# A delta of more rows, or a target, is left to Delta's MERGE: it takes any size, in bounded memory.
MOST_DELTA = 200_000
MOST_TARGET = 5_000_000
# So many rows are joined and written by one task: a second one costs more than it saves.
ONE_TASK = 50_000
# Where files are written until they are known to be whole; readers leave out such names. One writer a table.
STAGING = "_sqlrun_staging"
CHANGE = "_sqlrun_change"
# What becomes of a row: k(ept), i(nserted), u(pdated), d(eleted), and the rows that it is written as.
TYPES = (
    "case _sqlrun_did when 'k' then array('') when 'i' then array('', 'insert') when 'd' then array('delete') "
    "when 'u' then array('', 'update_preimage', 'update_postimage') end"
)
TYPES_WITHOUT_FEED = "case _sqlrun_did when 'i' then array('') end"
SETTINGS = (
    # One hash of the partition columns serves the join and the files.
    ("spark.sql.requireAllClusterKeysForCoPartition", "false"),
    # A file a partition open at once, instead of sorting the rows by partition.
    ("spark.sql.maxConcurrentOutputFileWriters", "64"),
)


@dataclass(frozen=True, slots=True)
class Target:
    """The files that a delta can touch, as the log names them, and their rows."""

    files: tuple[dict[str, Any], ...]
    rows: int


def merge(session: Any, table: Any, write: Write, statement: Merge, frame: Any) -> bool:
    """Carry out a MERGE into the open table; False, and nothing done, where it is one for Delta's own."""
    if not delta_commit.ours(table, write) or deletion_vectors.deleted(table):
        return False
    delta = frame.limit(MOST_DELTA + 1).toArrow()
    if delta.num_rows > MOST_DELTA:
        return False
    if not delta.num_rows:
        return True
    target = _target(table, statement.prune, delta)
    if target.rows > MOST_TARGET or len(target.files) > spark_views.MOST_FILES:
        return False
    rows = target.rows + delta.num_rows
    spark_modes.choose(session, rows)
    source = session.createDataFrame(delta, schema=frame.schema)
    staging = Path(write.table.path) / STAGING / uuid.uuid4().hex
    # What a crash has left: the table has one writer, and it is this one.
    shutil.rmtree(staging.parent, ignore_errors=True)
    try:
        with _settings(session):
            changed = _changed(session, table, write, statement, source, target, rows <= ONE_TASK)
            parts = (CHANGE, *write.table.partition_by)
            changed.write.partitionBy(*parts).parquet(staging.as_posix())
        _commit(table, write, target, _found(staging, write.table.columns))
    finally:
        shutil.rmtree(staging.parent, ignore_errors=True)
    return True


def _target(table: Any, prune: Prune, delta: pa.Table) -> Target:
    """List the files that can hold a row of the delta, by their partitions and statistics."""
    import pyarrow.compute as pc

    parts = set(table.metadata().partition_columns)
    touched = {
        name: {duckdb_files.comparable(value) for value in pc.unique(delta[name]).to_pylist()}
        for name in prune.partitions
        if name in parts
    }
    ranges = [(key, low, high) for key, group in prune.ranges for low, high in _ranges(delta, key, group)]
    near = duckdb_files.overlapping(ranges) if ranges and all(low is not None for _, low, _ in ranges) else None

    def keep(file: Mapping[str, Any]) -> bool:
        if any(duckdb_files.comparable(file.get(f"partition.{name}")) not in touched[name] for name in touched):
            return False
        return near is None or near(dict(file))

    files = tuple(filter(keep, delta_files.files_at(table, {key for key, _, _ in ranges})))
    return Target(files, spark_modes.rows_in(files))


def _ranges(delta: pa.Table, key: str, group: str) -> Iterator[tuple[Any, Any]]:
    """Bound a key in each group of the delta."""
    held = delta.select([key]).append_column("_group", delta[group])
    found = held.group_by("_group").aggregate([(key, "min"), (key, "max")])
    return zip(found[f"{key}_min"].to_pylist(), found[f"{key}_max"].to_pylist(), strict=True)


def _changed(
    session: Any, table: Any, write: Write, statement: Merge, source: Any, target: Target, single: bool
) -> Any:
    """Give the rows of the new files, and with a type in `_change_type` those of the change files."""
    path, columns = write.table.path, write.table.columns
    old = spark_views.parquet(session, path, table, [unquote(file["path"]) for file in target.files])
    by = [identifier(name, "spark") for name in write.table.partition_by]
    shared = bool(by) and set(write.table.partition_by) <= set(statement.key) - set(statement.null_safe)
    spread = int(session.conf.get("spark.sql.shuffle.partitions"))
    if single:
        old, source = old.coalesce(1), source.coalesce(1)
    elif shared:
        old, source = old.repartition(spread, *by), source.repartition(spread, *by)
    old.createOrReplaceTempView("_old")
    source.hint("shuffle_hash").createOrReplaceTempView("_delta")
    try:
        found = session.sql(_text(columns, statement, feed=bool(target.files)))
    finally:
        session.catalog.dropTempView("_old")
        session.catalog.dropTempView("_delta")
    return found.repartition(spread, *by) if by and not single and not shared else found


def _text(columns: tuple[StoredColumn, ...], statement: Merge, *, feed: bool) -> str:
    """Write what a MERGE makes of the rows: those that stay, and with `feed` those that came and left as well."""
    on = " and ".join(
        f"t.{identifier(k, 'spark')} {'<=>' if k in statement.null_safe else '='} s.{identifier(k, 'spark')}"
        for k in statement.key
    )
    updates = {name: text for name, text in statement.update if name not in statement.key}
    inserts = dict(statement.insert)
    items, shown = [], []
    for number, column in enumerate(columns):
        name = identifier(column.name, "spark")
        inserted, updated = inserts.get(column.name, "null"), updates.get(column.name, f"t.{name}")
        items.append(f"t.{name} as _sqlrun_t{number}")
        items.append(
            f"case _sqlrun_did when 'i' then cast({inserted} as {column.type}) "
            f"when 'u' then cast({updated} as {column.type}) end as _sqlrun_s{number}"
        )
        stays = "_sqlrun_did in ('k', 'd') or _change_type = 'update_preimage'"
        shown.append(f"case when {stays} then _sqlrun_t{number} else _sqlrun_s{number} end as {name}")
    types = TYPES if feed else TYPES_WITHOUT_FEED
    # A lazy CASE: an expression over s is not evaluated for a row that has none.
    did = (
        f"case when t._sqlrun_t is null then case when {statement.insert_when or 'true'} then 'i' end "
        f"when s._sqlrun_s is null then 'k' when {statement.delete_when or 'false'} then 'd' "
        f"when {statement.update_when or 'true'} then 'u' else 'k' end as _sqlrun_did"
    )
    return (
        f"select {', '.join(shown)}, nullif(_change_type, '') as _change_type, _change_type <> '' as {CHANGE}\n"
        f"from (select *, explode({types}) as _change_type from (select {', '.join([did, *items])}\n"
        "from (select *, true as _sqlrun_t from _old) as t\n"
        f"full outer join (select *, true as _sqlrun_s from _delta) as s on {on}))"
    )


@contextmanager
def _settings(session: Any) -> Iterator[None]:
    """Set the session up for the rewriting query."""
    for key, value in SETTINGS:
        session.conf.set(key, value)
    try:
        yield
    finally:
        for key, _ in SETTINGS:
            session.conf.unset(key)


@dataclass(frozen=True, slots=True)
class Found:
    """A file in the staging folder, and what it becomes."""

    at: Path
    file: delta_commit.File
    changes: Counter[str] | None


def _found(staging: Path, columns: tuple[StoredColumn, ...]) -> list[Found]:
    """Read what Spark has written from the files' footers: rows, statistics, and the types of changes."""
    from pyarrow import parquet

    found = []
    for at in sorted(staging.rglob("*.parquet")):
        change, *folders = at.relative_to(staging).parts[:-1]
        values = dict(_value(folder) for folder in folders)
        held = parquet.ParquetFile(at)
        # Spark's own names of folders: it reads escapes of other letters than ASCII's otherwise than it should.
        rows, size, folder = held.metadata.num_rows, at.stat().st_size, "/".join(folders)
        if change == f"{CHANGE}=true":
            types = Counter(held.read(columns=["_change_type"])[0].to_pylist())
            path = "/".join(filter(None, ("_change_data", folder, f"cdc-{at.name.removeprefix('part-')}")))
            found.append(Found(at, delta_commit.File(path, values, size), types))
        elif rows:
            path = "/".join(filter(None, (folder, at.name)))
            stats = delta_stats.stats(rows, _statistics(held.metadata, columns), columns)
            found.append(Found(at, delta_commit.File(path, values, size, rows, stats), None))
    return found


def _value(folder: str) -> tuple[str, str | None]:
    """Read a partition's value from its folder's name."""
    name, _, text = folder.partition("=")
    return unquote(name), None if text == delta_stats.NO_VALUE else unquote(text)


def _statistics(metadata: Any, columns: tuple[StoredColumn, ...]) -> dict[str, dict[str, str]]:
    """Put the statistics of a file's row groups together, as text."""
    kinds = {c.name: c.type for c in columns}
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    found = {}
    for place in range(metadata.num_columns):
        name = metadata.schema.column(place).path
        each = [group.column(place).statistics for group in groups]
        if name not in kinds or any(one is None or not one.has_null_count for one in each):
            continue
        known = {"null_count": str(sum(one.null_count for one in each))}
        bounded = [one for one in each if one.has_min_max]
        # A group of NULLs alone has no bounds; those of floats leave NaN out.
        if (
            bounded
            and kinds[name] not in ("float", "double")
            and all(one.has_min_max or not one.num_values for one in each)
        ):
            known["min"], known["max"] = _bound(min(o.min for o in bounded)), _bound(max(o.max for o in bounded))
            known["min_is_exact"] = known["max_is_exact"] = "true"
        found[delta_stats.quoted(name)] = known
    return found


def _bound(value: Any) -> str:
    match value:
        case datetime():
            moment = value if value.tzinfo is None else value.astimezone(timezone.utc).replace(tzinfo=None)
            return moment.isoformat(sep=" ")
        case Decimal():
            return format(value, "f")
        case bytes():
            return value.decode()
        case _:
            return str(value)


def _commit(table: Any, write: Write, target: Target, found: list[Found]) -> None:
    """Put the files into their folders and commit them; nothing where no row came, left or changed."""
    types = sum((one.changes for one in found if one.changes is not None), Counter[str]())
    added = tuple(one.file for one in found if one.changes is None)
    feed = tuple(one.file for one in found if one.changes is not None)
    rows = sum(file.rows for file in added)
    if not target.files:
        types["insert"] = rows
    if not sum(types.values()):
        return
    for one in found:
        place = Path(write.table.path) / one.file.path
        place.parent.mkdir(parents=True, exist_ok=True)
        one.at.rename(place)
    updated, by = types["update_postimage"], write.table.partition_by
    metrics = {
        "numTargetRowsInserted": types["insert"],
        "numTargetRowsUpdated": updated,
        "numTargetRowsDeleted": types["delete"],
        "numTargetRowsCopied": rows - types["insert"] - updated,
        "numTargetFilesAdded": len(added),
        "numTargetFilesRemoved": len(target.files),
        "numTargetChangeFilesAdded": len(feed),
    }
    removed = tuple(
        Gone(file["path"], {p: delta_stats.partition_text(file[f"partition.{p}"]) for p in by}, file["size_bytes"])
        for file in target.files
    )
    # Where Spark's own commits have it, and its DESCRIBE HISTORY shows it.
    told = json.dumps({**write.metadata, "sqlrun.tick": str(write.tick)})
    noted = replace(write, metadata={**write.metadata, "userMetadata": told})
    delta_commit.commit(table, noted, Change("MERGE", {}, metrics, added, removed, feed=feed))
