"""The driver's part of a MERGE on Spark: it finds the files to read, and writes the rows that Spark has found."""

from __future__ import annotations

import json
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sqlrun.engine_api import Append, Merge, Prune, Relation, StoredColumn, TableSpec, Write
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.duckdb import merge as duckdb_merge
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.engines.spark import merge as spark_merge

COLUMNS = (
    StoredColumn("k", "string"),
    StoredColumn("v", "decimal(18,2)"),
    StoredColumn("at", "timestamp"),
    StoredColumn("parts", "array<int>"),
    StoredColumn("day", "date"),
)
AT = datetime(2026, 1, 2, 3, 4, 5, 678901, timezone.utc)
DAY = date(2026, 1, 2)
KINDS = {
    "k": pa.string(),
    "v": pa.decimal128(18, 2),
    "at": pa.timestamp("us", "UTC"),
    "parts": pa.list_(pa.int32()),
    "day": pa.date32(),
}
STATEMENT = Merge(
    "",
    ("k", "day"),
    ("day",),
    (("v", "t.v + s.v"), ("at", "s.at"), ("parts", "s.parts")),
    tuple((column.name, f"s.{column.name}") for column in COLUMNS),
    delete_when="t.v + s.v = 0",
)


def found(path: str, read: list[str], rows: list[tuple[str, str | None, int | None, Any, Any]]) -> pa.Table:
    """Return a result as Spark's: operations, positions, new values, and the old values that were read."""
    names = [spark_merge.OP, spark_merge.FILE, spark_merge.ROW]
    kinds = [pa.string(), pa.string(), pa.int64()]
    values = [[row[place] for row in rows] for place in range(3)]
    for place, there, listed in ((3, spark_merge.NEW, list(KINDS)), (4, spark_merge.OLD, read)):
        for name in listed:
            names.append(there + name)
            kinds.append(KINDS[name])
            values.append([(row[place] or {}).get(name) for row in rows])
    arrays = [pa.array(column, kind) for column, kind in zip(values, kinds, strict=True)]
    return spark_merge._placed(pa.table(arrays, names=names))


@pytest.mark.slow
def test_rows_found_by_spark_are_committed(tmp_path: Path) -> None:
    engine, spec = DuckDBEngine(), TableSpec("t", str(tmp_path / "a b"), COLUMNS, ("day",))
    engine.create(spec)
    old = "select k, 1.5::decimal(18,2) as v, null::timestamptz as \"at\", [1, null] as parts, date '2026-01-02' as day"
    engine.write(Write(spec, 0, 6, "app.t", (), Append(f"{old} from (values ('a'), ('b'), ('c')) as r(k) order by k")))
    write = Write(spec, 1, 7, "app.t", (), STATEMENT, {"note": "hello"})
    read = spark_merge._read(write, STATEMENT)
    # Times and nested fields of old rows decide nothing: they are looked up.
    assert read == ["k", "v", "day"]
    table = delta_table.open_table(spec.path)
    files = delta_table.files_at(table)
    file = f"{spec.path}/{files[0]['path']}"
    held = pa.table(engine.query("select k from r", (relation(spec, 1),)))["k"].to_pylist()
    before = {"v": Decimal("1.50"), "day": DAY}
    new = {"v": Decimal("-1.00"), "at": AT, "parts": [2], "day": DAY}
    uri = "file:" + file.replace("%", "%25").replace(" ", "%20")
    rows = found(spec.path, read, [
        ("u", uri, held.index("a"), {**new, "k": "a"}, {**before, "k": "a"}),
        ("d", uri, held.index("b"), {"k": "b", "day": DAY}, {**before, "k": "b"}),
        ("i", None, None, {**new, "k": "n", "day": None}, None),
    ])  # fmt: skip
    with engine.lent("t") as session:
        session.register("_found", rows)
        session.execute(f"create temp table _hits as {spark_merge._typed(write, STATEMENT, read, [file])}")
        plan = duckdb_merge.planned(session, table, write, files, 10)
        assert plan is not None and plan.fits
        duckdb_merge.carry_out(session, table, spark_merge._with_metadata(write), STATEMENT, plan)
    found_now = engine.query('select k, v, "at", parts, day from r order by k', (relation(spec, 2),)).to_pylist()
    kept = {"k": "c", "v": Decimal("1.50"), "at": None, "parts": [1, None], "day": DAY}
    assert found_now == [{**new, "k": "a"}, kept, {**new, "k": "n", "day": None}]
    changes = engine.query("select k, parts, _weight from r order by k, _weight", (relation(spec, 2, changes=True),))
    assert [tuple(row.values()) for row in changes.to_pylist()] == [
        ("a", [1, None], -1), ("a", [2], 1), ("b", [1, None], -1), ("n", [2], 1)
    ]  # fmt: skip
    done = delta_table.actions(spec.path, 2)
    assert next(a["txn"] for a in done if "txn" in a)["version"] == 7
    assert json.loads(done[0]["commitInfo"]["userMetadata"]) == {"note": "hello", "sqlrun.tick": "7"}


def relation(spec: TableSpec, version: int, *, changes: bool = False) -> Relation:
    if changes:
        return Relation("r", spec.path, spec.columns, "changes", commits=(version,))
    return Relation("r", spec.path, spec.columns, "new", version=version)


def test_columns_that_expressions_name_are_read() -> None:
    every = tuple((column.name, f"s.{column.name}") for column in COLUMNS)
    write = Write(TableSpec("t", "/t", COLUMNS), 1, 7, "app.t", (), Append(""))
    by_key = Merge("", ("k",), (), every, every)
    assert spark_merge._read(write, by_key) == ["k"]
    newer = Merge("", ("k",), (), every, every, update_when="s.at > t.`AT` or t.day is null")
    assert spark_merge._read(write, newer) == ["k", "at", "day"]
    some = Merge("", ("k",), (), (("v", "s.v"),), every)
    # Columns that aren't updated stay unchanged.
    assert spark_merge._read(write, some) == ["k", "at", "parts", "day"]


def test_only_files_that_can_have_a_matching_row_are_read(tmp_path: Path) -> None:
    from deltalake import write_deltalake

    spec = TableSpec("t", str(tmp_path / "t"), (StoredColumn("k", "int"), StoredColumn("day", "date")), ("day",))
    delta_table.create(spec)
    days = [date(2026, 1, 1), date(2026, 1, 2), None]
    for low in (0, 100):
        rows = [{"k": low + number, "day": day} for number, day in enumerate(days)]
        schema = pa.schema([("k", pa.int32()), ("day", pa.date32())])
        write_deltalake(spec.path, pa.Table.from_pylist(rows, schema=schema), mode="append")
    table = delta_table.open_table(spec.path)

    def found(prune: Prune, *delta: tuple[int | None, date | None]) -> list[tuple[object, object]]:
        rows = pa.table({"k": [k for k, _ in delta], "day": pa.array([day for _, day in delta], pa.date32())})
        files = spark_merge._target(table, prune, rows).files
        stats = {f["path"]: f for f in delta_table.files_at(table, {"k"})}
        return sorted(((stats[f["path"]]["min.k"], f["partition.day"]) for f in files), key=str)

    by_day = Prune(partitions=("day",))
    assert found(by_day, (5, days[0])) == [(0, days[0]), (100, days[0])]
    assert found(by_day, (5, None)) == [(102, None), (2, None)]
    by_key = Prune(ranges=(("k", "day"),))
    assert found(by_key, (100, days[0]), (102, days[0])) == [(100, days[0]), (101, days[1]), (102, None)]
    assert found(by_key, (0, days[0]), (102, days[1])) == [(0, days[0]), (102, None)]
    assert len(found(by_key, (None, days[0]))) == len(found(Prune(), (1, None))) == 6
    # Other columns don't prune files.
    assert len(found(Prune(partitions=("k",)), (1, None))) == 6
