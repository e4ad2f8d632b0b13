"""JSON lines: a file's text in UTF-8, and its lines. Pure."""

from __future__ import annotations

import codecs
from array import array
from typing import Any


def as_utf8(data: bytes) -> bytes:
    """Return a text's bytes without a byte order mark; a byte that isn't part of UTF-8 is replaced."""
    data = data.removeprefix(codecs.BOM_UTF8)
    if not data.isascii():
        try:
            data.decode("utf-8")
        except UnicodeDecodeError:
            return data.decode("utf-8", "replace").encode()
    return data


def lines(data: bytes) -> Any:
    """Return a file's lines as an Arrow array of large strings.

    A byte order mark at the beginning isn't part of the first line, as in Spark.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    data = as_utf8(data)
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    # PyArrow inspects each value of a Python list, and imports pandas to do so; it doesn't inspect a buffer.
    ends = pa.py_buffer(array("q", (0, len(data))))
    whole = pa.LargeStringArray.from_buffers(1, ends, pa.py_buffer(data))
    found = pc.split_pattern(whole, pattern="\n").flatten()
    return found[:-1] if not data or data.endswith(b"\n") else found
