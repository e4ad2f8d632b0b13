"""Rows of a unit test as a SELECT of Spark SQL literals. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from sqlrun.parse.type_check import declared_type
from sqlrun.project import Row
from sqlrun.transpile.spark_types import Kind
from sqlrun.transpile.writer import identifier, string


def select_of(rows: tuple[Row, ...], types: Mapping[str, str]) -> str:
    """Return rows as a SELECT; a column that a row lacks is NULL.

    >>> select_of(({"id": 1},), {"id": "int"}), select_of((), {"id": "int"})
    ("select cast('1' as int) as `id`", 'select cast(null as int) as `id` where false')
    """
    parts = [f"select {_items(row, types)}" for row in rows]
    return " union all ".join(parts) or f"select {_items({}, types)} where false"


def _items(row: Row, types: Mapping[str, str]) -> str:
    return ", ".join(
        f"{literal(row.get(name), declared_type(kind))} as {identifier(name, 'spark')}" for name, kind in types.items()
    )


def literal(value: object, kind: Kind | None) -> str:
    """Return a literal of a type for a value that has this type.

    >>> from sqlrun.transpile import spark_types
    >>> literal([1], spark_types.array(spark_types.INT))
    "cast(array(cast('1' as int)) as array<int>)"
    """
    assert kind is not None
    match value:
        case None:
            return f"cast(null as {kind})"
        case list() | tuple():
            text = f"array({', '.join(literal(item, kind.parts[0]) for item in value)})"
        case Mapping() if kind.name == "map":
            keys = f"array({', '.join(literal(key, kind.parts[0]) for key in value)})"
            values = f"array({', '.join(literal(item, kind.parts[1]) for item in value.values())})"
            text = f"map_from_arrays({keys}, {values})"
        case Mapping():
            named = zip(kind.fields, kind.parts, strict=True)
            return (
                "struct(" + ", ".join(f"{literal(value.get(n), k)} as {identifier(n, 'spark')}" for n, k in named) + ")"
            )
        case bool():
            text = f"'{str(value).lower()}'"
        case Decimal():
            text = f"'{value:f}'"
        case _:
            text = string(str(value), "spark")
    return f"cast({text} as {kind})"
