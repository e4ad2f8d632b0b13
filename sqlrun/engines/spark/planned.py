"""Landing of a planned batch on Spark: read its parts, run the landing query, commit its rows. Shell: Spark.

Spark's own connector reads the parts if the source has one. Otherwise the source's own reader does, in Python on the
executors, as it does on DuckDB.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlrun.decoding.change_events import OTHER_TABLE
from sqlrun.engine_api import Landing
from sqlrun.engines import planned_landing
from sqlrun.engines.delta import foreign_commits
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.planned_landing import Batch, Committed
from sqlrun.engines.spark import conf as spark_conf
from sqlrun.engines.spark import executor_reading, line_counts
from sqlrun.engines.spark.executor_reading import LINE
from sqlrun.errors import EngineError
from sqlrun.source_api import Extent, Positions, SourceReader, Values
from sqlrun.transpile.writer import string

LINES = "value string, file string, fault string"
# Columns of lines that Python decoded: why one is left out may be known only then.
DECODED = f"{LINES}, part string, dropped string"
# Maximum number of parts that a batch counts apart.
MOST_COUNTED = 256
# Name of the counts of all parts of a batch.
TOGETHER = ""


def commit(session: Callable[[], Any], landing: Landing, batch: Batch) -> Committed:
    """Commit the lines of a batch, as `planned_landing.Commit`; `session` is opened by the first batch."""
    spark, source = session(), landing.source
    spark_conf.choose(spark, source.count(batch.parts).lines)
    if not batch.parts or source.frame(batch.parts) is not None:
        lines, counted = _counted(_lines(spark, source, batch.parts), source, batch.parts)
        written = _write(spark, landing, batch, lines, len(batch.parts))
        return _committed(landing, batch.parts, counted(), written)
    with executor_reading.found(spark, source, batch.parts) as reading:
        landed = planned_landing.settled(landing, batch, reading)
        if planned_landing.withdraws(batch, landed, reading):
            return planned_landing.withdrawn(reading)
        written = _write(spark, landing, batch, reading.lines, len(landed))
        made = _committed(landing, landed, reading.extents, written)
        return replace(made, left=tuple(reading.changed), unreadable=dict(reading.unreadable))


@dataclass(frozen=True, slots=True)
class Written:
    """A commit: its number of rows, and what Spark observed of the landing query's rows."""

    rows: int
    observed: Mapping[str, Any]


def _write(spark: Any, landing: Landing, batch: Batch, lines: Any, files: int) -> Written:
    """Run the landing query over a frame of lines, and append its rows to the table."""
    base = batch.table.version()
    # A row whose expression fails is quarantined with its reason; it must not end the batch.
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        lines.createOrReplaceTempView("lines")
        rows, kept = spark.sql(landing.sql), None
        if landing.drops:
            rows, kept = line_counts.observed(rows, line_counts.ROWS, line_counts.of_rows(landing))
            rows = line_counts.landed(rows)
        metadata = {
            **landing.metadata,
            foreign_commits.BY: "landing",
            "sqlrun.tick": str(batch.number),
            "sqlrun.files": str(files),
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
    return Written(delta_table.rows_changed(landing.table.path, (after,)), {} if kept is None else kept.get)


def _committed(landing: Landing, parts: Positions, extents: Mapping[str, Extent], written: Written) -> Committed:
    landing.source.commit(parts)
    counts = line_counts.of_batch(landing, extents, written.observed)
    return Committed(written.rows, (), parts, {} if TOGETHER in extents else extents, counts)


def _lines(spark: Any, source: SourceReader, parts: Positions) -> Any:
    """Return the frame of a batch's lines as the source's connector reads them; an empty one for no parts."""
    frame = source.frame(parts) if parts else None
    if frame is None:
        return spark.createDataFrame([], LINES)
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
    if frame is not None and frame.values is not None:
        lines = _decoded(lines, frame.values)
        reasons.append(OTHER_TABLE)
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

    return kept.select(*(name for name in LINE if name in kept.columns)), counted


def _decoded(lines: Any, values: Values) -> Any:
    """Return lines with the texts of their values, which Python decodes on the executors.

    An event of another table is left out, and so are the lines that were before.
    """

    def decode(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        decoder = values.decoder()
        for batch in batches:
            before = batch.column("dropped").to_pylist()
            data = [v if d is None else None for v, d in zip(batch.column("value").to_pylist(), before, strict=True)]
            texts, faults = decoder(data, batch.column("members").to_pylist())
            dropped = [fault if fault == OTHER_TABLE else d for fault, d in zip(faults, before, strict=True)]
            columns = [pa.array(texts, pa.string()), batch.column("file"), pa.array(faults, pa.string())]
            columns += [batch.column("part"), pa.array(dropped, pa.string())]
            yield pa.RecordBatch.from_arrays(columns, [*LINE, "part", "dropped"])

    return lines.select("value", "members", "file", "part", "dropped").mapInArrow(decode, DECODED)
