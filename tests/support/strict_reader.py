"""Lines of a source parsed by plain Python: landed values, quarantined lines and their reasons.

It shares no code with sqlrun and follows docs/reference/lines.md alone: it splits bytes into lines, parses JSON
character by character, and types from their text. Tests compare the results of both engines with it.
"""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any

MOST_BYTES, DEEPEST = 16 * 1024 * 1024, 64
SPACES = " \t\r\n"
ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
NUMBER = re.compile(r"-?(0|[1-9][0-9]*)([.][0-9]+)?([eE][+-]?[0-9]+)?", re.ASCII)
INTEGERS = {"tinyint": (3, 7), "smallint": (5, 15), "int": (10, 31), "bigint": (19, 63)}


class Broken(Exception):
    """The text is not a JSON object as defined by the reference."""


@dataclass(frozen=True)
class Value:
    """A value in a line from `start` to `end`; `kind` is one of text, number, word, null, list, object."""

    kind: str
    start: int
    end: int
    text: str = ""
    items: tuple[Value, ...] = ()
    members: tuple[tuple[str, int, Value], ...] = ()  # key, its start, value

    @property
    def depth(self) -> int:
        """Return the depth of nested brackets."""
        inner = [*self.items, *(value for _, _, value in self.members)]
        return (self.kind in ("list", "object")) + max((value.depth for value in inner), default=0)


@dataclass(frozen=True)
class Judged:
    """Outcome of a line."""

    reason: str | None
    values: dict[str, Any] | None = None
    rescued: str | None = None
    absent: str | None = None


def lines_of(data: bytes) -> list[str]:
    """Return the lines of a file; lines of blanks are ignored."""
    text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
    return [line for line in re.split("\r\n|\r|\n", text) if line.strip(" \t")]


class _Text:
    def __init__(self, line: str) -> None:
        self.line, self.at, self.open = line, 0, 0

    def whole(self) -> Value:
        found = self.value()
        self.skip()
        if self.at != len(self.line) or found.kind != "object":
            raise Broken
        return found

    def peek(self) -> str:
        return self.line[self.at : self.at + 1]

    def skip(self) -> None:
        while self.peek() and self.peek() in SPACES:
            self.at += 1

    def take(self, what: str) -> None:
        if not self.line.startswith(what, self.at):
            raise Broken
        self.at += len(what)

    def value(self) -> Value:
        self.skip()
        start, first = self.at, self.peek()
        if first == '"':
            text = self.text()
            return Value("text", start, self.at, text)
        if first == "{" or first == "[":
            self.open += 1
            if self.open > DEEPEST:
                raise Broken
            self.at += 1
            found = self.object(start) if first == "{" else self.list(start)
            self.open -= 1
            return found
        for word in ("true", "false", "null"):
            if self.line.startswith(word, start):
                self.at += len(word)
                return Value("null" if word == "null" else "word", start, self.at, word)
        number = NUMBER.match(self.line, start)
        if number is None:
            raise Broken
        self.at = number.end()
        return Value("number", start, self.at, number.group())

    def list(self, start: int) -> Value:
        items: list[Value] = []
        self.skip()
        if self.peek() == "]":
            self.at += 1
            return Value("list", start, self.at)
        while True:
            items.append(self.value())
            self.skip()
            if self.peek() != ",":
                self.take("]")
                return Value("list", start, self.at, items=tuple(items))
            self.at += 1

    def object(self, start: int) -> Value:
        members: list[tuple[str, int, Value]] = []
        self.skip()
        if self.peek() == "}":
            self.at += 1
            return Value("object", start, self.at)
        while True:
            self.skip()
            begins = self.at
            key = self.text()
            self.skip()
            self.take(":")
            members.append((key, begins, self.value()))
            self.skip()
            if self.peek() != ",":
                self.take("}")
                return Value("object", start, self.at, members=tuple(members))
            self.at += 1

    def text(self) -> str:
        self.take('"')
        found: list[str] = []
        while True:
            letter = self.peek()
            self.at += 1
            if letter == '"':
                return "".join(found)
            if not letter or letter < " ":
                raise Broken
            if letter != "\\":
                found.append(letter)
                continue
            letter = self.peek()
            self.at += 1
            if letter == "u":
                found.append(self.unit())
            elif letter in ESCAPES:
                found.append(ESCAPES[letter])
            else:
                raise Broken

    def hexadecimal(self) -> int:
        digits = self.line[self.at : self.at + 4]
        if len(digits) != 4 or any(d not in "0123456789abcdefABCDEF" for d in digits):
            raise Broken
        self.at += 4
        return int(digits, 16)

    def unit(self) -> str:
        high = self.hexadecimal()
        if not 0xD800 <= high <= 0xDFFF:
            return chr(high)
        self.take("\\u")
        low = self.hexadecimal()
        if high > 0xDBFF or not 0xDC00 <= low <= 0xDFFF:
            raise Broken
        return chr(0x10000 + (high - 0xD800) * 0x400 + low - 0xDC00)


@dataclass(frozen=True)
class Kind:
    """A type: a list of `inner`, a struct of `fields`, or a scalar called `name`; fields that are `required`."""

    name: str
    inner: Kind | None = None
    fields: tuple[tuple[str, Kind], ...] = ()
    required: tuple[str, ...] = ()


def kind_of(text: str) -> Kind:
    """Return the kind of a type such as `array<struct<a:int,b:decimal(10, 2)>>`."""
    text = text.strip()
    if text.startswith("array<"):
        return Kind("array", kind_of(text[6:-1]))
    if not text.startswith("struct<"):
        return Kind(re.sub(r"\s", "", text))
    fields, required, depth, begins = [], [], 0, 7
    for at in range(7, len(text)):
        depth += (text[at] in "<(") - (text[at] in ">)")
        if depth < 0 or (depth == 0 and text[at] == ","):
            name, _, kind = text[begins:at].partition(":")
            fields.append((name.strip(), kind_of(kind.removesuffix(" not null"))))
            required += [name.strip()] * kind.endswith(" not null")
            begins = at + 1
    return Kind("struct", fields=tuple(fields), required=tuple(required))


MISFIT = object()


def scalar(text: str, name: str) -> Any:
    """Return the value of a text in a type; MISFIT if the type rejects it."""
    if name == "string":
        return text
    if name == "boolean":
        return {"true": True, "false": False}.get(text, MISFIT)
    if name in INTEGERS:
        digits, bits = INTEGERS[name]
        if not re.fullmatch(f"[+-]?[0-9]{{1,{digits}}}", text, re.ASCII):
            return MISFIT
        return int(text) if -(2**bits) <= int(text) < 2**bits else MISFIT
    if name.startswith("decimal"):
        return _decimal(text, name)
    if name in ("double", "float"):
        return _float(text, name)
    return _date(text) if name == "date" else _time(text)


def _decimal(text: str, name: str) -> Any:
    sizes = [int(size) for size in re.findall("[0-9]+", name)] or [10]
    digits, after = sizes[0], sizes[1] if len(sizes) > 1 else 0
    found = re.fullmatch("[+-]?([0-9]+)(?:[.]([0-9]+))?", text, re.ASCII)
    if found is None or len(found[1]) > max(1, digits - after) or len(found[2] or "") > after:
        return MISFIT
    if int(found[1]) >= 10 ** (digits - after):
        return MISFIT
    whole = int(found[1] + (found[2] or "").ljust(after, "0"))
    return Decimal(f"{'-' if text.startswith('-') and whole else ''}{whole}E-{after}")


def _float(text: str, name: str) -> Any:
    if not re.fullmatch("[+-]?[0-9]+([.][0-9]+)?([eE][+-]?[0-9]{1,3})?", text, re.ASCII):
        return MISFIT
    number = float(text)
    if name == "float" and math.isfinite(number):
        number = _single(text, number)
    return number if math.isfinite(number) else MISFIT


def _single(text: str, near: float) -> float:
    """Return a text rounded to four bytes directly, because a detour by eight bytes may round twice."""
    exact, largest = Fraction(Decimal(text)), Fraction(2**128 - 2**104)
    if abs(exact) > largest:
        return math.copysign(math.inf, near) if abs(exact) - largest >= 2**103 else math.copysign(float(largest), near)
    first = struct.unpack("f", struct.pack("f", near))[0]
    bits = struct.unpack("i", struct.pack("f", abs(first)))[0]
    other_environments = [
        struct.unpack("f", struct.pack("i", bits + step))[0] for step in (0, 1, -1) if bits + step >= 0
    ]
    away = [abs(Fraction(each) - abs(exact)) if math.isfinite(each) else largest for each in other_environments]
    # Of two equally near values, the one whose last bit is zero.
    ties = [each for each, far in zip(other_environments, away, strict=True) if far == min(away)]
    best = min(ties, key=lambda each: struct.unpack("i", struct.pack("f", each))[0] % 2)
    return math.copysign(best, near)


def _date(text: str) -> Any:
    try:
        return date.fromisoformat(text) if re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text, re.ASCII) else MISFIT
    except ValueError:
        return MISFIT


def _time(text: str) -> Any:
    found = re.fullmatch(
        r"([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:[.]([0-9]{1,6}))?"
        r"(Z|([+-])([0-9]{2}):([0-9]{2}))?",
        text,
        re.ASCII,
    )
    if found is None or _date(found[1]) is MISFIT:
        return MISFIT
    hour, minute, second = (int(found[n]) for n in (2, 3, 4))
    ahead = int(found[8] or 0) * 60 + int(found[9] or 0)
    if hour > 23 or minute > 59 or second > 59 or int(found[9] or 0) > 59 or ahead > 18 * 60:
        return MISFIT
    day = datetime.combine(_date(found[1]), datetime.min.time(), timezone.utc)
    span = timedelta(hours=hour, minutes=minute, seconds=second, microseconds=int((found[5] or "").ljust(6, "0")))
    offset = timedelta(minutes=ahead if found[7] == "+" else -ahead)
    microseconds = (day - datetime(1970, 1, 1, tzinfo=timezone.utc) + span - offset) // timedelta(microseconds=1)
    try:
        return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=microseconds)
    except OverflowError:
        return MISFIT


class Reader:
    """Parser of the lines of one source: its columns as (name, type, may be missing, type inside or "")."""

    def __init__(self, columns: list[tuple[str, str, bool, str]]) -> None:
        self.columns = [(name, kind_of(kind), nullable) for name, kind, nullable, _ in columns]
        self.inside = {name: kind_of(inside) for name, _, _, inside in columns if inside}

    def judge(self, line: str) -> Judged:
        """Return the outcome of a line."""
        if len(line.encode()) > MOST_BYTES:
            return Judged("longer than 16 MiB")
        try:
            found = _Text(line).whole()
            if _twice(found, Kind("struct", fields=tuple((name, kind) for name, kind, _ in self.columns))):
                return Judged("duplicate key")
            fields = {key: value for key, _, value in reversed(found.members)}
            for name, kind, _ in self.columns:
                _shaped(fields.get(name), kind)
        except Broken:
            return Judged("not a JSON object")
        for name, kind, nullable in self.columns:
            value = _given(fields.get(name))
            if value is None and not nullable:
                return Judged(f"{name}: missing")
            if value is None and kind.name == "struct":
                continue  # what may be missing lacks all its fields
            inside = self.inside.get(name)
            for reason, test in _faults_inside(inside, name) if inside is not None else _faults(kind, name):
                if test(value):
                    return Judged(reason)
        values = {name: _typed(fields.get(name), kind) for name, kind, _ in self.columns}
        absent = ",".join(f'"{name}"' for name, _, _ in self.columns if name not in fields)
        return Judged(None, values, self._rescued(line, found), absent or None)

    def _rescued(self, line: str, found: Value) -> str | None:
        declared = {name: kind for name, kind, _ in self.columns}
        if not any(k not in declared or _unknown_inside(v, declared[k]) for k, _, v in found.members):
            return None
        # A declared name with escapes is rescued too, because its text differs from the name.
        kept = [
            line[begins : value.end]
            for key, begins, value in found.members
            if not line.startswith(f'"{key}"', begins) or key not in declared or _unknown_inside(value, declared[key])
        ]
        if max(value.depth for _, _, value in found.members) > 6:
            return line.strip(" \t")
        return "{" + ",".join(sorted(kept, key=str.encode)) + "}"


def _given(value: Value | None) -> Value | None:
    return None if value is None or value.kind == "null" else value


def _shaped(value: Value | None, kind: Kind) -> None:
    value = _given(value)
    if value is None:
        return
    if kind.name == "array":
        if value.kind != "list" or kind.inner is None:
            raise Broken
        for item in value.items:
            _shaped(item, kind.inner)
    if kind.name == "struct":
        if value.kind != "object":
            raise Broken
        inner = {key: each for key, _, each in reversed(value.members)}
        for name, each in kind.fields:
            _shaped(inner.get(name), each)


def _twice(value: Value | None, kind: Kind) -> bool:
    value = _given(value)
    if value is None:
        return False
    if kind.inner is not None:
        return any(_twice(item, kind.inner) for item in value.items)
    if kind.name != "struct":
        return False
    keys = [key for key, _, _ in value.members]
    inner = {key: each for key, _, each in value.members}
    return len(set(keys)) < len(keys) or any(_twice(inner.get(name), each) for name, each in kind.fields)


def _unknown_inside(value: Value | None, kind: Kind) -> bool:
    value = _given(value)
    if value is None:
        return False
    if kind.inner is not None:
        return any(_unknown_inside(item, kind.inner) for item in value.items)
    if kind.name != "struct":
        return False
    known = dict(kind.fields)
    return any(key not in known or _unknown_inside(each, known[key]) for key, _, each in value.members)


def _faults(kind: Kind, shown: str) -> list[tuple[str, Any]]:
    """Return possible faults at or below a value as (reason, test), the gravest first."""
    if kind.inner is not None:
        inner = kind.inner
        found = [(f"{shown}: an element is missing", lambda v: any(_given(i) is None for i in _items(v)))]
        inside = _within(inner, f"{shown}[]") if inner.name == "struct" else _faults(inner, f"{shown}[]")
        return found + [(reason, _some(test)) for reason, test in inside]
    if kind.name == "struct":
        return _within(kind, shown)
    return [(f"{shown}: not of type {_written(kind)}", lambda v: v is not None and _misfit(v, kind))]


def _within(kind: Kind, shown: str) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name, each in kind.fields:
        if each.name != "struct":
            found.append((f"{shown}.{name}: missing", _of(name, lambda v: v is None)))
        found += [(reason, _of(name, test)) for reason, test in _faults(each, f"{shown}.{name}")]
    return found


def _faults_inside(kind: Kind, shown: str) -> list[tuple[str, Any]]:
    """Return possible faults of a value that may be NULL inside: only required fields of an object can be missing."""
    if kind.inner is not None:
        return [(reason, _some(test)) for reason, test in _faults_inside(kind.inner, f"{shown}[]")]
    if kind.name != "struct":
        return [(f"{shown}: not of type {_written(kind)}", lambda v: v is not None and _misfit(v, kind))]
    found: list[tuple[str, Any]] = []
    for name, each in kind.fields:
        if name in kind.required:
            found.append((f"{shown}.{name}: missing", _lacks(name)))
        found += [(reason, _of(name, test)) for reason, test in _faults_inside(each, f"{shown}.{name}")]
    return found


def _lacks(name: str) -> Any:
    return lambda v: v is not None and _of(name, lambda field: field is None)(v)


def _of(name: str, test: Any) -> Any:
    return lambda v: test(_given({k: e for k, _, e in v.members}.get(name)) if v is not None else None)


def _some(test: Any) -> Any:
    return lambda v: any(test(_given(item)) for item in _items(v))


def _items(value: Value | None) -> tuple[Value, ...]:
    return () if value is None else value.items


def _written(kind: Kind) -> str:
    return kind.name.replace(",", ", ")


def _misfit(value: Value, kind: Kind) -> bool:
    return value.kind in ("list", "object") or scalar(value.text, kind.name) is MISFIT


def _typed(value: Value | None, kind: Kind) -> Any:
    value = _given(value)
    if value is None:
        return None
    if kind.inner is not None:
        return [_typed(item, kind.inner) for item in value.items]
    if kind.name == "struct":
        inner = {key: each for key, _, each in value.members}
        return {name: _typed(inner.get(name), each) for name, each in kind.fields}
    return scalar(value.text, kind.name)
