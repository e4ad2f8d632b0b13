"""Deletion vectors: read and write the deleted rows of a file. Shell: Delta files.

Source: Delta protocol, "Deletion Vectors" and "Deletion Vector Format". sqlrun stores its vectors inline in the log.
"""

from __future__ import annotations

import base64
import struct
import uuid
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from sqlrun.engines.delta import table_facts
from sqlrun.errors import EngineError, first_line
from sqlrun.storage.factory import storage_of

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable
    from pyroaring import BitMap64

FEATURE = "deletionVectors"
MAGIC = 1681511377
# The protocol's Base85 uses the digits of ZeroMQ (RFC 32), Python's those of RFC 1924.
RFC_1924 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
DIGITS = bytes.maketrans(RFC_1924, Z85)
FROM_Z85 = bytes.maketrans(Z85, RFC_1924)
# Number of digits of a file's id.
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

    bits = BitMap64(rows)
    data = struct.pack("<i", MAGIC) + bits.serialize()
    # Five digits encode four bytes: the last bytes are padded, and `sizeInBytes` gives the length without padding.
    text = base64.b85encode(data + bytes(-len(data) % 4)).translate(DIGITS).decode()
    return {"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": len(data), "cardinality": len(bits)}


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
        if vector["storageType"] == "i":
            data = _bytes(text)[:size]
        else:
            # The digits at the end are the file's id, those before them its folder.
            folder, name = text[:-ID], uuid.UUID(bytes=_bytes(text[-ID:]))
            file = f"{root}/{folder}/deletion_vector_{name}.bin" if folder else f"{root}/deletion_vector_{name}.bin"
            start = int(vector.get("offset") or 0) + 4  # behind the size
            data = storage_of(root).read(file)[start : start + size]
        if struct.unpack_from("<i", data)[0] != MAGIC:
            raise ValueError("its format is unknown")
        return BitMap64.deserialize(data[4:])
    except (OSError, ValueError, struct.error) as error:
        raise EngineError(
            f"a deletion vector of {entry['path']} in {root} can't be read: {first_line(error)}"
        ) from error


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
