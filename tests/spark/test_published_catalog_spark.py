"""The catalog that sqlrun adds to Spark: the tables of one published tick in each query."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.engines.spark.engine import SparkEngine
from sqlrun.publish import current_folders, tick_views
from tests.publish.test_environments import sales
from tests.run.test_machine import project
from tests.storage.test_suites_on_a_store import passed
from tests.support.projects import Site
from tests.support.readers_of_delta import rows
from tests.support.script import FIVE, START
from tests.support.servers import jars

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TABLES = ("stg_lines", "stg_sales", "fct_slots", "mart_hour", "mart_best")


@pytest.fixture
def site(tmp_path: Path, unchecked: None) -> Site:
    made = Site(project(tmp_path / "a sh\u00f6p"), DuckDBEngine(), current_folders=True)
    sales(made, "0.jsonl", ("a", 1, "x", 5, -1))
    assert made.tick(START).published
    return made


@pytest.fixture
def spark(engine: SparkEngine, site: Site) -> Any:
    """A session with the catalog."""
    jars.spark_jar()
    session = engine._spark.newSession()
    for statement in tick_views.of_tick(site.warehouse, None, "", "spark-catalog"):
        session.sql(statement)
    return session


def schema(site: Site) -> str:
    return f"sqlrun.`{Path(current_folders.place(site.ledger)).name}`"


def read(spark: Any, site: Site, name: str) -> Counter[str]:
    return rows(row.asDict(recursive=True) for row in spark.table(f"{schema(site)}.{name}").collect())


def test_the_tables_are_the_published_ones(site: Site, spark: Any) -> None:
    """After a tick, an edit, and in an environment."""
    for number in (1, 2):
        sales(site, f"{number}.jsonl", ("a", number, "x", number, -1), (f"n{number}", 1, "z", 2, 0))
        assert site.tick(START + number * FIVE).published
        for name in TABLES:
            assert read(spark, site, name) == rows(site.rows(name)), name
    dev = Site(site.root, site.engine, env="dev", current_folders=True)
    assert dev.tick(START + 2 * FIVE).published
    assert read(spark, dev, "mart_best") == rows(site.rows("mart_best"))

    schemas = {row["namespace"] for row in spark.sql("show namespaces in sqlrun").collect()}
    assert schemas == {Path(current_folders.place(each.ledger)).name for each in (site, dev)}
    assert read(spark, site, "MART_Best") == rows(site.rows("mart_best"))
    listed = {row["tableName"] for row in spark.sql(f"show tables in {schema(site)}").collect()}
    assert listed == set(TABLES)
    current_folders.drop(dev.ledger)
    assert {row["namespace"] for row in spark.sql("show namespaces in sqlrun").collect()} < schemas


@contextmanager
def switching(file: Path, texts: tuple[str, str]) -> Iterator[None]:
    """Publish one tick, then the other, and so on, as fast as the disk allows."""
    ended = threading.Event()

    def switch() -> None:
        for text in cycle(texts):
            if ended.is_set():
                return
            new = file.with_suffix(".new")
            new.write_text(text)
            new.replace(file)

    thread = threading.Thread(target=switch)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def test_a_query_reads_one_tick(site: Site, spark: Any) -> None:
    """A tick is published between any two tables of a query."""
    file = Path(current_folders.pointer(current_folders.place(site.ledger)))
    first = file.read_text()
    counts = [tuple(len(site.rows(name)) for name in TABLES)]
    sales(site, "1.jsonl", ("b", 1, "y", 5, -1), ("c", 1, "z", 5, -20))
    assert site.tick(START + FIVE).published
    counts.append(tuple(len(site.rows(name)) for name in TABLES))
    texts = (first, file.read_text())
    assert all(old != new for old, new in zip(*counts, strict=True)), "a table doesn't tell the ticks apart"

    seen: Counter[tuple[int, ...]] = Counter()
    columns = ", ".join(f"(select count(*) from {schema(site)}.{name})" for name in TABLES)
    with switching(file, texts):
        for _ in range(40):
            seen[tuple(spark.sql(f"select {columns}").collect()[0])] += 1
    assert set(seen) == set(counts)


@pytest.mark.parametrize(
    "statement",
    [
        "drop table {}", "delete from {}", "insert into {} values ('x', 1, 1)", "alter table {} add columns (z int)",
        "create schema sqlrun.mine", "create table sqlrun.mine.t (a int) using delta", "update {} set n = 0",
    ],
)  # fmt: skip
def test_the_catalog_is_read_only(site: Site, spark: Any, statement: str) -> None:
    with pytest.raises(Exception, match="The catalog sqlrun is read only"):
        spark.sql(statement.replace("{}", f"{schema(site)}.mart_hour")).collect()
    assert read(spark, site, "mart_hour") == rows(site.rows("mart_hour"))


def test_a_change_of_a_folder_shows_nowhere(site: Site, spark: Any) -> None:
    """Spark doesn't ask before it truncates: the folder gets a commit, and the tick names the one before."""
    spark.sql(f"truncate table {schema(site)}.mart_hour")
    assert read(spark, site, "mart_hour") == rows(site.rows("mart_hour"))
    sales(site, "1.jsonl", ("b", 1, "y", 5, -1))
    assert site.tick(START + FIVE).published
    assert any("SR741" in text and "mart_hour" in text for text in site.said)
    assert read(spark, site, "mart_hour") == rows(site.rows("mart_hour"))


def test_what_is_not_published_is_not_found(site: Site, spark: Any) -> None:
    for name in ("sqlrun.nothing.mart_hour", f"{schema(site)}.nothing", "sqlrun.mart_hour"):
        with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
            spark.table(name).collect()
    with pytest.raises(Exception, match="SCHEMA_NOT_FOUND"):
        spark.sql("show tables in sqlrun.nothing").collect()


def test_a_broken_pointer_is_an_error(site: Site, spark: Any) -> None:
    """Never an empty catalog, nor other versions."""
    file = Path(current_folders.pointer(current_folders.place(site.ledger)))
    for text in ("", "{}", json.dumps({"tables": {"mart_hour": "x"}})):
        file.write_text(text)
        with pytest.raises(Exception, match=r"doesn't name a tick"):
            spark.sql(f"select * from {schema(site)}.mart_hour").collect()


@pytest.mark.long
def test_the_tables_of_a_warehouse_in_s3() -> None:
    """In a process of its own, whose JVM has the jars of S3A."""
    said = passed(__file__, "-n", "0", "-m", "spark and not long", "-k", "published_ones")
    assert "1 passed" in said, said[-3000:]
