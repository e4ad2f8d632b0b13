"""The sources whose lines are made up: that of the reference project, two that nest, one with each type."""

from __future__ import annotations

from functools import cache

from sqlrun.engine_api import Dialect
from sqlrun.errors import Place
from sqlrun.incremental.landing import query as landing_query
from sqlrun.project import Column, Source
from tests.support import nested_lines, projects

HERE = Place("_sources.yml")
EACH_TYPE = {
    "text": "string",
    "tiny": "tinyint",
    "small": "smallint",
    "whole": "int",
    "big": "bigint",
    "yes": "boolean",
    "wide": "double",
    "half": "float",
    "on_day": "date",
    "at": "timestamp",
    "price": "decimal(10,2)",
    "exact": "decimal(38,18)",
    "share": "decimal(4,4)",
    "count": "decimal(5)",
    "words": "array<string>",
    "more_words": "array<array<string>>",
    "note": "struct<said:string,by:struct<name:string,born:date>>",
}
# Types of columns whose fields and elements may be NULL.
INSIDE = {
    "data": "struct<id:bigint not null,name:string,at:timestamp,price:decimal(10,2)>",
    "old": "struct<id:bigint,name:string>",
    "box": "struct<lid:struct<red:boolean not null,by:string>,size:struct<w:int,h:int> not null,tags:array<string>>",
    "grid": "array<array<int>>",
    "stops": "array<struct<at:date not null,parts:array<struct<n:bigint,ok:boolean not null>>,to:struct<x:float>>>",
    "must": "struct<a:int,b:array<string> not null>",
}
SOURCES = ("orders", "nested", "each_type", "inside")


@cache
def sources() -> dict[str, Source]:
    """Give the sources by name."""
    model = next(m for m in projects.prepared(projects.ROOT).workspace.tables if m.source is not None)
    assert model.source is not None
    columns = tuple(Column(n, k, "It.", HERE, nullable=n != "text") for n, k in EACH_TYPE.items())
    each = Source("a", "each_type", "json", "data", columns, "It.", HERE)
    within = tuple(
        Column(n, k.replace(" not null", ""), "It.", HERE, nullable=n != "must", inside=k) for n, k in INSIDE.items()
    )
    inside = Source("a", "inside", "json", "data", within, "It.", HERE)
    return dict(zip(SOURCES, (model.source, nested_lines.SOURCE, each, inside), strict=True))


def judging(source: Source, dialect: Dialect) -> str:
    """Write the part of the landing query that judges `lines(value, file)`, as it stands there."""
    names = ", ".join(f'"{c.name}"' if dialect == "duckdb" else f"`{c.name}`" for c in source.columns)
    parts = ", ".join(f"{name} as ({text})" for name, text in landing_query._typed_parts(source, dialect))
    parsed = f"_parsed as ({landing_query._parsed(source, dialect)})"
    hidden = f"{landing_query.REASON}, _raw, {landing_query.RESCUED}, {landing_query.ABSENT}"
    return f"with {parsed}, {parts} select {hidden}, {names} from _typed"
