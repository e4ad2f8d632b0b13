"""Relations of a statement as Spark views at pinned versions. Shell: Spark, Delta files.

A relation whose files are known from the log is read as those Parquet files: delta-rs parses the log once, while
Delta's own reader would run Spark jobs for each version and each scan to find the same files. Tables with very many
files or deleted rows, or a path that is not local, use Delta's reader.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from sqlrun.engine_api import Relation
from sqlrun.engines.delta import deletion_vectors
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.delta.stats import NO_VALUE
from sqlrun.engines.duckdb.scan import entered, overlapping, values_of
from sqlrun.engines.spark import outside_files
from sqlrun.engines.spark.conf import rows_in
from sqlrun.engines.spark.file_names import uri_of
from sqlrun.storage.urls import path_of
from sqlrun.transpile.writer import identifier

if TYPE_CHECKING:
    import pyarrow as pa

MOST_FILES = 2000
# Maximum number of deleted rows that are passed to Spark for a statement.
MOST_DELETED = 500_000
# Values that no writer escapes: days, whole numbers, booleans, names of hidden columns.
PLAIN = re.compile(r"[A-Za-z0-9-]+")
# Position of a row: its file as Spark names it, and its number in it.
FILE, ROW = "_sqlrun.file", "_sqlrun.row"
PLACES = (f"_metadata.file_path as `{FILE}`", f"_metadata.row_index as `{ROW}`")
WEIGHT = "cast(if(_change_type in ('insert', 'update_postimage'), 1, -1) as bigint) as _weight"


def register(session: Any, relations: tuple[Relation, ...]) -> int:
    """Create a temporary view for each relation, by its name; return an estimate of the rows in their files."""
    total = 0
    for relation in relations:
        frame, size = _found(session, relation)
        frame.createOrReplaceTempView(identifier(relation.name, "spark"))
        total += size
    return total


def _found(session: Any, relation: Relation) -> tuple[Any, int]:
    match relation.row_set:
        case "old" | "new":
            return _rows(session, relation, _names(relation))
        case "changes":
            return _changes(session, relation)
        case "snapshot":
            return _rows(session, relation, outside_files.declared(relation.columns))
        case "difference":
            return outside_files.difference(session, relation)


def give(session: Any, given: Mapping[str, pa.Table]) -> None:
    """Create temporary views of rows in memory."""
    for name, rows in given.items():
        session.createDataFrame(rows).createOrReplaceTempView(identifier(name, "spark"))


def arrow(frame: Any) -> pa.Table:
    """Return the rows of a query.

    Arrow has no form for a nullable struct whose fields aren't nullable: its fields are declared nullable.
    """
    schema = frame.schema.json()
    loose = re.sub(r'"(nullable|containsNull|valueContainsNull)":false', r'"\1":true', schema)
    if schema.count('"type":"struct"') > 1 and loose != schema:  # the row itself is one
        frame = frame.to(type(frame.schema).fromJson(json.loads(loose)))
    return frame.toArrow()


def forget(session: Any, names: Iterable[str]) -> None:
    """Drop the views: a later statement that lacks a name must not find an earlier one's rows."""
    for name in names:
        session.catalog.dropTempView(identifier(name, "spark"))


def _names(relation: Relation) -> list[str]:
    return [identifier(c.name, "spark") for c in relation.columns]


def _rows(session: Any, relation: Relation, items: list[str]) -> tuple[Any, int]:
    table = delta_table.open_table(relation.path, relation.version)
    files = delta_table.files_at(table, {column for column, _, _ in relation.ranges})
    if relation.ranges:
        files = list(filter(overlapping(relation.ranges), files))
    paths = [unquote(file["path"]) for file in files]
    if direct(table, files):
        frame = live(session, table, paths)
    else:
        frame = session.read.format("delta").option("versionAsOf", relation.version).load(relation.path)
    if relation.where:
        frame = frame.where(relation.where)
    return frame.selectExpr(*items), rows_in(files)


def direct(table: Any, files: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether some files of an open table, as `files_at` lists them, can be read without Delta's reader."""
    listed, partition_by = list(files), table.metadata().partition_columns
    if len(listed) > MOST_FILES or not table.table_uri.startswith(("file://", "/")):
        return False
    if partition_by and not all(spelled(unquote(f["path"]), values_of(f, partition_by)) for f in listed):
        return False
    return sum(len(rows) for rows in _deleted(table, [unquote(f["path"]) for f in listed]).values()) <= MOST_DELETED


def spelled(path: str, values: Mapping[str, str | None]) -> bool:
    """Return whether a file's folders spell its partition exactly as the log does, because Spark reads the folders.

    Each writer escapes in its own way, and names an empty text like NULL.

    >>> spelled("day=2026-01-02/a.parquet", {"day": "2026-01-02"}), spelled("n=__x/a.parquet", {"n": "__x"})
    (True, False)
    """
    folders = path.removeprefix("_change_data/").split("/")[:-1]
    expected = [f"{name}={NO_VALUE if text is None else text}" for name, text in values.items()]
    return folders == expected and all(text is None or PLAIN.fullmatch(text) for text in values.values())


def _deleted(table: Any, files: list[str]) -> dict[str, Any]:
    """Return the deleted rows of those of a table's files that have any."""
    deleted, root = deletion_vectors.deleted(table), path_of(table.table_uri)
    return {file: deleted[f"{root}/{file}"] for file in files if f"{root}/{file}" in deleted} if deleted else {}


def live(session: Any, table: Any, files: list[str], *, places: bool = False) -> Any:
    """Return the live rows of a table's files; with `places`, also their positions."""
    root, deleted = path_of(table.table_uri), _deleted(table, files)
    whole = [file for file in files if file not in deleted]
    frames = []
    if whole or not deleted:
        frame = parquet(session, root, table, whole)
        none = (f"cast(null as string) as `{FILE}`", f"cast(null as bigint) as `{ROW}`")
        frames.append(frame.selectExpr("*", *(PLACES if whole else none)) if places else frame)
    if deleted:
        marked = parquet(session, root, table, list(deleted)).selectExpr("*", *PLACES)
        remaining = marked.join(_places(session, root, deleted).hint("broadcast"), [FILE, ROW], "left_anti")
        frames.append(remaining if places else remaining.drop(FILE, ROW))
    return reduce(lambda a, b: a.unionByName(b), frames)


def _places(session: Any, root: str, deleted: Mapping[str, Any]) -> Any:
    """Return deleted rows as a frame."""
    import pyarrow as pa

    uris = [pa.repeat(pa.scalar(uri_of(f"{root}/{file}")), len(rows)) for file, rows in deleted.items()]
    return session.createDataFrame(
        pa.table({FILE: pa.concat_arrays(uris), ROW: pa.concat_arrays(list(deleted.values()))})
    )


def parquet(session: Any, root: str, table: Any, files: list[str], feed: bool = False) -> Any:
    """Return the rows of a table's files by its schema; partition columns come from the folders' names."""
    from pyspark.sql.types import StringType, StructType

    schema = StructType.fromJson(json.loads(table.schema().to_json()))
    base = f"{root}/_change_data" if feed else root
    if feed:
        schema = schema.add("_change_type", StringType())
    if not files:
        return session.createDataFrame([], schema)
    # These are names, not patterns: a folder may have brackets in its name.
    reader = session.read.schema(schema).option("basePath", base).option("__globPaths__", "false")
    return reader.parquet(*[f"{root}/{file}" for file in files])


def _changes(session: Any, relation: Relation) -> tuple[Any, int]:
    names = _names(relation)
    table = delta_table.open_table(relation.path)
    files: dict[str, list[dict[str, Any]]] = {"feed": [], "added": [], "removed": []}
    for version in relation.commits:
        for kind, found in delta_table.changed_files(relation.path, version).items():
            files[kind].extend(found)
    every = [file for found in files.values() for file in found]
    size = rows_in(every)
    partition_values = entered(relation, [unquote(file["path"]) for file in every], every)
    plain = relation.path.startswith("/") and all(spelled(path, values) for path, values in partition_values.items())
    if len(every) > MOST_FILES or not plain or any("deletionVector" in file for file in every):
        frames = [_filtered(frame, relation).selectExpr(*names, WEIGHT) for frame in _fed(session, relation)]
        return reduce(lambda a, b: a.unionAll(b), frames), size
    frames = []
    for kind, weight in (("feed", WEIGHT), ("added", "1L as _weight"), ("removed", "-1L as _weight")):
        paths = [unquote(file["path"]) for file in files[kind]]
        if paths or (kind == "added" and not every):
            frame = parquet(session, relation.path, table, paths, feed=kind == "feed")
            frames.append(_filtered(frame, relation).selectExpr(*names, weight))
    return reduce(lambda a, b: a.unionAll(b), frames), size


def _filtered(frame: Any, relation: Relation) -> Any:
    return frame.where(relation.where) if relation.where else frame


def _fed(session: Any, relation: Relation) -> list[Any]:
    """Return the change feed as Delta reads it."""
    frames = []
    for first, last in delta_table.runs(relation.commits):
        reader = session.read.format("delta").option("readChangeFeed", "true")
        frames.append(reader.option("startingVersion", first).option("endingVersion", last).load(relation.path))
    return frames
