"""The difference of two versions of a table that other programs write, as a Spark frame. Shell: Spark, Delta files.

Spark reads the files that `file_rows` lists. Partition values come from the log, because each writer spells folders in
its own way.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import reduce
from typing import Any

from sqlrun.engine_api import Relation, StoredColumn
from sqlrun.engines.delta import file_rows
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.delta.file_rows import All, Only, Part, Without
from sqlrun.engines.spark.file_names import uri_of
from sqlrun.transpile.writer import cast, identifier

# Position of a row: its file as Spark names it, and its number in it.
FILE, ROW = "_sqlrun.file", "_sqlrun.row"
FILES, ROWS = f"_metadata.file_path as `{FILE}`", f"_metadata.row_index as `{ROW}`"
VALUE = "_sqlrun.value."
WEIGHTS = {
    "added": "1L",
    "removed": "-1L",
    "feed": "cast(if(_change_type in ('insert', 'update_postimage'), 1, -1) as bigint)",
}


def declared(columns: Sequence[StoredColumn]) -> list[str]:
    """Return expressions of columns, found regardless of case and cast to their types."""
    names = ((identifier(column.name, "spark"), column.type) for column in columns)
    return [f"{cast(name, kind, 'spark')} as {name}" for name, kind in names]


def difference(session: Any, relation: Relation) -> tuple[Any, int]:
    """Return the rows of a relation of the row set `difference`, and an estimate of the rows that are read."""
    found = file_rows.between(relation.path, relation.since, relation.version)
    schema = _schema(relation)
    frames = [_frame(session, relation, schema, []).selectExpr(*declared(relation.columns), "1L as _weight")]
    for sign, weight in WEIGHTS.items():
        for kind in (All, Without, Only):
            parts = [part for part in found.parts if part.sign == sign and isinstance(part.rows, kind)]
            if parts:
                frame = _frame(session, relation, schema, parts)
                frames.append(frame.selectExpr(*declared(relation.columns), f"{weight} as _weight"))
    whole = reduce(lambda a, b: a.unionAll(b), frames)
    if any("map<" in column.type for column in relation.columns):
        return whole, found.count  # Spark doesn't compare maps
    # Rows that a writer copied into another file are no change.
    names = [identifier(column.name, "spark") for column in relation.columns]
    return whole.groupBy(*names).agg({"_weight": "sum"}).withColumnRenamed("sum(_weight)", "_weight").where(
        "_weight <> 0"
    ), found.count


def _schema(relation: Relation) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(delta_table.open_table(relation.path, relation.version).schema().to_json())
    wanted = {column.name.lower() for column in relation.columns}
    return {**found, "fields": [field for field in found["fields"] if field["name"].lower() in wanted]}


def _frame(session: Any, relation: Relation, schema: dict[str, Any], parts: Sequence[Part]) -> Any:
    """Return the rows of parts of one sign and kind, with all declared columns."""
    from pyspark.sql.types import StringType, StructType

    whole = StructType.fromJson(schema)
    if not parts:
        return session.createDataFrame([], whole)
    names = [name for name in parts[0].values if name.lower() in {field.name.lower() for field in whole.fields}]
    stored = StructType([field for field in whole.fields if field.name not in names])
    if parts[0].sign == "feed":
        stored = stored.add("_change_type", StringType())
    # These are names, not patterns: a folder may have brackets in its name.
    reader = session.read.schema(stored).option("__globPaths__", "false")
    frame = reader.parquet(*(f"{relation.path}/{part.file}" for part in parts))
    if not names and isinstance(parts[0].rows, All):
        return frame
    frame = frame.selectExpr("*", FILES, ROWS)
    if not isinstance(parts[0].rows, All):
        how = "left_semi" if isinstance(parts[0].rows, Only) else "left_anti"
        frame = frame.join(_rows(session, relation, parts).hint("broadcast"), [FILE, ROW], how)
    if not names:
        return frame
    kinds = {field.name: field.dataType.simpleString() for field in whole.fields}
    frame = frame.join(_values(session, relation, parts, names).hint("broadcast"), [FILE])
    items = [
        f"cast(`{VALUE}{place}` as {kinds[name]}) as {identifier(name, 'spark')}" for place, name in enumerate(names)
    ]
    return frame.selectExpr("*", *items)


def _rows(session: Any, relation: Relation, parts: Sequence[Part]) -> Any:
    """Return the numbers of rows of parts, each with its file."""
    import pyarrow as pa

    files, numbers = [], []
    for part in parts:
        if not isinstance(part.rows, All):
            numbers += list(part.rows.rows)
            files += [uri_of(f"{relation.path}/{part.file}")] * len(part.rows.rows)
    return session.createDataFrame(pa.table({FILE: files, ROW: pa.array(numbers, pa.int64())}))


def _values(session: Any, relation: Relation, parts: Sequence[Part], names: Sequence[str]) -> Any:
    """Return the partition values of parts as the log's texts, one row for each file."""
    import pyarrow as pa

    unique = {part.file: part for part in parts}.values()
    columns = {
        f"{VALUE}{n}": pa.array([p.values.get(name) for p in unique], pa.string()) for n, name in enumerate(names)
    }
    return session.createDataFrame(
        pa.table({FILE: [uri_of(f"{relation.path}/{part.file}") for part in unique], **columns})
    )
