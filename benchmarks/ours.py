"""The contender `sqlrun`: the reference project, ticked like `sqlrun build --every`. Shell: a project's folder."""

from __future__ import annotations

import shutil
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from benchmarks.costs import Cost, Logs, SparkBooks, TickCost, cpu_seconds
from sqlrun.events import TickResult
from sqlrun.pipeline import prepare
from sqlrun.publish.ledger import Ledger
from sqlrun.publish.reader import query, relation
from sqlrun.run.tick import Request, tick

ROOT = Path(__file__).parent.parent
# The other contenders don't count guests, so this one doesn't either.
LEFT_OUT = "restaurant_customers"
ROOMS = ("models", "macros", "seeds", "expectations", "profiles", "tests/fixtures")


def make_project(work: Path) -> None:
    """Copy the analyst's files, unless they are there."""
    for room in ROOMS:
        if not (work / room).exists():
            shutil.copytree(ROOT / room, work / room, ignore=shutil.ignore_patterns(f"{LEFT_OUT}.*", "_exposures.yml"))
    shutil.copy(ROOT / "pyproject.toml", work / "pyproject.toml")


class Ours:
    """The whole tick in a warm process: land, maintain, check, publish, run stats.

    `apart`: checks run after the tick, alone. `java`: options of Spark's JVM.
    """

    def __init__(self, work: Path, engine: str, memory: str, apart: bool = False, java: str = "") -> None:
        from sqlrun.engines.duckdb.engine import DuckDBEngine
        from sqlrun.run import scheduler

        self._waiting: list[tuple[Any, Any]] = []
        self._examined, self._apart = scheduler.examined, apart
        if apart:
            scheduler.examined = self._later
        make_project(work)
        self.orders = work / "data" / "orders"
        self.warehouse = work / "warehouse"
        self.warehouse.mkdir(exist_ok=True)
        self._prepared = prepare(work)
        self._ledger = Ledger(str(self.warehouse), self._prepared.project.name)
        self._reader = None
        if engine == "duckdb":
            self._engine: Any = DuckDBEngine()
        else:
            from sqlrun.engines.spark.engine import SparkEngine

            self._engine = SparkEngine({"spark.driver.memory": memory, "spark.driver.extraJavaOptions": java})
            self._reader = DuckDBEngine()
        self._engine.start()
        self._logs = Logs(self.warehouse)
        self._books = SparkBooks(_session()) if engine == "spark" else None

    def preload(self, as_of: datetime) -> None:
        """Run a tick over the whole history."""
        self._run(as_of)
        self._waiting.clear()

    def tick(self, as_of: datetime) -> TickCost:
        """Run a tick; return its cost from run stats and logs."""
        self._logs.news()
        if self._books:
            self._books.news()
        started, busy = time.perf_counter(), cpu_seconds()
        result = self._run(as_of)
        seconds, busy = time.perf_counter() - started, cpu_seconds() - busy
        found = self._cost(as_of, seconds, result)
        found.cpu = busy
        if self._apart:
            found.checks = self._checks()
        return found

    def _later(self, progress: Any, model: Any) -> Any:
        from sqlrun.run.scheduler import NOTHING

        self._waiting.append((progress, model))
        return NOTHING

    def _checks(self) -> tuple[float, float]:
        """Check the tick's changes, with nothing in parallel; return seconds and CPU seconds."""
        waiting, self._waiting = self._waiting, []
        started, busy = time.perf_counter(), cpu_seconds()
        for progress, model in waiting:
            bad = [result for result in self._examined(progress, model).checks if result.status.blocks]
            assert not bad, bad
        return time.perf_counter() - started, cpu_seconds() - busy

    def _run(self, as_of: datetime) -> TickResult:
        names = tuple(n for n in self._prepared.graph.order if not n.startswith("source:"))
        clock = lambda: datetime.now(timezone.utc)  # noqa: E731
        request = Request(
            warehouse=str(self.warehouse),
            as_of=as_of,
            selected=names,
            refresh=False,
            threads=2,
            holder="benchmark",
            clock=clock,
        )
        result = tick(self._prepared.workspace, self._engine, self._ledger, request, lambda _: None, self._reader)
        if not result.published:
            said = [f"{n.name}: {n.message}" for n in result.nodes if n.status == "error"]
            said += [f"{c.model}: {c.type} {c.columns} {c.message}" for c in result.checks if c.status.blocks]
            raise RuntimeError("the tick was not published: " + "; ".join(said))
        return result

    def _cost(self, as_of: datetime, seconds: float, result: TickResult) -> TickCost:
        written = self._logs.news()
        published = self._ledger.read().published
        assert published is not None
        paths = {state.path: name for name, state in published.tables.items()}
        tables: dict[str, Cost] = {}
        for node in result.nodes:
            for stage in node.stages:
                receipt = stage.receipt
                own = Cost(
                    receipt.seconds, stage.rows_changed, receipt.rows_read, receipt.bytes_read, receipt.files_read
                )
                own.rows_written, own.jobs = receipt.rows_written, receipt.jobs
                tables[stage.table] = own
        for path, cost in written.items():
            name = paths.get(path, "(ledger)")
            table = tables.setdefault(name, Cost())
            table.files_written, table.bytes_written, table.commits = (
                cost.files_written,
                cost.bytes_written,
                cost.commits,
            )
            table.rows_written = cost.rows_written if table.rows_written is None else table.rows_written
        total = sum(tables.values(), Cost())
        total.seconds = seconds
        if self._books:
            spent = self._books.news()
            total.jobs, total.rows_read, total.bytes_read = spent.jobs, spent.rows_read, spent.bytes_read
            total.files_read = spent.files_read
        return TickCost(as_of.isoformat(), seconds, total, tables, {node.name: node.seconds for node in result.nodes})

    def mart(self) -> list[dict[str, Any]]:
        """Return the mart's rows as readers see them."""
        return self.rows("restaurant_windows")

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Return the rows of a published table."""
        published = self._ledger.read().published
        assert published is not None
        bound = relation(str(self.warehouse), name, published.tables[name])
        return query(f'select * from "{name}"', [bound]).to_pylist()

    def close(self) -> None:
        """Close the engine."""
        self._engine.close()


def _session() -> Any:
    from pyspark.sql import SparkSession

    return SparkSession.builder.getOrCreate()
