"""Single Protobuf messages to records, by the text of their writer's schema. Pure."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlrun.decoding import proto_text, varints
from sqlrun.decoding.records import quoted
from sqlrun.decoding.scalar_text import base64_text, decimal_text, double_text, float_text
from sqlrun.decoding.undecodable import Undecodable
from sqlrun.errors import EngineError

NO_PLACE = "the Protobuf message doesn't begin with its place in the schema"
GOOGLE = "google/protobuf/"
# Files that every registry of schemas has, and lists nowhere.
KNOWN = {
    "confluent/meta.proto": 'syntax = "proto3"; package confluent;',
    "confluent/type/decimal.proto": (
        'syntax = "proto3"; package confluent.type;'
        "message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }"
    ),
}


def protobuf_message(data: bytes, files: Mapping[str, str], message: str | Sequence[int]) -> str:
    """Return the JSON text of a single message.

    `files`: the texts of `.proto` files by the names under which they import each other; the first one defines the
    message. `message`: its whole name, or its place in the file: the index of a message, of a message inside of it,
    and so on, as in Confluent's format.

    Raises: Undecodable if the message is truncated, or the schema isn't valid.
    """
    return messages(files, message)(data)


def messages(files: Mapping[str, str], message: str | Sequence[int]) -> Callable[[bytes], str]:
    """Return `protobuf_message` for many messages of one schema, which is prepared once.

    Raises: Undecodable if the schema isn't valid.
    """
    try:
        from google.protobuf import message_factory
        from google.protobuf.message import DecodeError
    except ImportError as error:
        raise EngineError("Protobuf needs the package protobuf: pip install 'sqlrun[formats]'") from error

    kind = message_factory.GetMessageClass(descriptor(files, message))

    def text(data: bytes) -> str:
        try:
            found = kind.FromString(data)
        except DecodeError as error:
            raise Undecodable(f"the Protobuf message is truncated, or of another schema: {error}") from error
        return _object(found)

    return text


def place_of(data: bytes) -> tuple[tuple[int, ...], bytes]:
    """Return a message's place in its schema, and the message.

    `data` is a message in Confluent's format, without the number of its schema in front.

    >>> place_of(b"\\x00rest"), place_of(b"\\x04\\x02\\x00rest")
    (((0,), b'rest'), ((1, 0), b'rest'))
    """
    count, at = varints.read(data, 0, NO_PLACE)
    if not 0 <= count <= proto_text.DEEPEST:
        raise Undecodable(NO_PLACE)
    places = []
    for _ in range(count):
        place, at = varints.read(data, at, NO_PLACE)
        places.append(place)
    return tuple(places) or (0,), data[at:]


def descriptor(files: Mapping[str, str], message: str | Sequence[int]) -> Any:
    """Return the descriptor of a message, in a pool of its own: two schemas may define one name differently."""
    from google.protobuf import descriptor_pool

    pool = descriptor_pool.DescriptorPool()
    main = next(iter(files), "")
    added: set[str] = set()

    def add(name: str, importing: tuple[str, ...]) -> None:
        if name in importing:
            raise Undecodable(f"the schema's file `{name}` imports itself")
        if name in added:
            return
        added.add(name)
        file = _file(name, files)
        for other in file.dependency:
            add(other, (*importing, name))
        try:
            pool.AddSerializedFile(file.SerializeToString())
        except (TypeError, ValueError) as error:
            raise Undecodable(f"the schema's file `{name}` isn't valid: {error}") from error

    add(main, ())
    try:
        if isinstance(message, str):
            return pool.FindMessageTypeByName(message)
        found = pool.FindFileByName(main)
        inner = list(found.message_types_by_name.values())
        for place in message[:-1]:
            inner = inner[place].nested_types
        return inner[message[-1]]
    except (KeyError, IndexError) as error:
        raise Undecodable(f"the schema `{main}` has no message {message!r}") from error


def _file(name: str, files: Mapping[str, str]) -> Any:
    from google.protobuf import descriptor_pb2

    text = files.get(name, KNOWN.get(name))
    if text is not None:
        return proto_text.parse(name, text)
    stem = name.removeprefix(GOOGLE).removesuffix(".proto")
    if not name.startswith(GOOGLE) or not stem.isidentifier():
        raise Undecodable(f"the schema imports `{name}`, which isn't there")
    try:
        known = importlib.import_module(f"google.protobuf.{stem}_pb2")
    except ImportError as error:
        raise Undecodable(f"the schema imports `{name}`, which isn't there") from error
    return descriptor_pb2.FileDescriptorProto.FromString(known.DESCRIPTOR.serialized_pb)


def _object(message: Any) -> str:
    """Return a message as a JSON object with the fields' names in the schema.

    A field that can be absent, and is, isn't a member. Others have their default value.
    """
    name = message.DESCRIPTOR.full_name
    if name == "confluent.type.Decimal":
        return decimal_text(message.value, message.scale) if message.scale >= 0 else base64_text(message.value)
    if name.startswith("google.protobuf."):
        return _well_known(message)
    members = [
        f"{quoted(field.name)}:{_value(field, getattr(message, field.name))}"
        for field in message.DESCRIPTOR.fields
        if not field.has_presence or message.HasField(field.name)
    ]
    return f"{{{','.join(members)}}}"


def _well_known(message: Any) -> str:
    """Return a time, a wrapped value and the like in the form that Protobuf's JSON has for it."""
    from google.protobuf import json_format

    try:
        return json.dumps(json_format.MessageToDict(message), ensure_ascii=False, allow_nan=False)
    except (json_format.Error, TypeError, ValueError) as error:
        raise Undecodable(f"a value of {message.DESCRIPTOR.full_name} has no JSON form: {error}") from error


def _value(field: Any, value: Any) -> str:
    if not field.is_repeated:
        return _single(field, value)
    if field.message_type is None or not field.message_type.GetOptions().map_entry:
        return f"[{','.join([_single(field, one) for one in value])}]"
    key, inner = (field.message_type.fields_by_name[part] for part in ("key", "value"))
    members = [(one if isinstance(one, str) else _single(key, one), _single(inner, value[one])) for one in value]
    return f"{{{','.join(sorted(f'{quoted(name)}:{text}' for name, text in members))}}}"


def _single(field: Any, value: Any) -> str:
    match field.cpp_type:
        case field.CPPTYPE_MESSAGE:
            return _object(value)
        case field.CPPTYPE_ENUM:
            known = field.enum_type.values_by_number.get(value)
            return str(value) if known is None else quoted(known.name)
        case field.CPPTYPE_STRING:
            return base64_text(value) if isinstance(value, bytes) else quoted(value)
        case field.CPPTYPE_BOOL:
            return "true" if value else "false"
        case field.CPPTYPE_FLOAT:
            return float_text(value)
        case field.CPPTYPE_DOUBLE:
            return double_text(value)
        case _:
            return str(value)
