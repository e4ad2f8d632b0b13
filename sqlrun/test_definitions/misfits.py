"""Check of a written value against a column's type, without an engine. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from sqlrun.load import seeds
from sqlrun.parse.type_check import declared_type
from sqlrun.transpile.spark_types import Kind

LONGEST = 60
# Names of special doubles.
WORDS = {"inf", "-inf", "nan"}


@dataclass(frozen=True, slots=True)
class Misfit:
    """A value of the wrong type: the path to it through lists and mappings, and the message."""

    path: tuple[str | int, ...]
    message: str


def misfit(value: object, type_text: str) -> Misfit | None:
    """Return the first part of a value with a wrong type, or None; NULL has every type, unknown types take any value.

    >>> misfit("12,5", "decimal(10,2)").message, misfit(12, "decimal(10,2)")
    ('`12,5` is not a decimal(10,2)', None)
    """
    kind = declared_type(type_text)
    return None if kind is None else _misfit(value, kind, ())


def _misfit(value: object, kind: Kind, path: tuple[str | int, ...]) -> Misfit | None:
    match kind.name, value:
        case _, None:
            return None
        case "array", list() | tuple():
            return _first(_misfit(item, kind.parts[0], (*path, index)) for index, item in enumerate(value))
        case "struct", Mapping():
            return _struct(value, kind, path)
        case "map", Mapping():
            keys = (_misfit(key, kind.parts[0], (*path, str(key))) for key in value)
            return _first(keys) or _first(_misfit(item, kind.parts[1], (*path, str(k))) for k, item in value.items())
        case "array" | "struct" | "map", _:
            example = {"array": "[...]", "struct": "{field: ...}", "map": "{key: value}"}[kind.name]
            return Misfit(path, f"{_shown(value)} is not {_an(kind)}: write {example}")
        case _, Mapping() | list() | tuple():
            return Misfit(path, f"{_shown(value)} is not {_an(kind)}")
        case _:
            return None if _fits(value, kind) else Misfit(path, f"{_shown(value)} is not {_an(kind)}")


def _first(found: object) -> Misfit | None:
    return next((one for one in found if one is not None), None)  # type: ignore[attr-defined]


def _struct(value: Mapping[object, object], kind: Kind, path: tuple[str | int, ...]) -> Misfit | None:
    parts = dict(zip(kind.fields, kind.parts, strict=True))
    for name, item in value.items():
        if name not in parts:
            return Misfit((*path, str(name)), f"unknown field `{name}` of the struct. Fields: {', '.join(parts)}")
        wrong = _misfit(item, parts[str(name)], (*path, str(name)))
        if wrong is not None:
            return wrong
    return None


def _fits(value: object, kind: Kind) -> bool:
    name = "timestamp" if kind.name == "timestamp_ntz" else kind.name
    if name == "string" or name not in seeds.SHAPES:
        return True
    if isinstance(value, bool):
        return name == "boolean"
    text = format(value, "f") if isinstance(value, Decimal) else str(value)
    if name in ("double", "float") and text.lower() in WORDS:
        return True
    return seeds.fits(text, str(kind) if name == "decimal" else name)


def _an(kind: Kind) -> str:
    """Return a type after its article."""
    return f"{'an' if str(kind)[0] in 'aeiou' else 'a'} {kind}"


def _shown(value: object) -> str:
    match value:
        case bool():
            text = str(value).lower()
        case Mapping():
            text = "{" + ", ".join(map(str, value)) + "}"
        case list() | tuple():
            text = f"[{len(value)} values]" if len(value) != 1 else "[1 value]"
        case _:
            text = str(value)
    return f"`{text if len(text) <= LONGEST else text[:LONGEST] + '…'}`"
