"""JSON schemas of checks: a closed list of keywords, so that no schema refers outside itself. Pure.

A validator fetches a `$ref` from any address, and a `$id` changes the base of that address. So the keywords are a
closed list, and a `$ref` must name a part of the same schema that is itself a schema and doesn't refer only to itself.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlrun.expectations.regex_cost import may_run_away

# Keywords whose value is a schema, a list of schemas, a map of schemas, or no schema.
ONE = (
    "additionalItems", "additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then",
    "unevaluatedItems", "unevaluatedProperties",
)  # fmt: skip
MANY = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
NAMED = ("$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties")
PLAIN = (
    "$comment", "$schema", "const", "contentEncoding", "contentMediaType", "default", "dependentRequired",
    "deprecated", "description", "enum", "examples", "exclusiveMaximum", "exclusiveMinimum", "format", "maxContains",
    "maximum", "maxItems", "maxLength", "maxProperties", "minContains", "minimum", "minItems", "minLength",
    "minProperties", "multipleOf", "pattern", "readOnly", "required", "title", "type", "uniqueItems", "writeOnly",
)  # fmt: skip
KEYWORDS = frozenset({*ONE, *MANY, *NAMED, *PLAIN, "$ref"})
# Keywords that apply to the same value, so that a cycle of them never ends.
SAME_VALUE = ("allOf", "anyOf", "oneOf", "if", "then", "else", "not", "dependencies", "dependentSchemas")
DRAFTS = re.compile(r"https?://json-schema\.org/(draft-0[4-7]|draft/20(19-09|20-12))/schema#?")
MOST_DEPTH = 60
MOST_SCHEMAS = 2_000
# Maximum number of schemas that apply to one value, each counted as often as references repeat it.
MOST_ASKED = 10_000
# Length of a text on which a pattern must terminate; texts longer than this are checked in the tick.
LONGEST_TEXT = 200


class SchemaError(ValueError):
    """A schema that a check can't use; the text has the place in it and the reason."""


@dataclass(slots=True)
class _Schemas:
    """The schemas within a schema, by pointer, and the schemas that each applies to the same value."""

    found: dict[str, Any] = field(default_factory=dict)
    asks: dict[str, list[str]] = field(default_factory=dict)
    refs: list[tuple[str, str]] = field(default_factory=list)


def require_closed(schema: Any) -> None:
    """Reject a JSON schema that refers outside itself, may not terminate, or is invalid. Raises: SchemaError.

    >>> require_closed({"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"type": "string"}}})
    >>> require_closed({"$ref": "file:///a"})
    Traceback (most recent call last):
    ...
    sqlrun.expectations.json_schemas.SchemaError: `$ref: file:///a` at `#` points outside the schema. Use `#/...`
    """
    schemas = _Schemas()
    _walk(schemas, schema, "#", 0)
    for place, target in schemas.refs:
        if target not in schemas.found:
            raise SchemaError(f"`$ref: {target}` at `{place}` doesn't exist in this schema")
    counted: dict[str, int] = {}
    for place in schemas.found:
        _count_schemas(schemas, place, counted, ())


def patterns(schema: Any) -> list[str]:
    """Return the regular expressions of a schema.

    >>> patterns({"properties": {"a": {"pattern": "^b"}}, "patternProperties": {"c$": True}})
    ['^b', 'c$']
    """
    schemas = _Schemas()
    _walk(schemas, schema, "#", 0)
    found: list[str] = []
    for each in schemas.found.values():
        if isinstance(each, Mapping):
            found += [str(each["pattern"])] if "pattern" in each else []
            found += map(str, each.get("patternProperties", ()))
    return sorted(found)


def _walk(schemas: _Schemas, schema: Any, place: str, depth: int) -> None:
    """Validate a schema and all schemas within it."""
    if depth > MOST_DEPTH or len(schemas.found) >= MOST_SCHEMAS:
        raise SchemaError(f"it has more than {MOST_DEPTH} levels, or more than {MOST_SCHEMAS:,} schemas")
    schemas.found[place] = schema
    asks = schemas.asks.setdefault(place, [])
    if isinstance(schema, bool):
        return
    if not isinstance(schema, Mapping):
        raise SchemaError(f"`{place}` must be a mapping, true or false")
    for keyword, value in schema.items():
        _keyword(schemas, str(keyword), value, place)
        for inner, where in _within(str(keyword), value, f"{place}/{_escaped(str(keyword))}"):
            if keyword in SAME_VALUE:
                asks.append(where)
            _walk(schemas, inner, where, depth + 1)


def _within(keyword: str, value: Any, place: str) -> Iterator[tuple[Any, str]]:
    """Return the schemas of a keyword, with their pointers."""
    if keyword in MANY and isinstance(value, list):
        yield from ((each, f"{place}/{number}") for number, each in enumerate(value))
    elif keyword in NAMED and isinstance(value, Mapping):
        named = ((str(name), each) for name, each in value.items())
        # `dependencies` also takes lists of names.
        yield from (
            (each, f"{place}/{_escaped(name)}")
            for name, each in named
            if keyword != "dependencies" or not isinstance(each, list)
        )
    elif keyword in ONE:
        yield value, place
    elif keyword in MANY or keyword in NAMED:
        raise SchemaError(f"`{place}` must be a {'list' if keyword in MANY else 'mapping'}")


def _keyword(schemas: _Schemas, keyword: str, value: Any, place: str) -> None:
    """Validate one keyword and its value."""
    if keyword not in KEYWORDS:
        raise SchemaError(f"unsupported keyword `{keyword}` at `{place}`")
    if keyword == "$schema" and not (isinstance(value, str) and DRAFTS.fullmatch(value)):
        raise SchemaError(f"unsupported draft of JSON Schema, `$schema: {value}`")
    if keyword == "$ref":
        target = str(value)
        if not isinstance(value, str) or not (target == "#" or target.startswith("#/")):
            raise SchemaError(f"`$ref: {target[:200]}` at `{place}` points outside the schema. Use `#/...`")
        schemas.refs.append((place, target))
        schemas.asks[place].append(target)
    if keyword == "pattern":
        _pattern(value, place)
    if keyword == "patternProperties" and isinstance(value, Mapping):
        for pattern in value:
            _pattern(pattern, place)
    if isinstance(value, float) and not math.isfinite(value):
        raise SchemaError(f"`{keyword}: {value}` at `{place}` isn't a number")


def _pattern(pattern: Any, place: str) -> None:
    """Reject an invalid regular expression, and one that might never end: Python's search can't be interrupted."""
    try:
        re.compile(pattern)
        runs_away = may_run_away(pattern, LONGEST_TEXT, 1)
    except (re.error, TypeError, OverflowError, RecursionError) as error:
        raise SchemaError(f"invalid regular expression `{str(pattern)[:200]}` at `{place}`: {error}") from None
    if runs_away:
        raise SchemaError(f"the pattern `{pattern[:200]}` at `{place}` could run forever")


def _count_schemas(schemas: _Schemas, place: str, known: dict[str, int], above: tuple[str, ...]) -> int:
    """Return the number of schemas that apply to a value through a schema; each is visited once."""
    if place in above:
        raise SchemaError(f"`$ref: {place}` refers to itself")
    if place not in known:
        if len(above) > MOST_DEPTH:
            raise SchemaError(f"a chain of more than {MOST_DEPTH} references")
        asks = schemas.asks.get(place, [])
        known[place] = min(
            MOST_ASKED + 1, 1 + sum(_count_schemas(schemas, each, known, (*above, place)) for each in asks)
        )
    if known[place] > MOST_ASKED:
        raise SchemaError(f"the references expand to more than {MOST_ASKED:,} schemas for one value")
    return known[place]


def _escaped(name: str) -> str:
    """Return a name as a step of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")
