"""Avro's schemas: how values are read without a loss, and how they become JSON texts. Pure.

Values are read by another schema that has the same binary form. It has no logical types, since fastavro's own values
have limits: a date after the year 9999 is an error, and a time has no nanoseconds. A union's branches are wrapped in
records of one field, so that the value names its branch. A map is a list of entries, so that a key may occur twice.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any, TypeAlias

from sqlrun.decoding import scalar_text
from sqlrun.decoding.records import quoted
from sqlrun.decoding.undecodable import Undecodable

# A schema or a value, as JSON; and what writes a value.
Json: TypeAlias = Any
Text: TypeAlias = Callable[[Json], str]

EPOCH = datetime(1970, 1, 1)
UNITS = {"millis": 1_000, "micros": 1_000_000, "nanos": 1_000_000_000}
PRIMITIVE = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
BRANCH = "branch"


@dataclass(frozen=True, slots=True)
class Prepared:
    """The schema to read values by, what writes such a value as JSON, and whether a value may contain its like."""

    read: Json
    text: Text
    is_recursive: bool


def prepared(schema: Json, rename: Mapping[str, str]) -> Prepared:
    """Return how values of a schema are read and written. `rename`: other names of the outermost record's fields.

    Raises: Undecodable.
    """
    known = _Schemas(rename)
    read, text = known.of(schema, "")
    return Prepared(read, text, known.is_recursive)


@dataclass(slots=True)
class _Schemas:
    """The named types of a schema, so far."""

    rename: Mapping[str, str]
    named: dict[str, Text] = field(default_factory=dict)
    invented: int = 0
    unfinished: set[str] = field(default_factory=set)
    is_recursive: bool = False

    def of(self, schema: Json, namespace: str) -> tuple[Json, Text]:
        """Return the schema to read by and the writer of a schema inside of a namespace."""
        match schema:
            case str() if schema in PRIMITIVE:
                return schema, _primitive(schema)
            case str():
                return self._reference(schema, namespace)
            case list():
                return self._union(schema, namespace)
            case {"type": "record" | "error"}:
                return self._record(schema, namespace)
            case {"type": "enum", "symbols": list(symbols)}:
                name = self._declared(schema, namespace, quoted)
                return {"type": "enum", "name": name, "symbols": symbols}, quoted
            case {"type": "fixed", "size": int(size)}:
                text = _bytes(schema)
                name = self._declared(schema, namespace, text)
                return {"type": "fixed", "name": name, "size": size}, text
            case {"type": "array", "items": items}:
                inner, text = self.of(items, namespace)
                if _is_empty(inner):
                    raise Undecodable("the Avro schema has a list of values without bytes: its length has no limit")
                return {"type": "array", "items": inner}, lambda values: f"[{','.join(map(text, values))}]"
            case {"type": "map", "values": values}:
                return self._map(values, namespace)
            case {"type": "int" | "long" | "bytes" | "string" as kind}:
                return kind, _logical(schema)
            case {"type": inner}:
                return self.of(inner, namespace)
            case _:
                raise Undecodable(f"the Avro schema has an unknown type: {str(schema)[:200]}")

    def _invent(self) -> str:
        self.invented += 1
        return f"sqlrun.part{self.invented}"

    def _declared(self, schema: Mapping[str, Json], namespace: str, text: Text) -> str:
        """Return a named type's whole name; a type inside of it may refer to it."""
        name = _full(str(schema.get("name", "")), schema.get("namespace", namespace) or "")
        self.named[name] = text
        return name

    def _reference(self, name: str, namespace: str) -> tuple[Json, Text]:
        full = next((one for one in (_full(name, namespace), name) if one in self.named), None)
        if full is None:
            raise Undecodable(f"the Avro schema refers to `{name}`, which it doesn't define")
        self.is_recursive |= full in self.unfinished
        return full, lambda value: self.named[full](value)

    def _record(self, schema: Mapping[str, Json], namespace: str) -> tuple[Json, Text]:
        is_outermost = not self.named
        parts: list[tuple[str, Text]] = []

        def writer(rename: Mapping[str, str]) -> Text:
            keys = [(name, f"{quoted(rename.get(name, name))}:", text) for name, text in parts]
            return lambda value: f"{{{','.join([key + text(value[name]) for name, key, text in keys])}}}"

        # A record may contain itself, before its fields are known.
        full = self._declared(schema, namespace, lambda value: writer({})(value))
        self.unfinished.add(full)
        fields = []
        for one in schema.get("fields", ()):
            name = str(one["name"])
            inner, text = self.of(one["type"], full.rpartition(".")[0])
            fields.append({"name": name, "type": inner})
            parts.append((name, text))
        if len(dict(parts)) < len(parts):
            raise Undecodable(f"the Avro schema's record `{full}` has two fields of one name")
        self.unfinished.discard(full)
        self.named[full] = writer({})
        read = {"type": "record", "name": full, "fields": fields}
        return read, writer(self.rename) if is_outermost else self.named[full]

    def _union(self, schema: Sequence[Json], namespace: str) -> tuple[Json, Text]:
        branches = [self.of(one, namespace) for one in schema]
        others = [(inner, text) for inner, text in branches if inner != "null"]
        if len(others) == 1:
            text = others[0][1]
            return [inner for inner, _ in branches], lambda value: "null" if value is None else text(value)
        known = {f"{BRANCH}{number}": text for number, (_, text) in enumerate(others)}
        wrapped = iter(
            {"type": "record", "name": self._invent(), "fields": [{"name": name, "type": inner}]}
            for name, (inner, _) in zip(known, others, strict=True)
        )

        def of_branch(value: Json) -> str:
            if value is None:
                return "null"
            ((name, inner),) = value.items()
            return known[name](inner)

        return ["null" if inner == "null" else next(wrapped) for inner, _ in branches], of_branch

    def _map(self, values: Json, namespace: str) -> tuple[Json, Text]:
        inner, text = self.of(values, namespace)
        fields = [{"name": "key", "type": "string"}, {"name": "value", "type": inner}]
        entry = {"type": "record", "name": self._invent(), "fields": fields}

        def of_entries(entries: Json) -> str:
            members = [f"{quoted(one['key'])}:{text(one['value'])}" for one in entries]
            return f"{{{','.join(members)}}}"

        return {"type": "array", "items": entry}, of_entries


def _full(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _is_empty(read: Json) -> bool:
    """Return whether a value takes no bytes."""
    match read:
        case "null" | {"type": "fixed", "size": 0}:
            return True
        case {"type": "record", "fields": fields}:
            return all(_is_empty(one["type"]) for one in fields)
        case _:
            return False


def _primitive(kind: str) -> Text:
    match kind:
        case "boolean":
            return lambda value: "true" if value else "false"
        case "int" | "long":
            return str
        case "float":
            return scalar_text.float_text
        case "double":
            return scalar_text.double_text
        case "bytes":
            return scalar_text.base64_text
        case "string":
            return quoted
        case _:
            return lambda value: "null"


def _logical(schema: Mapping[str, Json]) -> Text:
    """Return the writer of a primitive type with a logical one; an unknown logical type is ignored, as Avro demands."""
    kind, logical = str(schema["type"]), schema.get("logicalType")
    if kind == "bytes":
        return _bytes(schema)
    if kind == "int" and logical == "date":
        return _date
    what, _, unit = str(logical).rpartition("-")
    if kind in ("int", "long") and unit in UNITS:
        if what == "time":
            return lambda value: _time(value, unit)
        if what in ("timestamp", "local-timestamp"):
            zone = "Z" if what == "timestamp" else ""
            return lambda value: _timestamp(value, unit, zone)
    return _primitive(kind)


def _bytes(schema: Mapping[str, Json]) -> Text:
    """Return the writer of bytes or of a fixed number of bytes."""
    match schema:
        case {"logicalType": "decimal"}:
            scale = schema.get("scale", 0)
            if isinstance(scale, int) and scale >= 0:
                return lambda value: scalar_text.decimal_text(value, scale)
        case {"logicalType": "uuid", "size": 16}:
            return lambda value: f'"{uuid.UUID(bytes=value)}"'
    return scalar_text.base64_text


def _date(value: int) -> str:
    try:
        return f'"{date(1970, 1, 1) + timedelta(value)}"'
    except OverflowError:
        return f'"{value} days since 1970-01-01"'


def _time(value: int, unit: str) -> str:
    seconds, rest = divmod(value, UNITS[unit])
    return f'"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{_fraction(rest, unit)}"'


def _timestamp(value: int, unit: str, zone: str) -> str:
    """Return an ISO text; a time outside of the years 1 to 9999 is a text that no type accepts."""
    seconds, rest = divmod(value, UNITS[unit])
    try:
        return f'"{(EPOCH + timedelta(0, seconds)).isoformat()}.{_fraction(rest, unit)}{zone}"'
    except OverflowError:
        return f'"{value} {unit} since 1970-01-01T00:00:00"'


def _fraction(rest: int, unit: str) -> str:
    """Return the digits after the point: 9 only if there are nanoseconds, which the types of columns don't accept."""
    if unit == "nanos" and rest % 1000 == 0:
        rest, unit = rest // 1000, "micros"
    return f"{rest:0{len(str(UNITS[unit])) - 1}}"
