"""Plain YAML text, nearly all of a project's, to values with places, by libyaml: PyYAML's only user. Pure.

PyYAML reads YAML 1.1 and ruamel.yaml 1.2. Text that they could read differently, and all invalid text, is left to
ruamel.yaml.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

from sqlrun.errors import Place

DEEPEST = 20
# Maximum length: a longer text may exceed the maximum number of values.
LONGEST = 300_000
# Anchors, aliases, tags, directives, explicit keys, documents, block texts that begin with a comment or an empty line;
# characters and escapes that one of the two rejects.
UNUSUAL = re.compile(
    r"(?:^|[\s\[\]{},:?-])[&*!%@`?]"
    r"|^(?:---|\.\.\.)"
    r"|[>|][-+0-9]*[ ]*(?:#|\n[ ]*\n)"
    r"|\\[uUxNLP_\n]"
    "|[^\n\x20-\x7e\xa1-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010fffd]",
    re.MULTILINE,
)
# First characters of plain scalars that may not be texts (YAML 1.2's core schema, as ruamel.yaml has it).
MAYBE = frozenset("tTfFnN~-+0123456789.<=")
BOOL = re.compile("true|True|TRUE|false|False|FALSE")
NULL = re.compile("~|null|Null|NULL")
FLOAT = re.compile(
    r"[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+"
    r"|[-+]?\.[0-9_]+(?:[eE][-+][0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
INT = re.compile("[-+]?(?:0|[1-9][0-9]{0,50})")
OTHER_INT = re.compile("[-+]?(?:0b[0-1_]+|0o?[0-7_]+|[0-9_]+|0x[0-9a-fA-F_]+)")


class Mapped(dict[str, Any]):
    """A mapping that has the places of the mapping, its keys and its values."""

    __slots__ = ("keys_at", "place", "values_at")

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.place = place
        self.keys_at: dict[str, Place] = {}
        self.values_at: dict[str, Place] = {}


class Listed(list[Any]):
    """A list that has the places of the list and its items."""

    __slots__ = ("items_at", "place")

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.place = place
        self.items_at: list[Place] = []


class Unusual(Exception):
    """A text that ruamel.yaml has to read."""


def read(file: str, text: str) -> Any:
    """Return the value of one document.

    Raises: Unusual if ruamel.yaml has to read it, or to report what is wrong with it.
    """
    try:
        from yaml._yaml import CParser
    except ImportError:  # PyYAML was built without libyaml
        raise Unusual from None
    from yaml import YAMLError

    if len(text) > LONGEST or UNUSUAL.search(text):
        raise Unusual
    try:
        event = CParser(text).get_event
        event()  # the start of the stream
        if type(event()).__name__ != "DocumentStartEvent":
            raise Unusual
        _, value = _value(file, event, event(), 0)
        if type(event()).__name__ != "DocumentEndEvent" or type(event()).__name__ != "StreamEndEvent":
            raise Unusual
    except YAMLError:
        raise Unusual from None
    return value


def _value(file: str, event: Callable[[], Any], first: Any, depth: int) -> tuple[Place, Any]:
    mark = first.start_mark
    place = Place(file, mark.line + 1, mark.column + 1)
    match type(first).__name__:
        case "ScalarEvent":
            return place, _scalar(first.value) if first.implicit[0] else first.value
        case "MappingStartEvent" if depth < DEEPEST:
            return place, _mapped(file, event, place, depth + 1)
        case "SequenceStartEvent" if depth < DEEPEST:
            listed = Listed(place)
            while type(following := event()).__name__ != "SequenceEndEvent":
                at, value = _value(file, event, following, depth + 1)
                listed.append(value)
                listed.items_at.append(at)
            return place, listed
        case _:
            raise Unusual


def _mapped(file: str, event: Callable[[], Any], place: Place, depth: int) -> Mapped:
    mapped = Mapped(place)
    while type(key := event()).__name__ != "MappingEndEvent":
        if type(key).__name__ != "ScalarEvent" or key.value == "<<" or key.value in mapped:
            raise Unusual
        mark, name = key.start_mark, key.value
        mapped.keys_at[name] = Place(file, mark.line + 1, mark.column + 1)
        mapped.values_at[name], mapped[name] = _value(file, event, event(), depth)
    return mapped


def _scalar(text: str) -> Any:
    """Return the value of an unquoted scalar."""
    if not text:  # the two libraries place a missing value differently
        raise Unusual
    if text[0] not in MAYBE:
        return text
    if BOOL.fullmatch(text):
        return text.lower() == "true"
    if NULL.fullmatch(text):
        return None
    if INT.fullmatch(text):
        return int(text)
    if FLOAT.fullmatch(text):
        return number(text)
    if OTHER_INT.fullmatch(text):
        raise Unusual
    return text


def number(text: str) -> Decimal | float:
    """Return a number exactly as it is written; YAML's `.inf` and `.nan` are floats.

    >>> number("10.00"), number("-1_000.5"), number(".inf")
    (Decimal('10.00'), Decimal('-1000.5'), inf)
    """
    try:
        return Decimal(text.replace("_", ""))
    except InvalidOperation:
        return float(text.replace(".", "", 1))
