"""Texts, times and numbers that are awkward for logs, paths, readers and languages, and random ones beside them."""

from __future__ import annotations

import random
from collections.abc import Sequence

# What Hive, Spark, Delta, JSON, CSV, SQL, a terminal or a file system may take for something else.
TEXTS = (
    "", " ", "  ", "\t", "\n", "a\nb", "a\r\nb", "\r", "\x00", "a\x00b", "\x01", "\x0b", "\x0c", "\x1b[31m",
    "\x1c", "\x1d", "\x1e", "\x7f", "\x85", "\xa0", "\u2028", "\u2029", "a\u2028b", "\ufeff", "\u200b",
    "\u202e", "\ud7ff", "\ufffd", "\uffff", "__HIVE_DEFAULT_PARTITION__", "__hive_default_partition__",
    "null", "NULL", "None", "nan", "NaN", "Infinity", "true", "false", "~", "-", "--", "0", "-0", "00", "1",
    "01", "1.0", "1e5", "1E400", "0x1F", "١٢٣", "9223372036854775808", "'", "''", '"', '""', "`", "\\",
    "\\\\", "\\n", "\\u2028", "a'b\"c`d\\e", "$", "${x}", "{x}", "{{ x }}", "{% x %}", "%", "%%", "%s",
    "%20", "%2F", "%00", "%E2%80%A8", "a%2Fb", "/", "//", "../..", ".", "..", "a/b", "a=b", "=", "city=x",
    "a|b", "|", "[", "]", "[a-z]", "*", "?", "a*b?c", "!", "#", "&", "<b>", "</script>", ";", ":", "a:b",
    ",", "a,b", "(", ")", "+", "@", "^", "_", "café", "cafe\u0301", "Ünïcödé", "ß", "SS", "İ", "ı", "שלום",
    "مرحبا", "日本語", "😀", "👨‍👩‍👧‍👦", "𝒳", "Ⅷ", "ﬁ", "2026-01-01", "2026-01-01 00:00:00", "9999-12-31",
    "x" * 64, "x" * 65, "x" * 254, "y" * 255, "z" * 256, "ü" * 200, "😀" * 70, "%" * 90, "/" * 100,
    "q" * 5000, " a", "a ", "A", "a", "b",
)  # fmt: skip
ALPHABET = "ab01 _-=%~'\"\\/|[]{}*?$#&<>:;,.\n\r\t\x00\x01\x1c\x1f\x7f\x85\u2028\u2029\u200d\u0301\u202eéßшא日😀𝒳"
# Times that a source line may hold: the ends of what Python, Spark and Delta's log can say among them.
TIMES = (
    "0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000001Z", "1582-10-04T23:59:59Z", "1582-10-15T00:00:00Z",
    "1677-09-21T00:12:43Z", "1899-12-31T23:59:59.999999Z", "1969-12-31T23:59:59.999999Z", "1970-01-01T00:00:00Z",
    "2026-03-01T11:00:00.123456Z", "2026-03-01T11:30:00Z", "2026-03-01T12:00:00.000001Z", "2026-03-02T00:00:00Z",
    "2262-04-11T23:47:17Z", "9999-12-31T00:00:00Z", "9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999999Z",
)  # fmt: skip
# Times that a source line may be refused for, or may not: none of them may break a tick.
ODD_TIMES = (
    "0000-01-01T00:00:00Z", "-0001-01-01T00:00:00Z", "10000-01-01T00:00:00Z", "+10000-01-01T00:00:00Z",
    "9999-12-31T23:59:59-05:00", "0001-01-01T00:00:00+05:00", "99999-01-01T00:00:00Z", "294247-01-10T04:00:54Z",
    "2026-02-30T00:00:00Z", "2026-03-01T24:00:00Z", "2026-03-01T23:59:60Z", "", "never", "infinity", "epoch",
)  # fmt: skip
AMOUNTS = ("0", "-0", "0.00", "0.01", "-0.01", "1", "12.5", "99999999999999.99", "-99999999999999.99")


def text(chance: random.Random) -> str:
    """Draw a text: one of those that are known to be awkward, or a random one."""
    if chance.random() < 0.6:
        return chance.choice(TEXTS)
    size = chance.choice((1, 2, 3, 5, 8, 20, 63, 130, 260))
    return "".join(chance.choice(ALPHABET) for _ in range(size))


def some(chance: random.Random, count: int) -> list[str]:
    """Draw different texts."""
    found = dict.fromkeys(text(chance) for _ in range(count))
    return list(found)


def moment(chance: random.Random, times: Sequence[str] = TIMES) -> str:
    """Draw a time as a line holds it."""
    return chance.choice(times)
