"""Lines put together at random: good ones, values that are nearly of their type, and text broken in each way known."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

from sqlrun.project import Source
from tests.support.strict_reader import Kind, kind_of

NUMBERS = (
    "0", "-0", "1", "7", "12345678", "1e7", "1E+7", "1e2", "1e-2", "1e400", "-1e400", "1e-400", "NaN", "Infinity",
    "-Infinity", "+1", "01", "1.", ".5", "-", "0.1", "9.50", "11.100", "-0.0", "0.00001", "127", "128", "-129",
    "32768",
    "2147483647", "2147483648", "-2147483648", "9223372036854775807", "9223372036854775808", "123456789012345678",
    "1234567890123456.7891", "12345678901234567890.123456789012345678", "0.1234567890123456789", "99999999.99",
    "100000000.00", "0.12345", "1.7976931348623157e308", "1.7976931348623159e308", "4.9e-324", "2e-324",
    "3.4028235e38", "3.5e38", "16777217", "1.00000017881393432617187499", "0x10", "1_000", "١٢", "1e", "1e+",
    "--1", "1d",
    "10000000.25", "0.001", "123456789.125", "1" * 30, "0." + "3" * 40, "9" * 400,
)  # fmt: skip
DAYS = (
    "2026-01-10", "2024-02-29", "2026-02-29", "2026-02-30", "1900-02-29", "1500-02-29", "1582-10-10", "0001-01-01",
    "0000-12-31", "9999-12-31", "10000-01-01", "-0001-01-01", "2026-1-1", "2026-13-01", "2026-00-10", "+2026-01-01",
    "2026-01-10 ", "20260110", "2026-01-10T00:00:00Z", "epoch", "infinity", "now", "1970-01-01", "1883-11-18",
    "0000-01-01",
)  # fmt: skip
HOURS = (
    "10:00:00", "23:59:59", "24:00:00", "23:59:60", "00:00:00", "10:00", "10:60:00", "25:00:00", "10:00:00.1",
    "10:00:00.123456", "10:00:00.1234567", "23:59:59.999999", "23:59:59.9999999", "10:00:00.", "1:00:00", "10:00:00,5",
)  # fmt: skip
OFFSETS = (
    "", "Z", "z", "+00:00", "-00:00", "+01:00", "-01:00", "+18:00", "-18:00", "+18:01", "+18:30", "-19:00", "+23:59",
    "+24:00", "+05:60", "+5", "+0530", " UTC", " Europe/Berlin", "+05:30", "-00:01", "+00:00:30",
)  # fmt: skip
WORDS = (
    "", " ", "a", "placed", "null", "true", "false", "True", "{}", "[]", '{"a":1}', "\\n", "\\u0000",
    "\\u2028", "\u2028",
    "\u2029", "\u0085", "\x7f", "\u00a0", "ü 🍕", "\\ud83c\\udf55", "\\ud83c", "\\udf55", "\\ud83c\\ud83c",
    "\\uD83D\\uDE00", "\\/",
    "\\b\\f\\r\\t", "\\x", "\\u12", "\\\\", '\\"', "s", "n1", "s1", "\ufeff", "\ufffd", "\u0130", "e\u0301",
    "12", " 12", "12 ",
    "12\\n", "'", "`", "%", "$1", "\\\\1", "\x01", "\t", "\x0b", "\ufdd0", "\U0010ffff", "0x", "-", "\\u0041",
    "\\u00e9",
)  # fmt: skip
TOKENS = (
    "{", "}", "[", "]", ",", ":", '"', "'", "\\", "null", "true", "false", "NaN", "Infinity", "-", "+", ".",
    "0", "1", "e", " ",
    "\t", "\x0b", "\x0c", "\u00a0", "\u2028", "\u0085", "\x00", "\x1f", "\ufeff", "//", "/*x*/", "#", ";", "=",
    "\\u0020",
    '""', "{}", "[]", ",,", '"x":1', '"x":1,', "\r", "\n", "\r\n", "nul", "undefined", '"a":{"b":1,"b":2}',
)  # fmt: skip
AROUND = (
    ("[", "]"), (" ", " "), ("", " x"), ("\ufeff", ""), ("", "]"), ("\t", ""), ("", "\x00"), ('"', '"'), ("", " {}"),
    ("{", "}"), ("\u2028", ""),
)  # fmt: skip
BYTES = (
    b"\xff",
    b"\xc3",
    b"\xe2\x82",
    b"\xed\xa0\xbc",
    b"\xc0\x80",
    b"\xf5\x80\x80\x80",
    b"\x00",
    b"\xef\xbb\xbf",
    b"\x80",
)
MORE = ("x", "ü 🍕", "", "ID", "a\\u0062", "text", "_raw", "items")


class Lines:
    """Makes lines of a source's columns (name, type)."""

    def __init__(self, columns: list[tuple[str, str]], chance: random.Random, may_lack: bool = False) -> None:
        self.columns = [(name, kind_of(kind)) for name, kind in columns]
        self.chance = chance
        self.odd = 0.0
        self.may_lack, self.lacking = may_lack, 0.0

    @classmethod
    def of(cls, source: Source, chance: random.Random) -> Lines:
        """Make lines of a source; values are missing often if any of them may be missing inside of another."""
        columns = [(c.name, c.type) for c in source.columns]
        return cls(columns, chance, any(c.inside for c in source.columns))

    def file(self, lines: int) -> bytes:
        """Make a file."""
        parts = []
        for _ in range(lines):
            data = self.line().encode("utf-8", "surrogatepass")
            if self.chance.random() < 0.02:
                at = self.chance.randrange(len(data) + 1)
                data = data[:at] + self.chance.choice(BYTES) + data[at:]
            parts.append(data + self.chance.choices((b"\n", b"\r\n", b"\r", b"\n\n", b" \n\t\n"), (90, 4, 3, 2, 1))[0])
        start = b"\xef\xbb\xbf" if self.chance.random() < 0.3 else b""
        return start + b"".join(parts).rstrip(b"\n" if self.chance.random() < 0.5 else b"")

    def line(self) -> str:
        """Make a line; every third one is broken in its text."""
        self.odd = self.chance.choice((0.0, 0.0, 0.01, 0.05, 0.3))
        self.lacking = self.chance.choice((0.0, 0.02, 0.05, 0.1)) if self.may_lack else 0.0
        text = self.object(Kind("struct", fields=tuple(self.columns)))
        for _ in range(self.chance.choice((0, 0, 0, 0, 1, 1, 2))):
            text = self.chance.choice(BREAKS)(self.chance, text)
        return text

    def value(self, kind: Kind) -> str:
        """Make a value of a type, or now and then another."""
        if self.chance.random() < self.odd:
            return self.any()
        if self.lacking and self.chance.random() < self.lacking:
            return "null"
        if kind.inner is not None:
            items = [self.value(kind.inner) for _ in range(self.chance.choice((0, 1, 1, 2, 3)))]
            return f"[{self.joined(items)}]"
        if kind.name == "struct":
            return self.object(kind)
        text = self.fitting(kind.name)
        quoted = kind.name in ("string", "date", "timestamp") or self.chance.random() < 0.2
        return f'"{text}"' if quoted else text

    def fitting(self, name: str) -> str:
        """Make a text that fits a type, or nearly."""
        odd = self.chance.random() < self.odd
        if name == "string":
            return self.chance.choice(WORDS if odd else ("a", "placed", "r0001", "ü 🍕", "x y", "\\u00e9"))
        if name == "boolean":
            return self.chance.choice(("true", "false", "True", "1", "t") if odd else ("true", "false"))
        if name == "date":
            return (
                self.chance.choice(DAYS)
                if odd
                else f"20{self.chance.randrange(10, 30)}-0{self.chance.randrange(1, 9)}-11"
            )
        if name == "timestamp":
            if odd:
                joint = self.chance.choice(("T", " ", "t", "  "))
                return self.chance.choice(DAYS) + joint + self.chance.choice(HOURS) + self.chance.choice(OFFSETS)
            return f"2026-0{self.chance.randrange(1, 9)}-11T1{self.chance.randrange(10)}:00:00.25" + self.chance.choice(
                ("Z", "")
            )
        if odd:
            return self.chance.choice(NUMBERS)
        if name.startswith("decimal(4,4"):
            return f"0.{self.chance.randrange(10000):04}"
        whole = str(self.chance.randrange(100))
        return (
            f"{whole}.{self.chance.randrange(100):02}"
            if name.startswith(("decimal(10", "decimal(38", "double"))
            else whole
        )

    def any(self) -> str:
        """Make any value, of the right type or not."""
        match self.chance.randrange(9):
            case 0:
                return "null"
            case 1:
                return self.chance.choice(NUMBERS)
            case 2 | 3:
                return f'"{self.chance.choice(WORDS)}"'
            case 4:
                return f'"{self.chance.choice(DAYS)}T{self.chance.choice(HOURS)}{self.chance.choice(OFFSETS)}"'
            case 5:
                return self.chance.choice(("[]", "{}", "[null]", '{"a":null}', '[{"b":[1.50]}]', "[[]]", '[""]'))
            case 6:
                return f'"{self.chance.choice(NUMBERS)}"'
            case 7:
                return self.chance.choice(("true", "false", '"true"', "TRUE"))
            case _:
                depth = self.chance.choice((2, 5, 6, 7, 8, 30, 62, 63, 64, 65, 70))
                return '{"a":[' * (depth // 2) + "1" + "]}" * (depth // 2)

    def object(self, kind: Kind) -> str:
        """Make an object: fields left out, in another order, unknown or there twice now and then."""
        members = [
            f'"{self.name(name)}"{self.gap()}:{self.gap()}{self.value(each)}'
            for name, each in kind.fields
            if self.chance.random() >= self.odd / 4 + self.lacking
        ]
        if self.chance.random() < self.odd:
            members.append(f'"{self.chance.choice(MORE)}":{self.any()}')
        if members and self.chance.random() < self.odd / 2:
            members.append(self.chance.choice(members))
        if self.chance.random() < self.odd:
            self.chance.shuffle(members)
        return f"{{{self.joined(members)}}}"

    def name(self, name: str) -> str:
        """Write a field's name, with an escape now and then."""
        if self.chance.random() < self.odd / 8:
            return f"\\u{ord(name[0]):04x}{name[1:]}"
        return name.upper() if self.chance.random() < self.odd / 16 else name

    def gap(self) -> str:
        """Make what may stand between tokens."""
        return self.chance.choice(("", "", "", " ", " ", "\t", "  "))

    def joined(self, parts: list[str]) -> str:
        """Join values by commas."""
        return self.gap() + f"{self.gap()},{self.gap()}".join(parts) + self.gap()


def _cut(chance: random.Random, text: str) -> str:
    at = chance.randrange(len(text) + 1)
    return text[:at] + text[at + chance.choice((1, 1, 2, 5, 100)) :]


def _put(chance: random.Random, text: str) -> str:
    at = chance.randrange(len(text) + 1)
    return text[:at] + chance.choice(TOKENS) + text[at:]


def _at_token(chance: random.Random, text: str) -> str:
    """Put something where a comma, a colon or a bracket stands."""
    places = [at for at, letter in enumerate(text) if letter in "{}[],:"]
    at = chance.choice(places or [0])
    return text[: at + chance.randrange(2)] + chance.choice(TOKENS) + text[at + 1 :]


def _twice(chance: random.Random, text: str) -> str:
    one, other = sorted(chance.randrange(len(text) + 1) for _ in range(2))
    return text[:other] + text[one:other] + text[other:]


def _swapped(chance: random.Random, text: str) -> str:
    at = chance.randrange(max(1, len(text) - 1))
    return text[:at] + text[at + 1 : at + 2] + text[at : at + 1] + text[at + 2 :]


def _around(chance: random.Random, text: str) -> str:
    before, after = chance.choice((*AROUND, ("", text), ("", "," + text)))
    return before + text + after


def _number(chance: random.Random, text: str) -> str:
    """Put another number in the place of one."""
    digits = [at for at, letter in enumerate(text) if letter.isdigit()]
    if not digits:
        return text
    at = end = chance.choice(digits)
    while end < len(text) and (text[end].isdigit() or text[end] in ".eE+-"):
        end += 1
    return text[:at] + chance.choice(NUMBERS) + text[end:]


def _ascii(chance: random.Random, text: str) -> str:
    """Write what a program would that escapes all but ASCII."""
    return json.dumps(text)[1:-1].replace('\\"', '"').replace("\\\\", "\\")


def _long(chance: random.Random, text: str) -> str:
    return text.replace("placed", chance.choice(("x", "ü", "\\n", "7 ")) * chance.choice((300, 5000)), 1)


BREAKS: tuple[Callable[[random.Random, str], str], ...] = (
    _cut, _put, _put, _at_token, _at_token, _twice, _swapped, _around, _number, _number, _ascii, _long,
)  # fmt: skip
