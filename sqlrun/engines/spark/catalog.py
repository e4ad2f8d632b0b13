"""The schemas and tables of a catalog in Spark, such as a Hive metastore. Shell: Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlrun.transpile.writer import identifier, string


class SparkCatalog:
    """A catalog by its name in Spark; `run` executes a statement and returns its rows."""

    def __init__(self, name: str, run: Callable[[str], Sequence[Any]]) -> None:
        self._name, self._run = name, run

    def tables(self, schema: str) -> frozenset[str]:
        """Return the names of a schema's tables; create the schema if it doesn't exist."""
        place = self._named(schema)
        self._run(f"create schema if not exists {place}")
        rows = self._run(f"show tables in {place}")
        # Temporary views of the session are listed, too.
        return frozenset(row["tableName"] for row in rows if not row["isTemporary"])

    def location(self, schema: str, table: str) -> str:
        """Return the URI of a table's folder; "" for a view."""
        rows = self._run(f"describe table extended {self._named(schema, table)}")
        return next((row["data_type"] for row in reversed(rows) if row["col_name"] == "Location"), "")

    def create(self, schema: str, table: str, folder: str) -> None:
        """Create a table over a folder; an existing table stays."""
        self._run(
            f"create table if not exists {self._named(schema, table)} using delta location {string(folder, 'spark')}"
        )

    def drop(self, schema: str, table: str) -> None:
        """Drop a table; its folder stays, because the table is an external one."""
        self._run(f"drop table if exists {self._named(schema, table)}")

    def _named(self, *parts: str) -> str:
        return ".".join(identifier(part, "spark") for part in (self._name, *parts))
