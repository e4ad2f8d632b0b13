"""Protobuf: messages by the text of their schema, with exact values, as a whole or not at all."""

from __future__ import annotations

import random
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

from sqlrun.decoding import proto_text, protobuf
from sqlrun.decoding.undecodable import Undecodable
from tests.support.decoded import parsed

ORDER = """
// A comment; /* not the beginning of another */
syntax = "proto3";
package shop.v1;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
import "confluent/type/decimal.proto";
import public "shop/size.proto";
option java_package = "com.shop;{}";
/* several
   lines { */
message Order {
  option deprecated = false;
  reserved 90, 100 to 110; reserved "old";
  enum Status { option allow_alias = true; UNKNOWN = 0; PLACED = 1 [deprecated = true]; SENT = 1; NEGATIVE = -5; }
  message Item {
    string name = 1 [(my.option) = { text: "];" list: [1, 2] }]; int64 count = 2; repeated Item parts = 3;
  }
  uint64 id = 1;
  sint64 change = 2;
  optional string note = 3;
  repeated Item items = 4 [packed = false, json_name = "theItems"];
  map<string, Item> by_name = 5;
  map<int32, bool> flags = 0x6;
  Status status = 7;
  double wide = 8; float half = 9; bytes raw = 10; bool yes = 11;
  google.protobuf.Timestamp at = 12;
  .google.protobuf.Int64Value maybe = 13;
  confluent.type.Decimal price = 14;
  oneof choice { option (x) = 1; string text = 15; Size size = 16; }
  int32 message = 17; string optional = 18; Order.Status reserved = 19;
  extensions 1000 to max;
}
service Orders { rpc Get (Order) returns (stream Order) { option (http) = { get: "/{id}" }; }
  rpc Put (Order) returns (Order); }
message Second { message Inner { fixed64 x = 1; } Inner inner = 1; }
"""
SIZE = """package shop.v1; message Size {
  required int32 w = 1; optional int32 h = 2 [default = -7]; extend Size { optional int32 q = 1000; }
}"""
FILES = {"shop/order.proto": ORDER, "shop/size.proto": SIZE}


def made(name: str, values: dict[str, Any]) -> bytes:
    """Return a message written by Protobuf itself."""
    kind = message_factory.GetMessageClass(protobuf.descriptor(FILES, name))
    data: bytes = json_format.ParseDict(values, kind()).SerializeToString()
    return data


FULL = {
    "id": str(2**64 - 1),
    "change": str(-(2**63)),
    "note": "",
    "items": [{"name": 'ü"\n', "count": "9007199254740993", "parts": [{"name": "x"}]}, {}],
    "by_name": {"b": {"count": 1}, "a\n": {}},
    "flags": {"-1": True},
    "status": "PLACED",
    "wide": "NaN",
    "half": 0.1,
    "raw": "/w==",
    "at": "2020-01-02T03:04:05.000006Z",
    "maybe": str(2**62),
    "price": {"value": "+6E=", "precision": 10, "scale": 2},
    "size": {"w": 0},
}
EMPTY_ITEM = '{"name":"","count":0,"parts":[]}'


def test_a_full_message() -> None:
    text = protobuf.protobuf_message(made("shop.v1.Order", FULL), FILES, "shop.v1.Order")
    inner = EMPTY_ITEM.replace('""', '"x"')
    assert text == (
        '{"id":18446744073709551615,"change":-9223372036854775808,"note":"",'
        f'"items":[{{"name":"ü\\"\\n","count":9007199254740993,"parts":[{inner}]}},{EMPTY_ITEM}],'
        f'"by_name":{{"a\\n":{EMPTY_ITEM},"b":{EMPTY_ITEM.replace("0", "1")}}},"flags":{{"-1":true}},'
        '"status":"PLACED","wide":"NaN","half":0.1,"raw":"/w==","yes":false,'
        '"at":"2020-01-02T03:04:05.000006Z","maybe":"4611686018427387904","price":-11.19,'
        '"size":{"w":0},"message":0,"optional":"","reserved":"UNKNOWN"}'
    )
    assert parsed(text)


def test_absent_fields() -> None:
    """What a writer can leave out is absent; the others are their defaults, which aren't written."""
    assert protobuf.protobuf_message(b"", FILES, (0,)) == (
        '{"id":0,"change":0,"items":[],"by_name":{},"flags":{},"status":"UNKNOWN","wide":0.0,"half":0,"raw":"",'
        '"yes":false,"message":0,"optional":"","reserved":"UNKNOWN"}'
    )
    assert protobuf.protobuf_message(b"\x08\x01", FILES, "shop.v1.Size") == '{"w":1}'


def test_a_message_is_found_by_its_place() -> None:
    assert protobuf.place_of(b"\x00" + b"rest") == ((0,), b"rest")
    place, data = protobuf.place_of(b"\x04\x02\x00" + made("shop.v1.Second.Inner", {"x": 5}))
    assert place == (1, 0)
    assert protobuf.protobuf_message(data, FILES, place) == '{"x":5}'
    for broken in (b"", b"\x04\x02", b"\x01", b"\xff" * 12, b"\xfe\xff\x01"):
        with pytest.raises(Undecodable, match="doesn't begin with its place"):
            protobuf.place_of(broken)


def test_an_unknown_number_of_an_enum_stays_a_number() -> None:
    assert '"status":77,' in protobuf.protobuf_message(b"\x38\x4d", FILES, (0,))


def test_half_a_message_is_an_error_or_ends_with_a_field() -> None:
    """Where a field ends, nothing tells that another one should follow."""
    data = made("shop.v1.Order", FULL)
    read = protobuf.messages(FILES, "shop.v1.Order")
    errors = 0
    for length in range(len(data)):
        try:
            assert parsed(read(data[:length])) != parsed(read(data))
        except Undecodable as error:
            assert "truncated, or of another schema" in str(error)
            errors += 1
    assert errors > len(data) - 2 * len(FULL) - 5


def test_random_bytes_are_errors_or_records() -> None:
    rand, read = random.Random(5), protobuf.messages(FILES, "shop.v1.Order")
    data = made("shop.v1.Order", FULL)
    for _ in range(500):
        changed = bytearray(data)
        changed[rand.randrange(len(data))] = rand.randrange(256)
        try:
            parsed(read(bytes(changed)))
        except Undecodable:
            continue


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('syntax = "proto3";\nmessage A { int32 x = ; }', "a.proto:2: the schema isn't valid: a whole number expected"),
        ("message A {", "a.proto:1: the schema isn't valid"),
        ("message A { int32 x = 1 }", "a.proto:1: .*';' expected, not '}'"),
        ("message A { optional group G = 1 { } }", "groups"),
        ('edition = "2023";', "editions"),
        ("message A { Missing x = 1; }", "a.proto` isn't valid"),
        ("message A { int32 x = 1; int32 x = 2; }", "a.proto` isn't valid"),
        ('import "b.proto";', "imports `b.proto`, which isn't there"),
        ('import "google/protobuf/nothing.proto";', "which isn't there"),
        ('import "a.proto";', "imports itself"),
        ("message B { }", "has no message 'A'"),
        ("message A { § }", "unexpected `§`"),
        ("/* no end", "unexpected `/`"),
        ("message A { " * 100, "nested in more than 64"),
        ("", "has no message 'A'"),
    ],
)
def test_a_schema_that_isn_t_valid(text: str, message: str) -> None:
    with pytest.raises(Undecodable, match=message):
        protobuf.protobuf_message(b"", {"a.proto": text}, "A")


@pytest.mark.parametrize("name", ["timestamp", "struct", "any", "wrappers", "descriptor", "type", "api"])
def test_descriptors_that_are_printed_are_parsed_again(name: str) -> None:
    """Protobuf's own files, as text: the same fields, numbers and types."""
    known = descriptor_pool.Default().FindFileByName(f"google/protobuf/{name}.proto") if name == "descriptor" else None
    module = __import__(f"google.protobuf.{name}_pb2", fromlist=["DESCRIPTOR"])
    file = descriptor_pb2.FileDescriptorProto.FromString((known or module.DESCRIPTOR).serialized_pb)
    found = proto_text.parse(file.name, printed(file))
    assert [described(message) for message in found.message_type] == [described(m) for m in file.message_type]


def printed(file: Any) -> str:
    """Return a descriptor as the text of a `.proto` file."""
    names = {number: name for name, number in proto_text.SCALARS.items()}
    labels = {1: "", 2: "required ", 3: "repeated "}

    def field(one: Any) -> str:
        label = (
            "optional " if one.label == 1 and (file.syntax != "proto3" or one.proto3_optional) else labels[one.label]
        )
        return f"{label}{names.get(one.type, one.type_name)} {one.name} = {one.number} [json_name = '{one.json_name}'];"

    def enum(one: Any) -> str:
        return f"enum {one.name} {{ {' '.join(f'{v.name} = {v.number};' for v in one.value)} }}"

    def message(one: Any) -> str:
        plain = [f for f in one.field if not f.HasField("oneof_index") or f.proto3_optional]
        inside = [f for f in one.field if f.HasField("oneof_index")]
        chosen = [[f for f in inside if f.oneof_index == n] for n in range(len(one.oneof_decl))]
        choices = [
            f"oneof {choice.name} {{ {' '.join(field(f).removeprefix('optional ') for f in fields)} }}"
            for choice, fields in zip(one.oneof_decl, chosen, strict=True)
        ]
        maps = {f".{file.package}.{one.name}.{n.name}": n for n in one.nested_type if n.options.map_entry}
        lines = []
        for f in plain:
            entry = maps.get(f.type_name)
            if entry is None:
                lines.append(field(f))
            else:
                key, value = (names.get(part.type, part.type_name) for part in entry.field)
                lines.append(f"map<{key}, {value}> {f.name} = {f.number};")
        inner = [message(n) for n in one.nested_type if not n.options.map_entry] + list(map(enum, one.enum_type))
        return f"message {one.name} {{ {' '.join([*lines, *choices, *inner])} }}"

    head = f'syntax = "{file.syntax or "proto2"}"; package {file.package};'
    return "\n".join([head, *map(message, file.message_type), *map(enum, file.enum_type)])


def described(message: Any) -> Any:
    """Return what a message's descriptor says about how it is read."""
    fields = {
        (
            f.name,
            f.number,
            f.label,
            f.type_name.rpartition(".")[2] or f.type,
            f.proto3_optional,
            f.HasField("oneof_index"),
        )
        for f in message.field
    }
    return message.name, fields, sorted((described(n) for n in message.nested_type), key=lambda d: str(d[0]))
