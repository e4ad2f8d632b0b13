"""Parts of a source that its own reader reads in Python on Spark's executors. Shell: Spark.

Beside its lines, each task returns one row for each of its parts with what was found: that is known before anything is
committed, so that the batch can leave out a part that is gone, has changed or can't be read. The rows are stored by
Spark until the commit. Should it lose some and read their parts again, differently, the accounting finds the lines that
are missing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sqlrun.engines.spark import remote
from sqlrun.source_api import Extent, Positions, SourceReader

SCHEMA = "value string, file string, fault string, part string, state string, lines bigint, dropped string"
LINE = ("value", "file", "fault")
# What became of a part.
READ, CHANGED, MISSING, UNREADABLE = "read", "changed", "missing", "unreadable"
TASKS_PER_CORE = 4
FEW_CORES = 4


@dataclass(slots=True)
class Found:
    """What the executors found, as `source_api.Reading`; `lines` is the frame of all lines."""

    lines: Any
    changed: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)
    extents: dict[str, Extent] = field(default_factory=dict)

    def tables(self) -> Iterator[Any]:
        """Yield nothing: the lines stay with the executors."""
        return iter(())


@contextmanager
def found(spark: Any, source: SourceReader, parts: Positions) -> Iterator[Found]:
    """Read parts on the executors, and return what was found; its lines are there until the end."""
    rows = [(name, *position) for name, position in parts.items()]
    tasks = max(1, min(len(rows), TASKS_PER_CORE * _cores(spark)))
    listed = spark.createDataFrame(rows, "part string, since bigint, until bigint").repartition(tasks)
    frame = listed.mapInArrow(_reading(source), SCHEMA).persist()
    try:
        reading = Found(frame.where("part is null").select(*LINE))
        for row in frame.where("part is not null").select("part", "state", "fault", "lines", "dropped").collect():
            _note(reading, row)
        yield reading
    finally:
        frame.unpersist()


def _cores(spark: Any) -> int:
    """Return the number of cores of the executors; a guess where Spark doesn't say."""
    return FEW_CORES if remote.is_remote(spark) else int(spark.sparkContext.defaultParallelism)


def _note(reading: Found, row: Any) -> None:
    match row["state"]:
        case state if state == READ:
            reading.extents[row["part"]] = Extent(row["lines"], json.loads(row["dropped"]))
        case state if state == CHANGED:
            reading.changed.append(row["part"])
        case state if state == MISSING:
            reading.missing.append(row["part"])
        case _:
            reading.unreadable[row["part"]] = row["fault"]


def _reading(source: SourceReader) -> Any:
    """Return what reads some parts in a task: rows of lines, then rows of parts."""

    def read(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        asked = {r["part"]: (r["since"], r["until"]) for batch in batches for r in batch.to_pylist()}
        reading = source.read(asked)
        text, number = pa.string(), pa.int64()
        names = (*LINE, "part", "state", "lines", "dropped")
        schema = pa.schema([(name, number if name == "lines" else text) for name in names])

        def whole(table: Any) -> Iterator[Any]:
            given = {name: table.column(name).cast(schema.field(name).type) for name in table.column_names}
            columns = [given.get(one.name, pa.nulls(len(table), one.type)) for one in schema]
            yield from pa.Table.from_arrays(columns, schema=schema).to_batches()

        for table in reading.tables():
            yield from whole(table)
        found: list[tuple[str, str, str | None, int | None, str | None]]
        found = [(part, READ, None, e.lines, json.dumps(dict(e.dropped))) for part, e in reading.extents.items()]
        found += [(part, CHANGED, None, None, None) for part in reading.changed]
        found += [(part, MISSING, None, None, None) for part in reading.missing]
        found += [(part, UNREADABLE, reason, None, None) for part, reason in reading.unreadable.items()]
        columns = ("part", "state", "fault", "lines", "dropped")
        made = [[row[place] for row in found] for place in range(len(columns))]
        arrays = [pa.array(each, schema.field(name).type) for name, each in zip(columns, made, strict=True)]
        yield from whole(pa.Table.from_arrays(arrays, list(columns)))

    return read
