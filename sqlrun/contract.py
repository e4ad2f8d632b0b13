"""YAML values to nouns: contracts, sources, seeds, unit tests, suites. Pure but for the reader that it is given. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from sqlrun.errors import Place
from sqlrun.model import Column, Config, Expectation, Given, Row, Source, Suite, UnitTest
from sqlrun.yaml_values import Reader, plain

MODEL_KEYS = ("name", "description", "config", "grain", "repeats", "columns")
COLUMN_KEYS = ("name", "data_type", "description", "unit", "nulls", "tags", "constraints")
CONFIG_KEYS = ("materialized", "partition_by", "at_worst", "tags")
TEST_KEYS = ("name", "model", "description", "as_of", "overrides", "given", "expect")
CHOICES = {
    "materialized": ("table", "view"),
    "at_worst": ("append", "merge", "keys", "partitions", "full"),
}
SEVERITIES = ("critical", "warning", "info")
ON_FAIL = ("fail", "warn", "quarantine")


class Contract:
    """What a model's or a seed's YAML says, before it is put together with its SQL or CSV."""

    def __init__(self, reader: Reader, node: Any, place: Place) -> None:
        self.place = place
        self.name = reader.text(node, "name")
        self.description = reader.text(node, "description")
        self.columns = columns(reader, node, f"`{self.name}`")
        names = [c.name for c in self.columns]
        self.grain = reader.texts(node, "grain")
        self.repeats = reader.flag(node, "repeats", False)
        self.config = config_values(reader, node)
        partition_by = self.config.get("partition_by", ())
        for key, wanted in (("grain", self.grain), ("config", partition_by)):
            for name in wanted:  # type: ignore[attr-defined]
                if name not in names:
                    near = difflib.get_close_matches(str(name), names, 1)
                    hint = f"Columns: {', '.join(names)}." + (f" Did you mean `{near[0]}`?" if near else "")
                    reader.problem("SR108", reader.place(node, key), f"`{name}` is not a column of {self.name}", hint)


def columns(reader: Reader, node: Any, what: str) -> tuple[Column, ...]:
    """Read `columns:`; each needs a name, a data_type and a description."""
    found: list[Column] = []
    for item, place in reader.items(node, "columns", what):
        reader.mapping(item, place, f"a column of {what}", COLUMN_KEYS, ("name", "data_type", "description"))
        name = reader.text(item, "name")
        if name in {c.name for c in found}:
            reader.problem("SR109", place, f"column `{name}` stands twice", "Keep one of them.")
            continue
        constraints = reader.texts(item, "constraints") if _plain_list(item) else ()
        nullable = reader.flag(item, "nulls", True) and "not_null" not in constraints
        kind = " ".join(reader.text(item, "data_type", "string").lower().split()).replace(", ", ",")
        tags = reader.texts(item, "tags")
        unit, description = reader.text(item, "unit"), reader.text(item, "description")
        found.append(Column(name, kind, description, place, unit, nullable, tags))
    return tuple(found)


def _plain_list(item: Any) -> bool:
    return isinstance(item, Mapping) and not any(isinstance(v, Mapping) for v in item.get("constraints") or ())


def config_values(reader: Reader, node: Any, key: str = "config") -> dict[str, object]:
    """Read a `config:` mapping into values that `configured` takes."""
    raw = node.get(key) if isinstance(node, Mapping) else None
    if raw is None:
        return {}
    place = reader.place(node, key)
    reader.mapping(raw, place, "`config`", CONFIG_KEYS)
    values: dict[str, object] = {}
    for name in CONFIG_KEYS:
        if not isinstance(raw, Mapping) or name not in raw:
            continue
        value: object = reader.texts(raw, name) if name in ("partition_by", "tags") else reader.text(raw, name)
        if name in CHOICES and value not in CHOICES[name]:
            choices = ", ".join(CHOICES[name])
            reader.problem("SR110", reader.place(raw, name), f"`{name}: {value}` is none of {choices}")
            continue
        values[name] = value
    return values


def configured(*layers: Mapping[str, object]) -> Config:
    """Lay settings over each other, later ones win; tags add up."""
    merged: dict[str, Any] = {}
    tags: list[str] = []
    for layer in layers:
        tags.extend(layer.get("tags", ()))  # type: ignore[call-overload]
        merged.update(layer)
    return Config(
        merged.get("materialized", "table"),
        tuple(merged.get("partition_by", ())),
        merged.get("at_worst", "full"),
        tuple(dict.fromkeys(tags)),
    )


def unit_tests(reader: Reader, root: Any) -> tuple[UnitTest, ...]:
    """Read `unit_tests:` in dbt's form."""
    found = []
    for item, place in reader.items(root, "unit_tests", "the file"):
        reader.mapping(item, place, "a unit test", TEST_KEYS, ("name", "model", "expect"))
        given = []
        for one, at in reader.items(item, "given", "a unit test"):
            reader.mapping(one, at, "an input of a unit test", ("input", "rows"), ("input",))
            given.append(Given(reader.text(one, "input"), rows(reader, one, "rows")))
        expect = item.get("expect") if isinstance(item, Mapping) else None
        reader.mapping(expect, reader.place(item, "expect"), "`expect`", ("rows",), ("rows",))
        overrides = (item.get("overrides") if isinstance(item, Mapping) else None) or {}
        if overrides:
            reader.mapping(overrides, reader.place(item, "overrides"), "`overrides`", ("vars",))
        found.append(
            UnitTest(
                reader.text(item, "name"),
                reader.text(item, "model"),
                tuple(given),
                rows(reader, expect, "rows"),
                place,
                reader.text(item, "description"),
                reader.text(item, "as_of"),
                plain(overrides.get("vars", {}) if isinstance(overrides, Mapping) else {}),
            )
        )
    return tuple(found)


def rows(reader: Reader, node: Any, key: str) -> tuple[Row, ...]:
    """Read rows of a unit test: mappings of column to value."""
    found = []
    for item, place in reader.items(node, key, "a unit test"):
        if not isinstance(item, Mapping):
            reader.problem("SR103", place, "a row must be a mapping of column to value", "{column: value, ...}")
            continue
        found.append(plain(item))
    return tuple(found)


def sources(reader: Reader) -> tuple[Source, ...]:
    """Read a `_sources.yml`."""
    found = []
    reader.mapping(reader.root, Place(reader.file), "a sources file", ("version", "sources"), ("sources",))
    for group, place in reader.items(reader.root, "sources", "the file"):
        reader.mapping(group, place, "a source", ("name", "description", "tables"), ("name", "tables"))
        for table, at in reader.items(group, "tables", "a source"):
            known = ("name", "description", "format", "path", "columns")
            reader.mapping(table, at, "a source's table", known, ("name", "path", "columns"))
            kind = reader.text(table, "format", "json")
            if kind != "json":
                hint = "One JSON object a line: `format: json`."
                reader.problem("SR110", reader.place(table, "format"), f"format `{kind}` can't be landed", hint)
            what = f"source {reader.text(group, 'name')}.{reader.text(table, 'name')}"
            found.append(
                Source(
                    reader.text(group, "name"),
                    reader.text(table, "name"),
                    kind,
                    reader.text(table, "path"),
                    columns(reader, table, what),
                    reader.text(table, "description"),
                    at,
                )
            )
    return tuple(found)


def suite(reader: Reader, model: str) -> Suite:
    """Read a file of expectations."""
    known = ("name", "description", "expectations", "meta")
    reader.mapping(reader.root, Place(reader.file), "a suite", known, ("expectations",))
    found = []
    for item, place in reader.items(reader.root, "expectations", "a suite"):
        keys = ("type", "kwargs", "severity", "on_fail", "description", "meta")
        reader.mapping(item, place, "an expectation", keys, ("type",))
        severity = reader.text(item, "severity", "critical")
        on_fail = reader.text(item, "on_fail", "fail" if severity == "critical" else "warn")
        for key, value, choices in (("severity", severity, SEVERITIES), ("on_fail", on_fail, ON_FAIL)):
            if value not in choices:
                message = f"`{key}: {value}` is none of {', '.join(choices)}"
                reader.problem("SR110", reader.place(item, key), message)
        kwargs = _floats(plain(item.get("kwargs") or {})) if isinstance(item, Mapping) else {}
        description = reader.text(item, "description")
        found.append(Expectation(reader.text(item, "type"), kwargs, severity, on_fail, description, place))
    return Suite(model, reader.file, tuple(found))


def _floats(value: Any) -> Any:
    """Turn exact decimals into floats: what Great Expectations takes for numbers."""
    match value:
        case dict():
            return {key: _floats(inner) for key, inner in value.items()}
        case list():
            return [_floats(inner) for inner in value]
        case Decimal():
            return float(value)
        case _:
            return value


def skeleton(name: str, columns_of: Iterable[str] = ("id",)) -> str:
    """Write the least contract that a model needs."""
    lines = ["models:", f"  - name: {name}", "    description: What one row is.", "    grain: [id]", "    columns:"]
    lines += [f'      - {{name: {c}, data_type: string, description: "What it is, and its unit."}}' for c in columns_of]
    return "\n".join(lines)
