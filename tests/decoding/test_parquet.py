"""Parquet: each value's text has its exact digits, and a value that JSON can't write is visible as a text."""

from __future__ import annotations

import math
import random
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlrun.decoding import json_text, parquet
from sqlrun.decoding.decode import decode
from sqlrun.decoding.formats import Parquet
from sqlrun.decoding.records import quoted
from sqlrun.decoding.undecodable import Undecodable
from tests.support import decoded
from tests.support.decoded import parsed, records

MICROS, NANOS, UTC = pa.timestamp("us"), pa.timestamp("ns"), pa.timestamp("us", "UTC")
AT = datetime(2020, 1, 2, 3, 4, 5, 6)


def one(kind: pa.DataType, values: list[Any], **options: Any) -> list[str]:
    """Return the texts of a column's values."""
    table = pa.table({"a": pa.array(values, kind)})
    found = records(Parquet(), decoded.parquet(table, **options), a="string")
    assert all(text.startswith('{"a":') and parsed(text) is not None for text in found)
    return [text[len('{"a":') : -1] for text in found]


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        (pa.int64(), [2**63 - 1, -(2**63), None], ["9223372036854775807", "-9223372036854775808", "null"]),
        (pa.uint64(), [2**64 - 1], ["18446744073709551615"]),
        (pa.bool_(), [True, False, None], ["true", "false", "null"]),
        (pa.decimal128(38, 10), [Decimal("-0.0000000001"), Decimal(0)], ["-0.0000000001", "0.0000000000"]),
        (pa.decimal128(4, 2), [Decimal("0.10"), None], ["0.10", "null"]),
        (pa.float64(), [0.1, 1e22, -0.0, math.nan, math.inf], ["0.1", "1e+22", "-0", '"NaN"', '"Infinity"']),
        (pa.float32(), [0.1, -math.inf, None], ["0.1", '"-Infinity"', "null"]),
        (pa.string(), ['"\\\n\x00\x7fü🍕\u2028', "", None], ['"\\"\\\\\\n\\u0000\x7fü🍕\u2028"', '""', "null"]),
        (pa.binary(), [b"\xff\x00", b""], ['"/wA="', '""']),
        (pa.binary(2), [b"\xff\x00", None], ['"/wA="', "null"]),
        (pa.date32(), [date(1, 1, 1), date(9999, 12, 31)], ['"0001-01-01"', '"9999-12-31"']),
        (MICROS, [AT, None], ['"2020-01-02T03:04:05.000006"', "null"]),
        (UTC, [AT], ['"2020-01-02T03:04:05.000006Z"']),
        (pa.timestamp("us", "Asia/Tokyo"), [AT], ['"2020-01-02T03:04:05.000006Z"']),
        (pa.timestamp("ms"), [AT.replace(microsecond=7000)], ['"2020-01-02T03:04:05.007"']),
        (NANOS, [1_000, 1_001], ['"1970-01-01T00:00:00.000001"', '"1970-01-01T00:00:00.000001001"']),
        (MICROS, [253402300800000000], ['"10000-01-01T00:00:00.000000"']),
        (pa.time64("us"), [1], ['"00:00:00.000001"']),
        (pa.list_(pa.int8()), [[1, None], [], None], ["[1,null]", "[]", "null"]),
        (pa.struct([("x", pa.int8()), ('y"', pa.string())]), [{"x": 1}, None], ['{"x":1,"y\\"":null}', "null"]),
        (pa.map_(pa.string(), pa.int8()), [[("k", 1), ("k", None)], None], ['{"k":1,"k":null}', "null"]),
        (pa.map_(pa.int8(), pa.bool_()), [[(1, True)], []], ['{"1":true}', "{}"]),
        (pa.list_(pa.struct([("x", pa.list_(MICROS))])), [[{"x": [AT]}]], ['[{"x":["2020-01-02T03:04:05.000006"]}]']),
        (pa.dictionary(pa.int8(), pa.string()), ["a", None, "a"], ['"a"', "null", '"a"']),
        (pa.null(), [None], ["null"]),
    ],
)
def test_a_column(kind: pa.DataType, values: list[Any], expected: list[str]) -> None:
    assert one(kind, values) == expected


def test_a_uuid_is_its_usual_text() -> None:
    values = pa.array([b"0123456789abcdef"], pa.uuid())
    assert json_text.texts(values).to_pylist() == ['"30313233-3435-3637-3839-616263646566"']


@pytest.mark.parametrize("version", ["1.0", "2.6"])
def test_times_of_int96_are_exact(version: Any) -> None:
    """They have nanoseconds, of which PyArrow keeps either the digits or the years."""
    options = {"use_deprecated_int96_timestamps": True, "version": version}
    assert one(NANOS, [1_000, 1_001, -1, None], **options) == [
        '"1970-01-01T00:00:00.000001"',
        '"1970-01-01T00:00:00.000001001"',
        '"1969-12-31T23:59:59.999999999"',
        "null",
    ]
    far = datetime(9999, 12, 31, 23, 59, 59, 999999)
    assert one(MICROS, [far, datetime(1, 1, 1)], **options) == [
        '"9999-12-31T23:59:59.999999"',
        '"0001-01-01T00:00:00.000000"',
    ]
    assert one(pa.list_(MICROS), [[AT], None], **options) == ['["2020-01-02T03:04:05.000006"]', "null"]
    (both,) = one(pa.list_(NANOS), [[1_001]], **options)
    assert both == quoted('["1970-01-01T00:00:00.000001"] or ["1970-01-01T00:00:00.000001001"]')


def test_columns_are_found_by_name() -> None:
    table = pa.table({"ID": [1], "more": ["x"], 'odd"\n': [None]})
    assert records(Parquet(), decoded.parquet(table), id="int", name="string") == [
        '{"id":1,"more":"x","odd\\"\\n":null}'
    ]
    assert records(Parquet(), decoded.parquet(pa.table({"id": [1], "ID": [2]})), id="int") == ['{"id":1,"ID":2}']


def test_rows_of_several_pieces_stay_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "ROWS", 7)
    table = pa.table({"id": list(range(50)), "l": [[i] * (i % 3) for i in range(50)]})
    found = records(Parquet(), decoded.parquet(table, row_group_size=11), id="int")
    assert found == [f'{{"id":{i},"l":[{",".join([str(i)] * (i % 3))}]}}' for i in range(50)]
    assert records(Parquet(), decoded.parquet(table.slice(0, 0))) == []


def test_texts_that_aren_t_utf8_are_replaced() -> None:
    table = pa.table({"a": pa.array([b"a\xff", b"ok", None]).view(pa.string())})
    assert records(Parquet(), decoded.parquet(table)) == ['{"a":"a\ufffd"}', '{"a":"ok"}', '{"a":null}']


def test_half_a_file_is_an_error_at_each_length() -> None:
    data = decoded.parquet(pa.table({"id": [1, 2], "name": ["x", None]}), compression="none")
    for length in range(len(data)):
        with pytest.raises(Undecodable, match="can't be read as Parquet"):
            decode(Parquet(), data[:length], ())


def test_a_changed_byte_of_a_page_is_an_error_if_pages_have_checksums() -> None:
    table = pa.table({"id": list(range(1000))})
    data = bytearray(decoded.parquet(table, compression="none", use_dictionary=False, write_page_checksum=True))
    data[data.index((500).to_bytes(8, "little"))] ^= 1
    with pytest.raises(Undecodable, match="can't be read as Parquet"):
        decode(Parquet(), bytes(data), ())


TEXTS = st.text(st.sampled_from('a"\\\n\x00{ü🍕')) | st.text(max_size=4)
LEAVES = {
    "int64": (pa.int64(), st.integers(-(2**63), 2**63 - 1), str),
    "double": (pa.float64(), st.floats(allow_nan=False, allow_infinity=False), float),
    "decimal": (pa.decimal128(30, 12), st.decimals(-(10**15), 10**15, places=12), lambda v: format(v, "f")),
    "text": (pa.large_string(), TEXTS, str),
    "yes": (pa.bool_(), st.booleans(), bool),
    "at": (MICROS, st.datetimes(), lambda v: v.isoformat(timespec="microseconds")),
    "zoned": (UTC, st.datetimes(), lambda v: v.isoformat(timespec="microseconds") + "Z"),
    "on": (pa.date32(), st.dates(), str),
}


@pytest.mark.long
@pytest.mark.slow
@given(st.data(), st.integers(0, 12))
@settings(max_examples=120, deadline=None)
def test_random_rows(data: st.DataObject, count: int) -> None:
    names = data.draw(st.lists(st.sampled_from(sorted(LEAVES)), min_size=1, unique=True))
    kinds, rows = [], []
    for _ in range(count):
        rows.append({n: data.draw(st.none() | st.lists(st.none() | LEAVES[n][1], max_size=3)) for n in names})
    kinds = [(n, pa.list_(pa.struct([("v", LEAVES[n][0])]))) for n in names]
    nested = [{n: None if v is None else [{"v": x} for x in v] for n, v in row.items()} for row in rows]
    found = records(Parquet(), decoded.parquet(pa.Table.from_pylist(nested, pa.schema(kinds))))

    def expected(name: str, value: Any) -> Any:
        return None if value is None else LEAVES[name][2](value)

    def of(name: str, value: Any) -> Any:
        return float(value) if name == "double" and value is not None else value

    assert [
        {n: None if v is None else [of(n, x["v"]) for x in v] for n, v in parsed(text).items()} for text in found
    ] == [{n: None if v is None else [expected(n, x) for x in v] for n, v in row.items()} for row in rows]


def test_random_bytes_are_errors() -> None:
    rand = random.Random(3)
    table = pa.table(
        {"id": [1, 2], "name": ["x", None], "at": pa.array([datetime(2020, 1, 1, tzinfo=timezone.utc)] * 2)}
    )
    data = decoded.parquet(table)
    for _ in range(300):
        changed = bytearray(data)
        changed[rand.randrange(len(data))] = rand.randrange(256)
        try:
            for text in decode(Parquet(), bytes(changed), ()).column("value").to_pylist():
                parsed(text)
        except Undecodable:
            continue
