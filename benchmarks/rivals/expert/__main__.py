"""Run by the suite: `python -m benchmarks.rivals.expert`, in the contender's folder. Shell: Spark."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks import expert
from benchmarks.rivals.resident import serve


class Warm:
    """One session; a tick is one batch of the stream, then the mart."""

    def __init__(self) -> None:
        self._job = expert.start(Path.cwd(), os.environ.get("BENCH_MEMORY", "6g"))

    def tick(self, as_of: datetime) -> dict[str, str]:
        expert.tick(self._job, as_of)
        return {}

    def mart(self) -> list[dict[str, Any]]:
        rows = self._job.spark.read.format("delta").load(self._job.path("restaurant_windows")).collect()
        return [row.asDict(True) for row in rows]

    def close(self) -> None:
        self._job.spark.stop()


serve(Warm)
