"""Delta tables that Spark writes as sources: Spark and DuckDB read the same changes of them."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from sqlrun.engine_api import Engine, Relation, StoredColumn
from sqlrun.engines.delta import file_rows
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.engines.spark.engine import SparkEngine
from sqlrun.runtime import arrow_rows
from tests.sources.test_delta import wrong
from tests.support.lakes import START, project
from tests.support.projects import Site

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]

FIVE = timedelta(minutes=5)
COLUMNS = "id bigint, shop string, amount bigint, at timestamp"
STORED = tuple(StoredColumn(*column.split(" ")) for column in COLUMNS.split(", "))
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
# `t` is the table, `now` a time.
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


def difference(engine: Engine, path: str, since: int, until: int) -> Counter[Any]:
    """Return the difference of two versions as an engine reads it, with the weights as counts."""
    relation = Relation("x", path, STORED, "difference", version=until, since=since)
    found: Counter[Any] = Counter()
    for row in arrow_rows.plain(engine.query("select * from x", (relation,))):
        found[(row["id"], row["shop"], row["amount"], (row["at"] - EPOCH) // timedelta(microseconds=1))] += row[
            "_weight"
        ]
    return found


def rows(engine: Engine, path: str, version: int) -> Counter[Any]:
    """Return the rows of a version as an engine reads it."""
    relation = Relation("x", path, STORED, "snapshot", version=version)
    found = arrow_rows.plain(engine.query("select * from x", (relation,)))
    return Counter((r["id"], r["shop"], r["amount"], (r["at"] - EPOCH) // timedelta(microseconds=1)) for r in found)


def create(session: Any, path: str, partitioned: str, vectors: str) -> None:
    session.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    options = f"tblproperties (delta.enableDeletionVectors = {vectors})"
    session.sql(f"create table delta.`{path}` ({COLUMNS}) using delta {partitioned} {options}")


@pytest.mark.parametrize(
    ("vectors", "partitioned"),
    [
        ("true", "partitioned by (shop)"),
        ("true", ""),
        ("false", "partitioned by (shop)"),
        ("false", ""),
    ],
)
def test_both_engines_read_what_spark_wrote(
    tmp_path: Path, engine: SparkEngine, small_session: Any, partitioned: str, vectors: str
) -> None:
    """After each commit of Spark, both engines find the rows that came and left since earlier versions."""
    session, path = small_session, str(tmp_path / "orders")
    create(session, path, partitioned, vectors)
    states, duckdb = {0: Counter[Any]()}, DuckDBEngine()
    for commit in COMMITS:
        before = max(states)
        run(session, path, commit)
        now = delta_table.head(path)
        assert now is not None
        states[now] = state_of(session, path)
        if commit.startswith("vacuum"):
            states = {now: states[now]}
            continue
        for reader in (engine, duckdb):
            assert rows(reader, path, now) == states[now], (commit, reader.name)
            for since in {before, min(states)}:
                wanted = Counter(states[now])
                wanted.subtract(states[since])
                found = difference(reader, path, since, now)
                assert {r: n for r, n in found.items() if n} == {r: n for r, n in wanted.items() if n}, (
                    commit, since, reader.name, file_rows.between(path, since, now)
                )  # fmt: skip


def test_models_on_spark_over_a_table_of_others(tmp_path: Path, engine: SparkEngine, small_session: Any) -> None:
    """Each tick on Spark leaves every model equal to its query over the version that it read."""
    session, path = small_session, str(tmp_path / "lake" / "orders")
    create(session, path, "partitioned by (shop)", "true")
    site = Site(project(tmp_path, ("copied", "totals", "named", "best")), engine)
    for number, commits in enumerate((COMMITS[:1], COMMITS[1:5], COMMITS[13:15], COMMITS[16:])):
        for commit in commits:
            run(session, path, commit)
        result = site.tick(START + number * FIVE)
        assert result.published, [node.message for node in result.nodes]
        assert not wrong(site), commits
    assert any("its source lake.orders, which it read last" in getattr(event, "text", "") for event in site.events)
