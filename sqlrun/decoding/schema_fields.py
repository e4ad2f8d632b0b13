"""The fields that values of a registered schema have, with the types of columns that their JSON fits. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlrun.decoding import avro_references, confluent, protobuf
from sqlrun.decoding.avro_schema import UNITS, Json

# The type of a field whose schema alone doesn't decide it, or that no column has.
UNKNOWN = ""
AVRO_TYPES = {
    "string": "string", "bytes": "string", "int": "int", "long": "bigint", "float": "float", "double": "double",
    "boolean": "boolean", "enum": "string", "fixed": "string",
}  # fmt: skip
GOOGLE = {
    "Timestamp": "timestamp", "Duration": "string", "StringValue": "string", "BytesValue": "string",
    "BoolValue": "boolean", "Int32Value": "int", "UInt32Value": "bigint", "Int64Value": "bigint",
    "UInt64Value": "decimal(20,0)", "FloatValue": "float", "DoubleValue": "double",
}  # fmt: skip
UNSIGNED = {4: "decimal(20,0)", 6: "decimal(20,0)", 7: "bigint", 13: "bigint"}  # by the number of Protobuf's type


def fields(kind: str, text: str, references: Mapping[str, str]) -> dict[str, str]:
    """Return the types of a schema's fields by name, in their order; of Protobuf those of the first message.

    >>> fields("AVRO", '{"type":"record","name":"A","fields":[{"name":"x","type":["null","long"]}]}', {})
    {'x': 'bigint'}

    Raises: Undecodable if the schema isn't valid.
    """
    if kind == confluent.AVRO:
        schema = avro_references.schema_of(text, tuple(references.values()))
        confluent.payloads(kind, text, references)  # it is valid, then
        found = schema.get("fields", ()) if isinstance(schema, dict) else ()
        return {str(one["name"]): _avro(one["type"]) for one in found}
    message = protobuf.descriptor(confluent.files_of(text, references), (0,))
    return {field.name: _field(field, (message.full_name,)) for field in message.fields}


def _avro(schema: Json) -> str:
    match schema:
        case str():
            return AVRO_TYPES.get(schema, UNKNOWN)
        case list():
            others = [one for one in schema if one != "null"]
            return _avro(others[0]) if len(others) == 1 else UNKNOWN
        case {"type": "array", "items": items}:
            return _inside("array<{}>", [_avro(items)])
        case {"type": "map", "values": values}:
            return _inside("map<string,{}>", [_avro(values)])
        case {"type": "record", "fields": list(found)}:
            return _struct([str(one["name"]) for one in found], [_avro(one["type"]) for one in found])
        case {"type": "bytes" | "fixed", "logicalType": "decimal", "precision": int(precision)}:
            return f"decimal({precision},{schema.get('scale', 0)})" if precision <= 38 else UNKNOWN
        case {"type": "int", "logicalType": "date"}:
            return "date"
        case {"type": "int" | "long" as name, "logicalType": str(logical)}:
            what, _, unit = logical.rpartition("-")
            if unit not in UNITS:
                return AVRO_TYPES[name]
            return "timestamp" if what.endswith("timestamp") else "string"
        case {"type": inner}:
            return _avro(inner)
        case _:
            return UNKNOWN


def _field(field: Any, above: tuple[str, ...]) -> str:
    """Return the type of a field of a Protobuf message; `above`: the messages around it."""
    message = field.message_type
    if message is not None and message.GetOptions().map_entry:
        return _inside("map<string,{}>", [_single(message.fields_by_name["value"], above)])
    single = _single(field, above)
    return _inside("array<{}>", [single]) if field.is_repeated else single


def _single(field: Any, above: tuple[str, ...]) -> str:
    message = field.message_type
    match field.cpp_type:
        case field.CPPTYPE_MESSAGE if message.full_name.startswith("google.protobuf."):
            return GOOGLE.get(message.name, UNKNOWN)
        case field.CPPTYPE_MESSAGE if message.full_name in (*above, "confluent.type.Decimal"):
            return UNKNOWN
        case field.CPPTYPE_MESSAGE:
            around = (*above, message.full_name)
            return _struct([one.name for one in message.fields], [_field(one, around) for one in message.fields])
        case field.CPPTYPE_BOOL:
            return "boolean"
        case field.CPPTYPE_FLOAT:
            return "float"
        case field.CPPTYPE_DOUBLE:
            return "double"
        case field.CPPTYPE_STRING | field.CPPTYPE_ENUM:
            return "string"
        case field.CPPTYPE_INT32:
            return "int"
        case _:
            return UNSIGNED.get(field.type, "bigint")


def _struct(names: Sequence[str], types: Sequence[str]) -> str:
    return _inside(f"struct<{','.join(f'{name}:{{}}' for name in names)}>", types) if names else UNKNOWN


def _inside(form: str, types: Sequence[str]) -> str:
    """Return a type with types inside of it, of which each must be known."""
    return form.format(*types) if all(types) else UNKNOWN
