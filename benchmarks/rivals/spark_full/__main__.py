"""Run by the suite: `python -m benchmarks.rivals.spark_full`, in the contender's folder. Shell: Spark."""

from __future__ import annotations

import os
import re
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.expert import parsed, session
from benchmarks.rivals.resident import serve

QUERIES = dict(
    re.findall(r"-- name: (\w+)\n(.*?)(?=\n-- name:|\Z)", (Path(__file__).parent / "recompute.sql").read_text(), re.S)
)


class Full:
    """A warm session, tuned like the expert's, but with adaptive execution, because its queries are large."""

    def __init__(self) -> None:
        self._spark = session(os.environ.get("BENCH_MEMORY", "6g"))
        self._spark.conf.set("spark.sql.adaptive.enabled", "true")
        self._spark.conf.set("spark.sql.shuffle.partitions", "8")
        self._here = Path.cwd() / "tables"
        for name in ("restaurants", "dishes"):
            seed = self._spark.read.option("header", True).csv(str(Path.cwd() / "seeds" / f"{name}.csv"))
            seed.coalesce(1).localCheckpoint().createOrReplaceTempView(name)

    def _land(self) -> None:
        """Append new files, once."""
        lines = self._spark.readStream.format("text").option("maxFilesPerTrigger", 100_000)
        events = parsed(lines.load(str(Path.cwd() / "data" / "orders")))
        writer = events.writeStream.format("delta").outputMode("append")
        writer = writer.option("checkpointLocation", str(Path.cwd() / "checkpoint")).trigger(availableNow=True)
        writer.start(str(self._here / "events")).awaitTermination()

    def tick(self, as_of: datetime) -> dict[str, str]:
        self._land()
        self._spark.read.format("delta").load(str(self._here / "events")).createOrReplaceTempView("events")
        # Both results read the orders, which are computed once.
        orders = self._spark.sql(QUERIES["orders"]).persist()
        orders.createOrReplaceTempView("orders")
        try:
            for name in ("restaurant_hours", "restaurant_windows"):
                rows = self._spark.sql(QUERIES[name].replace("{as_of}", f"{as_of:%Y-%m-%d %H:%M:%S}"))
                rows.coalesce(1).write.format("delta").mode("overwrite").save(str(self._here / name))
        finally:
            orders.unpersist()
        return {}

    def mart(self) -> list[dict[str, Any]]:
        rows = self._spark.read.format("delta").load(str(self._here / "restaurant_windows")).collect()
        return [row.asDict(True) for row in rows]

    def close(self) -> None:
        self._spark.stop()


serve(Full)
