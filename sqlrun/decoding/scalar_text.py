"""The JSON texts of single values of Avro, Protobuf and change events, with their exact digits. Pure."""

from __future__ import annotations

import base64
import binascii
import math
import struct
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import Any

from sqlrun.decoding.undecodable import Undecodable

EPOCH = datetime(1970, 1, 1)
NANOSECONDS = {"nanoseconds": 1, "microseconds": 1_000, "milliseconds": 1_000_000}


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


def unscaled_text(value: Any, scale: str) -> str:
    """Return a decimal from its unscaled value, the two's complement in base64.

    >>> unscaled_text("AYY=", "2"), unscaled_text("/w==", "3"), unscaled_text("AA==", "0"), unscaled_text("AQ==", "-2")
    ('3.90', '-0.001', '0', '100')
    """
    try:
        digits, places = base64.b64decode(str(value), validate=True), int(scale)
    except (binascii.Error, ValueError):
        raise Undecodable("a decimal isn't the bytes of a number") from None
    return f"{decimal_text(digits, max(places, 0))}{'0' * -places}"


def date_text(days: str) -> str:
    """Return a date from its days since 1970; any other number as it is, so that it is quarantined.

    >>> date_text("20000"), date_text("-1"), date_text("99999999")
    ('"2024-10-04"', '"1969-12-31"', '99999999')
    """
    try:
        return f'"{date(1970, 1, 1) + timedelta(days=int(days))}"'
    except (ValueError, OverflowError):
        return days


@lru_cache
def _second(seconds: int) -> str:
    """Return a second; many changes share one."""
    return (EPOCH + timedelta(seconds=seconds)).isoformat(timespec="seconds")


def time_text(number: str, unit: str) -> str:
    """Return a time in UTC from a number since 1970, to the microsecond; any other number as it is.

    >>> time_text("1795502118514", "milliseconds"), time_text("-1", "microseconds"), time_text("1e400", "microseconds")
    ('"2026-11-24T06:35:18.514000Z"', '"1969-12-31T23:59:59.999999Z"', '1e400')
    """
    try:
        seconds, micros = divmod(int(number) * NANOSECONDS[unit] // 1000, 1_000_000)
        return f'"{_second(seconds)}.{micros:06}Z"'
    except (ValueError, OverflowError):
        return number
