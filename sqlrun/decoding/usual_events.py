"""Change events of a form that came before, read by one regular expression instead of a parser. Pure.

A connector writes the events of a table with the same members in the same order. So the first event of a form, which
the parser has read, makes an expression that matches the others, and names the texts of the values that their lines
have. They are the texts that the parser would write: a value with an escape, a list or an object matches none. What
no expression matches is left to the parser.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any

from sqlrun.decoding.event_forms import Event, Writer, is_mongodb
from sqlrun.decoding.records import quoted
from sqlrun.decoding.undecodable import Undecodable

# Maximum number of forms, and of events that make one.
MOST_FORMS, MOST_TRIES = 8, 64
NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
WHOLE = r"-?(?:0|[1-9][0-9]*)"
PLAIN = r'"[^"\\\x00-\x1f]*"'
# Of a value that no line has: escapes are fine, half a surrogate pair isn't.
ANY_TEXT = r'"[^"\\\x00-\x1f]*(?:\\["\\/bfnrt][^"\\\x00-\x1f]*)*"'
ANY = f"(?:{ANY_TEXT}|{NUMBER}|null|true|false)"
# Members of `source` whose values make another form, and the ones that say where and when a change was.
SAME = frozenset({"db", "schema", "table", "collection", "snapshot", "connector"})
PLACES = frozenset({"lsn", "file", "pos", "row", "ts_ns", "ts_us", "ts_ms", "txId"})
ENGINE = frozenset({"topic", "key", "value"})
# Which member has the row, by the kind of change.
ROWS = {"r": "after", "c": "after", "u": "after", "d": "before"}
NOTHING: Mapping[str, Any] = MappingProxyType({})


class Unusual(Exception):
    """An event whose form has no expression."""


class _Object(list[tuple[str, Any]]):
    """The members of an object, in order."""

    def get(self, name: str) -> Any:
        """Return a member's value; None if there is none."""
        return next((value for key, value in self if key == name), None)


@dataclass(frozen=True, slots=True)
class Columns:
    """What a line has. `order`: each column with the start of its member, and what writes it if it isn't the row's.

    `declared`: the columns of the row; `key` are the columns of its key. `converted`: the columns whose values aren't
    always written as they are; `convert` returns the text for a column's name and the event's text.
    """

    order: Sequence[tuple[str, str, Writer | None]]
    declared: Collection[str]
    key: Sequence[str]
    converted: Collection[str]
    convert: Callable[[str, str], str]
    unavailable: Collection[str]
    lists_unavailable: bool


@dataclass(frozen=True, slots=True)
class Form:
    """A form: its expression, the parts of a line, and which groups of the expression are of the row and of the source.

    A part of a line has the start of a member, what writes it, else the group, else it is NULL; and what converts it.
    """

    pattern: re.Pattern[str]
    op: str
    constants: Mapping[str, Any]
    places: tuple[tuple[str, int], ...]
    members: tuple[tuple[str, int], ...]
    parts: tuple[tuple[str, Writer | None, int | None, Callable[[str], str] | None], ...]


@dataclass(frozen=True, slots=True)
class UsualEvents:
    """The forms that came so far."""

    columns: Columns
    _forms: list[Form] = field(default_factory=list, init=False, repr=False)
    _tries: list[None] = field(default_factory=list, init=False, repr=False)

    def line(self, text: str) -> str | None:
        """Return the line of an event of a known form; None for any other, and for one that has none."""
        for number, form in enumerate(self._forms):
            found = form.pattern.fullmatch(text)
            if found is not None:
                if number:
                    self._forms.insert(0, self._forms.pop(number))
                try:
                    return self._line(form, found.groups())
                except Undecodable:
                    return None
        return None

    def _line(self, form: Form, values: Sequence[str]) -> str | None:
        absent = [name for name, group in form.members if values[group] in self.columns.unavailable]
        if absent:
            if form.op == "d" or not self.columns.lists_unavailable:
                return None
            values = ["null" if value in self.columns.unavailable else value for value in values]
        source = {**form.constants, **{name: values[group] for name, group in form.places}}
        event = Event(form.op, NOTHING, source, source["txId"], NOTHING)
        found = []
        for start, write, group, convert in form.parts:
            if write is not None:
                found.append(start + write(event, absent))
            elif group is None:
                found.append(f"{start}null")
            elif convert is None:
                found.append(start + values[group])
            else:
                found.append(start + convert(values[group]))
        return f"{{{','.join(found)}}}"

    def learn(self, text: str) -> None:
        """Make a form of an event that the parser has read; the one that wasn't used for longest makes room."""
        if len(self._tries) == MOST_TRIES:
            return
        del self._forms[MOST_FORMS - 1 :]
        self._tries.append(None)
        try:
            self._forms.append(_Making(self.columns).form(text))
        except (Unusual, RecursionError):
            return


class _Making:
    """Makes the form of one event."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._groups = 0
        self._members: dict[str, int] = {}
        self._places: list[tuple[str, int]] = []
        self._constants: dict[str, Any] = {}

    def form(self, text: str) -> Form:
        """Return the form of an event. Raises: Unusual."""
        found = _members(json.loads(text, object_pairs_hook=_Object))
        wrapped = {name for name, _ in found} >= ENGINE
        pattern = self._object(found, {"value": self._envelope}) if wrapped else self._envelope(found)
        op = str(self._constants.pop("op"))
        written = {*self._members, *(self._columns.declared if op == "d" else ())}
        order = [part for part in self._columns.order if part[2] is not None or part[0] in written]
        order += [(name, f"{quoted(name)}:", None) for name in self._members if name not in self._columns.declared]
        parts = [(start, write, self._members.get(name), self._convert(name)) for name, start, write in order]
        members = tuple(self._members.items())
        return Form(re.compile(pattern), op, self._constants, tuple(self._places), members, tuple(parts))

    def _convert(self, name: str) -> Callable[[str], str] | None:
        return partial(self._columns.convert, name) if name in self._columns.converted else None

    def _object(self, found: Any, inside: Mapping[str, Callable[[Any], str]]) -> str:
        """Return the expression of an object; `inside` writes those of the values of some members."""
        members = [(name, inside.get(name, self._ignored)(value)) for name, value in _members(found)]
        return rf"\{{{', ?'.join(f'{re.escape(quoted(name))}: ?{value}' for name, value in members)}\}}"

    def _envelope(self, found: Any) -> str:
        """Return the expression of an envelope with a row."""
        op = _members(found).get("op")
        if op not in ROWS:
            raise Unusual
        self._constants["op"] = op
        return self._object(found, {ROWS[op]: self._row, "source": self._source, "op": self._same})

    def _row(self, found: Any) -> str:
        """Return the expression of a row; of a deleted one only the key is read."""
        members = []
        for name, value in _members(found):
            pattern = self._ignored(value)
            if name in self._columns.key or self._constants["op"] != "d":
                pattern = self._group(f"{PLAIN}|{NUMBER}|true|false{'' if name in self._columns.key else '|null'}")
                self._members[name] = self._groups - 1
            members.append(f"{re.escape(quoted(name))}: ?{pattern}")
        return rf"\{{{', ?'.join(members)}\}}"

    def _source(self, found: Any) -> str:
        """Return the expression of what says where a change was."""
        members = []
        for name, value in _members(found):
            pattern = self._ignored(value)
            if name in SAME or (name in PLACES and type(value) is not int):
                self._constants[name] = value
                pattern = self._same(value)
            elif name in PLACES:
                pattern = self._group(WHOLE)
                self._places.append((name, self._groups - 1))
            members.append(f"{re.escape(quoted(name))}: ?{pattern}")
        if "txId" not in {name for name, _ in found} or is_mongodb(dict(found)):
            raise Unusual  # the transaction is elsewhere, or the row is a document
        return rf"\{{{', ?'.join(members)}\}}"

    def _group(self, pattern: str) -> str:
        self._groups += 1
        return f"({pattern})"

    def _same(self, value: Any) -> str:
        """Return the expression of this very value."""
        if isinstance(value, list | float):
            raise Unusual
        return re.escape(json.dumps(value, ensure_ascii=False))

    def _ignored(self, value: Any) -> str:
        """Return the expression of any value that isn't read, of the same form."""
        if isinstance(value, _Object):
            return self._object(value, {})
        if isinstance(value, list):
            raise Unusual
        return ANY


def _members(found: Any) -> _Object:
    if not isinstance(found, _Object):
        raise Unusual
    return found
