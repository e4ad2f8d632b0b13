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
from sqlrun.source_api import Extent, Positions, SourceReader
from sqlrun.transpile.writer import string

LINES = "value string, file string"
# Maximum number of parts that a batch counts apart.
MOST_COUNTED = 256
# Name of the counts of all parts of a batch.
TOGETHER = ""


def commit(session: Callable[[], Any], landing: Landing, batch: Batch) -> Committed:
    """Commit the lines of a batch, as `planned_landing.Commit`; `session` is opened by the first batch."""
    spark = session()
    base = batch.table.version()
    # A row whose expression fails is quarantined with its reason; it must not end the batch.
    spark.conf.set("spark.sql.ansi.enabled", "false")
    spark_conf.choose(spark, landing.source.count(batch.parts).lines)
    try:
        lines, counted = _counted(_lines(spark, landing.source, batch.parts), landing.source, batch.parts)
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
    extents = counted()
    counts = line_counts.of_batch(landing, extents, {} if kept is None else kept.get)
    written = delta_table.rows_changed(landing.table.path, (after,))
    return Committed(written, (), batch.parts, {} if TOGETHER in extents else extents, counts)


def _lines(spark: Any, source: SourceReader, parts: Positions) -> Any:
    """Return the frame of a batch's lines: `value`, `file`, and `part` if the source's connector has it."""
    if not parts:
        return spark.createDataFrame([], LINES)
    frame = source.frame(parts)
    if frame is None:
        return _by_python(spark, source, parts)
    found = spark.read.format(frame.format).options(**frame.options).load()
    cases = " ".join(f"when {test} then {string(reason, 'spark')}" for reason, test in frame.drops)
    return found.selectExpr(*frame.columns, f"{f'case {cases} end' if cases else 'cast(null as string)'} as dropped")


def _counted(lines: Any, source: SourceReader, parts: Positions) -> tuple[Any, Callable[[], dict[str, Extent]]]:
    """Return lines that Spark counts as it reads them, and a function that returns the counts after that.

    Few parts are counted apart, in one pass; many, or those without a column `part`, together.
    """
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    frame = source.frame(parts) if "dropped" in lines.columns else None
    names = list(parts) if frame is not None and len(parts) <= MOST_COUNTED else [TOGETHER]
    reasons = [reason for reason, _ in frame.drops] if frame is not None else []
    counts = {}
    for number, name in enumerate(names):
        here = f.lit(True) if not name else f.col("part") == name
        counts[f"n{number}"] = f.count_if(here)
        counts |= {f"d{number}_{i}": f.count_if(here & (f.col("dropped") == one)) for i, one in enumerate(reasons)}
    observation = Observation()
    observed = lines.observe(observation, *(count.alias(alias) for alias, count in counts.items()))
    kept = observed if frame is None else observed.where("dropped is null")

    def counted() -> dict[str, Extent]:
        found, extents = observation.get, {}
        for number, name in enumerate(names):
            dropped = {one: int(found[f"d{number}_{i}"]) for i, one in enumerate(reasons)}
            extents[name] = Extent(int(found[f"n{number}"]), {one: count for one, count in dropped.items() if count})
        return extents

    return kept.select("value", "file"), counted


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
