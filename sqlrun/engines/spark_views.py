"""Relations of a statement as Spark views at pinned versions. Shell: Spark, Delta files.

A relation whose files are known from the log is read as those Parquet files: the log is parsed once, by delta-rs, where
Delta's own reader would run Spark jobs for each version and each scan to find the same files. Tables with deletion
vectors, very many files, or a path that is not local go through Delta's reader.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from sqlrun.engines import deletion_vectors, delta_files
from sqlrun.engines.duckdb_files import overlapping
from sqlrun.engines.protocol import Relation
from sqlrun.engines.spark_modes import rows_in
from sqlrun.incremental.sql import identifier

if TYPE_CHECKING:
    import pyarrow as pa

MOST_FILES = 2000
WEIGHT = "cast(if(_change_type in ('insert', 'update_postimage'), 1, -1) as bigint) as _weight"


def register(session: Any, relations: tuple[Relation, ...]) -> int:
    """Make each relation a temporary view of its name; estimate the rows of their files."""
    total = 0
    for relation in relations:
        frame, size = _changes(session, relation) if relation.flavour == "changes" else _rows(session, relation)
        frame.createOrReplaceTempView(identifier(relation.name, "spark"))
        total += size
    return total


def give(session: Any, given: Mapping[str, pa.Table]) -> None:
    """Make rows that somebody holds temporary views."""
    for name, rows in given.items():
        session.createDataFrame(rows).createOrReplaceTempView(identifier(name, "spark"))


def forget(session: Any, names: Iterable[str]) -> None:
    """Drop the views: a name that a later statement lacks must not find an older one's rows."""
    for name in names:
        session.catalog.dropTempView(identifier(name, "spark"))


def _names(relation: Relation) -> list[str]:
    return [identifier(c.name, "spark") for c in relation.columns]


def _rows(session: Any, relation: Relation) -> tuple[Any, int]:
    table = delta_files.open_table(relation.path, relation.version)
    files = delta_files.files_at(table, {column for column, _, _ in relation.ranges})
    if relation.ranges:
        files = list(filter(overlapping(relation.ranges), files))
    if len(files) > MOST_FILES or not relation.path.startswith("/") or deletion_vectors.deleted(table):
        frame = session.read.format("delta").option("versionAsOf", relation.version).load(relation.path)
    else:
        frame = parquet(session, relation.path, table, [unquote(file["path"]) for file in files])
    if relation.where:
        frame = frame.where(relation.where)
    return frame.select(*_names(relation)), rows_in(files)


def parquet(session: Any, root: str, table: Any, files: list[str], feed: bool = False) -> Any:
    """Read files of a table by its schema; partition columns come from the folders' names."""
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
    table = delta_files.open_table(relation.path)
    files: dict[str, list[dict[str, Any]]] = {"feed": [], "added": [], "removed": []}
    for version in relation.commits:
        for kind, found in delta_files.changed_files(relation.path, version).items():
            files[kind].extend(found)
    every = [file for found in files.values() for file in found]
    size = rows_in(every)
    local = relation.path.startswith("/")
    if len(every) > MOST_FILES or not local or any("deletionVector" in file for file in every):
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
    """Read the change feed through Delta."""
    frames = []
    for first, last in delta_files.runs(relation.commits):
        reader = session.read.format("delta").option("readChangeFeed", "true")
        frames.append(reader.option("startingVersion", first).option("endingVersion", last).load(relation.path))
    return frames
