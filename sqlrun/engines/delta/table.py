"""Delta tables without a JVM: create, head, history, change feed, restore. Shell: Delta files through delta-rs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from sqlglot import exp

from sqlrun.engine_api import StoredColumn, TableSpec
from sqlrun.engines.delta import answers, deletion_vectors, file_layout, foreign_commits, log_faults, table_facts
from sqlrun.errors import EngineError, first_line
from sqlrun.incremental import types
from sqlrun.runtime import arrow_rows
from sqlrun.runtime.lru import Recent
from sqlrun.storage.factory import address_of, storage_of
from sqlrun.storage.storage import Stamp
from sqlrun.storage.urls import is_url, path_of
from sqlrun.transpile.writer import identifier

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, WriterProperties

# The ledger, restores and `verify` read versions up to this age.
PROPERTIES = {
    "delta.enableChangeDataFeed": "true",
    "delta.logRetentionDuration": "interval 60 days",
    "delta.deletedFileRetentionDuration": "interval 30 days",
    "delta.setTransactionRetentionDuration": "interval 3650 days",
    # Opening a table reads the commits since its last checkpoint: 23 ms after 100 small ones, 3 ms after 10.
    "delta.checkpointInterval": "10",
}
# Additional properties of models' tables: a MERGE marks replaced rows instead of rewriting files.
VECTORS = {"delta.enableDeletionVectors": "true"}
COMMIT = re.compile(r"(\d{20})\.json")
# Maximum number of table versions that stay open, and of parsed commits with their maximum size in bytes.
OPEN = 64
SMALL = 200_000


def open_table(path: str, version: int | None = None) -> DeltaTable:
    """Return a table at a version, the newest by default.

    A table opened at a version is read-only: callers share the object, in other threads too.
    Raises: EngineError if there is no such table or version, or its log can't be read.
    """
    entry = None if version is None else entry_of(path, version)
    if entry is None:
        return opened(path, version)
    return _kept.get(entry, lambda: opened(path, version))


def keep_open(path: str, table: DeltaTable) -> None:
    """Cache an open table for readers of its version; its writer must not use it afterwards."""
    if (entry := entry_of(path, table.version())) is not None:
        _kept.put(entry, table)


# A version of a table: its path, the version, and the stamp of its log file.
Entry = tuple[str, int, Stamp]
_kept: Recent[Entry, DeltaTable] = Recent(OPEN)
_read: Recent[Entry, list[dict[str, Any]]] = Recent(OPEN)


def entry_of(path: str, version: int) -> Entry | None:
    """Return a version by its entry in the log: an entry that was moved aside and rewritten is another one."""
    try:
        found = storage_of(path).stamp(entry_path(path, version))
    except OSError:
        return None
    return None if found is None else (path, version, found)


def entry_path(path: str, version: int) -> str:
    """Return the path of a version's entry in the log."""
    return f"{path}/_delta_log/{version:020d}.json"


def checkpoint_path(path: str, version: int) -> str:
    """Return the path of a version's checkpoint, if it is one file."""
    return f"{path}/_delta_log/{version:020d}.checkpoint.parquet"


def columns_of(checkpoint: str, columns: list[str]) -> pa.Table:
    """Return some columns of a checkpoint, without missing ones.

    Raises: OSError, ValueError if it can't be read.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = pq.ParquetFile(pa.BufferReader(storage_of(checkpoint).read(checkpoint)))
    there = set(file.schema_arrow.names)
    return file.read(columns=[name for name in columns if name in there])


def follow(path: str, table: DeltaTable) -> None:
    """Update an open table to its newest version; do nothing if the log has no next entry.

    delta-rs reads the log in its own threads, which may wait for a busy processor.
    """
    if entry_of(path, table.version() + 1) is not None:
        table.update_incremental()


def version_of(entry: Entry) -> int:
    """Return the version of an entry."""
    return entry[1]


def entry_of_head(path: str) -> Entry | None:
    """Return the log entry of a table's newest version; None if there is no table."""
    newest = head(path)
    return None if newest is None else entry_of(path, newest)


def opened(path: str, version: int | None) -> DeltaTable:
    """Open a table that the caller doesn't share with others; otherwise like `open_table`."""
    from deltalake import DeltaTable

    url, options = address_of(path)
    try:
        return DeltaTable(url, version=version, storage_options=options)
    except Exception as error:
        raise EngineError(f"{path} can't be read at version {version}: {error}") from error


def head(path: str) -> int | None:
    """Return the newest version of a table by the names in its log; None if there is no table."""
    names = storage_of(path).names(f"{path}/_delta_log")
    return max((int(found[1]) for name in names if (found := COMMIT.fullmatch(name))), default=None)


def create(table: TableSpec, properties: Mapping[str, str] = PROPERTIES) -> None:
    """Create the empty table as version 0; do nothing if it exists."""
    from deltalake import DeltaTable, Schema

    if head(table.path) is not None:
        return
    schema = Schema.from_json(json.dumps(struct_of(table.columns)))
    url, options = address_of(table.path)
    with explained(f"{table.name} can't be created"):
        DeltaTable.create(
            url,
            schema=schema,
            mode="ignore",
            partition_by=list(table.partition_by) or None,
            configuration=dict(properties),
            storage_options=options,
            commit_properties=ours("book"),
        )


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Turn an error of delta-rs or of the disk into one line that names the failed operation."""
    from deltalake.exceptions import DeltaError

    try:
        yield
    except (DeltaError, OSError) as error:
        raise EngineError(f"{what}: {first_line(error)}") from error


def struct_of(columns: Iterable[StoredColumn]) -> dict[str, object]:
    """Return columns as Delta's schema JSON (Delta protocol, "Schema Serialization Format")."""
    fields = [
        {"name": c.name, "type": _delta_type(types.parse(c.type)), "nullable": True, "metadata": {}} for c in columns
    ]
    return {"type": "struct", "fields": fields}


def _delta_type(kind: exp.DataType | None) -> object:
    assert kind is not None
    match kind.this:
        case exp.DataType.Type.ARRAY | exp.DataType.Type.LIST:
            return {"type": "array", "elementType": _delta_type(kind.expressions[0]), "containsNull": True}
        case exp.DataType.Type.MAP:
            key, value = kind.expressions
            return {
                "type": "map",
                "keyType": _delta_type(key),
                "valueType": _delta_type(value),
                "valueContainsNull": True,
            }
        case exp.DataType.Type.STRUCT:
            parts = [StoredColumn(f.name, types.text(f.args["kind"])) for f in kind.expressions]
            return struct_of(parts)
        case _:
            names = {"int": "integer", "bigint": "long", "smallint": "short", "tinyint": "byte"}
            text = types.text(kind).replace(" ", "")
            return names.get(text, "decimal(10,0)" if text == "decimal" else text)


def commit(app_id: str, tick: int, metadata: Mapping[str, str]) -> CommitProperties:
    """Return commit properties with the transaction id and the metadata; a concurrent commit is a conflict."""
    from deltalake import CommitProperties, Transaction

    return CommitProperties(
        custom_metadata={**metadata, "sqlrun.tick": str(tick), **answers.token()},
        max_commit_retries=0,
        app_transactions=[Transaction(app_id, tick)],
    )


def hooks() -> PostCommitHookProperties:
    """Return hooks that don't clean up the log: maintenance does, not a commit."""
    from deltalake import PostCommitHookProperties

    return PostCommitHookProperties(create_checkpoint=True, cleanup_expired_logs=False)


def layout() -> WriterProperties:
    """Return the layout of sqlrun's own files: delta-rs' Zstandard and row groups of a million rows scan slowly."""
    from deltalake import WriterProperties

    return WriterProperties(compression="SNAPPY", max_row_group_size=file_layout.ROW_GROUP)


def ours(how: str, *, alone: bool = False) -> CommitProperties:
    """Return properties that mark a commit without a tick's number as sqlrun's, with its purpose.

    `alone`: another commit in the meantime is a conflict.
    """
    from deltalake import CommitProperties

    metadata = {foreign_commits.BY: how, **answers.token()}
    return CommitProperties(custom_metadata=metadata, max_commit_retries=0 if alone else None)


def append_rows(table: DeltaTable, rows: list[dict[str, Any]], commit: CommitProperties | None = None) -> None:
    """Append a few rows to an open table in one commit."""
    from deltalake import write_deltalake

    data = arrow_rows.made(rows, table.schema().to_arrow())
    alone = commit or ours("book", alone=is_url(path_of(table.table_uri)))

    def once() -> None:
        write_deltalake(table, data, mode="append", commit_properties=alone, post_commithook_properties=hooks())

    if commit is None:
        answers.repeated(table, lambda: answers.received(table, alone, once))
    else:
        answers.received(table, alone, once)


def restore(path: str, version: int, head: int | None = None) -> None:
    """Restore the table's contents at `version` in a new commit; with `head`, only if it is the newest version.

    Raises: EngineError if another writer committed after `head`, or if a file of `version` is missing.
    """
    table = open_table(path)
    require_head(path, head, table)
    if table.version() != version:
        once = ours("recovery", alone=True)
        write = partial(table.restore, version, commit_properties=once, post_commithook_properties=hooks())
        with explained("restore"):
            answers.received(table, once, write)


def require_head(path: str, head: int | None, table: DeltaTable | None = None) -> None:
    """Check that a table is still at the version `head`, if one is given."""
    if head is not None and (found := (table or open_table(path)).version()) != head:
        raise EngineError(f"another writer changed {path}: it is at version {found}, but this tick began at {head}")


def actions(path: str, version: int) -> list[dict[str, Any]]:
    """Return one commit's actions from the log; callers share them and must not change them."""
    entry = entry_of(path, version)
    if entry is None or entry[-1].size > SMALL:
        return _actions(path, version)
    return _read.get(entry, lambda: _actions(path, version))


def _actions(path: str, version: int) -> list[dict[str, Any]]:
    try:
        found = log_faults.actions_of(storage_of(path).text(entry_path(path, version)))
    except FileNotFoundError as error:
        raise EngineError(f"commit {version} of {path} is missing in its log") from error
    except ValueError as error:
        raise EngineError(f"commit {version} of {path} is truncated. Run `sqlrun doctor`") from error
    if not found:
        # Read as an empty commit, its rows would disappear silently.
        raise EngineError(f"commit {version} of {path} is empty. Run `sqlrun doctor`")
    return found


def changed_files(path: str, version: int) -> dict[str, list[dict[str, Any]]]:
    """Return a commit's change as files (Delta protocol, "Change Data Files"): feed, added, removed.

    If a commit has change files, these are its complete change; else its added files contain the inserted rows and its
    removed files the deleted ones.
    """
    done = actions(path, version)
    feed = [action["cdc"] for action in done if "cdc" in action]
    if feed:
        return {"feed": feed, "added": [], "removed": []}
    added = [a["add"] for a in done if "add" in a and a["add"].get("dataChange")]
    removed = [a["remove"] for a in done if "remove" in a and a["remove"].get("dataChange")]
    return {"feed": [], "added": added, "removed": removed}


def files_at(table: DeltaTable, columns: Iterable[str] = ()) -> list[dict[str, Any]]:
    """Return a table's files: path, size, number of live rows and partition values (`partition.x`).

    Includes the bounds of `columns` (`min.x`, `max.x`) if there are statistics. Callers share the rows and must not
    change them.
    """
    wanted = frozenset(columns)
    return list(table_facts.once(table, ("files", wanted), lambda: _files(table, wanted)))


def entries(table: DeltaTable) -> Any:
    """Return the log's entries of an open table's files, flattened by delta-rs into an Arrow table."""
    return table_facts.once(table, "adds", lambda: table.get_add_actions(flatten=True))


def _files(table: DeltaTable, columns: frozenset[str]) -> list[dict[str, Any]]:
    table_entries = entries(table)
    # Converting the statistics of all columns to Python values takes 30 times as long as converting the needed ones.
    wanted = {"path", "size_bytes", "num_records"} | {f"{end}.{name}" for name in columns for end in ("min", "max")}
    names = [name for name in table_entries.column_names if name in wanted or name.startswith("partition.")]
    found = arrow_rows.plain(table_entries.select(names))
    if deleted := deletion_vectors.deleted(table):
        root = path_of(table.table_uri)
        for file in found:
            dead = deleted.get(f"{root}/{unquote(file['path'])}")
            if dead is not None and file.get("num_records") is not None:
                file["num_records"] -= len(dead)
    return found


# Operations that leave a table's rows unchanged.
MAINTENANCE = {"OPTIMIZE", "VACUUM START", "VACUUM END"}


def effective_commits(path: str, after: int, until: int) -> tuple[int, ...]:
    """Return the commits that lead from one version to a later one, without a RESTORE and the commits that it undid.

    Commits of another writer that were rolled back are left out too, with the rollback.

    Raises: EngineError if `until` doesn't derive from `after`: the table was restored to an earlier version.
    """
    effective: list[int] = []
    version, undone = until, set[int]()
    # Backwards: a RESTORE continues from its own version, whatever other restores undid in between.
    while version > after:
        done = actions(path, version)
        back, to = foreign_commits.undone(done), foreign_commits.restored(done)
        undone |= back
        if to is not None and version not in undone:
            version = to
            continue
        if not back and version not in undone and foreign_commits.info_of(done).get("operation") not in MAINTENANCE:
            effective.append(version)
        version -= 1
    if early := [each for each in undone if each <= after]:
        raise EngineError(f"{path}: version {min(early)}, which a tick has read, was rolled back since then")
    if version < after:
        raise EngineError(f"{path} was restored to version {version}, before version {after} that a tick has read")
    return tuple(reversed(effective))


def landings(path: str, commits: Iterable[int]) -> tuple[int, ...]:
    """Return those of a landing table's commits that landed new lines: all but replays, the only ones that merge."""

    def operation(version: int) -> object:
        return next((a["commitInfo"].get("operation") for a in actions(path, version) if "commitInfo" in a), None)

    return tuple(version for version in commits if operation(version) != "MERGE")


# Metrics of a commit for inserted, updated and deleted rows, in Spark's and delta-rs' spelling.
MERGED = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")
CAME = ("numOutputRows", "num_added_rows")


def rows_changed(path: str, commits: Iterable[int]) -> int:
    """Return the number of rows that commits inserted, updated or deleted, by their metrics or files' statistics."""
    count = 0
    for version in commits:
        done = actions(path, version)
        metrics = next((a["commitInfo"].get("operationMetrics") or {} for a in done if "commitInfo" in a), {})
        merged = [metrics.get(name, metrics.get(_snake(name))) for name in MERGED]
        if any(value is not None for value in merged):
            count += sum(int(value or 0) for value in merged)
            continue
        inserted = next((int(metrics[name]) for name in CAME if name in metrics), None)
        if inserted is None:
            added = (a["add"] for a in done if "add" in a and a["add"].get("dataChange"))
            inserted = sum(json.loads(add.get("stats") or "{}").get("numRecords", 0) for add in added)
        count += inserted
    return count


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def rows_at(path: str, version: int) -> int:
    """Return a table's number of rows, by its files' statistics and deletion vectors."""
    return sum(int(file.get("num_records") or 0) for file in files_at(open_table(path, version)))


def columns_at(path: str, version: int) -> tuple[StoredColumn, ...]:
    """Return a table's columns with their Spark SQL types."""
    fields = json.loads(open_table(path, version).schema().to_json())["fields"]
    return tuple(StoredColumn(f["name"], kind) for f, kind in zip(fields, spark_types(fields), strict=True))


def spark_types(fields: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the types of fields of Delta's schema JSON as Spark SQL."""
    return [_spark_type(field["type"]) for field in fields]


def _spark_type(kind: Any) -> str:
    """Return a type of Delta's schema JSON as Spark SQL (Delta protocol, "Schema Serialization Format")."""
    if isinstance(kind, str):
        return {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint"}.get(kind, kind)
    match kind["type"]:
        case "array":
            return f"array<{_spark_type(kind['elementType'])}>"
        case "map":
            return f"map<{_spark_type(kind['keyType'])},{_spark_type(kind['valueType'])}>"
        case _:
            fields = (f"{identifier(f['name'], 'spark')}:{_spark_type(f['type'])}" for f in kind["fields"])
            return f"struct<{','.join(fields)}>"


def change_feed(path: str, commits: tuple[int, ...], columns: list[str] | None) -> list[pa.Table]:
    """Return the change feed of the listed commits, with `_change_type`; consecutive commits are read together.

    `columns` None: all columns.
    """
    import pyarrow as pa

    table = open_table(path)
    tables = []
    wanted = [*columns, "_change_type"] if columns is not None else None
    for first, last in runs(commits):
        feed = table.load_cdf(starting_version=first, ending_version=last, columns=wanted)
        tables.append(pa.table(feed.read_all()))
    return tables


def runs(commits: tuple[int, ...]) -> list[tuple[int, int]]:
    """Split versions into runs without a gap: (first, last).

    >>> runs((3, 4, 7))
    [(3, 4), (7, 7)]
    """
    found: list[tuple[int, int]] = []
    for version in sorted(commits):
        if found and found[-1][1] == version - 1:
            found[-1] = (found[-1][0], version)
        else:
            found.append((version, version))
    return found


def committed_at(path: str, version: int) -> datetime | None:
    """Return the time of a version's commit, as the commit has it; None if its log entry is gone."""
    try:
        info: dict[str, Any] = next((a["commitInfo"] for a in actions(path, version) if "commitInfo" in a), {})
    except EngineError:
        return None
    moment = info.get("timestamp")
    return None if moment is None else datetime.fromtimestamp(int(moment) / 1000, timezone.utc)


def delete_rows(path: str, predicate: str) -> None:
    """Delete the rows that match a condition; without such rows there is no commit."""
    import pyarrow as pa

    table = open_table(path)
    if pa.table(table.scan(predicate=predicate, columns=[table.schema().fields[0].name]).read_all()).num_rows:
        mark = ours("upkeep")
        write = partial(table.delete, predicate, commit_properties=mark, post_commithook_properties=hooks())
        answers.received(table, mark, write)


def update_rows(path: str, predicate: str, values: Mapping[str, str]) -> None:
    """Set columns of the rows that match a condition to SQL expressions; without such rows there is no commit."""
    properties = ours("book")
    table = open_table(path)
    write = partial(
        table.update,
        dict(values),
        predicate=predicate,
        commit_properties=properties,
        post_commithook_properties=hooks(),
    )
    answers.received(table, properties, write)
