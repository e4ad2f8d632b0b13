"""YAML values to contracts of models and seeds. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sqlrun.errors import Place
from sqlrun.load import freshness
from sqlrun.load.constraints import of_tables, promises, unique_columns
from sqlrun.load.forbidden_names import ANOTHER, column_fault, is_own
from sqlrun.load.yaml_reader import Reader, did_you_mean, plain, spelled
from sqlrun.project import NEW_RECORD, NOWHERE, Column, Config, Freshness, Said

# Words for people and tools, beside `config` or inside of it, as in dbt.
WORDS_OF_DBT = ("meta", "docs", "group", "access")
MODEL_KEYS = (
    "name", "description", "config", "grain", "repeats", "event_time", "freshness", "columns", *WORDS_OF_DBT,
)  # fmt: skip
SEED_KEYS = ("name", "description", "grain", "columns", "meta")
# Names of fields in a type: in backticks, or before a colon.
_FIELD_NAMES = re.compile(r"(`(?:[^`]|``)*`|\b\w+(?=\s*:))")
# Key of a source's column: what its value is taken from instead of a field of the line.
FROM = "from"
COLUMN_KEYS = (
    "name", "data_type", "description", "unit", "nulls", "tags", "meta", "constraints", "data_tests", "tests",
)  # fmt: skip
CONFIG_KEYS = (
    "materialized", "partition_by", "at_worst", "tags", "max_read_amplification", "contract", "anomalies", "checks",
    "readable_by", "updated_at", "check_cols", "hard_deletes", "enabled", "alias", *WORDS_OF_DBT,
)  # fmt: skip
# Keys with a number of at least 1.
NUMBERS = ("max_read_amplification",)
FLAGS = ("anomalies", "enabled")
# Keys with one name.
WORDS = ("updated_at", "group", "alias")
# Keys with any mapping.
MAPPINGS = ("meta", "docs")
CHOICES = {
    "materialized": ("table", "view", "history"),
    "at_worst": ("append", "merge", "keys", "partitions", "full"),
    "checks": ("auto", "great_expectations"),
    "readable_by": ("spark", "duckdb", "polars", "pandas", "pyarrow", "any"),
    "hard_deletes": ("invalidate", "ignore", NEW_RECORD),
    "access": ("protected", "private", "public"),
}
# Names that the compiler derives from a model `x`: `x__new`, `x__state_1`, ...
TAKEN = re.compile("__(new|old|changes|quarantine|rescued|state_[0-9]+)$", re.IGNORECASE)


# A column that makes a contract open.
UNTYPED = Column("", "", "", NOWHERE)


@dataclass(frozen=True, slots=True)
class Contract:
    """The YAML of a model or a seed, before it is joined to its SQL or CSV."""

    name: str
    description: str
    grain: tuple[str, ...]
    repeats: bool
    columns: tuple[Column, ...]
    config: Mapping[str, object]
    event_time: str = ""
    freshness: Freshness | None = None
    said: tuple[Said, ...] = ()
    is_open: bool = False
    place: Place = NOWHERE
    meta: str = ""


def contract(reader: Reader, node: Any, place: Place, *, is_seed: bool = False) -> Contract:
    """Return the contract in one entry of `models:` or `seeds:`; a seed has no `config:`.

    A model's contract is open if it has no columns, or one without a type.
    """
    name = reader.text(node, "name")
    grain = reader.texts(node, "grain")
    if not grain and len(unique := unique_columns(reader, node)) == 1:
        grain = unique  # the grain is what makes rows unique
    what = f"`{name}`" if name else "the contract"
    found = columns(reader, node, what, grain, is_typed=is_seed, is_query=not is_seed)
    is_open = not is_seed and not all(column.type for column in found or [UNTYPED])
    config = {} if is_seed else config_values(reader, node)
    meta = mapping_text(reader, node, "meta") if is_seed else ""
    for column in found:
        if is_own(column.name):
            reader.problem(
                "SR738", column.place, f"the column name `{column.name}` is reserved for sqlrun", "Choose another name."
            )
    if not is_open:
        if node.get("grain") is not None:  # else it follows from a column that is unique
            _known_columns(reader, node, "grain", grain, found, name)
        partition_by = reader.texts(node.get("config"), "partition_by") if "partition_by" in config else ()
        _known_columns(reader, node.get("config"), "partition_by", partition_by, found, name)
    repeats = reader.flag(node, "repeats", False)
    at = reader.text(node, "event_time") if is_open else freshness.event_time(reader, node, found, name)
    names = [column.name for column in found]
    grain = tuple(spelled(each, names) if is_seed else each.lower() for each in grain)
    fresh = freshness.freshness(reader, node)
    said = of_tables(reader, node)
    return Contract(
        name=name,
        description=reader.words(node),
        grain=grain,
        repeats=repeats,
        columns=found,
        config=config,
        event_time=at if is_seed else at.lower(),
        freshness=fresh,
        said=said,
        is_open=is_open,
        place=place,
        meta=meta,
    )


def _known_columns(
    reader: Reader, node: Any, key: str, wanted: tuple[str, ...], found: tuple[Column, ...], what: str
) -> None:
    names = [column.name for column in found]
    for index, name in enumerate(wanted):
        value = node[key]
        place = reader.place(value, index) if isinstance(value, list) else reader.value_place(node, key)
        if name.lower() in {before.lower() for before in wanted[:index]}:
            reader.problem("SR109", place, f"`{key}` lists `{name}` twice", "Remove one of them.")
        elif names and spelled(name, names) not in names:
            hint = f"Columns: {', '.join(names)}.{did_you_mean(name, names)}"
            reader.problem("SR108", place, f"unknown column `{name}` in `{key}` of `{what}`", hint)


def columns(
    reader: Reader,
    node: Any,
    what: str,
    grain: tuple[str, ...] = (),
    more_keys: tuple[str, ...] = (),
    *,
    is_typed: bool = True,
    is_query: bool = False,
) -> tuple[Column, ...]:
    """Return the columns of `columns:`; each needs a name, and a data_type if `is_typed`. A missing type is "".

    `more_keys` are allowed in addition to those of a model's column. The names of a query's columns are in lower case,
    as parsed queries have them.
    """
    found: list[Column] = []
    names: set[str] = set()
    for item, place in reader.items(node, "columns", what):
        keys = (*COLUMN_KEYS, *more_keys)
        item = reader.mapping(
            item, place, f"a column of {what}", keys, ("name", "data_type") if is_typed else ("name",)
        )
        written, name = item.get("name"), reader.text(item, "name")
        if not name and not isinstance(written, str):
            continue
        fault = column_fault(written if isinstance(written, str) else name)
        if fault:
            reader.problem("SR738", reader.value_place(item, "name"), f"the column name {fault}", ANOTHER)
        if not name:
            continue
        if name.lower() in names:
            hint = "Remove one of them. Column names are case-insensitive."
            reader.problem("SR109", place, f"duplicate column `{name}` in {what}", hint)
            continue
        names.add(name.lower())
        if is_query:
            name = name.lower()
        words, checks = promises(reader, item, name, grain)
        nullable = reader.flag(item, "nulls", True) and "not_null" not in words
        kind = type_text(reader.text(item, "data_type", "string" if is_typed else ""))
        unit, description = reader.text(item, "unit"), reader.words(item)
        found.append(
            Column(
                name=name,
                type=kind,
                description=description,
                place=place,
                unit=unit,
                nullable=nullable,
                tags=reader.texts(item, "tags"),
                promises=checks,
                comes_from=reader.text(item, FROM) if FROM in more_keys else "",
                meta=mapping_text(reader, item, "meta"),
            )
        )
    return tuple(found)


def type_text(written: str) -> str:
    """Return a type in normal form: without blanks, and in lower case except for names of fields.

    >>> type_text("ARRAY< STRUCT<itemId : STRING, `a: B`: Decimal(10, 2)> >")
    'array<struct<itemId:string,`a: B`:decimal(10,2)>>'
    """
    parts = _FIELD_NAMES.split(" ".join(written.split()))
    parts[::2] = [re.sub(r"\s*([(),<>:])\s*", r"\1", part.lower()) for part in parts[::2]]  # between the names
    return "".join(parts).strip()


def unchecked(reader: Reader, found: tuple[Column, ...], what: str) -> None:
    """Record a problem for each promise of a column whose rows no check reads."""
    for column in found:
        for one in column.promises:
            hint = "Put the check on the model that reads it."
            reader.problem("SR110", one.place, f"`data_tests` don't run on a column of {what}", hint)


def config_values(reader: Reader, node: Any) -> dict[str, object]:
    """Return the values of a `config:` mapping for `configured`, with the words beside it, which come first."""
    found: dict[str, object] = _values(reader, node, WORDS_OF_DBT)
    raw = node.get("config")
    if raw is None:
        return found
    inner = _values(
        reader, reader.mapping(raw, reader.value_place(node, "config"), "`config`", CONFIG_KEYS), CONFIG_KEYS
    )
    meta = joined(found.get("meta"), inner.get("meta"))
    return {**found, **inner, **({"meta": meta} if meta else {})}


def mapping_text(reader: Reader, node: Any, key: str) -> str:
    """Return the JSON of a mapping under a key; "" if there is none."""
    value = node.get(key) if isinstance(node, Mapping) else None
    if value is None:
        return ""
    if not isinstance(value, Mapping):
        reader.problem("SR103", reader.value_place(node, key), f"`{key}` must be a mapping", f"{key}: {{owner: sales}}")
        return ""
    return json_of(plain(value))


def json_of(value: Any) -> str:
    """Return a value as JSON; a decimal is a number, a date a text."""
    return json.dumps(value, default=lambda other: float(other) if isinstance(other, Decimal) else str(other))


def joined(*mappings: object) -> str:
    """Return mappings, as JSON, as one; later values win.

    >>> joined('{"a": 1, "b": 1}', "", '{"b": 2}')
    '{"a": 1, "b": 2}'
    """
    found: dict[str, object] = {}
    for text in mappings:
        found |= json.loads(str(text)) if text else {}
    return json.dumps(found) if found else ""


def _values(reader: Reader, raw: Any, known: Iterable[str]) -> dict[str, object]:
    values: dict[str, object] = {}
    for key in known:
        if key in raw and key in CHOICES:
            values[key] = reader.choice(raw, key, CHOICES[key], CHOICES[key][0])
        elif key in raw and key in FLAGS:
            values[key] = reader.flag(raw, key, True)
        elif key in raw and key in WORDS:
            values[key] = reader.text(raw, key)
        elif key in raw and key in MAPPINGS:
            values[key] = mapping_text(reader, raw, key)
        elif key in raw and key in NUMBERS:
            if is_number(raw[key]):
                values[key] = float(raw[key])
            else:
                place, message = reader.value_place(raw, key), f"invalid `{key}`: `{raw[key]}`"
                reader.problem("SR110", place, message, f"Write a number, 1 or greater: {key}: 20")
        elif key == "contract" and key in raw:
            inner = reader.mapping(raw[key], reader.value_place(raw, key), "`contract`", ("enforced",), ("enforced",))
            values["enforced"] = reader.flag(inner, "enforced", False)
        elif key in raw:
            values[key] = reader.texts(raw, key)
    return values


def is_number(value: object) -> bool:
    """Return whether a setting is a number of at least 1."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 1


def enforced(value: object) -> bool | None:
    """Return the value of dbt's `{enforced: true}` outside YAML; None for another form."""
    found = value.get("enforced") if isinstance(value, Mapping) and len(value) == 1 else None
    return found if isinstance(found, bool) else None


def configured(*layers: Mapping[str, Any]) -> Config:
    """Return merged settings: later layers win, tags and the keys of `meta` are added up.

    >>> configured({"materialized": "view", "tags": ("a",)}, {"tags": ("b",)}).tags
    ('a', 'b')
    """
    merged: dict[str, Any] = {}
    tags: list[str] = []
    meta = joined(*(layer.get("meta") for layer in layers))
    for layer in layers:
        tags.extend(layer.get("tags", ()))
        merged.update(layer)
    return Config(
        materialized=merged.get("materialized", "table"),
        partition_by=tuple(name.lower() for name in merged.get("partition_by", ())),
        at_worst=merged.get("at_worst", "full"),
        tags=tuple(dict.fromkeys(tags)),
        max_read_amplification=merged.get("max_read_amplification"),
        enforced=merged.get("enforced", False),
        anomalies=merged.get("anomalies", True),
        checks=merged.get("checks", "auto"),
        readable_by=merged.get("readable_by", "spark"),
        updated_at=merged.get("updated_at", "").lower(),
        # dbt writes `check_cols: all`.
        check_cols=() if (cols := tuple(name.lower() for name in merged.get("check_cols", ()))) == ("all",) else cols,
        hard_deletes=merged.get("hard_deletes", "invalidate"),
        enabled=merged.get("enabled", True),
        meta=meta,
        **{key: merged.get(key, "") for key in ("docs", "group", "access", "alias")},
    )


def check_name(reader: Reader, node: Any, what: str) -> None:
    """Record a problem for a name in YAML that can't be a table's."""
    name = reader.text(node, "name")
    if name and bad_name(name):
        reader.problem("SR116", reader.value_place(node, "name"), f"invalid name `{name}` for {what}", bad_name(name))


def bad_name(name: str) -> str:
    """Return what is wrong with the name of a model, seed, source or macro; "" for a valid one.

    >>> bad_name("orders"), bad_name("orders-2")
    ('', 'Use letters, digits and `_` only, and begin with a letter.')
    """
    if not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name):
        return "Use letters, digits and `_` only, and begin with a letter."
    taken = TAKEN.search(name)
    return f"Choose another name: the ending {taken[0].lower()} is reserved for sqlrun." if taken else ""


def skeleton(name: str, columns_of: Iterable[str] = ("id",)) -> str:
    """Return the smallest contract that a model needs."""
    names = tuple(columns_of)
    lines = ["models:", f"  - name: {name}", "    description: What one row represents.", f"    grain: [{names[0]}]"]
    lines.append("    columns:")
    lines += [f'      - {{name: {c}, data_type: string, description: "What it is, and its unit."}}' for c in names]
    return "\n".join(lines)
