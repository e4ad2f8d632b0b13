"""JSON schemas of a project's YAML files, for editors. Shell: the keys of modules that read files.

The keys are those of the readers of the files, so a new key without a schema here is a KeyError in the first test.
A schema knows keys, kinds of values and choices; `sqlrun parse` checks all else. Draft 7 is what editors understand.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any

from sqlrun.graph import named_selectors
from sqlrun.load import (
    connections,
    contract,
    dashboards,
    exposures,
    freshness,
    histories,
    profile,
    source_changes,
    source_files,
    sources,
    suites,
)
from sqlrun.project import ON_FAIL, SEVERITIES, VALUE_FORMATS
from sqlrun.storage import store_options
from sqlrun.test_definitions import declared, declared_macros, declared_rows, declared_steps

FOLDER = ".schemas"
DRAFT = "http://json-schema.org/draft-07/schema#"
Schema = Mapping[str, Any]

TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
FLAG: Schema = {"type": "boolean"}
ANYTHING: Schema = {}
MAPPING: Schema = {"type": "object"}
ROW: Schema = {"type": "object"}
# An empty key, as in `columns:` without a list, is the same as none.
TEXTS: Schema = {"type": ["array", "null"], "items": TEXT}
NAME_OR_NAMES: Schema = {"anyOf": [TEXT, {"type": "array", "items": TEXT}]}
TEXT_OR_NUMBER: Schema = {"type": ["string", "number"]}
PLAIN: Schema = {"type": ["string", "number", "boolean"]}
TIME: Schema = {"type": "string", "description": "A time in UTC, such as 2026-01-10 12:15:00."}
# Words for people: one text, or a text for each language.
WORDS: Schema = {"anyOf": [TEXT, {"type": "object", "additionalProperties": TEXT}]}


def _choice(values: Iterable[str]) -> Schema:
    return {"enum": list(values)}


def _list(items: Schema) -> Schema:
    return {"type": ["array", "null"], "items": items}


def _object(keys: Iterable[str], kinds: Mapping[str, Schema], required: Iterable[str] = ()) -> Schema:
    """Return the schema of a mapping that has no other keys."""
    properties = {key: kinds[key] for key in keys}
    found: dict[str, Any] = {"type": "object", "additionalProperties": False, "properties": properties}
    return {**found, "required": list(required)} if required else found


def _file(title: str, key: str, items: Schema, also: Mapping[str, Schema] | None = None) -> Schema:
    """Return the schema of a file whose top has dbt's `version`, a list under a key, and others."""
    others = also or {}
    kinds = {"version": WHOLE, key: _list(items), **others}
    whole = _object(kinds, kinds, () if others else (key,))
    return {"$schema": DRAFT, "title": title, **whole}


def _entries(words: Iterable[str]) -> Schema:
    """Return the schema of constraints or tests: words, or words with arguments."""
    named = {"type": "object", "minProperties": 1}
    return _list({"anyOf": [_choice(words), named]})


def _column(more: Iterable[str] = ()) -> Schema:
    kinds = {
        "name": TEXT,
        "data_type": TEXT,
        "description": TEXT,
        "unit": TEXT,
        "nulls": FLAG,
        "tags": NAME_OR_NAMES,
        "meta": MAPPING,
        "constraints": _entries(("not_null", "unique", "primary_key")),
        "data_tests": _entries(("not_null", "unique")),
        "tests": _entries(("not_null", "unique")),
        contract.FROM: TEXT,
        sources.INSIDE: FLAG,
    }
    return _object((*contract.COLUMN_KEYS, *more), kinds, ("name",))


def _config() -> Schema:
    kinds: dict[str, Schema] = {
        **dict.fromkeys(contract.NUMBERS, NUMBER),
        **dict.fromkeys(contract.FLAGS, FLAG),
        **dict.fromkeys(contract.WORDS, TEXT),
        **dict.fromkeys(contract.MAPPINGS, MAPPING),
        **{key: _choice(values) for key, values in contract.CHOICES.items()},
        "partition_by": NAME_OR_NAMES,
        "tags": NAME_OR_NAMES,
        "check_cols": NAME_OR_NAMES,
        "contract": _object(("enforced",), {"enforced": FLAG}),
    }
    return _object(contract.CONFIG_KEYS, kinds)


def _freshness() -> Schema:
    span = {"anyOf": [TEXT, _object(("count", "period"), {"count": WHOLE, "period": TEXT}, ("count", "period"))]}
    return _object(freshness.KEYS, dict.fromkeys(freshness.KEYS, span))


def _contract(keys: Iterable[str]) -> Schema:
    kinds: dict[str, Schema] = {
        "name": TEXT,
        "description": TEXT,
        "config": _config(),
        "grain": NAME_OR_NAMES,
        "repeats": FLAG,
        "event_time": TEXT,
        "freshness": _freshness(),
        "columns": _list(_column()),
        "meta": MAPPING,
        "docs": MAPPING,
        "group": TEXT,
        "access": _choice(contract.CHOICES["access"]),
    }
    return _object(keys, kinds, ("name",))


def _models() -> Schema:
    tests = _list(_unit_test(declared.TEST_KEYS, declared.GIVEN_KEYS, ("name", "model")))
    return _file("Models", "models", _contract(contract.MODEL_KEYS), {"unit_tests": tests})


def _unit_test(keys: Iterable[str], given_keys: Iterable[str], required: Iterable[str]) -> Schema:
    rows: Schema = {"anyOf": [TEXT, {"type": "array"}, {"type": "null"}]}
    input_kinds: dict[str, Schema] = {
        "input": TEXT,
        "columns": {"type": ["object", "string"]},
        "format": _choice((*declared_rows.FORMATS, "lines")),
        "rows": rows,
        "fixture": TEXT,
    }
    expected: dict[str, Schema] = {
        "rows": rows,
        "format": _choice(declared_rows.FORMATS),
        "fixture": TEXT,
        "columns": MAPPING,
        "quarantined": _list(ROW),
        "changes": _object(("came", "left"), {"came": _list(ROW), "left": _list(ROW)}),
    }
    expect = {"anyOf": [_object(declared_steps.EXPECT_KEYS, expected), {"type": "array"}]}
    later = {"anyOf": [_object((*declared_steps.EXPECT_KEYS, "changes"), expected), {"type": "array"}]}
    change: dict[str, Schema] = {
        "input": TEXT,
        "format": _choice(("dict", "csv")),
        **dict.fromkeys(("came", "left", "updated", "lines"), rows),
    }
    step: dict[str, Schema] = {
        "as_of": TIME,
        "changes": _list(_object(declared_steps.CHANGE_KEYS, change, ("input",))),
        "expect": later,
    }
    kinds: dict[str, Schema] = {
        "name": TEXT,
        "model": TEXT,
        "macro": TEXT,
        "description": TEXT,
        "config": MAPPING,
        "tags": NAME_OR_NAMES,
        "as_of": TIME,
        "overrides": MAPPING,
        "cte": TEXT,
        "sql": TEXT,
        "given": _list(_object(given_keys, input_kinds, ("input",))),
        "expect": expect,
        "then": _list(_object(declared_steps.STEP_KEYS, step)),
    }
    return _object(keys, kinds, required)


def _macros() -> Schema:
    test = _unit_test(declared_macros.TEST_KEYS, declared_macros.GIVEN_KEYS, ("name", "macro", "sql", "expect"))
    return _file("Unit tests of macros", "unit_tests", test)


def _sources() -> Schema:
    csv: dict[str, Schema] = {
        **dict.fromkeys(("delimiter", "quote", "escape", "null", "comment"), TEXT),
        "header": FLAG,
        "encoding": _choice(source_files.ENCODINGS),
    }
    changes: dict[str, Schema] = {
        "format": _choice(source_changes.FORMATS),
        "key": NAME_OR_NAMES,
        "table": TEXT,
        "decimals": _choice(source_changes.DECIMALS),
        "times": {"type": "object", "additionalProperties": TEXT},
        "transactions": TEXT,
    }
    letters: dict[str, Schema] = {"topic": TEXT, "connection": TEXT, "path": TEXT, "pii": FLAG}
    kinds: dict[str, Schema] = {
        **dict.fromkeys(("name", "description", "path", "topic", "topic_pattern", "connection", "files"), TEXT),
        "format": _choice(sources.FORMATS),
        "on_schema_change": _choice(sources.SCHEMA_CHANGES),
        "if_unreadable": _choice(sources.UNREADABLE),
        "columns": _list(_column((contract.FROM, sources.INSIDE))),
        "value_format": _choice(VALUE_FORMATS),
        "tombstones": _choice(("rows", "drop")),
        "start": _choice(("earliest", "latest")),
        "max_offsets_per_tick": WHOLE,
        "drop_where": _list(_object(sources.DROP_KEYS, dict.fromkeys(sources.DROP_KEYS, TEXT), sources.DROP_KEYS)),
        "csv": _object(source_files.CSV_KEYS, csv),
        "document": _choice(source_files.DOCUMENTS),
        "max_document": TEXT,
        "dead_letters": _object(sources.LETTER_KEYS, letters),
        "cdc": _object(source_changes.CDC_KEYS, changes, ("format", "key")),
    }
    table = _object(sources.SOURCE_KEYS, kinds, ("name", "columns"))
    group: dict[str, Schema] = {"name": TEXT, "description": TEXT, "tables": _list(table)}
    return _file("Sources", "sources", _object(sources.GROUP_KEYS, group, ("name", "tables")))


def _snapshots() -> Schema:
    settings: dict[str, Schema] = {
        **dict.fromkeys(("updated_at", "strategy"), TEXT),
        **dict.fromkeys(("unique_key", "check_cols", "tags"), NAME_OR_NAMES),
        "hard_deletes": _choice(contract.CHOICES["hard_deletes"]),
        "invalidate_hard_deletes": FLAG,
        "snapshot_meta_column_names": MAPPING,
    }
    kinds: dict[str, Schema] = {
        **dict.fromkeys(("name", "relation", "description"), TEXT),
        "config": _object(histories.SNAPSHOT_SETTINGS, settings),
    }
    return _file("Snapshots", "snapshots", _object(histories.SNAPSHOT_KEYS, kinds, ("name", "relation", "config")))


def _exposures() -> Schema:
    serve: dict[str, Schema] = {"owned_by": TEXT, "keys": NAME_OR_NAMES}
    config: dict[str, Schema] = {"serve": _object(exposures.SERVE_KEYS, serve), "dashboard": _dashboard()}
    kinds: dict[str, Schema] = {
        **dict.fromkeys(("name", "label", "url", "description"), TEXT),
        "type": _choice(exposures.TYPES),
        "maturity": _choice(exposures.MATURITIES),
        "tags": NAME_OR_NAMES,
        "meta": MAPPING,
        "owner": _object(exposures.OWNER_KEYS, dict.fromkeys(exposures.OWNER_KEYS, TEXT), ("name",)),
        "depends_on": TEXTS,
        "config": _object(exposures.CONFIG_KEYS, config),
    }
    required = ("name", "type", "owner", "depends_on", "description")
    return _file("Exposures", "exposures", _object(exposures.KEYS, kinds, required))


def _dashboard() -> Schema:
    """Return the schema of `dashboard:`; `sqlrun parse` compares its columns with the tables."""
    entity: dict[str, Schema] = {
        **dict.fromkeys(("key", "table", "label", "place", "currency", "time_zone", "name", "plural"), TEXT),
        "noun": WORDS,
    }
    windows: dict[str, Schema] = {"table": TEXT, "hours": TEXT, "of": _list(WHOLE), "label": TEXT}
    ratio: dict[str, Schema] = {"value": TEXT, "per": TEXT, "label": WORDS}
    measure: dict[str, Schema] = {
        **dict.fromkeys(("column", "format", "table", "name"), TEXT),
        "label": WORDS,
        "unit": ANYTHING,
        "trend": FLAG,
        "ratios": _list(_object(dashboards.RATIO_KEYS, ratio, dashboards.RATIO_KEYS)),
    }
    ranked: dict[str, Schema] = {
        **dict.fromkeys(("column", "table", "item", "label", "value", "money", "name"), TEXT),
        "title": WORDS,
        "empty": WORDS,
        "all": _object(dashboards.ALL_KEYS, dict.fromkeys(dashboards.ALL_KEYS, TEXT), ("table", "at")),
    }
    timed = _object(dashboards.TIMED_KEYS, dict.fromkeys(dashboards.TIMED_KEYS, TEXT), dashboards.TIMED_KEYS)
    kinds: dict[str, Schema] = {
        "api": TEXT,
        "title": WORDS,
        "entity": _object(dashboards.ENTITY_KEYS, entity, ("key",)),
        "windows": _object(dashboards.WINDOWS_KEYS, windows, ("table", "hours")),
        "measures": _list({"anyOf": [TEXT, _object(dashboards.MEASURE_KEYS, measure, ("column",))]}),
        "lists": _list(_object(dashboards.LIST_KEYS, ranked, ("item", "value"))),
        "trend": _object(dashboards.TREND_KEYS, dict.fromkeys(dashboards.TREND_KEYS, timed)),
        "compare": NAME_OR_NAMES,
    }
    return _object(dashboards.KEYS, kinds, ("entity", "windows", "measures"))


def _expectations() -> Schema:
    one: dict[str, Schema] = {
        "type": TEXT,
        "kwargs": MAPPING,
        "severity": _choice(SEVERITIES),
        "on_fail": _choice(ON_FAIL),
        "description": TEXT,
        "meta": MAPPING,
    }
    kinds: dict[str, Schema] = {
        "name": TEXT,
        "description": TEXT,
        "expectations": _list(_object(suites.EXPECTATION_KEYS, one, ("type",))),
        "max_quarantined": TEXT_OR_NUMBER,
        "meta": MAPPING,
    }
    return {"$schema": DRAFT, "title": "Expectations", **_object(suites.SUITE_KEYS, kinds, ("expectations",))}


def _profile() -> Schema:
    options = {key for keys in store_options.CONFIG.values() for key in keys} | set(store_options.CLIENT)
    connection = {
        **dict.fromkeys(connections.TEXTS, TEXT),
        **dict.fromkeys(connections.WORDS, TEXT),
    }
    alerts: dict[str, Schema] = {"webhook": TEXT, "command": TEXTS, "timeout": TEXT_OR_NUMBER}
    kinds: dict[str, Schema] = {
        # A value may be a variable of the environment, `${ENGINE}`, so choices are examples only.
        "engine": {**TEXT, "examples": list(profile.ENGINES)},
        "landing": {**TEXT, "examples": list(profile.LANDS)},
        "catalog": {**TEXT, "examples": [profile.SESSION_CATALOG]},
        "delta_writer": {**TEXT, "examples": list(profile.WRITERS)},
        "warehouse": TEXT,
        "storage": _object(sorted(options), dict.fromkeys(options, PLAIN)),
        "settings": MAPPING,
        "alerts": _object(profile.ALERT_KEYS, alerts),
        "connections": {
            "type": ["object", "null"],
            "additionalProperties": _object(connections.KEYS, connection, ("bootstrap",)),
        },
        "current_folders": {"type": ["boolean", "string"]},
        **dict.fromkeys(
            ("threads", "vacuum_every", "keep_ticks", "check_timeout", "statement_timeout", "stop_grace"),
            TEXT_OR_NUMBER,
        ),
    }
    return {"$schema": DRAFT, "title": "A profile", **_object(profile.KEYS, kinds, ("engine", "warehouse"))}


def _selectors() -> Schema:
    kinds: dict[str, Schema] = {
        "name": TEXT,
        "description": TEXT,
        "definition": {"$ref": "#/definitions/choice"},
        "default": FLAG,
    }
    method: dict[str, Schema] = {
        "method": TEXT,
        "value": PLAIN,
        **dict.fromkeys(("parents", "children", "childrens_parents"), FLAG),
        **dict.fromkeys(("parents_depth", "children_depth"), WHOLE),
        "indirect_selection": TEXT,
        "exclude": _list({"$ref": "#/definitions/choice"}),
    }
    several = {"type": "object", "minProperties": 1, "maxProperties": 1}
    choice = {"anyOf": [TEXT, _object(named_selectors.METHOD_KEYS, method, ("method", "value")), several]}
    whole = _file("Named selectors", "selectors", _object(named_selectors.KEYS, kinds, ("name", "definition")))
    return {**whole, "definitions": {"choice": choice}}


def _seeds() -> Schema:
    return _file("Seeds", "seeds", _contract(contract.SEED_KEYS))


_MADE: Mapping[str, Callable[[], Schema]] = {
    "models": _models,
    "sources": _sources,
    "snapshots": _snapshots,
    "exposures": _exposures,
    "seeds": _seeds,
    "macros": _macros,
    "expectations": _expectations,
    "profile": _profile,
    "selectors": _selectors,
}
# Names of files in models/ that aren't contracts.
_SPECIAL = {"_sources.yml": "sources", "_exposures.yml": "exposures"}
_FOLDERS = {
    "models": "models",
    "seeds": "seeds",
    "macros": "macros",
    "expectations": "expectations",
    "profiles": "profile",
    "snapshots": "snapshots",
}


def schemas() -> dict[str, Schema]:
    """Return the schema of each kind of file."""
    return {name: made() for name, made in _MADE.items()}


def files() -> dict[str, str]:
    """Return the texts of the schemas by their paths in a project."""
    return {f"{FOLDER}/{name}.json": json.dumps(schema, indent=1) + "\n" for name, schema in schemas().items()}


def kind_of(file: str) -> str:
    """Return the kind of a project's YAML file, by its path in the project; "" for a file without a schema.

    >>> kind_of("models/marts/sales.yml"), kind_of("models/_sources.yml"), kind_of("selectors.yml"), kind_of("x.yml")
    ('models', 'sources', 'selectors', '')
    """
    path = PurePosixPath(file)
    if path.suffix != ".yml":
        return ""
    if len(path.parts) == 1:
        return "selectors" if file == "selectors.yml" else ""
    if path.parts[0] == "models" and path.name in _SPECIAL:
        return _SPECIAL[path.name]
    return _FOLDERS.get(path.parts[0], "")


def modeline(file: str) -> str:
    """Return the comment that names a file's schema for editors; "" for a file without one.

    >>> modeline("models/marts/sales.yml")
    '# yaml-language-server: $schema=../../.schemas/models.json\\n'
    """
    kind = kind_of(file)
    up = "../" * (len(PurePosixPath(file).parts) - 1)
    return f"# yaml-language-server: $schema={up}{FOLDER}/{kind}.json\n" if kind else ""


def marked(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the files of a new project, each YAML file with the comment that names its schema, and the schemas."""
    return {**{file: modeline(file) + text for file, text in texts.items()}, **files()}
