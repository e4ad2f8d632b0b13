"""Checksums that Hadoop's local file system writes beside each file, as `.NAME.crc`. Pure."""

from __future__ import annotations

import zlib

MARK = b"crc\x00"


def fits(data: bytes, checksum: bytes) -> bool:
    """Return whether a file matches its checksum."""
    if checksum[:4] != MARK or len(checksum) < 8:
        return False
    chunk = int.from_bytes(checksum[4:8], "big")
    return chunk > 0 and checksum == checksum_of(data, chunk)


def checksum_of(data: bytes, chunk: int = 512) -> bytes:
    """Return the checksum of a file: a mark, the chunks' length in bytes, and the CRC-32 of each chunk.

    >>> checksum_of(b"")
    b'crc\\x00\\x00\\x00\\x02\\x00'
    """
    sums = (zlib.crc32(data[at : at + chunk]).to_bytes(4, "big") for at in range(0, len(data), chunk))
    return MARK + chunk.to_bytes(4, "big") + b"".join(sums)
