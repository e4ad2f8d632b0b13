"""Two engines on one warehouse: DuckDB for all that doesn't ask, Spark for what is given to it. Shell: the engines."""

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
from sqlrun.errors import EngineError, UnsuitedError

if TYPE_CHECKING:
    import pyarrow as pa

NOTHING: Mapping[str, str] = MappingProxyType({})
# Bytes of a unit, as DuckDB writes them.
UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
UNITS |= {"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40}


def of_duckdb(settings: Mapping[str, str]) -> dict[str, str]:
    """Take the settings that are DuckDB's."""
    return {key: value for key, value in settings.items() if not key.startswith("spark.")}


def of_spark(settings: Mapping[str, str]) -> dict[str, str]:
    """Take the settings that are Spark's."""
    return {key: value for key, value in settings.items() if key.startswith("spark.")}


class AutoEngine:
    """As an engine it is DuckDB; whoever may choose (`maintain/engine_selection.py`) takes `duckdb` or `spark`.

    `spark_only_models` are the models that run on Spark alone, each with why. `lands`: the engine that new landing
    tables begin with. Settings whose name begins with `spark.` are Spark's, all others DuckDB's.
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
        """Begin to start Spark while the rest goes on; calling it again does nothing."""

        def start() -> None:
            # Whoever needs it starts it again, and says what is wrong.
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
        """Return how many bytes DuckDB may use, which its start has settled; None where that can't be told."""
        text = self.duckdb.query("select current_setting('memory_limit') as size", ()).to_pylist()[0]["size"]
        return size_of(text)

    def start(self) -> None:
        """Open DuckDB; Spark starts when something needs it."""
        self.duckdb.start()

    def create(self, table: TableSpec) -> None:
        """Make the empty table as version 0; nothing if it is there."""
        self.duckdb.create(table)

    def head(self, path: str) -> int | None:
        """Return the newest version of a table; None where there is no table."""
        return self.duckdb.head(path)

    def restore(self, path: str, version: int, head: int | None = None) -> None:
        """Make `version` the content of the table again; by Spark where delta-rs can't write the table."""
        try:
            self.duckdb.restore(path, version, head)
        except UnsuitedError:
            self.spark.restore(path, version, head)

    def land(self, landing: Landing) -> Written:
        """Land by DuckDB."""
        return self.duckdb.land(landing)

    def write(self, write: Write) -> Written:
        """Carry out one statement by DuckDB."""
        return self.duckdb.write(write)

    def query(self, sql: str, relations: tuple[Relation, ...], given: Mapping[str, pa.Table] = NONE_GIVEN) -> pa.Table:
        """Run a SELECT by DuckDB."""
        return self.duckdb.query(sql, relations, given)

    def parts(self, sql: str, relations: tuple[Relation, ...], rows: int) -> Iterator[pa.Table]:
        """Run a SELECT by DuckDB; only so many rows are in memory."""
        return self.duckdb.parts(sql, relations, rows)

    def close(self) -> None:
        """Let go of both."""
        if self._warming is not None:
            self._warming.join()
            self._warming = None
        self.spark.close()
        self.duckdb.close()


def size_of(text: str) -> int | None:
    """Read a size as DuckDB writes it; None for what is none.

    >>> size_of("1.5 GiB"), size_of("2GB"), size_of("-1"), size_of("much")
    (1610612736, 2000000000, None, None)
    """
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", text)
    if not found or found[2].lower() not in UNITS:
        return None
    return round(float(found[1]) * UNITS[found[2].lower()])
