"""Blank lines are counted as the landing query tests them; a line's part is found from its origin."""

from __future__ import annotations

import random
from typing import Any, cast

import pyarrow as pa
import pytest

from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.incremental.landing import line_grammar
from sqlrun.project import Topic
from sqlrun.source_api import SourceReader
from sqlrun.sources import blank_lines
from sqlrun.sources.folder import Folder
from sqlrun.sources.kafka import Kafka

LINES = ("", " ", "\t", " \t ", "{}", " {}", "\u00a0", "\r", "x", "\u2003", "{")


def test_both_ways_count_what_the_query_leaves_out() -> None:
    assert blank_lines.BLANKS == line_grammar.BLANKS
    chance = random.Random(1)
    for size in (0, 1, 5, 500):
        lines = chance.choices(LINES, k=size)
        table = pa.table({"value": pa.array(lines, pa.large_string())})
        sql = f"select count(*) as n from lines where {line_grammar.stripped('value', 'duckdb')} = ''"
        (row,) = DuckDBEngine().query(sql, (), {"lines": table}).to_pylist()
        assert blank_lines.count(table.column("value")) == row["n"] == sum(map(blank_lines.is_blank, lines))


@pytest.mark.parametrize(
    ("reader", "origin"),
    [(Kafka(Topic("a"), (), cast(Any, None)), "shop-1.a/3/120"), (Folder("data"), "2026/11.jsonl")],
    ids=["kafka", "folder"],
)
def test_the_part_is_the_one_that_origins_have(reader: SourceReader, origin: str) -> None:
    sql = f"select {reader.part('file')} as part from (select '{origin}' as file)"
    (row,) = DuckDBEngine().query(sql, ()).to_pylist()
    assert row["part"] == reader.describe([(origin, "")])[0].part
