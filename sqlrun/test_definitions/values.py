"""YAML values as DuckDB's literals of Spark SQL's types, and values of results as text. Pure."""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache

from sqlglot import exp

from sqlrun.incremental import types
from sqlrun.transpile.writer import string, type_name


def literal(value: object, kind: exp.DataType | None) -> str:
    """Return a YAML value as a DuckDB literal of a Spark SQL type.

    >>> literal("1.50", types.parse("decimal(10,2)"))
    "cast('1.50' as DECIMAL(10, 2))"
    """
    assert kind is not None
    name = _name(kind)
    match value:
        case None:
            return f"cast(null as {name})"
        case list() | tuple() if kind.expressions:
            return f"cast([{', '.join(literal(v, kind.expressions[0]) for v in value)}] as {name})"
        case dict() if kind.this == exp.DataType.Type.MAP:
            key, item = kind.expressions
            keys = ", ".join(literal(k, key) for k in value)
            items = ", ".join(literal(v, item) for v in value.values())
            return f"cast(map([{keys}], [{items}]) as {name})"
        case dict():
            fields = {f.name: f.args["kind"] for f in kind.expressions}
            unknown = sorted(set(value) - set(fields))
            if unknown:
                raise ValueError(f"unknown field `{unknown[0]}` of a struct. Fields: {', '.join(fields)}")
            items = ", ".join(f"{string(n, 'duckdb')}: {literal(value.get(n), k)}" for n, k in fields.items())
            return f"{{{items}}}"
        case bool():
            return str(value).lower()
        case Decimal():
            return f"cast('{value:f}' as {name})"
        case _:
            return f"cast({string(str(value), 'duckdb')} as {name})"


@lru_cache(1024)  # there are few types
def _name(kind: exp.DataType) -> str:
    return type_name(types.text(kind), "duckdb")


def shown(value: object) -> str:
    """Return a value of a result as text; equal values have equal texts."""
    match value:
        case None:
            return "NULL"
        case "NULL":
            return "'NULL'"
        case dict():
            return "{" + ", ".join(f"{k}: {shown(v)}" for k, v in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(shown(v) for v in value) + "]"
        case bool():
            return str(value).lower()
        case float():
            return f"{value:.12g}"
        case _ if hasattr(value, "strftime") and hasattr(value, "hour"):
            return str(value.strftime("%Y-%m-%d %H:%M:%S.%f")).removesuffix(".000000")
        case _:
            return str(value)
