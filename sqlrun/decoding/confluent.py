"""Messages that begin with the id of their schema, as Confluent's serializers write them. Pure.

A message is a byte 0, the id as four bytes, the first one the highest, and the payload. A payload of Protobuf begins
with the message's place in the schema. Each message is read by the schema that wrote it, never by a newer one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlrun.decoding import avro, avro_references, protobuf
from sqlrun.decoding.undecodable import Undecodable

MAGIC = b"\0"
HEAD = 5
NO_ID = "the message doesn't begin with a zero and the id of a schema"
AVRO, PROTOBUF = "AVRO", "PROTOBUF"


def split(data: bytes) -> tuple[int, bytes]:
    """Return a message's id of a schema, and its payload.

    >>> split(bytes([0, 0, 0, 1, 2]) + b"rest")
    (258, b'rest')

    Raises: Undecodable if it has no id.
    """
    if len(data) < HEAD or not data.startswith(MAGIC):
        raise Undecodable(NO_ID)
    return int.from_bytes(data[1:HEAD], "big"), data[HEAD:]


def json_of(data: bytes) -> bytes:
    """Return the JSON text of a message, with or without an id: no JSON text begins with a zero.

    >>> json_of(bytes([0, 0, 0, 0, 9]) + b"{}"), json_of(b"{}")
    (b'{}', b'{}')
    """
    return data[HEAD:] if data.startswith(MAGIC) and len(data) > HEAD else data


def payloads(kind: str, text: str, references: Mapping[str, str]) -> Callable[[bytes], str]:
    """Return what turns payloads of one schema into JSON texts. `kind`: AVRO or PROTOBUF.

    `references`: the texts of the schemas that the schema names, by these names.

    Raises: Undecodable if the schema isn't valid.
    """
    if kind == AVRO:
        return avro.messages(avro_references.schema_of(text, tuple(references.values())))
    files = files_of(text, references)
    by_place: dict[tuple[int, ...], Callable[[bytes], str]] = {}

    def message(payload: bytes) -> str:
        place, rest = protobuf.place_of(payload)
        if place not in by_place:
            by_place[place] = protobuf.messages(files, place)
        return by_place[place](rest)

    return message


def files_of(text: str, references: Mapping[str, str]) -> dict[str, str]:
    """Return the texts of a Protobuf schema's files by name, its own first, under a name that no reference has."""
    name = "schema.proto"
    while name in references:
        name = f"_{name}"
    return {name: text, **references}
