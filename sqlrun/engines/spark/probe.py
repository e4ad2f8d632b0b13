"""What the executors of a cluster have, for `sqlrun debug`. Shell: Spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlrun.runtime.text_lines import text_lines
from sqlrun.version import __version__ as VERSION

SCHEMA = "python string, sqlrun string"
TASKS = 4


def pythons(session: Any) -> str:
    """Return what is wrong with the Python of executors, for sources that sqlrun's own readers read; "" if nothing.

    Such a reader is sent by its name, so that the executors need the same sqlrun.
    """
    from pyspark.errors import PySparkException

    try:
        found = session.range(0, TASKS, 1, TASKS).mapInArrow(_own, SCHEMA).distinct().collect()
    except PySparkException as error:
        lines = text_lines(str(error))
        wrong = [line.strip() for line in lines if "Error: " in line]
        return (wrong or lines)[-1][:300]
    others = sorted({row["sqlrun"] for row in found} - {VERSION})
    return f"executors have sqlrun {', '.join(others)}, and the driver has {VERSION}" if others else ""


def _own(batches: Iterator[Any]) -> Iterator[Any]:
    import platform

    import pyarrow as pa

    for _ in batches:
        yield pa.RecordBatch.from_pylist([{"python": platform.python_version(), "sqlrun": VERSION}])
