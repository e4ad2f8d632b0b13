"""Queries as analysts write them: what sqlrun keeps is Spark's own answer to the text as it was written."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import pytest

from tests.support.memory import Table
from tests.support.written import TABLES, kept, made, plain, queries, script

pytestmark = [pytest.mark.spark, pytest.mark.slow]
STEP = 1 if os.environ.get("SQLRUN_EXHAUSTIVE") else 4
# Spark without a catalog of Databricks' reads no QUALIFY; its plain form stands beside each.
UNREAD = "qualify"


@pytest.mark.long
def test_kept_queries_are_spark_s_answers(small_session: Any) -> None:
    """Spark's own parser reads the text: no tree of sqlglot's stands between."""
    for key, value in {
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.constraintPropagation.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
    }.items():
        small_session.conf.set(key, value)
    for seed in (7, 8):
        rows = script(seed)[1]
        for table in TABLES:
            small_session.sql(_values(table, rows[table.name])).createOrReplaceTempView(table.name)
        wrong = []
        listed = [query.sql for query in queries() if not query.refused and UNREAD not in query.sql]
        for sql in listed[seed % STEP :: STEP]:
            try:
                wanted = _answer(small_session, sql)
            except Exception as error:
                wrong.append(f"{sql}: {str(error)[:200]}")
                continue
            if plain(kept(made(sql), seed)) != wanted:
                wrong.append(sql)

        assert wrong == []


def _answer(session: Any, sql: str) -> Any:
    frame = session.sql(sql)
    order = [column.name.lower() for column in frame.schema.fields]
    memory = made(sql)
    names = [column.name for column in memory.compiled[-1].own.public]
    places = [order.index(name) for name in names] if set(names) == set(order) else list(range(len(order)))
    return plain(Counter(tuple(row[place] for place in places) for row in frame.collect()))


def _values(table: Table, rows: list[tuple[str | None, ...]]) -> str:
    lines = [
        ", ".join(
            f"cast(null as {kind})" if value is None else f"cast('{value}' as {kind})"
            for value, (_, kind) in zip(row, table.columns, strict=True)
        )
        for row in rows
    ]
    names = ", ".join(name for name, _ in table.columns)
    return f"select * from values {', '.join(f'({line})' for line in lines)} as z({names})"
