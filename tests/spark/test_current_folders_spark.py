"""Folders with paths that stay, as Spark reads them: from tables that DuckDB and Spark wrote."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from sqlrun.engines.delta import deletion_vectors, file_layout
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.engines.spark.engine import SparkEngine
from sqlrun.publish import current_folders
from tests.publish.test_environments import sales
from tests.run.test_machine import project
from tests.support.projects import Site
from tests.support.readers_of_delta import rows
from tests.support.script import FIVE, START

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def by_spark(spark: Any, site: Site, name: str) -> Counter[str]:
    found = spark.read.format("delta").load(f"{current_folders.place(site.ledger)}/{name}").collect()
    return rows(row.asDict(recursive=True) for row in found)


@pytest.mark.parametrize("writer", ["duckdb", "spark"])
def test_spark_reads_the_folders(
    tmp_path: Path, engine: SparkEngine, writer: str, unchecked: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their tables' rows are marked by vectors in files."""
    monkeypatch.setattr(file_layout, "COPIED", 0)
    monkeypatch.setattr(deletion_vectors, "INLINE", 0)
    made = Site(
        project(tmp_path / "a sh\u00f6p"), DuckDBEngine() if writer == "duckdb" else engine, current_folders=True
    )
    sales(made, "many.jsonl", *((f"m{number}", 1, "y", number, 0) for number in range(30)))
    for number in range(3):
        sales(made, f"{number}.jsonl", ("a", number, "x", number, -1), (f"n{number}", 1, "z", 2, 0))
        assert made.tick(START + number * FIVE).published

    for name in ("stg_lines", "stg_sales", "fct_slots", "mart_hour", "mart_best"):
        assert by_spark(engine._spark, made, name) == rows(made.rows(name)), name
        table = f"{made.warehouse}/{made.ledger.read().published.tables[name].path}"
        columns = made.rows(name)[0].keys()
        if name != "stg_lines":  # it has quarantined lines
            found = engine._spark.read.format("delta").load(table).select(*columns).collect()
            assert rows(row.asDict(recursive=True) for row in found) == rows(made.rows(name)), name
    assert made.said == []
    assert list(Path(made.warehouse).glob(f"*/*/{deletion_vectors.FOLDER}/*.bin"))
