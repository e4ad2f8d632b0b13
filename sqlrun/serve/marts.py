"""SQL for rows of a mart that an exposure serves: one SELECT of declared columns, with values as literals. Pure."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Mapping
from datetime import date

from sqlrun.engine_api import Relation, StoredColumn
from sqlrun.runtime.clock import parse_time
from sqlrun.serve.dashboard import ISO
from sqlrun.serve.offer import Mart
from sqlrun.serve.parameters import Wrong
from sqlrun.transpile.writer import identifier, string, type_name

MOST_ROWS = 1000
WHOLE = ("tinyint", "smallint", "int", "bigint")


def rows_sql(
    table: Relation, mart: Mart, owns: Iterable[str] | None, keys: Mapping[str, str], offset: int, limit: int
) -> str:
    """Return SQL that selects the rows of `owns` (None: all owners) with these keys as JSON, in the order of the grain.

    Raises: Wrong if a value doesn't have its key's type.
    """
    types = {column.name: column.type for column in table.columns}
    conditions = [f"{_name(key)} = {literal(key, types[key], text)}" for key, text in keys.items()]
    if owns is not None:
        listed = ", ".join(string(owner, "duckdb") for owner in sorted(owns))
        conditions.append(f"cast({_name(mart.owned_by)} as varchar) in ({listed})" if listed else "false")
    where = f" where {' and '.join(conditions)}" if conditions else ""
    order = ", ".join(f"{_name(column)} nulls first" for column in mart.order)
    fields = ", ".join(f"{string(column.name, 'duckdb')}: {_shown(column)}" for column in table.columns)
    return (
        f"select cast(to_json({{{fields}}}) as varchar) as body from {_name(mart.name)}{where} "
        f"order by {order} limit {limit} offset {offset}"
    )


def _name(column: str) -> str:
    return identifier(column, "duckdb")


def _shown(column: StoredColumn) -> str:
    """Return SQL of a value in answers: decimals, dates and times as texts."""
    if column.type.startswith("decimal") or column.type == "date":
        return f"cast({_name(column.name)} as varchar)"
    if column.type == "timestamp":
        return f"strftime(make_timestamp(epoch_us({_name(column.name)})), {string(ISO, 'duckdb')})"
    return _name(column.name)


def literal(name: str, kind: str, text: str) -> str:
    """Return a caller's value as a literal of a column's type.

    Raises: Wrong if it isn't a value of the type, or no literal of the type is supported.

    >>> literal("a", "string", "x'; drop table y"), literal("n", "int", "24")
    ("'x''; drop table y'", "try_cast('24' as INT)")
    """
    try:
        if kind in WHOLE and not re.fullmatch("-?[0-9]{1,18}", text):
            raise ValueError
        if kind.startswith("decimal") and not re.fullmatch(r"-?[0-9]{1,18}(\.[0-9]{1,18})?", text):
            raise ValueError
        if kind == "boolean" and text not in ("true", "false"):
            raise ValueError
        if kind == "date":
            text = date.fromisoformat(text).isoformat()
        if kind == "timestamp":
            text = parse_time(text).isoformat()
    except (ValueError, OverflowError):
        raise Wrong(f"`{name}` is not a valid {kind}") from None
    if kind == "string":
        return string(text, "duckdb")
    if kind in WHOLE or kind in ("boolean", "date") or kind.startswith("decimal"):
        # A value outside the type's range matches no row; it isn't an error.
        return f"try_cast({string(text, 'duckdb')} as {type_name(kind, 'duckdb')})"
    if kind == "timestamp":
        return f"cast({string(text, 'duckdb')} as timestamptz)"
    raise Wrong(f"rows can't be filtered by `{name}`")


def cursor(mark: str, offset: int) -> str:
    """Return the cursor of the next page: the mark of its tick, and the offset of its first row.

    >>> position(cursor("7-ab", 100))
    ('7-ab', 100)
    """
    return base64.urlsafe_b64encode(f"{mark}:{offset}".encode()).decode().rstrip("=")


def position(text: str) -> tuple[str, int]:
    """Return the mark and the offset of a cursor.

    Raises: Wrong if `cursor` can't have written it.
    """
    try:
        plain = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        plain = ""
    found = re.fullmatch(r"([0-9]+-[0-9a-f]+):([0-9]{1,12})", plain)
    if found is None:
        raise Wrong("`cursor` is not from an answer of this server")
    return found[1], int(found[2])
