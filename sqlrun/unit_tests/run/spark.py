"""Statements run by Spark over tables in memory, which it reads as temporary views. Shell: Spark, DuckDB.

The rows stay in DuckDB, so that the comparison is the same on both engines.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from sqlrun.engine_api import Dialect
from sqlrun.engines.duckdb.memory import Memory, relation
from sqlrun.engines.spark import parts
from sqlrun.engines.spark import views as spark_views
from sqlrun.engines.spark.conf import choose
from sqlrun.incremental.parts import joined, split
from sqlrun.incremental.script import WEIGHT
from sqlrun.incremental.stages import Stage
from sqlrun.transpile.writer import identifier, type_name

# Views over few rows need one task only.
SETTINGS = {"spark.sql.shuffle.partitions": "1", "spark.sql.execution.arrow.pyspark.enabled": "true"}
SIDE = "_side"


class OnSpark:
    """Runs statements in a Spark session. A MERGE becomes a full outer join, with each expression run by Spark."""

    dialect: Dialect = "spark"

    def __init__(self, session: Any) -> None:
        self._session = session
        choose(session, 0)
        for key, value in SETTINGS.items():
            session.conf.set(key, value)
        self._foreseen: dict[str, tuple[str, Sequence[str]]] = {}
        self._answers: dict[str, list[tuple[Any, ...]]] = {}

    def foresee(self, stage: Stage, text: str) -> None:
        """Run a SELECT of a stage's public columns in the job that writes the stage."""
        self._foreseen[stage.name] = text, [column.name for column in stage.public]

    def carry_out(self, memory: Memory, stage: Stage, texts: Sequence[str]) -> None:
        """Replace a stage's table by the rows of the SELECT that is its statement."""
        (text,) = texts
        # Common parts can be computed ahead only at the start of a statement.
        before, text = split(text)
        columns = [column.name for column in stage.columns]
        beside, public = self._foreseen.pop(stage.name, ("", ()))
        asked = f"select 'kept' as {SIDE}, {_names(columns, 'spark')} from ({text})"
        if beside:
            items = ", ".join(identifier(c, "spark") if c in public else "null" for c in columns)
            asked += f" union all select 'asked' as {SIDE}, {items} from ({beside})"
        self._collect(memory, joined(before, asked))
        new, listed = relation(stage.name, "new"), _names(columns, "duckdb")
        memory.connection.execute(
            f"delete from {new}; insert into {new} select {listed} from _spark where {SIDE} = 'kept'"
        )
        if beside:
            shown = f"select {_names(public, 'duckdb')} from _spark where {SIDE} = 'asked'"
            self._answers[beside] = memory.connection.execute(shown).fetchall()

    def rows(self, memory: Memory, text: str) -> list[tuple[Any, ...]]:
        """Return the rows of a SELECT over the relations; a foreseen one already has its result."""
        if text in self._answers:
            return self._answers.pop(text)
        self._collect(memory, text)
        found: list[tuple[Any, ...]] = memory.connection.execute("from _spark").fetchall()
        return found

    def _collect(self, memory: Memory, text: str) -> None:
        """Run a query on Spark and copy its rows into a table in DuckDB."""
        for name, columns in memory.columns.items():
            for row_set in ("old", "new", "changes"):
                if identifier(f"{name}__{row_set}", "spark") in text:
                    weighted = [*columns, (WEIGHT, "bigint")] if row_set == "changes" else columns
                    self._show(memory, f"{name}__{row_set}", list(weighted))
        arrow = spark_views.arrow(parts.frame(self._session, text))
        memory.connection.register("_arrow", arrow)
        memory.connection.execute("create or replace temp table _spark as from _arrow")
        memory.connection.unregister("_arrow")

    def _show(self, memory: Memory, name: str, columns: list[tuple[str, str]]) -> None:
        """Register a table in DuckDB as a temporary view in Spark."""
        listed = _names((n for n, _ in columns), "duckdb")
        arrow = memory.connection.sql(f"select {listed} from {identifier(name, 'duckdb')}").to_arrow_table()
        kinds = [(identifier(n, "spark"), _spark_type(kind)) for n, kind in columns]
        if arrow.num_rows:
            frame = self._session.createDataFrame(arrow, ", ".join(f"{n} {kind}" for n, kind in kinds))
        else:  # Arrow's conversion fails on a nested column without rows
            nothing = ", ".join(f"cast(null as {kind}) as {n}" for n, kind in kinds)
            frame = self._session.sql(f"select {nothing} where false")
        frame.createOrReplaceTempView(identifier(name, "spark"))


@cache
def _spark_type(kind: str) -> str:
    return type_name(kind, "spark")


def _names(columns: Any, dialect: Dialect) -> str:
    return ", ".join(identifier(name, dialect) for name in columns)
