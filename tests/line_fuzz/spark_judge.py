"""Files of lines judged by Spark: read as a landing reads them, and parted into lines so."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlrun.engines.spark.engine import SparkEngine
from sqlrun.project import Source
from sqlrun.sources import folder as source_folder
from tests.line_fuzz.judges import Answers, Judge, of_rows
from tests.line_fuzz.sources import judging


def by_spark(source: Source, data: bytes, engine: SparkEngine, folder: Path) -> Answers:
    """Judge a file's lines as a landing on Spark does."""
    (folder / "lines.jsonl").write_bytes(data)
    with engine._session() as session:
        session.conf.set("spark.sql.ansi.enabled", "false")
        read = session.read.format("text").load(str(folder))
        read.selectExpr(*source_folder.COLUMNS).createOrReplaceTempView("lines")
        rows = session.sql(judging(source, "spark")).toArrow().to_pylist()
        session.conf.unset("spark.sql.ansi.enabled")
    return of_rows(source, rows)


@contextmanager
def judging_by_spark(engine: SparkEngine | None = None) -> Iterator[Judge]:
    """Give what judges a source's file on Spark, in a session of its own where none is given."""
    own = engine or SparkEngine({"spark.driver.memory": "2g"})
    if engine is None:
        own.start()
    with tempfile.TemporaryDirectory() as folder:
        try:
            yield lambda source, data: by_spark(source, data, own, Path(folder))
        finally:
            if engine is None:
                own.close()
