"""A source's declaration against the newest schema of its topic's subject. Shell: the registry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlrun.decoding import schema_fields
from sqlrun.errors import EngineError
from sqlrun.incremental import types
from sqlrun.land.schema_drift import union
from sqlrun.project import Connection, Source
from sqlrun.sources.registry import MissingReferenceError, Registry

# The level at which a producer may register any schema.
NO_RULE = "NONE"
# What a producer may change at each other level, as a reader sees it. TRANSITIVE ones compare with all versions.
LEVELS = {
    "BACKWARD": "a new schema may leave out a declared field",
    "FORWARD": "a new schema keeps each declared field that has no default",
    "FULL": "a new schema keeps each declared field that has no default",
}


@dataclass(frozen=True, slots=True)
class Difference:
    """A field that the schema and the source don't both have, or with another type. `kind`: new, missing or changed.

    `declared` and `registered` are types, "" if there is none or it isn't known.
    """

    kind: str
    field: str
    declared: str = ""
    registered: str = ""


@dataclass(frozen=True, slots=True)
class Compared:
    """The newest schema of a subject: its id, the subject's compatibility level, and the differences.

    `problem`: why there is nothing to compare, "" if there is.
    """

    subject: str
    id: int = 0
    compatibility: str = ""
    differences: tuple[Difference, ...] = ()
    problem: str = ""


def compatibility_line(found: Compared) -> str:
    """Return a sentence about a subject's compatibility level, and what it allows.

    >>> compatibility_line(Compared("orders-value", compatibility="BACKWARD_TRANSITIVE"))
    'the compatibility level of orders-value is BACKWARD_TRANSITIVE: a new schema may leave out a declared field.'
    """
    level = f"the compatibility level of {found.subject} is {found.compatibility}"
    if found.compatibility == NO_RULE:
        return f"{level}, so a producer may register any schema. Set BACKWARD or FULL in the registry."
    allowed = LEVELS.get(found.compatibility.removesuffix("_TRANSITIVE"))
    return f"{level}: {allowed}." if allowed else f"{level}."


def compared(source: Source, connections: Mapping[str, Connection]) -> Compared | None:
    """Return the comparison of a source; None if its values have no schemas, or its topics no common subject."""
    topic = source.topic
    if topic is None or topic.value_format not in ("avro", "protobuf") or not topic.topic:
        return None
    subject = f"{topic.topic}-value"
    connection = connections.get(topic.connection)
    if connection is None or not connection.registry:
        return Compared(subject, problem=f"the connection `{topic.connection}` names no schema registry")
    registry = Registry(topic.connection, connection)
    try:
        schema = registry.newest(subject)
        if schema is None:
            return Compared(subject, problem=f"the registry has no schema of the subject `{subject}`")
        level = registry.compatibility(subject)
        if schema.kind != topic.value_format.upper():
            problem = f"the schema of the subject `{subject}` is of {schema.kind}, not of {topic.value_format.upper()}"
            return Compared(subject, schema.id, level, problem=problem)
        fields = schema_fields.fields(schema.kind, schema.text, schema.references)
    except (EngineError, MissingReferenceError) as error:
        return Compared(subject, problem=str(error))
    return Compared(subject, schema.id, level, differences(source, fields))


def differences(source: Source, fields: Mapping[str, str]) -> tuple[Difference, ...]:
    """Return the differences between a source's columns and the fields of a schema, with their types."""
    declared = {column.name: column.type for column in source.columns if not column.comes_from}
    new = [Difference("new", name, registered=kind) for name, kind in fields.items() if name not in declared]
    missing = [Difference("missing", name, kind) for name, kind in declared.items() if name not in fields]
    changed = [
        Difference("changed", name, kind, fields[name])
        for name, kind in declared.items()
        if fields.get(name) and union(_plain(kind), _plain(fields[name])) != _plain(kind)
    ]
    return (*new, *missing, *changed)


def _plain(kind: str) -> str:
    """Return a type as it is always written."""
    parsed = types.parse(kind)
    return kind if parsed is None or "<" not in kind else types.text(parsed)
