"""Query parameters of a route: one declaration for validation and for the OpenAPI description. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

LONGEST_VALUE = 200
MOST_VALUES = 30


class Wrong(Exception):
    """An invalid parameter; the text names it and the valid values."""


@dataclass(frozen=True, slots=True)
class Number:
    """A whole number from `least` to `most`, or one of `among`."""

    default: int | None
    least: int = 0
    most: int = 0
    among: tuple[int, ...] = ()

    def read(self, name: str, text: str) -> int:
        """Return the value in a query text; `name` is the parameter's name in messages.

        Raises: Wrong if the text is invalid.
        """
        sound = text.isascii() and text.isdecimal() and len(text) <= 9
        if self.among:
            if not sound or int(text) not in self.among:
                raise Wrong(f"`{name}` must be one of {', '.join(map(str, self.among))}")
        elif not sound or not self.least <= int(text) <= self.most:
            raise Wrong(f"`{name}` must be a whole number from {self.least} to {self.most}")
        return int(text)

    def schema(self) -> dict[str, Any]:
        """Return the parameter's JSON Schema."""
        bounds: dict[str, Any] = {"enum": list(self.among)} if self.among else {}
        if not self.among:
            bounds = {"minimum": self.least, "maximum": self.most}
        return {"type": "integer", **bounds, **({} if self.default is None else {"default": self.default})}


@dataclass(frozen=True, slots=True)
class Text:
    """A text of 1 to `most` characters."""

    default: str = ""
    most: int = LONGEST_VALUE

    def read(self, name: str, text: str) -> str:
        """Return the value in a query text; `name` is the parameter's name in messages.

        Raises: Wrong if the text is invalid.
        """
        if len(text) > self.most or "\0" in text or not text:
            raise Wrong(f"`{name}` must be a text of 1 to {self.most} characters")
        return text

    def schema(self) -> dict[str, Any]:
        """Return the parameter's JSON Schema."""
        return {"type": "string", "minLength": 1, "maxLength": self.most}


Kind = Number | Text


def read(query: bytes, kinds: Mapping[str, Kind]) -> dict[str, Any]:
    """Return the values in a query string by name; a missing parameter has its default.

    Raises: Wrong for an unknown name, a repeated name, or an invalid value.
    """
    found: dict[str, Any] = {name: kind.default for name, kind in kinds.items()}
    if not query:
        return found
    seen: set[str] = set()
    try:
        pairs = parse_qsl(query.decode("ascii"), keep_blank_values=True, max_num_fields=MOST_VALUES, errors="strict")
    except ValueError:
        raise Wrong("the query string can't be read") from None
    for name, text in pairs:
        if name not in kinds:
            known = f"this route takes {listed(kinds)}" if kinds else "this route takes none"
            raise Wrong(f"unknown parameter; {known}")
        if name in seen:
            raise Wrong(f"`{name}` is given twice")
        seen.add(name)
        found[name] = kinds[name].read(name, text)
    return found


def listed(names: Iterable[str]) -> str:
    """Return names in backticks, separated by commas.

    >>> listed(["a", "b"])
    '`a`, `b`'
    """
    return ", ".join(f"`{name}`" for name in names)
