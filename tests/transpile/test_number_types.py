"""Integers that functions return on DuckDB: signed, and wide enough to compute with as Spark does."""

from __future__ import annotations

from collections import defaultdict

import duckdb
import pytest
from sqlglot import parse_one

from sqlrun.transpile import writer
from sqlrun.transpile.dialect import DIALECT
from tests import scalar_calls

pytestmark = pytest.mark.slow

# Spark's own types are as narrow.
NARROW = {"smallint": "SMALLINT", "tinyint": "TINYINT"}


def types() -> dict[str, set[str]]:
    """Return the types of each function's calls over columns of every type that DuckDB accepts."""
    found: dict[str, set[str]] = defaultdict(set)
    with duckdb.connect() as connection:
        columns = ", ".join(f"{writer.cast('null', kind, 'duckdb')} as {name}" for name, kind in scalar_calls.COLUMNS)
        connection.execute(f"set TimeZone = 'UTC'; create table called as select {columns}")
        for call in scalar_calls.calls():
            try:
                text = writer.expression(parse_one(call, dialect=DIALECT), "duckdb")
                (kind,) = connection.execute(f"select typeof({text}) from called").fetchall()[0]
            except Exception:  # a call that one of the parsers or DuckDB refuses, which other tests cover
                continue
            found[call.partition("(")[0]].add(kind)
    return found


@pytest.mark.long
def test_no_function_returns_an_unsigned_or_narrower_number() -> None:
    """An unsigned number can't be negated; a byte can't be multiplied by another."""
    found = types()
    odd = {
        (name, kind)
        for name, kinds in found.items()
        for kind in kinds
        if kind in ("TINYINT", "SMALLINT", "HUGEINT", "UHUGEINT", "UBIGINT", "UINTEGER", "USMALLINT", "UTINYINT")
    }

    assert len(found) > 100
    assert odd == set(NARROW.items())
