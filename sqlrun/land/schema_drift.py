"""Schema drift: new, missing and differently typed fields in a source's lines. Pure.

It is computed from the landing table: `_rescued` has new fields, `_absent` names missing ones, and a line with an
invalid value is quarantined with that reason. Reports have names, types and counts, never a value.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlrun.incremental import types
from sqlrun.incremental.algebra import Type
from sqlrun.incremental.landing import fields as landing_fields
from sqlrun.incremental.landing import line_types
from sqlrun.incremental.landing import query as landing_query
from sqlrun.land import change_places
from sqlrun.land.change_places import First, Places
from sqlrun.load.sources import SCHEMA_CHANGES
from sqlrun.project import Column, Source
from sqlrun.runtime.text_table import counted, escaped
from sqlrun.transpile.writer import string

IGNORE, APPEND, FAIL, SYNC = SCHEMA_CHANGES
Kind = Literal["new", "inside", "missing", "changed", "widened"]
WORDS: dict[Kind, str] = {
    "new": "new field",
    "inside": "new fields inside",
    "missing": "missing",
    "changed": "other type",
    "widened": "wider type",
}
INTEGERS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
MISFIT = ": not of type "
# These queries count rows of the landing table's changes, under the name `feed`, in DuckDB.
TOTALS = (
    f"select count(*) filter (where {landing_query.REASON} is distinct from '{landing_query.NO_OBJECT}') as lines,\n"
    f"    count({landing_query.RESCUED}) as rescued, count({landing_query.ABSENT}) as lacking,\n"
    f"    count(*) filter (where contains({landing_query.REASON}, '{MISFIT}')) as misfits\nfrom feed"
)
LACKING = (
    f"select {landing_query.ABSENT} as names, count(*) as lines, min({landing_query.ORIGIN}) as file from feed\n"
    f"where {landing_query.ABSENT} is not null group by 1 order by 1"
)


@dataclass(frozen=True, slots=True)
class Drift:
    """One difference: `declared` and `seen` are types ("" if there is none), `file` is one of the files with it.

    `renamed` is the new field that a missing one may have become. `first`: the first change event of a database with
    it; None for other sources.
    """

    kind: Kind
    field: str
    lines: int
    file: str
    declared: str = ""
    seen: str = ""
    renamed: str = ""
    first: First | None = None


def newest(places: Places, names: Sequence[str]) -> str:
    """Return the query over `whole` of the newest position at which a row has each column, as `c0`, `c1` and so on."""
    has = [f"not coalesce(contains({landing_query.ABSENT}, {_quoted(name)}), false)" for name in names]
    items = [f"max({places.value('position')}) filter (where {each}) as c{n}" for n, each in enumerate(has)]
    return f"select {', '.join(items)} from whole where {places.has_fields()}"


def lacking_since(places: Places, name: str, position: str) -> str:
    """Return the query of the changes after a position that lack a column."""
    return (
        f"select count(*) as lines, min({landing_query.ORIGIN}) as file, min({places.row()}) as first from feed\n"
        f"where contains({landing_query.ABSENT}, {_quoted(name)}) and {places.has_fields()}\n"
        f"    and {places.value('position')} > {string(position, 'duckdb')}"
    )


def _quoted(name: str) -> str:
    return string(json.dumps(name, ensure_ascii=False), "duckdb")


def new_fields(places: Places = change_places.NONE) -> str:
    """Return the query of the numbers of rescued fields, by name and kind of value."""
    fields = f"try_cast(try_cast({landing_query.RESCUED} as json) as map(varchar, json))"
    cells = (
        f"select unnest(map_entries({fields})) as cell, {landing_query.ORIGIN} as file, {places.row()} as first\n"
        f"    from feed where {landing_query.RESCUED} is not null"
    )
    return _kinds(f"select cell.key as field, cell.value as value, file, first from ({cells})", texts=False)


def misfits(places: Places = change_places.NONE) -> str:
    """Return the query of the numbers of values that weren't of their type, by column and kind of value."""
    cells = (
        f"select split_part({landing_query.REASON}, '{MISFIT}', 1) as field,"
        f" {landing_query.RAW} as raw, {landing_query.ORIGIN} as file, {places.row()} as first\n"
        f"    from feed where contains({landing_query.REASON}, '{MISFIT}')"
    )
    value = "try_cast(try_cast(raw as json) as map(varchar, json))[field]"
    return _kinds(f"select field, {value} as value, file, first from ({cells})", texts=True)


def _kinds(cells: str, *, texts: bool) -> str:
    """Return the query of the kinds of values: integers, dates, ...

    With `texts`, a text that looks like a number is one.
    """
    numbers = "json_type(value) not in ('VARCHAR', 'BOOLEAN', 'ARRAY', 'OBJECT')" if not texts else "true"
    return f"""\
select field, kind, count(*) as lines, min(file) as file, min(first) as first,
    max(length(ltrim(split_part(said, '.', 1), '+-'))) as whole,
    max(length(split_part(said, '.', 2))) as fraction,
    min(case when kind = 'whole' then try_cast(said as hugeint) end) as least,
    max(case when kind = 'whole' then try_cast(said as hugeint) end) as greatest
from (
    select field, file, first, said,
        case when value is null or json_type(value) = 'NULL' then 'null'
            when json_type(value) = 'BOOLEAN' then 'boolean'
            when json_type(value) in ('ARRAY', 'OBJECT') then 'string'
            when {numbers} and regexp_full_match(said, '[+-]?[0-9]+') then 'whole'
            when {numbers} and regexp_full_match(said, '[+-]?[0-9]+[.][0-9]+') then 'fraction'
            when json_type(value) not in ('VARCHAR') then 'double'
            when regexp_full_match(said, '{line_types.FORMS["date"]}') then 'date'
            when regexp_full_match(said, '{line_types.FORMS["timestamp"]}') then 'timestamp'
            else 'string' end as kind
    from (select *, value ->> '$' as said from ({cells}))
)
group by field, kind order by field, kind"""


def found(
    source: Source,
    missing: Mapping[str, Mapping[str, Any]],
    fields: Sequence[Mapping[str, Any]],
    misfit: Sequence[Mapping[str, Any]],
) -> tuple[Drift, ...]:
    """Return the differences from the counts of the queries; `missing` has those of each missing column."""
    columns = {c.name: c for c in source.columns}
    drifts: list[Drift] = []
    for name, counts in _by_field(fields).items():
        total, file, first = _together(counts)
        if name not in columns:
            drifts.append(Drift("new", name, total, file, seen=_seen(counts), first=first))
        elif "struct<" in columns[name].type:
            drifts.append(Drift("inside", name, total, file, columns[name].type, first=first))
    for name in filter(missing.__contains__, columns):
        total, file, first = _together([missing[name]])
        renamed = _renamed(columns[name], drifts)
        drifts.append(Drift("missing", name, total, file, columns[name].type, renamed=renamed, first=first))
    types_of = _declared_types(columns.values()) if misfit else {}
    drifts += [
        _misfit(columns.get(name), name, types_of.get(name, ""), counts) for name, counts in _by_field(misfit).items()
    ]
    return tuple(drifts)


def names_of(lacking: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the lines that lack each column: their number, and one of the files."""
    absent: dict[str, dict[str, Any]] = {}
    for row in lacking:
        for name in json.loads(f"[{row['names']}]"):
            each = absent.setdefault(name, {"lines": 0, "file": row["file"]})
            each["lines"] += row["lines"]
    return absent


def _together(counts: Sequence[Mapping[str, Any]]) -> tuple[int, str, First | None]:
    """Return the number of lines, one of the files, and the first change event."""
    first = change_places.earliest([change_places.found(count.get("first")) for count in counts])
    return sum(count["lines"] for count in counts), min(count["file"] for count in counts), first


def _by_field(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    fields: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        fields.setdefault(row["field"], []).append(row)
    return fields


def _declared_types(columns: Iterable[Column]) -> dict[str, str]:
    """Return the declared types of all fields, also of those inside columns, by the names that reasons have."""
    reasons = (reason for column in columns for reason, _ in landing_fields.faults(column, "duckdb"))
    return {name: kind for name, is_misfit, kind in (reason.partition(MISFIT) for reason in reasons) if is_misfit}


def _misfit(column: Column | None, name: str, declared: str, counts: list[Mapping[str, Any]]) -> Drift:
    """Return the drift of a field's type: widened if more digits are enough, changed otherwise.

    `column` None: a field inside a column, whose values aren't examined.
    """
    total, file, first = _together(counts)
    if column is None:
        return Drift("changed", name, total, file, declared, first=first)
    seen = _seen(counts)
    both = union(column.type, seen)
    wider = _digits(column.type) is not None and _digits(both) is not None
    return Drift("widened" if wider else "changed", name, total, file, column.type, both, first=first)


def _renamed(column: Column, drifts: Iterable[Drift]) -> str:
    """Return the name of a new field whose values fit a missing column; "" if there is none."""
    return next((d.field for d in drifts if d.kind == "new" and union(column.type, d.seen) == column.type), "")


def _seen(counts: Sequence[Mapping[str, Any]]) -> str:
    """Return the narrowest type that holds all the counted values."""
    kind, fractions = "", any(count["kind"] == "fraction" for count in counts)
    for count in counts:
        match count["kind"]:
            case "null":
                continue
            case "whole":
                integer = _whole(count["least"], count["greatest"], count["whole"])
                one = _decimal(count["whole"], 0) if fractions else integer
            case "fraction":
                one = _decimal(count["whole"], count["fraction"])
            case other:
                one = str(other)
        kind = union(kind, one)
    return kind or "string"


def _whole(least: int | None, greatest: int | None, digits: int) -> str:
    for name, bits in (("int", 31), ("bigint", 63)):
        if least is not None and greatest is not None and -(2**bits) <= least and greatest < 2**bits and digits < 39:
            return name
    return _decimal(digits, 0)


def _decimal(whole: int, fraction: int) -> str:
    return f"decimal({whole + fraction},{fraction})" if whole + fraction <= 38 else "double"


def _digits(kind: str) -> tuple[int, int] | None:
    """Return the number of digits before and after the point of a number's type; None for other types."""
    if kind in INTEGERS:
        return INTEGERS[kind], 0
    parsed = types.parse(kind)
    size = types.decimal(Type(types.text(parsed))) if parsed is not None and kind.startswith("decimal") else None
    return (size[0] - size[1], size[1]) if size else None


def union(one: str, two: str) -> str:
    """Return the narrowest type that holds the values of both.

    >>> union("int", "bigint"), union("decimal(4,2)", "int"), union("date", "timestamp"), union("int", "date")
    ('bigint', 'decimal(12,2)', 'timestamp', 'string')
    """
    if not one or not two or one == two:
        return one or two
    first, second = _digits(one), _digits(two)
    if first and second:
        if one in INTEGERS and two in INTEGERS:
            return max(one, two, key=lambda kind: INTEGERS[kind])
        return _decimal(max(first[0], second[0]), max(first[1], second[1]))
    if {one, two} == {"date", "timestamp"}:
        return "timestamp"
    if "double" in (one, two) and (first or second):
        return "double"
    return "string"


def message(source: Source, model: str, drifts: Sequence[Drift]) -> str:
    """Return the note of a build about drift; "" if the source's setting ignores it."""
    is_renamed = any(d.renamed for d in drifts)
    worth = [d for d in drifts if d.kind != "missing" or d.renamed or source.on_schema_change == SYNC]
    if not worth:
        return ""
    advice = "Declare the fields" if source.on_schema_change == IGNORE else "`sqlrun drift --write` declares the fields"
    if all(d.kind == "changed" for d in worth):
        advice = "Correct the values in the source, or the types"
    kept = (
        f". The fields are in {model}__rescued: sqlrun show {model}__rescued"
        if is_renamed or any(d.kind == "new" for d in worth)
        else ""
    )
    return f"SR601 {source.group}.{source.name}: {listed(worth)}. {advice} in {source.place.file}{kept}"


def refusal(source: Source, drifts: Sequence[Drift]) -> str:
    """Return why a tick isn't published, for a source with `on_schema_change: fail`."""
    return (
        f"SR602 the lines of source {source.group}.{source.name} differ from {source.place.file}, which sets "
        f"`on_schema_change: fail`: {listed(drifts)}. The lines have landed, and none is lost. Declare the "
        "changes, by hand or with `sqlrun drift --write`, or set `on_schema_change: ignore`. Then build again."
    )


def listed(drifts: Iterable[Drift]) -> str:
    """Return differences in a row.

    >>> listed([Drift("new", "tip", 2, "3.jsonl", seen="int")])
    'new field tip int (2 lines, as in 3.jsonl)'
    """
    # Fields and files may have line breaks, which would look like lines of sqlrun's own.
    return "; ".join(escaped(_sentence(drift)) for drift in drifts)


def _sentence(drift: Drift) -> str:
    count = f"{counted(drift.lines, 'line')}, as in {drift.file}"
    if drift.first is not None:
        count += f", first in {drift.first}"
    match drift.kind:
        case "new" | "inside":
            return f"{WORDS[drift.kind]} {drift.field}{' ' + drift.seen if drift.seen else ''} ({count})"
        case "missing":
            maybe = f", renamed to {drift.renamed}?" if drift.renamed else ""
            return f"{drift.field} is missing in {'all ' if drift.first is None else ''}{count}{maybe}"
        case _:
            seen = f": {drift.seen} would fit" if drift.seen else ""
            return f"{drift.field} is not of type {drift.declared} ({count}){seen}"
