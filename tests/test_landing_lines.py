"""Landing on DuckDB asks a line that looks plain less: what it says of the line is the same."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
import pytest

from sqlrun import landing
from sqlrun.engines import duckdb_landing
from sqlrun.engines.duckdb import DuckDBEngine
from sqlrun.incremental import sql
from tests import projects, rescue_lines
from tests.landing_lines import LINES

# Where a line is taken for plain, and where its values are taken for whole.
SHORT_CUTS = (" as _plain from", "case when not coalesce(_json is not null and not _twice and ")
LONG_WAYS = (" and false as _plain from", "case when not coalesce(false and ")


def lines(found: dict[str, str]) -> str:
    return " union all ".join(
        f"select {sql.string(line, 'duckdb')} as value, {sql.string(name, 'duckdb')} as file"
        for name, line in found.items()
    )


def long_way(text: str) -> str:
    for short, long in zip(SHORT_CUTS, LONG_WAYS, strict=True):
        text = text.replace(short, long)
    return text


def rows(text: str) -> dict[str, Any]:
    return {row["_file"]: row for row in DuckDBEngine().query(text, ()).to_pylist()}


@pytest.mark.slow
def test_a_plain_line_is_judged_as_any_other() -> None:
    prepared = projects.prepared(projects.ROOT)
    model = next(m for m in prepared.space.tables if m.source is not None)
    assert model.source is not None
    rules = prepared.space.rules.get(model.name, ())
    query = landing.query(model.own, model.source, rules, "duckdb", datetime(2026, 1, 12, tzinfo=timezone.utc))
    assert all(short in query for short in SHORT_CUTS)
    short, long = (
        rows(f"with lines as ({lines(LINES)}) select * from ({text}) as answer") for text in (query, long_way(query))
    )

    assert short == long
    assert short.keys() == LINES.keys()
    assert short["good"]["_reason"] is None
    assert short["an item is null"]["_reason"] == "items: an element is missing"


@pytest.mark.slow
def test_a_plain_line_rescues_what_any_other_does() -> None:
    """Fields of fields, too: a struct in a struct, one in an array."""
    found = {name: line for name, (line, _) in rescue_lines.HOSTILE.items()} | {
        "in another order": '{"items": [], "size": {"h": {"cm": 2}, "w": 1}, "id": "1"}',
        "a key twice, all of them declared": '{"id": "1", "id": "2", "size": null, "items": []}',
        "a struct is text": '{"id": "1", "size": "a", "items": []}',
        "a struct is null": '{"id": "1", "size": null, "items": null}',
        "an unknown field inside, all outside declared": '{"id": "1", "size": {"w": 1, "x": 2}, "items": []}',
        "an item is null": '{"id": "1", "size": {"w": 1, "h": {"cm": 2}}, "items": [null, {"dish": "x"}]}',
    }
    parts = ", ".join(f"{name} as ({text})" for name, text in landing._typed_parts(rescue_lines.SOURCE, "duckdb"))
    query = f"with lines as ({lines(found)}), _parsed as ({landing._parsed(rescue_lines.SOURCE, 'duckdb')}), {parts} "
    query += "select * from _typed"

    short, long = rows(query), rows(long_way(query))
    assert short == long
    assert short["in another order"]["_reason"] is None
    assert short["an unknown field inside, all outside declared"]["_rescued"] == '{"size": {"w": 1, "x": 2}}'


@pytest.mark.parametrize(
    "data", [b"", b"a", b"a\n", b"\n\n", b"a\r\nb\rc\n\n", b"\xe2\x82\nb\xff\xe2\x82", "ü\n🍕".encode()]
)
def test_a_file_is_parted_into_its_lines(data: bytes) -> None:
    parts = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    expected = [part.decode("utf-8", "replace") for part in (parts if parts[-1] else parts[:-1])]
    found = duckdb_landing._table(duckdb_landing._lines(data), [b"f"] * len(expected))

    found.validate(full=True)
    assert found.column("value").to_pylist() == expected
    assert found.column("file").to_pylist() == ["f"] * len(expected)


def test_the_threads_of_duckdb_share_lines() -> None:
    many = [str(number).encode() for number in range(2 * duckdb_landing.PIECE + 1)]
    found: pa.Table = duckdb_landing._table(many, many)
    assert [len(piece) for piece in found.to_batches()] == [duckdb_landing.PIECE, duckdb_landing.PIECE, 1]
