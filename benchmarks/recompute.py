"""The same tick by full recompute in Spark: land, then run every model's whole query and overwrite its table.

It does the work of dbt or a materialized view at its best: one warm session, independent models in parallel, tables
without partitions (overwriting hundreds of them costs more), no change feed, no checks. The landed events are sqlrun's.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks import spark_costs
from benchmarks.by_hand import land, sqlruns_tables
from benchmarks.costs import TickCost
from benchmarks.expert import session
from sqlrun.incremental.compile import whole_query
from sqlrun.incremental.script import Moment

ORDER = (
    ("stg_orders",),
    ("fct_restaurant_slots", "fct_restaurant_dish_slots"),
    ("fct_restaurant_hours", "restaurant_windows"),
)


class Recompute:
    """The contender."""

    def __init__(self, work: Path, memory: str) -> None:
        self._work = work
        self._space, plan = sqlruns_tables(work)
        self._tables = plan.tables
        self._queries = {m.name: m.query for m in self._space.models}
        self._spark = session(memory)
        self._meter = spark_costs.Meter(self._spark, work)

    def preload(self, as_of: datetime) -> None:
        """Do nothing: the landed events are sqlrun's."""

    def tick(self, as_of: datetime) -> TickCost:
        """Run a tick and measure it."""
        return self._meter.measure(as_of, lambda: self._tick(as_of))

    def _tick(self, as_of: datetime) -> None:
        for model in self._space.tables:
            if model.source is not None:
                path = self._tables[model.name].spec.path
                land(self._spark, self._work, model, path, self._space.rules[model.name])
                self._view(model.name, path, self._tables[model.name].where)
        for seed in self._space.project.seeds:
            self._view(seed.name, self._tables[seed.name].spec.path, "")
        for names in ORDER:
            with ThreadPoolExecutor(2) as pool:
                for done in [pool.submit(self._model, name, as_of) for name in names]:
                    done.result()

    def _model(self, name: str, as_of: datetime) -> None:
        text = whole_query(self._queries, name, self._space.views, Moment(as_of, None), "spark")
        path = str(self._work / "recomputed" / name)
        columns = {c.name: c.type for c in self._space.model(name).own.public}
        rows = self._spark.sql(text).selectExpr(*[f"cast(`{c}` as {kind}) as `{c}`" for c, kind in columns.items()])
        rows.write.format("delta").mode("overwrite").save(path)
        self._view(name, path, "")

    def _view(self, name: str, path: str, where: str) -> None:
        rows = self._spark.read.format("delta").load(path)
        (rows.where(where) if where else rows).createOrReplaceTempView(f"{name}__new")

    def mart(self) -> list[dict[str, Any]]:
        """Return the mart's rows."""
        return [row.asDict(True) for row in self._spark.table("restaurant_windows__new").collect()]

    def close(self) -> None:
        """Stop Spark."""
        self._spark.stop()
