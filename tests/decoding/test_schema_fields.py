"""The types of columns that a schema's fields fit."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sqlrun.decoding import schema_fields
from sqlrun.decoding.undecodable import Undecodable
from sqlrun.errors import Place
from sqlrun.land.registered_schema import Difference, differences
from sqlrun.project import Column, Source

ENUM = {"type": "enum", "name": "E", "symbols": ["a"]}


def avro(kind: Any) -> str:
    schema = {"type": "record", "name": "A", "fields": [{"name": "x", "type": kind}]}
    return schema_fields.fields("AVRO", json.dumps(schema), {})["x"]


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        ("string", "string"), ("long", "bigint"), (["null", "double"], "double"), (["int", "string"], ""),
        ({"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}, "decimal(10,2)"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 40}, ""),
        ({"type": "int", "logicalType": "date"}, "date"), ({"type": "int", "logicalType": "time-millis"}, "string"),
        ({"type": "long", "logicalType": "timestamp-micros"}, "timestamp"),
        ({"type": "long", "logicalType": "other"}, "bigint"),
        ({"type": "array", "items": ["null", {"type": "map", "values": "int"}]}, "array<map<string,int>>"),
        ({"type": "record", "name": "B", "fields": [{"name": "y", "type": ENUM}, {"name": "z", "type": "boolean"}]},
         "struct<y:string,z:boolean>"),
        ({"type": "record", "name": "B", "fields": [{"name": "y", "type": ["null", "B"]}]}, ""),
    ],
)  # fmt: skip
def test_types_of_avro(kind: Any, wanted: str) -> None:
    assert avro(kind) == wanted


def test_types_of_protobuf() -> None:
    text = """syntax = "proto3"; import "google/protobuf/timestamp.proto"; import "shop/money.proto";
    message Order {
      string id = 1; uint64 wide = 2; repeated int32 n = 3; map<string, shop.Money> by_name = 4; Order before = 5;
      google.protobuf.Timestamp at = 6; sint64 change = 7; Kind kind = 8; bytes raw = 9; bool yes = 10; float f = 11;
      uint32 small = 12;
    }
    enum Kind { A = 0; }
    """
    money = 'syntax = "proto3"; package shop; message Money { int64 cents = 1; double rate = 2; }'

    assert schema_fields.fields("PROTOBUF", text, {"shop/money.proto": money}) == {
        "id": "string", "wide": "decimal(20,0)", "n": "array<int>",
        "by_name": "map<string,struct<cents:bigint,rate:double>>", "before": "", "at": "timestamp", "change": "bigint",
        "kind": "string", "raw": "string", "yes": "boolean", "f": "float", "small": "bigint",
    }  # fmt: skip


def test_a_schema_that_isn_t_valid() -> None:
    with pytest.raises(Undecodable):
        avro("nothing")


def test_differences_to_a_declaration() -> None:
    columns = (
        ("id", "string"), ("n", "int"), ("price", "decimal(10,2)"), ("at", "timestamp"), ("gone", "date"),
        ("inside", "struct<a: int, b: string>"), ("odd", "int"),
    )  # fmt: skip
    declared = [Column(name, kind, "", Place("x")) for name, kind in columns]
    declared.append(Column("key", "string", "", Place("x"), comes_from="key"))
    source = Source("a", "b", "kafka", "", tuple(declared), "", Place("x"))
    fields = {
        "id": "string", "n": "bigint", "price": "decimal(9,2)", "at": "date", "inside": "struct<a:int,b:string>",
        "odd": "", "tip": "bigint",
    }  # fmt: skip

    assert differences(source, fields) == (
        Difference("new", "tip", registered="bigint"),
        Difference("missing", "gone", "date"),
        Difference("changed", "n", "int", "bigint"),
    )
