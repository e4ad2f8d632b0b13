"""SQL of a MERGE: equality of keys, and the operation for each row. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from sqlrun.engine_api import Dialect, Merge
from sqlrun.transpile.writer import identifier


def same(statement: Merge, dialect: Dialect = "duckdb") -> list[str]:
    """Return the comparisons of the keys of the target `t` and of the delta `s`."""
    return equal(statement.key, statement.null_safe, dialect)


def equal(keys: Iterable[str], null_safe: Collection[str], dialect: Dialect = "duckdb") -> list[str]:
    """Return the comparisons of columns of `t` and `s`; those of `null_safe` match NULL with NULL."""
    return [_equal(key, key in null_safe, dialect) for key in keys]


def _equal(key: str, null_safe: bool, dialect: Dialect) -> str:
    name = identifier(key, dialect)
    if not null_safe:
        return f"t.{name} = s.{name}"
    # In DataFusion, IS NOT DISTINCT FROM binds more loosely than AND: two of them don't parse without parentheses.
    return f"t.{name} <=> s.{name}" if dialect == "spark" else f"(t.{name} is not distinct from s.{name})"


def operation(statement: Merge, unmatched: str) -> str:
    """Return the expression for a delta row's operation: i(nsert), d(elete), u(pdate), or NULL for none.

    `unmatched` is the condition that no row of the target has its key. CASE is lazy: an expression over `t` isn't
    evaluated for a row without a match.

    >>> operation(Merge("", ("k",), (), (), (), delete_when="s.n = 0"), "t.k is null")
    "case when t.k is null then case when true then 'i' end when s.n = 0 then 'd' when true then 'u' end"
    """
    return (
        f"case when {unmatched} then case when {statement.insert_when or 'true'} then 'i' end "
        f"when {statement.delete_when or 'false'} then 'd' "
        f"when {statement.update_when or 'true'} then 'u' end"
    )
