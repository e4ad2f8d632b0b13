"""Two engines on one warehouse: DuckDB by default, Spark for the statements assigned to it. Shell: the engines."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Iterator, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING

from sqlrun.engine_api import NONE_GIVEN, Dialect, Landing, Relation, TableSpec, Write, Written
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.engines.spark.engine import SparkEngine
from sqlrun.errors import EngineError

if TYPE_CHECKING:
    import pyarrow as pa

NOTHING: Mapping[str, str] = MappingProxyType({})
# Bytes of each unit, in DuckDB's spelling.
UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
UNITS |= {"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40}


def of_duckdb(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings for DuckDB."""
    return {key: value for key, value in settings.items() if not key.startswith("spark.")}


def of_spark(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings for Spark."""
    return {key: value for key, value in settings.items() if key.startswith("spark.")}


class AutoEngine:
    """By default it runs on DuckDB; code that can choose (`maintain/engine_selection.py`) uses `duckdb` or `spark`.

    `spark_only_models`: the models that run only on Spark, each with the reason. `lands`: the engine that lands new
    landing tables. Settings whose name begins with `spark.` are Spark's, all others DuckDB's.
    """

    name = "auto"
    dialect: Dialect = "duckdb"

    def __init__(
        self,
        settings: Mapping[str, str] = NOTHING,
        spark_only_models: Mapping[str, str] = NOTHING,
        lands: str = "duckdb",
        own_commits: bool = True,
    ) -> None:
        self.spark_only_models, self.lands = spark_only_models, lands
        self.duckdb = DuckDBEngine(of_duckdb(settings), own_commits)
        self.spark = SparkEngine(of_spark(settings), own_commits)
        self._warming: threading.Thread | None = None

    def warm(self) -> None:
        """Start Spark in the background; do nothing if it has begun already."""

        def start() -> None:
            # The first caller that needs Spark starts it again and reports the error.
            with contextlib.suppress(EngineError):
                self.spark.start()

        if self._warming is None and not self.spark.is_up:
            self._warming = threading.Thread(target=start, name="sqlrun-spark", daemon=True)
            self._warming.start()

    @property
    def spark_is_up(self) -> bool:
        """Return whether Spark has started, or is about to."""
        return self.spark.is_up or self._warming is not None

    @cached_property
    def memory(self) -> int | None:
        """Return DuckDB's memory limit in bytes, known after its start; None if unknown."""
        text = self.duckdb.query("select current_setting('memory_limit') as size", ()).to_pylist()[0]["size"]
        return size_of(text)

    def start(self) -> None:
        """Open DuckDB; Spark starts when a statement needs it."""
        self.duckdb.start()

    def create(self, table: TableSpec) -> None:
        """Create the empty table as version 0; do nothing if it exists."""
        self.duckdb.create(table)

    def head(self, path: str) -> int | None:
        """Return the newest version of a table; None if there is no table."""
        return self.duckdb.head(path)

    def restore(self, path: str, version: int, head: int | None = None) -> None:
        """Restore the table's contents at `version`; Spark starts only if delta-rs can't write the table."""
        self.spark.restore(path, version, head)

    def land(self, landing: Landing) -> Written:
        """Land on DuckDB."""
        return self.duckdb.land(landing)

    def write(self, write: Write) -> Written:
        """Execute one statement on DuckDB."""
        return self.duckdb.write(write)

    def query(self, sql: str, relations: tuple[Relation, ...], given: Mapping[str, pa.Table] = NONE_GIVEN) -> pa.Table:
        """Run a SELECT on DuckDB."""
        return self.duckdb.query(sql, relations, given)

    def parts(self, sql: str, relations: tuple[Relation, ...], rows: int) -> Iterator[pa.Table]:
        """Run a SELECT on DuckDB; at most `rows` rows are in memory at a time."""
        return self.duckdb.parts(sql, relations, rows)

    def close(self) -> None:
        """Close both engines."""
        if self._warming is not None:
            self._warming.join()
            self._warming = None
        self.spark.close()
        self.duckdb.close()


def size_of(text: str) -> int | None:
    """Return the bytes of a size in DuckDB's spelling; None if it isn't a size.

    >>> size_of("1.5 GiB"), size_of("2GB"), size_of("-1"), size_of("much")
    (1610612736, 2000000000, None, None)
    """
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", text)
    if not found or found[2].lower() not in UNITS:
        return None
    return round(float(found[1]) * UNITS[found[2].lower()])
