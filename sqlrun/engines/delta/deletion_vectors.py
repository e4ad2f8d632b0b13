"""Deletion vectors: read and write the deleted rows of a file. Shell: Delta files.

Source: Delta protocol, "Deletion Vectors" and "Deletion Vector Format". sqlrun stores small vectors inline in the log,
and the others of a commit in one file.
"""

from __future__ import annotations

import base64
import struct
import uuid
import zlib
from array import array
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from sqlrun.engines.delta import table_facts
from sqlrun.errors import EngineError, first_line
from sqlrun.storage.factory import storage_of
from sqlrun.storage.stages import Stage

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable
    from pyroaring import BitMap64

FEATURE = "deletionVectors"
# No VACUUM lists a folder with this first letter, so files in it live as long as sqlrun's own vacuum says.
FOLDER = "_vectors"
# Bytes of a vector in the log: it stands there again in each checkpoint of a month, when another one replaces it.
INLINE = 1_000
INLINED, RELATIVE = "i", "u"
VERSION = b"\x01"
MAGIC = 1681511377
# The protocol's Base85 uses the digits of ZeroMQ (RFC 32), Python's those of RFC 1924.
RFC_1924 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
DIGITS = bytes.maketrans(RFC_1924, Z85)
FROM_Z85 = bytes.maketrans(Z85, RFC_1924)
# Number of digits of a file's id, at the end of a descriptor's text; its folder is before them.
ID = 20

# Ordered numbers of deleted rows by the file's path on disk.
Deleted = Mapping[str, "pa.Array"]


def descriptor(rows: Iterable[int]) -> dict[str, Any]:
    """Return the log's descriptor of a file's deleted rows, which are numbered from 0.

    >>> descriptor([3, 4, 7, 11, 18, 29])
    {'storageType': 'i', 'pathOrInlineDv': '^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L', \
'sizeInBytes': 44, 'cardinality': 6}
    """
    from pyroaring import BitMap64

    found = BitMap64(rows)
    return _inlined(_serialized(found), len(found))


def _inlined(data: bytes, count: int) -> dict[str, Any]:
    # Five digits encode four bytes: the last bytes are padded, and `sizeInBytes` gives the length without padding.
    text = _digits(data + bytes(-len(data) % 4))
    return {"storageType": INLINED, "pathOrInlineDv": text, "sizeInBytes": len(data), "cardinality": count}


def written(path: str, vectors: Iterable[BitMap64], done: list[str], stage: Stage) -> list[dict[str, Any]]:
    """Return the descriptors of a commit's vectors in a table's folder; large ones are written to one file.

    `done` gets the file, which the caller deletes if it doesn't commit. It is in place after `stage.wait()`.
    """
    found, content, name = list[dict[str, Any]](), bytearray(VERSION), uuid.uuid4()
    for rows in vectors:
        data = _serialized(rows)
        if len(data) <= INLINE:
            found.append(_inlined(data, len(rows)))
            continue
        where = {"storageType": RELATIVE, "pathOrInlineDv": f"{FOLDER}{_digits(name.bytes)}", "offset": len(content)}
        found.append({**where, "sizeInBytes": len(data), "cardinality": len(rows)})
        content += struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data))
    if len(content) > len(VERSION):
        file = f"{path}/{FOLDER}/{_file(name)}"
        done.append(file)
        # As the files of rows: publishing the tick syncs it.
        stage.put(file, bytes(content))
    return found


def file_of(vector: Mapping[str, Any] | None) -> str:
    """Return the file of a descriptor below its table's folder; "" for none, or one that is named otherwise.

    >>> file_of({"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4})
    'ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin'
    """
    if not vector or vector["storageType"] != RELATIVE:
        return ""
    text = vector["pathOrInlineDv"]
    folder, name = text[:-ID], _file(uuid.UUID(bytes=_bytes(text[-ID:])))
    return f"{folder}/{name}" if folder else name


def below(vector: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Return the descriptor of a vector in a file, for another table that has this table's folder at `path`."""
    text = vector["pathOrInlineDv"]
    folder = f"{path}/{text[:-ID]}" if text[:-ID] else path
    return {**vector, "pathOrInlineDv": f"{folder}{text[-ID:]}"}


def fault(root: str, vector: Mapping[str, Any]) -> str:
    """Return what is wrong with the file of a vector, by its size and checksum; "" if nothing, or without a file."""
    file = file_of(vector)
    if not file:
        return ""
    storage, start, size = storage_of(root), int(vector.get("offset") or 0), int(vector["sizeInBytes"])
    stamp = storage.stamp(f"{root}/{file}")
    if stamp is None:
        return "is missing"
    if storage.writes_whole:
        return "" if stamp.size >= start + size + 8 else "is incomplete"
    content = storage.read(f"{root}/{file}")
    data, end = content[start + 4 : start + 4 + size], content[start + 4 + size : start + 8 + size]
    if len(data) < size or content[start : start + 4] != struct.pack(">i", size):
        return "is incomplete"
    return "" if end == struct.pack(">I", zlib.crc32(data)) else "doesn't match its checksum"


def union(numbers: Iterable[pa.Array]) -> BitMap64:
    """Return the numbers of 64-bit integer arrays, in any order and without NULL, as a set.

    >>> import pyarrow as pa
    >>> union([pa.array([3, 1]), pa.array([0, 2, 3])[1:]])
    BitMap64([1, 2, 3])
    """
    from pyroaring import BitMap64

    found = BitMap64()
    for each in numbers:
        if len(each):
            copied = array("Q")
            size = copied.itemsize
            copied.frombytes(memoryview(each.buffers()[1])[each.offset * size : (each.offset + len(each)) * size])
            found |= BitMap64(copied)
    return found


def ordered(rows: BitMap64) -> pa.Array:
    """Return the numbers of a set, in order, as 64-bit integers.

    >>> ordered(union([])).to_pylist()
    []
    """
    import pyarrow as pa

    return pa.Array.from_buffers(pa.int64(), len(rows), [None, pa.py_buffer(rows.to_array())])


def _serialized(rows: BitMap64) -> bytes:
    return struct.pack("<i", MAGIC) + rows.serialize()


def rows_of(root: str, entry: Mapping[str, Any]) -> BitMap64:
    """Return the numbers of a file's deleted rows by its log entry, in a table's folder; an empty set without a vector.

    Raises: EngineError if the vector can't be read.
    """
    from pyroaring import BitMap64

    vector = entry.get("deletionVector")
    if not vector:
        return BitMap64()
    text, size = vector["pathOrInlineDv"], int(vector["sizeInBytes"])
    try:
        if vector["storageType"] == INLINED:
            data = _bytes(text)[:size]
        else:
            start = int(vector.get("offset") or 0) + 4  # behind the size
            data = storage_of(root).read(f"{root}/{file_of(vector)}")[start : start + size]
        if struct.unpack_from("<i", data)[0] != MAGIC:
            raise ValueError("its format is unknown")
        return BitMap64.deserialize(data[4:])
    except (OSError, ValueError, struct.error) as error:
        raise EngineError(
            f"a deletion vector of {entry['path']} in {root} can't be read: {first_line(error)}"
        ) from error


def _file(name: uuid.UUID) -> str:
    return f"deletion_vector_{name}.bin"


def _digits(data: bytes) -> str:
    return base64.b85encode(data).translate(DIGITS).decode()


def _bytes(text: str) -> bytes:
    return base64.b85decode(text.encode().translate(FROM_Z85))


def allowed(table: DeltaTable) -> bool:
    """Return whether files of an open table may have deletion vectors."""
    return FEATURE in (table.protocol().reader_features or [])


def deleted(table: DeltaTable) -> Deleted:
    """Return the deleted rows of an open table's files, without files that have none."""
    if not allowed(table):
        return {}
    return table_facts.once(table, FEATURE, lambda: _read(table))


def keep(table: DeltaTable, found: Deleted, version: int) -> None:
    """Cache the deleted rows of an open table at its version, or at the version that it is about to read."""
    table_facts.note(table, version, FEATURE, found)


def hand_on(table: DeltaTable, other: DeltaTable) -> None:
    """Copy the cached deleted rows, if any, to another object of the same table and version."""
    table_facts.handed_on(table, other, FEATURE)


def _read(table: DeltaTable) -> Deleted:
    import pyarrow as pa
    import pyarrow.compute as pc

    found: dict[str, pa.Array] = {}
    for batch in table.deletion_vectors():
        columns = pa.record_batch(batch)
        for uri, selected in zip(columns["filepath"], columns["selection_vector"], strict=True):
            numbers = pc.indices_nonzero(pc.invert(selected.values))
            if len(numbers):
                found[unquote(uri.as_py().removeprefix("file://"))] = numbers.cast(pa.int64())
    return found
