"""An Avro schema with the types of other schemas that it refers to, as one schema. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from sqlrun.decoding.undecodable import Undecodable

Json: TypeAlias = Any
NAMED = ("record", "error", "enum", "fixed")
PARTS = {"array": "items", "map": "values"}


def schema_of(text: str, references: Sequence[str] = ()) -> Json:
    """Return a schema's text as JSON; a type that only a reference defines is written where it is first named.

    >>> money = '{"type": "fixed", "name": "shop.Money", "size": 8}'
    >>> schema_of('{"type": "array", "items": "shop.Money"}', [money])
    {'type': 'array', 'items': {'type': 'fixed', 'name': 'shop.Money', 'size': 8, 'namespace': 'shop'}}

    Raises: Undecodable if a text isn't JSON.
    """
    schema = _parsed(text)
    if not references:
        return schema
    known: dict[str, Json] = {}
    for one in references:
        known |= dict(_defined(_parsed(one), ""))
    try:
        return _Writer(known).written(schema, "")
    except (AttributeError, KeyError, TypeError, RecursionError) as error:
        raise Undecodable(f"the Avro schema isn't valid: {error!r}") from error


def _parsed(text: str) -> Json:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        # The text of a schema may be the bare name of a type.
        if text.isidentifier():
            return text
        raise Undecodable("the Avro schema isn't JSON") from error


def _full(schema: Mapping[str, Json], namespace: str) -> tuple[str, str]:
    """Return a named type's namespace and its name in full."""
    name = str(schema["name"])
    own, _, _ = name.rpartition(".")
    own = own or (schema.get("namespace", namespace) or "")
    return own, name if "." in name or not own else f"{own}.{name}"


def _defined(schema: Json, namespace: str) -> Iterator[tuple[str, Json]]:
    """Yield the named types that a schema defines, each with the namespace written in it."""
    match schema:
        case list():
            for one in schema:
                yield from _defined(one, namespace)
        case {"type": kind} if kind in NAMED:
            own, full = _full(schema, namespace)
            yield full, {**schema, "namespace": own}
            for one in schema.get("fields", ()):
                yield from _defined(one["type"], own)
        case {"type": kind} if kind in PARTS:
            yield from _defined(schema[PARTS[kind]], namespace)
        case {"type": dict() | list() as inner}:
            yield from _defined(inner, namespace)


@dataclass(slots=True)
class _Writer:
    """Writer of types where they are first named; `done` has the names of the written ones."""

    known: Mapping[str, Json]
    done: set[str] = field(default_factory=set)

    def written(self, schema: Json, namespace: str) -> Json:
        """Return a schema inside of a namespace."""
        match schema:
            case str():
                full = schema if "." in schema or not namespace else f"{namespace}.{schema}"
                for name in (full, schema):
                    if name in self.done:
                        return name
                    if name in self.known:
                        return self.written(self.known[name], "")
                return schema
            case list():
                return [self.written(one, namespace) for one in schema]
            case {"type": kind} if kind in NAMED:
                own, full = _full(schema, namespace)
                if full in self.done:
                    return full
                self.done.add(full)
                if "fields" not in schema:
                    return {**schema, "namespace": own}
                fields = [{**one, "type": self.written(one["type"], own)} for one in schema["fields"]]
                return {**schema, "namespace": own, "fields": fields}
            case {"type": kind} if kind in PARTS:
                return {**schema, PARTS[kind]: self.written(schema[PARTS[kind]], namespace)}
            case {"type": inner}:
                return {**schema, "type": self.written(inner, namespace)}
            case _:
                return schema
