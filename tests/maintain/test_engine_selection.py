"""The engine of each table with `engine: auto`: what Spark runs, what is reported, and what needs no Spark.

Here Spark is a second DuckDB with its name; `spark/test_engine_selection_spark.py` uses the real one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from sqlrun.engine_api import Write, Written
from sqlrun.engines.auto import AutoEngine, size_of
from sqlrun.engines.delta import features as delta_features
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.engines.spark import session as spark_session
from sqlrun.errors import EngineError, UnsuitedError
from sqlrun.events import StageReceipt, TickResult
from sqlrun.land import land
from sqlrun.maintain import engine_selection
from sqlrun.system_tables import receipts
from tests.engines.test_landed_elsewhere import LINE
from tests.run.test_machine import project
from tests.support.projects import Site, now
from tests.support.script import FIVE, START
from tests.support.whole import differences

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("unchecked")]
WHY = "hash() runs on Spark only"


class Stand(DuckDBEngine):
    """An engine with Spark's name, which writes tables that delta-rs can't."""

    name = "spark"
    is_up = False

    def start(self) -> None:
        super().start()
        self.is_up = True

    def _require_written(self, table: Any, name: str) -> None:
        """Accept all features, as Spark does."""


def auto(**given: Any) -> AutoEngine:
    made = AutoEngine(**given)
    made.spark = Stand()  # type: ignore[assignment]
    return made


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(project(tmp_path / "shops"), auto())
    made.write("0.jsonl", [LINE % "a", LINE % "b"])
    yield made
    made.engine.close()


@pytest.fixture
def large() -> Iterator[None]:
    """Treat every change as a large one."""
    with mock.patch.object(engine_selection, "FEW", 0):
        yield


def engine_of(site: Site) -> AutoEngine:
    assert isinstance(site.engine, AutoEngine)
    return site.engine


def stages(result: TickResult) -> dict[str, StageReceipt]:
    return {stage.table: stage for node in result.nodes for stage in node.stages}


def by(result: TickResult, engine: str) -> set[str]:
    """Return the names of the tables that an engine has committed."""
    return {name for name, stage in stages(result).items() if stage.engine == engine and stage.receipt.commits}


def test_a_project_that_does_not_need_spark_starts_no_jvm(tmp_path: Path) -> None:
    """It lands, builds, updates, idles and rolls back, and Spark is never used."""
    site = Site(project(tmp_path / "shops"), AutoEngine())
    site.write("0.jsonl", [LINE % "a"])
    with mock.patch.object(spark_session, "session_of", side_effect=AssertionError("Spark was started")):
        for step in range(3):
            assert site.tick(START + step * FIVE).published
            assert differences(site, START + step * FIVE) == {}
            if not step:
                site.write("1.jsonl", [LINE % "b"])
        table = site.ledger.read().published
        assert table is not None
        path = f"{site.warehouse}/{table.tables['mart_best'].path}"
        delta_table.delete_rows(path, "true")  # as if the tick had never been
        assert site.tick(START + 3 * FIVE).published
    assert differences(site, START + 3 * FIVE) == {}
    assert not engine_of(site).spark.is_up
    site.engine.close()


def test_a_spark_only_model_runs_on_spark_with_a_reason(site: Site) -> None:
    """Only its tables do; a tick without changes for it starts nothing."""
    engine_of(site).spark_only_models = {"fct_slots": WHY}

    result = site.tick(START)

    assert result.published and differences(site, START) == {}
    assert {name.partition("__")[0] for name in by(result, "spark")} == {"fct_slots"}
    assert stages(result)["fct_slots"].note == f"Spark maintains fct_slots: {WHY}"
    assert {"stg_lines", "stg_sales", "mart_best"} <= by(result, "duckdb")
    assert not any(stage.note for name, stage in stages(result).items() if not name.startswith("fct_slots"))


def test_an_idle_tick_does_not_start_spark(site: Site) -> None:
    engine_of(site).spark_only_models = {"mart_best": WHY}
    assert site.tick(START).published
    engine_of(site).spark = again = Stand()  # type: ignore[assignment]

    idle = site.tick(START)

    assert idle.published and not again.is_up
    assert not any(stage.note for stage in stages(idle).values())


@pytest.mark.usefixtures("large")
def test_a_change_that_exceeds_the_memory_runs_on_spark(site: Site) -> None:
    with mock.patch.object(AutoEngine, "memory", 1):
        result = site.tick(START)

    assert result.published and differences(site, START) == {}
    assert {"stg_sales", "fct_slots", "mart_best"} <= by(result, "spark")
    assert stages(result)["stg_sales"].note == (
        "Spark maintains stg_sales in this tick: it needs about 0.0 GiB, but DuckDB may use 0.0 GiB"
    )


def test_a_table_is_sized_without_the_latest_commit(site: Site, large: None) -> None:
    """While that is small: the input's files before the tick suffice, and nothing is read back."""
    site.write("more.jsonl", [LINE % f"m{n}" for n in range(9)])
    site.tick(START)
    progress = site.published[-1]
    landing = next(model.name for model in progress.plan.models if model.source is not None)
    path, before = progress.plan.tables[landing].spec.path, progress.states[landing].version
    asked: list[int] = []
    really = engine_selection.size

    def size(where: str, version: int) -> tuple[int, int]:
        asked.extend([version] * (where == path))
        return really(where, version)

    with mock.patch.object(engine_selection, "size", size):
        site.write("1.jsonl", [LINE % "c"])
        site.tick(START + FIVE)
        few = list(asked)
        site.write("2.jsonl", [LINE % f"n{n}" for n in range(99)])
        site.tick(START + 2 * FIVE)

    assert few
    assert set(few) == {before}
    assert asked[-1] == before + 2


def test_run_stats_have_the_engine_of_each_table(site: Site) -> None:
    engine_of(site).spark_only_models = {"mart_best": WHY}
    receipts.write(site.warehouse, site.tick(START), "duckdb", now())

    rows = delta_table.open_table(receipts.path_of(site.warehouse)).to_pyarrow_table().to_pylist()
    found = {row["table"]: row["engine"] for row in rows}

    assert found["mart_best"] == "spark" and found["stg_lines"] == found["stg_sales"] == "duckdb"


def test_unreadable_run_stats_are_ignored(tmp_path: Path) -> None:
    folder = Path(receipts.path_of(str(tmp_path))) / "_delta_log"
    folder.mkdir(parents=True)
    (folder / f"{0:020}.json").write_text("torn")

    assert receipts.read_for_changes(str(tmp_path), "fct", "merge") == []


def running_out(name: str, *, after: bool = False) -> Any:
    """Make DuckDB run out of memory at a table, before or after its commit."""
    real = DuckDBEngine.write

    def write(self: DuckDBEngine, write: Write) -> Written:
        if write.table.name != name or isinstance(self, Stand):
            return real(self, write)
        if after:
            real(self, write)
        raise UnsuitedError("OutOfMemoryException: Out of Memory Error: failed to allocate", model=name)

    return mock.patch.object(DuckDBEngine, "write", write)


def test_spark_repeats_what_runs_out_of_memory(site: Site) -> None:
    with running_out("stg_sales"):
        result = site.tick(START)

    assert result.published and differences(site, START) == {}
    assert by(result, "spark") == {"stg_sales"}
    assert stages(result)["stg_sales"].note == (
        "Spark maintains stg_sales in this tick: OutOfMemoryException: Out of Memory Error: failed to allocate"
    )


def test_nothing_is_repeated_after_a_commit(site: Site) -> None:
    """The tick fails; the next build rolls the commit back."""
    with running_out("stg_sales", after=True):
        result = site.tick(START)

    assert not result.published
    assert "OutOfMemoryException" in next(node.message for node in result.nodes if node.message)
    assert site.tick(START).published and differences(site, START) == {}


def test_duckdb_alone_reports_that_memory_ran_out(tmp_path: Path) -> None:
    """There is no other engine: the tick fails with DuckDB's message."""
    site = Site(project(tmp_path / "shops"), DuckDBEngine())
    site.write("0.jsonl", [LINE % "a"])

    with running_out("stg_sales"):
        result = site.tick(START)

    assert not result.published
    assert "OutOfMemoryException" in next(node.message for node in result.nodes if node.message)


def test_a_table_with_spark_only_features_runs_on_spark(site: Site) -> None:
    """So is its restore: the feature was added by a commit outside any tick."""
    assert site.tick(START).published
    published = site.ledger.read().published
    assert published is not None
    path = f"{site.warehouse}/{published.tables['stg_sales'].path}"
    real = delta_features.foreign

    def foreign(table: Any) -> tuple[str, ...]:
        return ("clustering",) if "stg_sales" in table.table_uri else real(table)

    site.write("1.jsonl", [LINE % "c"])
    delta_table.delete_rows(path, "true")
    with mock.patch.object(delta_features, "foreign", foreign):
        result = site.tick(START + FIVE)

    assert result.published and differences(site, START + FIVE) == {}
    assert by(result, "spark") == {"stg_sales"}
    assert stages(result)["stg_sales"].note == (
        "Spark maintains stg_sales in this tick: stg_sales uses features of Delta that delta-rs can't write: clustering"
    )


def test_missing_java_is_reported_before_anything_is_written(site: Site) -> None:
    engine_of(site).spark_only_models = {"mart_best": WHY}
    with (
        mock.patch.object(spark_session, "java_problem", return_value="Spark needs Java 17 or newer"),
        pytest.raises(EngineError, match="Spark needs Java"),
    ):
        site.tick(START)

    assert not list(Path(site.warehouse).glob("*/*/_delta_log"))


def test_spark_starts_in_the_background_if_it_is_needed(site: Site) -> None:
    engine_of(site).spark_only_models = {"mart_best": WHY}
    with mock.patch.object(AutoEngine, "warm", autospec=True) as warm:
        site.tick(START)
        site.tick(START)

    assert warm.call_count == 1


def test_rows_that_landed_ahead_start_spark_early(site: Site) -> None:
    """Spark starts when files land between ticks, and in a later process at the beginning of the tick."""
    engine_of(site).spark_only_models = {"mart_best": WHY}
    assert site.tick(START).published
    engine_of(site).spark = Stand()  # type: ignore[assignment]
    with mock.patch.object(AutoEngine, "warm", autospec=True) as warm:
        site.write("1.jsonl", [LINE % "c"])
        os.utime(site.orders / "1.jsonl", (0, 0))
        land.ahead(site.published[-1], now())
        assert warm.call_count == 1

        land.ahead(site.published[-1], now())
        assert warm.call_count == 1
        assert site.tick(START + FIVE).published
        assert warm.call_count == 2
        assert site.tick(START + FIVE).published
        assert warm.call_count == 2
    assert differences(site, START + FIVE) == {}


def test_sizes_and_settings_are_split_between_the_engines() -> None:
    """DuckDB reports the memory that it may use."""
    made = AutoEngine({"memory_limit": "1GiB", "spark.driver.memory": "2g"})

    assert made.memory == 1 << 30
    assert made.spark._settings == {"spark.driver.memory": "2g"}
    assert size_of("1.0 GiB") == 1 << 30
    made.close()


def test_features_are_read_from_the_protocol() -> None:
    """Features of this project's tables are supported; unknown ones and column mapping aren't."""

    def table(version: int, features: list[str] | None = None) -> Any:
        protocol = mock.Mock(min_writer_version=version, writer_features=features)
        return mock.Mock(protocol=lambda: protocol)

    assert delta_features.foreign(table(4)) == ()
    assert delta_features.foreign(table(7, ["changeDataFeed", "deletionVectors"])) == ()
    assert delta_features.foreign(table(7, ["clustering", "rowTracking", "appendOnly"])) == (
        "clustering",
        "rowTracking",
    )
    assert delta_features.foreign(table(5)) == ("columnMapping",)
    assert delta_features.foreign(table(6)) == ("columnMapping", "identityColumns")
    assert delta_features.foreign(table(7, None)) == ()
