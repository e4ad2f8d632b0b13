"""Landing of a planned batch on Spark: read its parts, run the landing query, commit its rows. Shell: Spark.

Spark's own connector reads the parts if the source has one. Otherwise the source's own reader does, in Python on the
executors, as it does on DuckDB.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from sqlrun.engine_api import Landing
from sqlrun.engines.delta import foreign_commits
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.planned_landing import Batch, Committed
from sqlrun.engines.spark import conf as spark_conf
from sqlrun.engines.spark import line_counts
from sqlrun.errors import EngineError
from sqlrun.source_api import Positions, SourceReader

LINES = "value string, file string"


def commit(session: Callable[[], Any], landing: Landing, batch: Batch) -> Committed:
    """Commit the lines of a batch, as `planned_landing.Commit`; `session` is opened by the first batch."""
    spark = session()
    base = batch.table.version()
    # A row whose expression fails is quarantined with its reason; it must not end the batch.
    spark.conf.set("spark.sql.ansi.enabled", "false")
    spark_conf.choose(spark, landing.source.count(batch.parts).lines)
    try:
        lines = _lines(spark, landing.source, batch.parts)
        lines, seen = line_counts.observed(lines, line_counts.LINES, line_counts.of_lines())
        lines.createOrReplaceTempView("lines")
        rows, kept = spark.sql(landing.sql), None
        if landing.drops:
            rows, kept = line_counts.observed(rows, line_counts.ROWS, line_counts.of_rows(landing))
            rows = line_counts.landed(rows)
        metadata = {
            **landing.metadata,
            foreign_commits.BY: "landing",
            "sqlrun.tick": str(batch.number),
            "sqlrun.files": str(len(batch.parts)),
        }
        writer = rows.write.format("delta").mode("append")
        writer = writer.option("txnAppId", batch.app_id).option("txnVersion", str(batch.number))
        writer.option("userMetadata", json.dumps(metadata)).save(landing.table.path)
        counts = line_counts.counts(landing, seen.get, {} if kept is None else kept.get)
    finally:
        spark.catalog.dropTempView("lines")
        spark.conf.unset("spark.sql.ansi.enabled")
    delta_table.follow(landing.table.path, batch.table)
    after = batch.table.version()
    if after != base + 1:
        raise EngineError(
            f"{landing.table.name} is at version {after} after landing instead of {base + 1}", model=landing.table.name
        )
    landing.source.commit(batch.parts)
    return Committed(delta_table.rows_changed(landing.table.path, (after,)), [], counts)


def _lines(spark: Any, source: SourceReader, parts: Positions) -> Any:
    """Return the frame of a batch's lines: `value` and `file`."""
    frame = source.frame(parts)
    if frame is None:
        return _by_python(spark, source, parts)
    found = spark.read.format(frame.format).options(**frame.options).load()
    found = found if frame.where is None else found.where(frame.where)
    return found.selectExpr(*frame.columns)


def _by_python(spark: Any, source: SourceReader, parts: Positions) -> Any:
    """Return lines that the source's reader reads on the executors, each task some of the parts."""
    rows = [(name, *position) for name, position in parts.items()]
    tasks = max(1, min(len(rows), spark.sparkContext.defaultParallelism))
    listed = spark.createDataFrame(rows, "part string, since bigint, until bigint").repartition(tasks)

    def read(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        asked = {r["part"]: (r["since"], r["until"]) for batch in batches for r in batch.to_pylist()}
        reading = source.read(asked)
        schema = pa.schema([("value", pa.string()), ("file", pa.string())])
        for table in reading.tables():
            yield from table.select(["value", "file"]).cast(schema).to_batches()
        wrong = [*reading.changed, *reading.missing]
        if wrong:
            raise ValueError(f"{wrong[0]} changed or vanished while it was read")

    return listed.mapInArrow(read, LINES)
