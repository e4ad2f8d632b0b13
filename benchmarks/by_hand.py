"""The same tick as a hand-written job: sqlrun's own statements, in a plain PySpark session.

The statements and their relations are sqlrun's. The job leaves out what such jobs usually lack: ledger, pinned state,
restore, transaction ids, checks, run stats, durability. It starts with sqlrun's tables, so that the comparison covers
the runner only.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from benchmarks import spark_costs
from benchmarks.costs import TickCost
from benchmarks.expert import session
from sqlrun.engine_api import Merge, Relation, Write
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.engines.spark import views as spark_views
from sqlrun.engines.spark import write as spark_write
from sqlrun.incremental import pruning
from sqlrun.incremental.compile import Compiled
from sqlrun.incremental.landing import query as landing_query
from sqlrun.incremental.script import Moment
from sqlrun.incremental.stages import Stage
from sqlrun.incremental.statements import Tick, prepare
from sqlrun.pipeline import prepare as prepare_project
from sqlrun.plan.plan import tick_plan
from sqlrun.plan.values import TickPlan, Workspace
from sqlrun.publish.ledger import Ledger
from sqlrun.transpile.parameters import bound

# Tables that can run in parallel: each list needs the ones before it.
ORDER = (
    ("stg_orders",),
    ("fct_restaurant_slots", "fct_restaurant_dish_slots"),
    ("fct_restaurant_hours", "restaurant_windows__state_1", "restaurant_windows__state_2"),
    ("restaurant_windows",),
)


def sqlruns_tables(work: Path) -> tuple[Workspace, TickPlan]:
    """Prepare the project and return its published tables."""
    workspace = prepare_project(work).workspace
    warehouse = str(work / "warehouse")
    published = Ledger(warehouse, workspace.project.name).read().published
    assert published is not None
    names = [m.name for m in workspace.tables] + [s.name for s in workspace.project.seeds]
    return workspace, tick_plan(workspace, warehouse, published, 0, published.as_of, names, False)


class ByHand:
    """The contender; it remembers versions in a dictionary."""

    def __init__(self, work: Path, memory: str) -> None:
        self._work = work
        self._space, plan = sqlruns_tables(work)
        self._tables = plan.tables
        self._versions = {name: delta_table.head(table.spec.path) or 0 for name, table in self._tables.items()}
        self._previous = plan.as_of
        self._spark = session(memory)
        self._files = DuckDBEngine()
        self._meter = spark_costs.Meter(self._spark, work / "warehouse")

    def preload(self, as_of: datetime) -> None:
        """Do nothing: the tables are sqlrun's."""

    def tick(self, as_of: datetime) -> TickCost:
        """Run a tick and measure it."""
        return self._meter.measure(as_of, lambda: self._tick(as_of))

    def _tick(self, as_of: datetime) -> None:
        before = dict(self._versions)
        for model in self._space.tables:
            if model.source is not None:
                land(self._spark, self._work, model, self._tables[model.name].spec.path, self._space.rules[model.name])
                self._advance(model.name)
        moment = Moment(as_of, self._previous)
        for names in ORDER:
            with ThreadPoolExecutor(2) as pool:
                for done in [pool.submit(self._stage, name, moment, before) for name in names]:
                    done.result()
        self._previous = as_of

    def _advance(self, name: str) -> None:
        self._versions[name] = delta_table.head(self._tables[name].spec.path) or 0

    def _stage(self, name: str, moment: Moment, before: Mapping[str, int]) -> None:
        stage = self._space.stage(name)
        assert stage is not None
        commits = {table: tuple(range(before[table] + 1, self._versions[table] + 1)) for table in stage.inputs}
        changed = frozenset(table for table, versions in commits.items() if versions)
        prepared = prepare(stage, Tick(moment, changed, fresh=False), "spark", "")
        if prepared is None:
            return
        needed = pruning.needed(stage, moment, fresh=False)
        relations = []
        for table, row_set in prepared.reads:
            found = tuple((r.column, r.low, r.high) for r in needed.get((table, row_set), ()))
            relations.append(self._relation(stage, table, row_set, before, commits, found))
        own = self._spark.newSession()
        spark_views.register(own, tuple(relations))
        statement = bound(prepared.statement, moment.parameters, "spark")
        assert isinstance(statement, Merge)
        write = Write(self._tables[name].spec, before[name], 0, "", (), statement)
        spark_write.merge(own, self._files.lent, delta_table.open_table(write.table.path), write, statement)
        self._advance(name)

    def _relation(
        self, stage: Stage, name: str, row_set: Any, before: Mapping[str, int], commits: Mapping[str, Any], found: Any
    ) -> Relation:
        table = self._tables[name]
        label, path = f"{name}__{row_set}", table.spec.path
        if name == stage.name:
            return Relation(label, path, table.spec.columns, "old", version=before[name])
        if row_set == "changes":
            return Relation(label, path, table.public, row_set, commits=commits[name], where=table.where)
        version = (before if row_set == "old" else self._versions)[name]
        return Relation(label, path, table.public, row_set, version=version, where=table.where, ranges=found)

    def mart(self) -> list[dict[str, Any]]:
        """Return the mart's rows."""
        path = self._tables["restaurant_windows"].spec.path
        return [row.asDict(True) for row in self._spark.read.format("delta").load(path).collect()]

    def close(self) -> None:
        """Stop Spark."""
        self._spark.stop()


def land(spark: Any, work: Path, model: Compiled, path: str, rules: Any) -> None:
    """Append the rows of new files with sqlrun's landing query."""
    assert model.source is not None
    query = landing_query.query(model.own, model.source, rules, "spark", datetime.now(timezone.utc))
    reader = spark.readStream.format("text").option("maxFilesPerTrigger", 100_000)
    lines = reader.load(str(work / "data" / "orders"))
    lines.selectExpr("value", "_metadata.file_name as file").createOrReplaceTempView("lines")
    writer = spark.sql(query).writeStream.format("delta").outputMode("append")
    writer = writer.option("checkpointLocation", str(work / "checkpoint"))
    writer.trigger(availableNow=True).start(path).awaitTermination()
