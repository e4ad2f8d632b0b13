"""Avro: values are exact, a container file lands as a whole or not at all, and so does a message."""

from __future__ import annotations

import json
import random
import uuid
import zlib
from datetime import date, datetime, time, timezone
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlrun.decoding import avro, scalar_text, varints
from sqlrun.decoding.decode import decode
from sqlrun.decoding.formats import AvroFile
from sqlrun.decoding.undecodable import Undecodable
from tests.support import decoded
from tests.support.decoded import parsed, records

AT = datetime(2020, 1, 2, 3, 4, 5, 6000, tzinfo=timezone.utc)
POINT = {"type": "record", "name": "Point", "fields": [{"name": "x", "type": "int"}]}


def kind(base: str, logical: str, **more: Any) -> dict[str, Any]:
    return {"type": base, "logicalType": logical, **more}


def schema(of: Any) -> dict[str, Any]:
    return {"type": "record", "name": "Row", "namespace": "shop.v1", "fields": [{"name": "a", "type": of}]}


def raw(of: Any, value: Any) -> str:
    """Return the text of a value that is written without its logical type, whose limits are Python's."""
    text = avro.avro_message(decoded.avro_message(schema(of["type"]), {"a": value}), schema(of))
    assert text.startswith('{"a":') and parsed(text) is not None
    return text[len('{"a":') : -1]


@pytest.mark.parametrize(
    ("of", "value", "expected"),
    [
        ("long", -(2**63), "-9223372036854775808"),
        ("boolean", True, "true"),
        ("null", None, "null"),
        ("string", 'ü"\n\\', '"ü\\"\\n\\\\"'),
        ("bytes", b"\xff", '"/w=="'),
        ("float", 0.1, "0.1"),
        ("float", 16777216.0, "16777216"),
        ("double", 0.1, "0.1"),
        ("double", float("nan"), '"NaN"'),
        ("float", float("-inf"), '"-Infinity"'),
        (kind("bytes", "decimal", precision=38, scale=10), Decimal("-0.0000000001"), "-0.0000000001"),
        (kind("bytes", "decimal", precision=4, scale=2), Decimal("1.50"), "1.50"),
        (kind("bytes", "decimal", precision=30), Decimal(10**29), "1" + "0" * 29),
        (kind("fixed", "decimal", precision=4, scale=1, name="F", size=8), Decimal("-12.5"), "-12.5"),
        (kind("int", "date"), date(2020, 1, 2), '"2020-01-02"'),
        (kind("long", "timestamp-micros"), AT, '"2020-01-02T03:04:05.006000Z"'),
        (kind("long", "timestamp-millis"), AT, '"2020-01-02T03:04:05.006Z"'),
        (kind("long", "local-timestamp-micros"), AT.replace(tzinfo=None), '"2020-01-02T03:04:05.006000"'),
        (kind("int", "time-millis"), time(1, 2, 3, 4000), '"01:02:03.004"'),
        (kind("string", "uuid"), uuid.UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
        ({"type": "enum", "name": "E", "symbols": ["X", "Y"]}, "Y", '"Y"'),
        ({"type": "fixed", "name": "F", "size": 2}, b"\xff\x00", '"/wA="'),
        ({"type": "array", "items": ["null", "int"]}, [1, None], "[1,null]"),
        ({"type": "map", "values": POINT}, {"k\n": {"x": 1}}, '{"k\\n":{"x":1}}'),
        (["null", POINT, "string"], {"x": 5}, '{"x":5}'),
        (["null", POINT, "string"], None, "null"),
        (["string", "null"], "s", '"s"'),
    ],
)
def test_a_value(of: Any, value: Any, expected: str) -> None:
    data = decoded.avro(schema(of), [{"a": value}])
    assert records(AvroFile(), data, a="string") == [f'{{"a":{expected}}}']
    assert avro.avro_message(decoded.avro_message(schema(of), {"a": value}), schema(of)) == f'{{"a":{expected}}}'


def test_times_beyond_python_s_are_visible_texts() -> None:
    assert raw(kind("int", "date"), 2932896) == '"9999-12-31"'
    assert raw(kind("int", "date"), 2932897) == '"2932897 days since 1970-01-01"'
    assert raw(kind("long", "timestamp-micros"), -62135596800000000) == '"0001-01-01T00:00:00.000000Z"'
    assert raw(kind("long", "timestamp-millis"), 2**62).endswith(' millis since 1970-01-01T00:00:00"')
    assert raw(kind("long", "timestamp-nanos"), 1_001) == '"1970-01-01T00:00:00.000001001Z"'
    assert raw(kind("long", "timestamp-nanos"), -1_000) == '"1969-12-31T23:59:59.999999Z"'
    assert raw(kind("bytes", "decimal", precision=4, scale=2), b"") == "0.00"


def test_branches_of_a_union_keep_their_types() -> None:
    """A date and a time are whole numbers, and two records may have the same fields."""
    of = [kind("int", "date"), kind("long", "timestamp-millis"), "string"]
    assert raw({"type": ["int", "long", "string"]}, 3) == "3"
    messages = {b"\x00\x02": '"1970-01-02"', b"\x02\x02": '"1970-01-01T00:00:00.001Z"', b"\x04\x02x": '"x"'}
    for data, expected in messages.items():
        assert avro.avro_message(data, schema(of)) == f'{{"a":{expected}}}'


def test_names_and_recursion() -> None:
    tree = {
        "type": "record",
        "name": "shop.Tree",
        "fields": [
            {"name": "ID", "type": "int"},
            {"name": "kids", "type": {"type": "array", "items": "Tree"}},
            {"name": "one", "type": ["null", "shop.Tree"]},
        ],
    }
    leaf = {"ID": 2, "kids": [], "one": None}
    data = decoded.avro(tree, [{"ID": 1, "kids": [leaf], "one": leaf}])
    inner = '{"ID":2,"kids":[],"one":null}'
    assert records(AvroFile(), data, id="int") == [f'{{"id":1,"kids":[{inner}],"one":{inner}}}']


@pytest.mark.parametrize("levels", [5_000, 300_000])
def test_a_value_of_many_levels_is_an_error(levels: int) -> None:
    """Fastavro's compiled reader would end the process."""
    chain = {"type": "record", "name": "N", "fields": [{"name": "next", "type": ["null", "N"]}]}
    tree = {"type": "record", "name": "N", "fields": [{"name": "kids", "type": {"type": "array", "items": "N"}}]}
    assert avro.avro_message(b"\x02\x02\0", chain) == '{"next":{"next":{"next":null}}}'
    assert avro.avro_message(b"\x02\x02\0\0\0", tree) == '{"kids":[{"kids":[{"kids":[]}]}]}'
    for data, of in ((b"\x02" * levels + b"\0", chain), (b"\x02" * levels + bytes(levels + 1), tree)):
        with pytest.raises(Undecodable, match="RecursionError"):
            avro.avro_message(data, of)


def test_a_key_of_a_map_may_occur_twice() -> None:
    data = b"\x04\x02k\x02\x02k\x04\x00"
    assert avro.avro_message(data, schema({"type": "map", "values": "int"})) == '{"a":{"k":1,"k":2}}'


def test_a_file_of_other_values_than_records() -> None:
    assert records(AvroFile(), decoded.avro("string", ["x", "y"])) == ['"x"', '"y"']


ROWS = [{"a": f"name {i}"} for i in range(50)]


def compressed(codec: str) -> bytes:
    """Return a file whose blocks fastavro can't compress without another library."""
    plain = decoded.avro(schema("string"), ROWS, sync_interval=200, sync_marker=b"0123456789abcdef")
    head, *blocks = plain.split(b"0123456789abcdef")
    head = head.replace(b"avro.codec\x08null", b"avro.codec" + varints.written(len(codec)) + codec.encode())
    found = [head]
    for block in filter(None, blocks):
        count, at = varints.read(block, 0, "")
        _, at = varints.read(block, at, "")
        data = pa.Codec("zstd" if codec == "zstandard" else codec).compress(block[at:], asbytes=True)
        if codec == "snappy":
            data += zlib.crc32(block[at:]).to_bytes(4, "big")
        found.append(varints.written(count) + varints.written(len(data)) + data)
    return b"0123456789abcdef".join([*found, b""])


FILES = {
    codec: decoded.avro(schema("string"), ROWS, codec=codec, sync_interval=200)
    for codec in ("null", "deflate", "bzip2", "xz")
}
FILES |= {codec: compressed(codec) for codec in ("zstandard", "snappy")}


@pytest.mark.parametrize("codec", FILES)
def test_half_a_file_is_an_error_or_ends_with_a_block(codec: str) -> None:
    """Where a block ends, nothing tells that another one should follow."""
    data = FILES[codec]
    expected = [f'{{"a":"{row["a"]}"}}' for row in ROWS]
    assert records(AvroFile(), data) == expected
    sync = data[-16:]
    for length in range(len(data)):
        if length >= 16 and data[:length].endswith(sync):
            found = records(AvroFile(), data[:length])
            assert found == expected[: len(found)] and len(found) < len(expected)
        else:
            with pytest.raises(Undecodable):
                decode(AvroFile(), data[:length], ())


@pytest.mark.parametrize("codec", sorted({*FILES} - {"null"}))
def test_a_changed_byte_is_an_error_or_another_valid_text(codec: str) -> None:
    rand = random.Random(1)
    for _ in range(300):
        data = bytearray(FILES[codec])
        data[rand.randrange(len(data))] = rand.randrange(256)
        try:
            for text in decode(AvroFile(), bytes(data), ()).column("value").to_pylist():
                parsed(text)
        except Undecodable:
            continue


@pytest.mark.parametrize("codec", sorted({*FILES} - {"null"}))
def test_a_block_is_decompressed_up_to_a_limit(codec: str) -> None:
    with pytest.raises(Undecodable, match="more than 100 bytes when it is decompressed"):
        decode(AvroFile(max_block=100), FILES[codec], ())


def test_a_message_is_read_as_a_whole_or_not_at_all() -> None:
    of = schema(["null", POINT, {"type": "array", "items": "string"}])
    data = decoded.avro_message(of, {"a": ["some", "words"]})
    assert avro.avro_message(data, of) == '{"a":["some","words"]}'
    for length in range(len(data)):
        with pytest.raises(Undecodable, match="truncated, or of another schema"):
            avro.avro_message(data[:length], of)
    with pytest.raises(
        Undecodable, match=f"has {len(data) + 1} bytes, but a value of the schema ends after {len(data)}"
    ):
        avro.avro_message(data + b"\0", of)


@pytest.mark.parametrize(
    ("of", "message"),
    [
        ("Unknown", "refers to `Unknown`, which it doesn't define"),
        ({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}] * 2}, "two fields of one name"),
        ({"type": "record", "name": "R", "fields": [{"type": "int"}]}, "isn't valid"),
        ({"type": "record", "name": "R", "fields": [{"name": "\ud800", "type": "int"}]}, "isn't valid"),
        ({"type": "array", "items": "null"}, "values without bytes"),
        ({"type": "array", "items": {"type": "record", "name": "R", "fields": []}}, "values without bytes"),
        ({"kind": "int"}, "unknown type"),
        (5, "unknown type"),
    ],
)
def test_a_schema_that_isn_t_valid(of: Any, message: str) -> None:
    with pytest.raises(Undecodable, match=message):
        avro.avro_message(b"\0", of)


def test_other_files_are_errors() -> None:
    for data in (b"", b"PAR1", b"Obj\x01", b"Obj\x01\x00" + bytes(16), b"Obj\x01" + b"\xff" * 40):
        with pytest.raises(Undecodable):
            decode(AvroFile(), data, ())


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
@settings(max_examples=300, deadline=None)
def test_short_floats_are_exact(value: float) -> None:
    text = scalar_text.float_text(value)
    assert pa.scalar(float(text), pa.float32()).as_py() == value and len(text) <= len(repr(value)) + 4


@given(
    st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.none() | st.text(), st.floats(), st.binary()), max_size=8)
)
@settings(max_examples=100, deadline=None)
def test_random_rows_are_read_as_fastavro_reads_them(rows: list[tuple[Any, ...]]) -> None:
    names = {"i": "long", "s": ["null", "string"], "d": "double", "b": "bytes"}
    of = {"type": "record", "name": "R", "fields": [{"name": n, "type": t} for n, t in names.items()]}
    data = decoded.avro(of, [dict(zip(names, row, strict=True)) for row in rows], codec="deflate")
    expected = list(fastavro.reader(pa.BufferReader(data)))
    for text, row in zip(records(AvroFile(), data), expected, strict=True):
        found = parsed(text)
        assert (found["i"], found["s"]) == (str(row["i"]), row["s"])
        assert repr(float(found["d"])) == repr(row["d"])
        assert json.dumps(found["b"]) == scalar_text.base64_text(row["b"])
