"""The types that sqlrun infers are those that Spark's analyzer gives, or unknown.

`SQLRUN_WRITE=1` writes Spark's types, and where sqlrun doesn't know them, into cases/types.sql.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from sqlrun.engines.spark.engine import SparkEngine
from sqlrun.parse.parse import schema_of
from sqlrun.parse.type_check import infer
from sqlrun.pipeline import prepare
from tests.support.typed_expressions import COLUMNS, FILE, read

pytestmark = pytest.mark.spark


@pytest.fixture
def session(engine: SparkEngine) -> Iterator[Any]:
    """A session with the settings that ticks have: ANSI mode, UTC."""
    with engine._session() as lent:
        yield lent


def empty(session: Any, name: str, columns: Mapping[str, str]) -> None:
    """A relation without rows."""
    session.createDataFrame([], ", ".join(f"`{n}` {kind}" for n, kind in columns.items())).createOrReplaceTempView(name)


def spark_types(session: Any, sql: str) -> dict[str, str]:
    """What the analyzer says; nothing is run."""
    return {field.name: field.dataType.simpleString() for field in session.sql(sql).schema.fields}


def test_expressions(session: Any) -> None:
    """Each line of cases/types.sql: literals, arithmetic, widening, functions, aggregates, windows, whole queries."""
    empty(session, "t", COLUMNS)
    lines = FILE.read_text().splitlines()
    wrong: list[str] = []
    for one in read():
        try:
            (kind,) = spark_types(session, one.sql.replace("ref.t", "t")).values()
        except Exception as e:
            wrong.append(f"{one.text} {str(e)[:100]}")
            continue
        (inferred,) = infer(one.tree(), {"ref": {"t": COLUMNS}})
        lines[one.line - 1] = f"{one.text} -- {kind}{' ?' if inferred is None else ''}"
        if inferred is not None and str(inferred) != kind:
            wrong.append(f"{one.text}: {inferred}, Spark says {kind}")
    if os.environ.get("SQLRUN_WRITE"):
        FILE.write_text("\n".join(lines) + "\n")

    assert wrong == []
    assert "\n".join(lines) + "\n" == FILE.read_text()


def test_reference_project(session: Any) -> None:
    """Each column of each model, over empty tables of the contracts' types; not one is unknown."""
    prepared = prepare(Path(__file__).parent.parent.parent)
    schema = schema_of(prepared.project)
    for tables in schema.values():
        for name, columns in tables.items():
            empty(session, name, columns)
    for query in prepared.queries:
        # Spark has no QUALIFY: the engine too is sent the tree, written anew.
        sql = query.tree.sql("spark").replace("`ref`.", "").replace("`source`.", "")
        inferred = dict(zip(query.columns, map(str, infer(query.tree, schema)), strict=True))

        assert (query.name, inferred) == (query.name, spark_types(session, sql))
