"""Delta tables that Spark writes as sources: Spark and DuckDB read the same changes of them."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.engines.spark.engine import SparkEngine
from tests.sources.test_delta import copied, wrong
from tests.support.lakes import START, project
from tests.support.projects import Site

pytestmark = [pytest.mark.spark, pytest.mark.slow]

FIVE = timedelta(minutes=5)
COLUMNS = "id bigint, shop string, amount bigint, at timestamp"
# One tick after each; `t` is the table.
COMMITS = (
    "insert into t values (1, 'a', 5, now), (2, 'b', 7, now), (3, null, 9, now), (3, null, 9, now), (4, 'b', 6, now)",
    "insert into t select id + 10, shop, amount, at from t",
    "delete from t where id = 2",
    "update t set amount = 8 where shop = 'b'",
    "merge into t using (select * from values (1, 'a', 1, now), (99, 'c', 4, now) as s(id, shop, amount, at)) s "
    "on t.id = s.id when matched then update set amount = s.amount when not matched then insert *",
    "alter table t set tblproperties (delta.enableChangeDataFeed = true)",
    "update t set shop = 'a' where id > 10",
    "delete from t where id = 3",
    "optimize t",
    "restore table t to version as of 2",
    "insert overwrite t select * from t where id <> 1",
    "alter table t set tblproperties (delta.enableChangeDataFeed = false)",
    "vacuum t retain 0 hours",
    "insert into t values (7, '', 2, now), (8, 'x y/z%', 3, now)",
    "delete from t where id = 7",
    "reorg table t apply (purge)",
    "update t set amount = amount + 1",
    "vacuum t retain 0 hours",
)


def run(session: Any, path: str, sql: str) -> None:
    """Run a statement of `COMMITS`."""
    words = sql.replace("now", f"timestamp'{START:%Y-%m-%d %H:%M:%S}'")
    parts = [f"delta.`{path}`" if word == "t" else word for word in words.split(" ")]
    text = " ".join(parts)
    if text.startswith(("merge", "update", "delete")):
        text = text.replace(f"delta.`{path}`", f"delta.`{path}` as t", 1)
    session.sql(text)


def state_of(session: Any, path: str) -> Counter[Any]:
    rows = session.sql(f"select id, shop, amount, unix_micros(at) as at from delta.`{path}`").collect()
    return Counter(tuple(row) for row in rows)


def micros(rows: Counter[Any]) -> Counter[Any]:
    epoch = START.replace(year=1970, month=1, day=1, hour=0)
    return Counter({(*row[:3], (row[3] - epoch) // timedelta(microseconds=1)): n for row, n in rows.items()})


@pytest.mark.parametrize("partitioned", ["", "partitioned by (shop)"])
@pytest.mark.parametrize("vectors", ["true", "false"])
def test_both_engines_read_what_spark_wrote(
    tmp_path: Path, engine: SparkEngine, small_session: Any, partitioned: str, vectors: str
) -> None:
    """After each commit of Spark, both engines' tables equal their queries, and have the rows that Spark reads."""
    session, path = small_session, str(tmp_path / "one" / "lake" / "orders")
    session.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    options = f"tblproperties (delta.enableDeletionVectors = {vectors})"
    session.sql(f"create table delta.`{path}` ({COLUMNS}) using delta {partitioned} {options}")
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "lake").symlink_to(tmp_path / "one" / "lake")
    sites = [Site(project(tmp_path / "one"), engine), Site(project(tmp_path / "two"), DuckDBEngine())]
    for number, commit in enumerate(COMMITS):
        run(session, path, commit)
        wanted = state_of(session, path)
        for site in sites:
            result = site.tick(START + number * FIVE)
            assert result.published, (commit, [node.message for node in result.nodes])
            assert micros(copied(site)) == wanted, (commit, site.engine.name)
            assert not wrong(site), (commit, site.engine.name)
    told = [event.text for event in sites[1].events if type(event).__name__ == "Told"]
    assert [text for text in told if "rebuilt" in text] == []
