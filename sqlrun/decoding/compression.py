"""Decompression by a file's ending, bounded in memory. Pure.

PyArrow's streams read several gzip members or zstd frames one after the other, verify their checksums, and report a
stream that ends too early.
"""

from __future__ import annotations

from typing import Any

from sqlrun.decoding.undecodable import Undecodable

CODECS = {".gz": "gzip", ".zst": "zstd"}
PIECE = 1024 * 1024


class TooLarge(Undecodable):
    """A file that is larger, when decompressed, than the limit."""


def decompress(data: bytes, name: str, limit: int) -> bytes:
    """Return a file's content: decompressed if its name ends in `.gz` or `.zst`, otherwise unchanged.

    Raises: TooLarge if the content has more than `limit` bytes; Undecodable if it is truncated or corrupt.
    """
    import pyarrow as pa

    codec = next((codec for ending, codec in CODECS.items() if name.lower().endswith(ending)), None)
    if codec is None:
        return data
    if not data:
        raise Undecodable(f"the file is empty, not {codec}: its writer may not have finished")
    pieces: list[bytes] = []
    size = 0
    try:
        with pa.CompressedInputStream(pa.BufferReader(data), codec) as stream:
            while piece := stream.read(min(PIECE, limit + 1 - size)):
                pieces.append(piece)
                size += len(piece)
                if size > limit:
                    raise TooLarge(_too_large(codec, limit))
    except (OSError, pa.ArrowException) as error:
        raise Undecodable(_corrupt(codec, error)) from error
    return b"".join(pieces)


def _too_large(codec: str, limit: int) -> str:
    return f"the {codec} file has more than {limit:,} bytes when it is decompressed: split it, or raise the limit"


def _corrupt(codec: str, error: Any) -> str:
    if "runcated" in str(error):
        return f"the {codec} file ends too early: its writer may not have finished, or a copy of it was cut"
    return f"the {codec} file is corrupt: {error}"
