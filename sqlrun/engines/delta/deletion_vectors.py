"""Rows of a file that no longer count: deletion vectors, read and written. Shell: Delta files.

Delta protocol, "Deletion Vectors" and "Deletion Vector Format". Those of sqlrun lie in the log itself.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from sqlrun.engines.delta import table_facts

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable

FEATURE = "deletionVectors"
MAGIC = 1681511377
# The protocol's Base85 has the digits of ZeroMQ (RFC 32), Python's those of RFC 1924.
RFC_1924 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
DIGITS = bytes.maketrans(RFC_1924, Z85)

# For each file, by its path on the disk, the numbers of its rows that are deleted, in order.
Deleted = Mapping[str, "pa.Array"]


def descriptor(rows: Iterable[int]) -> dict[str, Any]:
    """Describe the deleted rows of a file, numbered from 0, as its entry in the log has them.

    >>> descriptor([3, 4, 7, 11, 18, 29])
    {'storageType': 'i', 'pathOrInlineDv': '^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L', \
'sizeInBytes': 44, 'cardinality': 6}
    """
    from pyroaring import BitMap64

    bits = BitMap64(rows)
    data = struct.pack("<i", MAGIC) + bits.serialize()
    # Each four bytes are five digits: what is too short is filled up, and `sizeInBytes` says what counts.
    text = base64.b85encode(data + bytes(-len(data) % 4)).translate(DIGITS).decode()
    return {"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": len(data), "cardinality": len(bits)}


def allowed(table: DeltaTable) -> bool:
    """Return whether files of an open table may have deletion vectors."""
    return FEATURE in (table.protocol().reader_features or [])


def deleted(table: DeltaTable) -> Deleted:
    """List the deleted rows of an open table's files; a file without any isn't among them."""
    if not allowed(table):
        return {}
    return table_facts.once(table, FEATURE, lambda: _read(table))


def keep(table: DeltaTable, found: Deleted, version: int) -> None:
    """Remember the deleted rows of an open table at a version that it has, or will have when it follows its log."""
    table_facts.note(table, version, FEATURE, found)


def hand_on(table: DeltaTable, other: DeltaTable) -> None:
    """Hand the deleted rows to another object of a table's version, where they are known."""
    table_facts.handed_on(table, other, FEATURE)


def _read(table: DeltaTable) -> Deleted:
    import pyarrow as pa
    import pyarrow.compute as pc

    found: dict[str, pa.Array] = {}
    for batch in table.deletion_vectors():
        held = pa.record_batch(batch)
        for uri, selected in zip(held["filepath"], held["selection_vector"], strict=True):
            gone = pc.indices_nonzero(pc.invert(selected.values))
            if len(gone):
                found[unquote(uri.as_py().removeprefix("file://"))] = gone.cast(pa.int64())
    return found
