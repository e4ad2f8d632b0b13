"""How DuckDB compares the keys of a MERGE: by `=` where no key is NULL, since only that reads matched rows alone."""

from __future__ import annotations

import duckdb
import pytest

from sqlrun.engine_api import Merge
from sqlrun.engines.duckdb import write


@pytest.mark.parametrize(
    ("rows", "null_safe"),
    [("(1, 'a')", ()), ("(1, null)", ("b",)), ("(null, null), (1, 'a')", ("a", "b"))],
)
def test_a_key_column_is_null_safe_only_if_a_changed_row_has_null(rows: str, null_safe: tuple[str, ...]) -> None:
    with duckdb.connect() as session:
        session.execute(f"create temp table s as select * from (values {rows}) as s(a, b)")

        found = write._comparing(session, Merge("", ("a", "b"), ("a", "b"), (), ()))

    assert found.null_safe == null_safe
