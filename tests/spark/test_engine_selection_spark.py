"""`engine: auto` with the real Spark: tables go from engine to engine at random, and whatever happens stays true."""

from __future__ import annotations

import json
import random
from datetime import timedelta
from pathlib import Path

import pytest

from sqlrun.engines.delta import commit as delta_commit
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.engines.spark.engine import SparkEngine
from tests.run.test_machine import Stop, project, stopping
from tests.support.alternating import at_random, auto
from tests.support.projects import Site
from tests.support.script import FIVE, START
from tests.support.whole import differences

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]


def lines(step: int, some: random.Random) -> list[str]:
    """A few sales, some of them late, twice or corrected."""
    at = START + step * FIVE
    found = []
    for _ in range(some.randint(1, 5)):
        amount = some.choice([None, f"{some.randint(-3, 9)}.00"])
        sold = at - timedelta(minutes=some.randint(0, 90))
        found.append(
            {"id": some.choice("abcdefgh"), "version": some.randint(1, 3), "shop": some.choice("xyz"),
             "amount": amount, "sold_at": f"{sold:%Y-%m-%dT%H:%M:%SZ}"}
        )  # fmt: skip
    return [json.dumps(line) for line in found]


@pytest.mark.parametrize("landing", ["duckdb", "spark"])
def test_tables_go_from_engine_to_engine(engine: SparkEngine, tmp_path: Path, landing: str) -> None:
    """Each table of each tick by either engine; crashes in between, one after Spark's commit and one after DuckDB's."""
    some = random.Random(f"8 {landing}")
    site = Site(project(tmp_path / "shops"), auto(engine, lands=landing))
    with at_random(f"8 {landing}") as drawn:
        for step in range(5):
            site.write(f"{step}.jsonl", lines(step, some))
            if step in (1, 3):
                owner = SparkEngine if step == 1 else DuckDBEngine
                with stopping(owner, "write", 1, after=True), pytest.raises(Stop):
                    crash(site, step)
            result = site.tick(START + step * FIVE)
            assert result.published
            assert differences(site, START + step * FIVE) == {}, (step, drawn)
    assert {"spark", "duckdb"} <= set(drawn)


def crash(site: Site, step: int) -> None:
    """Tick until the crash comes: the engine that it waits for may not have its turn at once."""
    for _ in range(20):
        site.tick(START + step * FIVE, ("stg_sales", "fct_slots", "mart_best", "mart_hour"), refresh=True)


def test_a_model_for_spark_alone_among_others(engine: SparkEngine, tmp_path: Path) -> None:
    """Its tables are Spark's in every tick; those above and below are DuckDB's, and all are true."""
    some = random.Random(88)
    site = Site(project(tmp_path / "shops"), auto(engine, spark_only_models={"fct_slots": "hash() runs on Spark only"}))
    for step in range(3):
        site.write(f"{step}.jsonl", lines(step, some))
        result = site.tick(START + step * FIVE)
        wrote = {s.table.partition("__")[0]: s.engine for n in result.nodes for s in n.stages if s.receipt.commits}
        assert result.published and differences(site, START + step * FIVE) == {}
        assert {name for name, by in wrote.items() if by == "spark"} == {"fct_slots"}


FEATURES = {
    "columnMapping": "set tblproperties ('delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = '2', "
    "'delta.minWriterVersion' = '5')",
    "clustering": "cluster by (shop)",
    "rowTracking": "set tblproperties ('delta.enableRowTracking' = 'true')",
}


def alter(engine: SparkEngine, site: Site, name: str, what: str) -> None:
    """Change a published table as somebody would with Spark."""
    published = site.ledger.read().published
    assert published is not None
    with engine._session() as session:
        session.sql(f"alter table delta.`{site.warehouse}/{published.tables[name].path}` {what}")


@pytest.mark.parametrize("feature", FEATURES)
def test_a_feature_that_another_writer_switched_on_is_rolled_back(
    engine: SparkEngine, tmp_path: Path, feature: str
) -> None:
    """A commit that no tick made: both engines, and DuckDB alone, go on with the table as it was."""
    some = random.Random(888)
    site = Site(project(tmp_path / "shops"), auto(engine))
    site.write("0.jsonl", lines(0, some))
    assert site.tick(START).published
    for name in ("stg_sales", "fct_slots"):
        alter(engine, site, name, FEATURES[feature])
    for step in (1, 2):
        site.write(f"{step}.jsonl", lines(step, some))
        result = site.tick(START + step * FIVE)
        assert result.published and differences(site, START + step * FIVE) == {}
        assert [s.note for n in result.nodes for s in n.stages if s.note] == []

    site.write("3.jsonl", lines(3, some))
    alone = Site(site.root, DuckDBEngine())

    assert alone.tick(START + 3 * FIVE).published and differences(alone, START + 3 * FIVE) == {}


def test_deletion_vectors_that_another_writer_switched_off_are_switched_on_again(
    engine: SparkEngine, tmp_path: Path
) -> None:
    """A commit that no tick made is taken back, its settings too; both engines go on."""
    some = random.Random(88)
    site = Site(project(tmp_path / "shops"), auto(engine))
    site.write("0.jsonl", lines(0, some) + lines(1, some))
    assert site.tick(START).published
    for name in ("stg_sales", "fct_slots"):
        alter(engine, site, name, "set tblproperties ('delta.enableDeletionVectors' = 'false')")
    for step, share in enumerate((1.0, 0.0), 1):
        site.write(f"{step}.jsonl", lines(step, some))
        with at_random(f"{step}", share):
            result = site.tick(START + step * FIVE)
        assert result.published and differences(site, START + step * FIVE) == {}, step
    published = site.ledger.read().published
    assert published is not None
    for name in ("stg_sales", "fct_slots"):
        table = delta_table.open_table(f"{site.warehouse}/{published.tables[name].path}")
        assert delta_commit.marks(table)
