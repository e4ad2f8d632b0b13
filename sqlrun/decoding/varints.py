"""Whole numbers of variable length, as Avro and Protobuf write them: 7 bits per byte, the sign in the lowest. Pure."""

from __future__ import annotations

from sqlrun.decoding.undecodable import Undecodable

LONGEST = 10  # bytes of a number of 64 bits


def read(data: bytes, at: int, reason: str) -> tuple[int, int]:
    """Return the number at a position, and the position behind it.

    Raises: Undecodable with the reason if the data ends before.
    """
    found = 0
    for count, byte in enumerate(data[at : at + LONGEST]):
        found |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            return (found >> 1) ^ -(found & 1), at + count + 1
    raise Undecodable(reason)


def written(number: int) -> bytes:
    """Return a number, not negative, in the form that `read` reads.

    >>> written(1), read(written(300), 0, ""), read(b"\\x01", 0, "")
    (b'\\x02', (300, 2), (-1, 1))
    """
    number <<= 1
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)
