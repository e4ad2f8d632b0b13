"""Landing on DuckDB takes shortcuts for lines that look plain: the results are the same."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
import pytest

from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.incremental.landing import line_pattern
from sqlrun.incremental.landing import query as landing_query
from sqlrun.project import Column
from sqlrun.sources import folder as source_folder
from sqlrun.transpile import writer as sql
from tests.support import nested_lines, projects, rescue_lines
from tests.support.landing_lines import LINES

# Where a line is classified as usual or plain, and where its values are classified as complete.
SHORT_CUTS = (
    " as _usual from lines",
    " as _plain from",
    "case when not coalesce(_json is not null and not _twice and ",
)
LONG_WAYS = (" and false as _usual from lines", " and false as _plain from", "case when not coalesce(false and ")


def lines(found: dict[str, str]) -> str:
    return " union all ".join(
        f"select {sql.string(line, 'duckdb')} as value, {sql.string(name, 'duckdb')} as file"
        for name, line in found.items()
    )


def long_way(text: str, cuts: tuple[str, ...] = SHORT_CUTS) -> str:
    for short, long in zip(cuts, LONG_WAYS, strict=False):
        assert short in text
        text = text.replace(short, long)
    return text


def rows(text: str) -> dict[str, Any]:
    return {row["_file"]: row for row in DuckDBEngine().query(text, ()).to_pylist()}


@pytest.mark.slow
def test_a_plain_line_is_validated_like_any_other() -> None:
    prepared = projects.prepared(projects.ROOT)
    model = next(m for m in prepared.workspace.tables if m.source is not None)
    assert model.source is not None
    rules = prepared.workspace.rules.get(model.name, ())
    query = landing_query.query(model.own, model.source, rules, "duckdb", datetime(2026, 1, 12, tzinfo=timezone.utc))
    assert all(short in query for short in SHORT_CUTS)
    short, long = (
        rows(f"with lines as ({lines(LINES)}) select * from ({text}) as answer") for text in (query, long_way(query))
    )

    assert short == long
    assert short.keys() == LINES.keys()
    assert short["good"]["_reason"] is None
    assert short["an item is null"]["_reason"] == "items: an element is missing"


@pytest.mark.slow
def test_a_plain_line_rescues_fields_like_any_other() -> None:
    """Also fields of fields: a struct in a struct, one in an array."""
    found = {name: line for name, (line, _) in rescue_lines.HOSTILE.items()} | {
        "in another order": '{"items": [], "size": {"h": {"cm": 2}, "w": 1}, "id": "1"}',
        "a key twice, all of them declared": '{"id": "1", "id": "2", "size": null, "items": []}',
        "a struct is text": '{"id": "1", "size": "a", "items": []}',
        "a struct is null": '{"id": "1", "size": null, "items": null}',
        "an unknown field inside, all outside declared": '{"id": "1", "size": {"w": 1, "x": 2}, "items": []}',
        "an item is null": '{"id": "1", "size": {"w": 1, "h": {"cm": 2}}, "items": [null, {"dish": "x"}]}',
    }
    parts = ", ".join(f"{name} as ({text})" for name, text in landing_query._typed_parts(rescue_lines.SOURCE, "duckdb"))
    query = (
        f"with lines as ({lines(found)}), _parsed as ({landing_query._parsed(rescue_lines.SOURCE, 'duckdb')}), {parts} "
    )
    query += "select * from _typed"

    short, long = rows(query), rows(long_way(query))
    assert short == long
    assert short["in another order"]["_reason"] is None
    assert short["an unknown field inside, all outside declared"]["_rescued"] == '{"size": {"w": 1, "x": 2}}'


@pytest.mark.parametrize("way", [str, lambda text: long_way(text, SHORT_CUTS)], ids=["asked where it must be", "asked"])
def test_faults_inside_arrays_and_structs_are_reported(way: Any) -> None:
    found = {name: row[landing_query.REASON] for name, row in rows(way(nested_lines.judged("duckdb"))).items()}

    assert found == {name: reason for name, (_, reason) in nested_lines.LINES.items()}


# A line, and whether it has the usual form of `rescue_lines.SOURCE`.
FORMS = (
    ('{"id":"1","size":{"w":1,"h":{"cm":2}},"items":[]}', True),
    ('{"id":"1","size":{"w":1,"h":{"cm":2}},"items":[{"dish":"x"},{"dish":null}]}', True),
    (' { "id" : -5 , "size" : { "w" : "1" , "h" : {"cm":2} } , "items" : [ {"dish":"ü 🍕"} , {"dish":""} ] } ', True),
    ('{"id":true,"size":{"w":false,"h":{"cm":null}},"items":[]}', True),
    ('{"id":123456789012345678,"size":{"w":0,"h":{"cm":-1}},"items":[]}', True),
    ('{"id":1234567890123456789,"size":{"w":0,"h":{"cm":1}},"items":[]}', False),
    ('{"id":-0,"size":{"w":0,"h":{"cm":1}},"items":[]}', False),
    ('{"id":0.5,"size":{"w":0,"h":{"cm":1}},"items":[]}', False),
    ('{"id":"1","size":{"w":0,"h":{"cm":1.0}},"items":[]}', False),
    ('{"id":"1","size":{"w":1e1,"h":{"cm":1}},"items":[]}', False),
    ('{"size":{"w":1,"h":{"cm":2}},"id":"1","items":[]}', False),
    ('{"id":"1","size":{"w":1,"h":{"cm":2}}}', False),
    ('{"id":"1","size":{"w":1,"h":{"cm":2}},"items":[],"x":1}', False),
    ('{"id":"1","id":"2","size":{"w":1,"h":{"cm":2}},"items":[]}', False),
    ('{"id":"1","size":{"w":1,"h":{"cm":2,"in":1}},"items":[]}', False),
    ('{"id":"1","size":{"w":1,"h":{"cm":2}},"items":[{"dish":"x"} {"dish":"y"}]}', False),
    ('{"id":"1","size":{"w":1,"h":{"cm":2}},"items":[{"dish":"x"},]}', False),
    ('{"id":"1","size":{"w":1,"h":{"cm":2}},"items":[null]}', False),
    ('{"id":"1","size":{"w":1,"h":{"cm":2}},"items":[[]]}', False),
    ('{"id":"1","size":{"w":1,"h":{"cm":2}},"items":{}}', False),
    ('{"id":"1","size":null,"items":[]}', False),
    ('{"id":"1","size":{"w":1,"h":{"cm":2}},"items":[]} {}', False),
    ('{"id":"a\\n","size":{"w":1,"h":{"cm":2}},"items":[]}', False),
    ('{"id":"a\t","size":{"w":1,"h":{"cm":2}},"items":[]}', False),
    ('{"id":[1],"size":{"w":1,"h":{"cm":2}},"items":[]}', False),
    ('{"id":{"a":1},"size":{"w":1,"h":{"cm":2}},"items":[]}', False),
    ('{"id":01,"size":{"w":1,"h":{"cm":2}},"items":[]}', False),
    ('{"id":1.,"size":{"w":1,"h":{"cm":2}},"items":[]}', False),
    ('{"id":NaN,"size":{"w":1,"h":{"cm":2}},"items":[]}', False),
    ('{"ID":"1","size":{"w":1,"h":{"cm":2}},"items":[]}', False),
    ('[{"id":"1","size":{"w":1,"h":{"cm":2}},"items":[]}]', False),
    ("", False),
)  # fmt: skip


@pytest.mark.slow
def test_a_line_of_the_usual_form_is_read_like_any_other() -> None:
    """The shortcut agrees with all tests: valid, an object, its keys, its shape."""
    form = sql.string(str(line_pattern.usual(rescue_lines.SOURCE, "duckdb")), "duckdb")
    found = lines({str(number): line for number, (line, _) in enumerate(FORMS)})
    matched = DuckDBEngine().query(f"select file, regexp_full_match(value, {form}) as yes from ({found})", ())
    assert {row["file"]: row["yes"] for row in matched.to_pylist()} == {
        str(number): yes for number, (_, yes) in enumerate(FORMS)
    }
    parsed = f"with lines as ({found}) select * from ({landing_query._parsed(rescue_lines.SOURCE, 'duckdb')})"
    short, long = rows(parsed), rows(long_way(parsed, SHORT_CUTS[:2]))
    assert short == long
    for number, (_, yes) in enumerate(FORMS):
        if yes:
            row = long[str(number)]
            assert row["_json"] is not None and not row["_twice"]
            assert row[landing_query.RESCUED] is None and row[landing_query.ABSENT] is None


@pytest.mark.long
@pytest.mark.slow
def test_random_lines_of_the_usual_form_are_read_like_any_other() -> None:
    """Pieces of lines in random order; some lines are valid, many almost."""
    chance = random.Random(8)
    scalars = [
        '"a"',
        '""',
        '"ü"',
        "true",
        "1",
        "-7",
        "null",
        '"\\u0041"',
        "-0",
        "0.50",
        "1e3",
        "01",
        "nul",
        '"',
        "[]",
        "{}",
    ]

    def some(*usual: str) -> str:
        return chance.choice(usual) if chance.random() < 0.97 else chance.choice([*scalars, ",", ":", "}", "]", " "])

    def line() -> str:
        items = ",".join(f'{{"dish"{some(":")}{some(*scalars[:7])}}}' for _ in range(chance.randrange(3)))
        size = f'{{"w":{some(*scalars[:7])},"h":{{"cm":{some(*scalars[:7])}}}}}'
        return f'{{"id":{some(*scalars[:7])}{some(",")}"size":{some(size)},"items":{some(f"[{items}]")}}}'

    found = lines({str(number): line() for number in range(400)})
    parsed = f"with lines as ({found}) select * from ({landing_query._parsed(rescue_lines.SOURCE, 'duckdb')})"
    short, long = rows(parsed), rows(long_way(parsed, SHORT_CUTS[:2]))
    assert short == long
    form = sql.string(str(line_pattern.usual(rescue_lines.SOURCE, "duckdb")), "duckdb")
    matched = DuckDBEngine().query(f"select count(*) as n from ({found}) where regexp_full_match(value, {form})", ())
    assert 150 < matched.to_pylist()[0]["n"] < 350


@pytest.mark.slow
def test_a_source_without_a_usual_form_is_read() -> None:
    here = rescue_lines.HERE
    odd = Column("é", "string", "It.", here)
    many = tuple(Column(f"c{number}", "string", "It.", here) for number in range(line_pattern.MOST_FIELDS + 1))
    for columns in ((odd,), many):
        source = replace(rescue_lines.SOURCE, columns=columns)
        assert line_pattern.usual(source, "duckdb") is None
        line = json.dumps({column.name: "1" for column in columns}, ensure_ascii=False)
        parsed = f"with lines as ({lines({'a': line})}) select * from ({landing_query._parsed(source, 'duckdb')})"
        assert rows(parsed)["a"]["_json"] == {column.name: "1" for column in columns}
    assert line_pattern.usual(replace(rescue_lines.SOURCE, columns=many[1:]), "duckdb") is not None


@pytest.mark.parametrize(
    "data", [b"", b"a", b"a\n", b"\n\n", b"a\r\nb\rc\n\n", b"\xe2\x82\nb\xff\xe2\x82", "ü\n🍕".encode()]
)
def test_a_file_is_split_into_its_lines(data: bytes) -> None:
    parts = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    expected = [part.decode("utf-8", "replace") for part in (parts if parts[-1] else parts[:-1])]
    found = source_folder.table_of([source_folder.lines_of(data, "f")])

    found.validate(full=True)
    assert found.column("value").to_pylist() == expected
    assert found.column("file").to_pylist() == ["f"] * len(expected)


def test_the_threads_of_duckdb_share_lines() -> None:
    many = b"1\n" * (2 * source_folder.PIECE + 1)
    found: pa.Table = source_folder.table_of([source_folder.lines_of(many, "f")])
    assert [len(piece) for piece in found.to_batches()] == [source_folder.PIECE, source_folder.PIECE, 1]


def test_lines_have_the_name_of_their_file() -> None:
    parts = [source_folder.lines_of(data, name) for data, name in ((b"a\nb\n", "x"), (b"", "y"), (b"c", "z"))]
    found = source_folder.table_of(parts)
    assert found.to_pylist() == [{"value": v, "file": f} for v, f in (("a", "x"), ("b", "x"), ("c", "z"))]
    assert source_folder.table_of([]).num_rows == 0
