"""Spark as another writer between ticks, in SQL; and every reader on the same rows and change feeds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from sqlrun.engines.spark.engine import SparkEngine
from tests.support import foreign_writers as others
from tests.support import readers_of_delta as readers
from tests.support.foreign_writers import KINDS, arrive, at, build, command, path_of, true

pytestmark = [pytest.mark.spark, pytest.mark.slow]
CHANGES = {
    "INSERT": "insert into {t} select * from {t} limit 1",
    "DELETE": "delete from {t} where {c} is not null",
    "UPDATE": "update {t} set {c} = '9' where {c} is not null",
    "MERGE": "merge into {t} as t using (select * from {t} limit 2) as s on s.{c} = t.{c} when matched then delete",
    "RESTORE": "restore table {t} to version as of 0",
    "ALTER": "alter table {t} add columns (note string)",
    "FEATURE": "alter table {t} set tblproperties ('delta.enableRowTracking' = 'true')",
}
HARMLESS = ("optimize {t}", "optimize {t} zorder by ({c})", "vacuum {t} retain 0 hours")


def run(spark: Any, path: str, text: str) -> None:
    column = DeltaTable(path).schema().fields[0].name
    spark.sql(text.format(t=f"delta.`{path}`", c=column))


@pytest.mark.long
def test_what_spark_does_between_ticks(engine: SparkEngine, small_session: Any, tmp_path: Path) -> None:
    """Each kind of table meets other operations in each round; refused or taken back, and true after each tick."""
    small_session.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    site = others.opened(others.project(tmp_path / "shops"), engine)
    arrive(site, 0)
    assert site.tick(at(0)).published
    for number in (1, 2):
        for index, name in enumerate(KINDS):
            run(small_session, path_of(site, name), list(CHANGES.values())[(index + 3 * number) % len(CHANGES)])
        arrive(site, number)
        said = build(site, number, code=2)
        assert "SR740 stg_lines" in said and "Spark" in said and "power failure" not in said, said
        command(site, "doctor", "--repair")
        assert site.tick(at(number)).published  # by Spark's own landing, over what was taken back
        true(site, number, 3 * (number + 1))
    for index, name in enumerate(KINDS):
        run(small_session, path_of(site, name), HARMLESS[index % len(HARMLESS)])
    arrive(site, 3)
    assert site.tick(at(3)).published
    true(site, 3, 12)
    _all_readers_agree(small_session, site)


def _all_readers_agree(spark: Any, site: Any) -> None:
    """On the newest version of each table, and on the change feed of each commit that is left."""
    for name in KINDS:
        path = path_of(site, name)
        head = DeltaTable(path).version()
        expected = readers.rows(row.asDict(recursive=True) for row in spark.read.format("delta").load(path).collect())
        for reader, read in readers.READERS.items():
            assert read(path, head) == expected, (name, reader)
        for version in (head, head - 1):
            frame = spark.read.format("delta").option("readChangeFeed", True)
            frame = frame.option("startingVersion", version).option("endingVersion", version).load(path)
            feed = readers.weighed(readers.rows(row.asDict(recursive=True) for row in frame.collect()))
            assert readers.weighed(readers.feed_by_delta_rs(path, version)) == feed, (name, version)
            assert readers.weighed(readers.feed_by_polars(path, version)) == feed, (name, version)
            assert readers.feed_by_duckdb(path, version) == feed, (name, version)
