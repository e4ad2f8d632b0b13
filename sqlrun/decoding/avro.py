"""Avro to records: object container files, and single messages by their writer's schema. Pure.

A container file is taken apart here, so that a truncated or corrupt block is an error and a compressed one can't fill
the memory; fastavro reads the values.
"""

from __future__ import annotations

import bz2
import json
import lzma
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlrun.decoding import avro_schema, compression, records, varints
from sqlrun.decoding.avro_schema import Json, Prepared
from sqlrun.decoding.formats import AvroFile
from sqlrun.decoding.undecodable import Undecodable
from sqlrun.errors import EngineError
from sqlrun.project import Column

if TYPE_CHECKING:
    import pyarrow as pa

MAGIC = b"Obj\x01"
SYNC = 16
MEMORY = 512 * 1024 * 1024  # of a decompressor, whose input says how much it takes
CUT = "the Avro file ends inside of a block: its writer may not have finished"
HEADER: Json = {"type": "map", "values": "bytes"}


@dataclass(frozen=True, slots=True)
class _Block:
    """A part of a container file: a number of values, one after the other."""

    count: int
    data: bytes


class _Reader:
    """What reads values of one schema."""

    def __init__(self, schema: Json, *, is_recursive: bool) -> None:
        try:
            import fastavro
            from fastavro import _read_py
        except ImportError as error:
            raise EngineError("Avro needs the package fastavro: pip install 'sqlrun[formats]'") from error

        # Compiled code has no limit of recursion: a value of many levels would end the process.
        self._read = _read_py.schemaless_reader if is_recursive else fastavro.schemaless_reader
        try:
            self._schema = fastavro.parse_schema(schema)
        except Exception as error:  # it has errors of many types
            raise Undecodable(f"the Avro schema isn't valid: {error}") from error

    def read(self, data: bytes) -> tuple[Any, int]:
        """Return the value at the beginning of the data, and its length.

        Raises: Undecodable.
        """
        import pyarrow as pa

        source = pa.BufferReader(data)
        try:
            value = self._read(source, self._schema, None, handle_unicode_errors="replace")
        except Exception as error:  # it has errors of many types, among them those of a length that is no length
            raise Undecodable(f"the Avro data is truncated, or of another schema ({type(error).__name__})") from error
        return value, source.tell()


def decode(form: AvroFile, data: bytes, columns: Sequence[Column]) -> pa.Table:
    """Return the records of an object container file, by the schema in its header.

    Raises: Undecodable if any part of the file is truncated or corrupt.
    """
    if not data.startswith(MAGIC):
        raise Undecodable("the file isn't an Avro object container file: it doesn't begin with `Obj` and 1")
    meta, size = _Reader(HEADER, is_recursive=False).read(data[len(MAGIC) :])
    start = len(MAGIC) + size
    try:
        schema = json.loads(meta["avro.schema"])
    except (KeyError, ValueError, RecursionError) as error:
        raise Undecodable("the Avro file's header has no readable schema") from error
    known = _prepared(schema, columns)
    # A block is a list of values without the list's length and its end.
    reader = _Reader({"type": "array", "items": known.read}, is_recursive=known.is_recursive)
    codec = meta.get("avro.codec", b"null").decode("utf-8", "replace")
    texts: list[str] = []
    for block in _blocks(data, start, codec, form.max_block):
        whole = varints.written(block.count) + block.data + b"\0"
        values, size = reader.read(whole)
        if size < len(whole):
            raise Undecodable(f"an Avro block of {block.count:,} records has more data than these")
        texts += [_written(known, value) for value in values]
    return records.table(texts)


def avro_message(data: bytes, schema: Json) -> str:
    """Return the JSON text of a single message; `schema` is its writer's, as parsed JSON.

    Raises: Undecodable if the message is truncated, or longer than a value of the schema.
    """
    return messages(schema)(data)


def messages(schema: Json) -> Callable[[bytes], str]:
    """Return `avro_message` for many messages of one schema, which is prepared once.

    Raises: Undecodable if the schema isn't valid.
    """
    known = _prepared(schema, ())
    reader = _Reader(known.read, is_recursive=known.is_recursive)

    def message(data: bytes) -> str:
        value, size = reader.read(data)
        if size < len(data):
            raise Undecodable(
                f"the Avro message has {len(data):,} bytes, but a value of the schema ends after {size:,}"
            )
        return _written(known, value)

    return message


def _written(known: Prepared, value: Any) -> str:
    try:
        return known.text(value)
    except RecursionError as error:
        raise Undecodable("an Avro value has too many levels") from error


def _prepared(schema: Json, columns: Sequence[Column]) -> Prepared:
    try:
        json.dumps(schema, ensure_ascii=False).encode()  # no name may have half a surrogate pair
        found = [str(field["name"]) for field in schema.get("fields", ())] if isinstance(schema, dict) else []
        new = records.matched(found, columns)
        prepared = avro_schema.prepared(schema, dict(zip(found, new, strict=True)))
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise Undecodable(f"the Avro schema isn't valid: {error!r}") from error
    if found:
        records.require_any(new, columns, "the Avro file", records.OTHER)
    return prepared


def _blocks(data: bytes, at: int, codec: str, limit: int) -> Iterator[_Block]:
    """Yield a file's blocks, decompressed. `at`: the position behind the header's values."""
    sync = data[at : at + SYNC]
    at += SYNC
    if at > len(data):
        raise Undecodable("the Avro file ends inside of its header")
    while at < len(data):
        count, at = varints.read(data, at, CUT)
        size, at = varints.read(data, at, CUT)
        end = at + size
        if count < 0 or size < 0 or end + SYNC > len(data):
            raise Undecodable(CUT)
        if data[end : end + SYNC] != sync:
            raise Undecodable("an Avro block isn't followed by the file's marker: the file is corrupt")
        block = _decompressed(data[at:end], codec, limit)
        if count > max(len(block), 1):
            raise Undecodable("an Avro block has more records than bytes: the file is corrupt")
        yield _Block(count, block)
        at = end + SYNC


def _decompressed(data: bytes, codec: str, limit: int) -> bytes:
    """Return a block's content.

    Raises: Undecodable if it is corrupt or larger than the limit.
    """
    match codec:
        case "null":
            return data
        case "zstandard":
            return compression.decompress(data, "block.zst", limit)
        case "snappy":
            return _snappy(data, limit)
        case "deflate":
            stream: Any = zlib.decompressobj(-15)
        case "bzip2":
            stream = bz2.BZ2Decompressor()
        case "xz":
            stream = lzma.LZMADecompressor(memlimit=MEMORY)
        case _:
            raise Undecodable(f"the Avro file is compressed by `{codec}`, which sqlrun doesn't read")
    try:
        found: bytes = stream.decompress(data, limit + 1)
    except (zlib.error, OSError, EOFError, lzma.LZMAError) as error:
        raise Undecodable(f"an Avro block is corrupt: {error}") from error
    if len(found) > limit:
        raise Undecodable(f"an Avro block has more than {limit:,} bytes when it is decompressed")
    if not stream.eof:
        raise Undecodable("an Avro block's compressed data ends too early: the file is corrupt")
    return found


def _snappy(data: bytes, limit: int) -> bytes:
    """Return a block compressed by Snappy, which begins with its length and ends with a checksum of the content."""
    import pyarrow as pa

    size = shift = 0
    for byte in data[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if size > limit:
        raise Undecodable(f"an Avro block has more than {limit:,} bytes when it is decompressed")
    try:
        found: bytes = pa.Codec("snappy").decompress(data[:-4], decompressed_size=size, asbytes=True)
    except (OSError, pa.ArrowException) as error:
        raise Undecodable(f"an Avro block is corrupt: {error}") from error
    if len(data) < 5 or zlib.crc32(found).to_bytes(4, "big") != data[-4:]:
        raise Undecodable("an Avro block is corrupt: its checksum differs")
    return found
