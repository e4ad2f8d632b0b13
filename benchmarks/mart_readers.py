"""Readers of contenders' marts. Shell: DuckDB files, Delta tables, sqlrun's warehouse."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def of_duckdb(file: Path, table: str) -> list[dict[str, Any]]:
    """Return the rows of a table in a DuckDB file."""
    import duckdb

    with duckdb.connect(str(file), read_only=True) as db:
        rows: list[dict[str, Any]] = db.sql(f"from {table}").to_arrow_table().to_pylist()
    return rows


def of_delta(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a Delta table's latest version."""
    import pyarrow as pa
    from deltalake import DeltaTable, QueryBuilder

    table = QueryBuilder().register("mart", DeltaTable(str(path)))

    rows: list[dict[str, Any]] = pa.table(table.execute("select * from mart").read_all()).to_pylist()
    return rows


def of_parquet(folder: Path) -> list[dict[str, Any]]:
    """Return the rows of a folder of Parquet files."""
    import duckdb

    with duckdb.connect() as db:
        table = db.sql("from read_parquet($files)", params={"files": f"{folder}/**/*.parquet"}).to_arrow_table()
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def of_sqlrun(folder: Path, name: str = "restaurant_windows") -> list[dict[str, Any]]:
    """Return the rows of a table that sqlrun has published."""
    from sqlrun.pipeline import prepare
    from sqlrun.publish.ledger import Ledger
    from sqlrun.publish.reader import query, relation

    published = Ledger(str(folder / "warehouse"), prepare(folder).project.name).read().published
    assert published is not None
    bound = relation(str(folder / "warehouse"), name, published.tables[name])
    rows: list[dict[str, Any]] = query(f'select * from "{name}"', [bound]).to_pylist()
    return rows
