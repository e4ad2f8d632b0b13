"""Lines with fields in nested arrays and structs, and the fault of each, on both engines."""

from __future__ import annotations

import json
from typing import Any

from sqlrun.engine_api import Dialect
from sqlrun.errors import Place
from sqlrun.incremental.landing import query as landing_query
from sqlrun.project import Column, Source
from sqlrun.transpile import writer as sql

FIELDS = {
    "id": "int",
    "grid": "array<array<int>>",
    "size": "struct<w:int,h:struct<cm:decimal(4, 1),by:string>>",
    "stops": "array<struct<at:timestamp,parts:array<struct<n:bigint,ok:boolean>>>>",
    "note": "string",
    "box": "struct<w:int,lid:struct<red:boolean>>",
}
HERE = Place("_sources.yml")
OPTIONAL = ("note", "grid", "box")
COLUMNS = tuple(Column(n, k, "It.", HERE, nullable=n in OPTIONAL) for n, k in FIELDS.items())
SOURCE = Source("a", "b", "json", "data", COLUMNS, "It.", HERE)
STOP = {"at": "2026-01-10T10:00:00Z", "parts": [{"n": 1, "ok": True}, {"n": 2, "ok": False}]}
GOOD = {"id": 1, "grid": [[1, 2], [3]], "size": {"w": 1, "h": {"cm": 2.5, "by": "x"}}, "stops": [STOP], "note": "n"}


def _line(**fields: Any) -> str:
    return json.dumps({**GOOD, **fields})


def _size(**inner: Any) -> dict[str, Any]:
    return {"size": {"w": 1, "h": {"cm": 2.5, "by": "x"}, **inner}}


def _stop(**inner: Any) -> dict[str, Any]:
    return {"stops": [STOP, {**STOP, **inner}]}


def _part(**inner: Any) -> dict[str, Any]:
    return _stop(parts=[STOP["parts"][0], {"n": 3, "ok": True, **inner}])


# The line, and its fault.
LINES: dict[str, tuple[str, str | None]] = {
    "good": (json.dumps(GOOD), None),
    "nothing inside": (_line(grid=[], stops=[], note=None), None),
    "nothing inside of what is inside": (_line(grid=[[], []], **_stop(parts=[])), None),
    "what may be missing is": (_line(grid=None, note=None), None),
    "a struct that may be missing is": (_line(box=None), None),
    "a struct that may be missing is whole": (_line(box={"w": 1, "lid": {"red": True}}), None),
    "a struct that may be missing lacks a field": (_line(box={"lid": {"red": True}}), "box.w: missing"),
    "a struct that may be missing lacks all fields": (_line(box={}), "box.w: missing"),
    "a struct that may be missing has a word": (_line(box={"w": "x", "lid": {"red": True}}), "box.w: not of type int"),
    "a struct that may be missing lacks a struct": (_line(box={"w": 1}), "box.lid.red: missing"),
    "a number instead of a struct that may be missing": (_line(box=5), "not a JSON object"),
    "a text instead of a struct that may be missing": (_line(box="null"), "not a JSON object"),
    "an array instead of a struct that may be missing": (_line(box=[{"w": 1}]), "not a JSON object"),
    "a number instead of a struct": (_line(size=5), "not a JSON object"),
    "no number": (_line(id="x"), "id: not of type int"),
    "nothing": (_line(id=None), "id: missing"),
    "an array in an array is missing": (_line(grid=[[1], None]), "grid: an element is missing"),
    "a number in an array in an array is missing": (_line(grid=[[1], [2, None]]), "grid[]: an element is missing"),
    "a word in an array in an array": (_line(grid=[[1], [2, "x"], []]), "grid[][]: not of type int"),
    "too large in an array in an array": (_line(grid=[[99999999999]]), "grid[][]: not of type int"),
    "no struct": (_line(size=None), "size: missing"),
    "a field of a struct is missing": (_line(**_size(w=None)), "size.w: missing"),
    "a word in a struct": (_line(**_size(w="x")), "size.w: not of type int"),
    "a struct of a struct is missing": (_line(**_size(h=None)), "size.h.cm: missing"),
    "too many digits in a struct of a struct": (
        _line(**_size(h={"cm": 2.55, "by": "x"})), "size.h.cm: not of type decimal(4, 1)",
    ),
    "no text in a struct of a struct": (_line(**_size(h={"cm": 2, "by": None})), "size.h.by: missing"),
    "a struct in an array is missing": (_line(stops=[STOP, None]), "stops: an element is missing"),
    "no time in a struct in an array": (_line(**_stop(at=None)), "stops[].at: missing"),
    "another time in a struct in an array": (_line(**_stop(at="noon")), "stops[].at: not of type timestamp"),
    "no array in a struct in an array": (_line(**_stop(parts=None)), "stops[].parts: missing"),
    "a struct in an array in one is missing": (_line(**_stop(parts=[None])), "stops[].parts: an element is missing"),
    "a number in an array in one is missing": (_line(**_part(n=None)), "stops[].parts[].n: missing"),
    "a word in an array in one": (_line(**_part(n="x")), "stops[].parts[].n: not of type bigint"),
    "neither true nor false in one": (_line(**_part(ok="yes")), "stops[].parts[].ok: not of type boolean"),
    "the first of two faults counts": (_line(**_part(n="x", ok="yes")), "stops[].parts[].n: not of type bigint"),
    "one missing, another wrong": (
        _line(**_stop(parts=[{"n": None, "ok": True}, {"n": "x", "ok": True}])), "stops[].parts[].n: missing",
    ),
}  # fmt: skip


def judged(dialect: Dialect) -> str:
    """Return a query for the name of each line and its fault."""
    values = " union all ".join(
        f"select {sql.string(line, dialect)} as value, {sql.string(name, dialect)} as file"
        for name, (line, _) in LINES.items()
    )
    parts = ", ".join(f"{name} as ({text})" for name, text in landing_query._typed_parts(SOURCE, dialect))
    parsed = f"_parsed as ({landing_query._parsed(SOURCE, dialect)})"
    return f"with lines as ({values}), {parsed}, {parts} select _file, {landing_query.REASON} from _typed"
