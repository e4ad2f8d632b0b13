"""The JSON texts of single values of Avro and Protobuf, with their exact digits. Pure."""

from __future__ import annotations

import base64
import math
import struct


def base64_text(value: bytes) -> str:
    """Return bytes as a JSON text in base64."""
    return f'"{base64.b64encode(value).decode()}"'


def decimal_text(value: bytes, scale: int) -> str:
    """Return all digits of a decimal whose digits are a whole number in two's complement, the first byte first."""
    number = int.from_bytes(value, "big", signed=True)
    digits = str(abs(number)).rjust(scale + 1, "0")
    point = len(digits) - scale
    return f"{'-' if number < 0 else ''}{digits[:point]}{'.' if scale else ''}{digits[point:]}"


def double_text(value: float) -> str:
    """Return the shortest text that is read back as the same number; NaN and infinities are JSON texts."""
    return repr(value) if math.isfinite(value) else _named(value)


def _named(value: float) -> str:
    return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'


def float_text(value: float) -> str:
    """Return the shortest text that is read back as the same number of 32 bits."""
    if not math.isfinite(value):
        return _named(value)
    wanted = struct.pack("<f", value)
    for digits in range(6, 9):
        text = f"{value:.{digits}g}"
        if abs(float(text)) <= 3.4028234663852886e38 and struct.pack("<f", float(text)) == wanted:
            return text
    return f"{value:.9g}"
