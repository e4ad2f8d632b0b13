"""What the driver does of a MERGE on Spark: it finds the files to rewrite, and commits those that were written."""

from __future__ import annotations

import json
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from sqlrun.engines import delta_files, spark_rewrite
from sqlrun.engines.protocol import Append, Prune, StoredColumn, TableSpec, Write

COLUMNS = (
    StoredColumn("k", "string"),
    StoredColumn("v", "decimal(18,2)"),
    StoredColumn("at", "timestamp"),
    StoredColumn("n", "int"),
    StoredColumn("x", "double"),
    StoredColumn("day", "date"),
)
AT = datetime(2026, 1, 2, 3, 4, 5, 678901, timezone.utc)
DAY = date(2026, 1, 2)
KINDS = {
    "k": pa.string(),
    "v": pa.decimal128(18, 2),
    "at": pa.timestamp("us", "UTC"),
    "n": pa.int32(),
    "x": pa.float64(),
    "_change_type": pa.string(),
}


def written(staging: Path, change: bool, folder: str, rows: list[dict[str, object]]) -> None:
    place = staging / f"{spark_rewrite.CHANGE}={str(change).lower()}" / folder
    place.mkdir(parents=True)
    schema = pa.schema(list(KINDS.items()))
    # Spark keeps short decimals as integers, which other readers' statistics show otherwise.
    table = pa.Table.from_pylist(rows, schema=schema)
    parquet.write_table(table, place / "part-00000-x.c000.parquet", row_group_size=1, store_decimal_as_integer=True)
    (place / "._SUCCESS.crc").touch()


def test_what_was_written_is_committed_whole(tmp_path: Path) -> None:
    spec = TableSpec("t", str(tmp_path / "t"), COLUMNS, ("day",))
    delta_files.create(spec)
    table = delta_files.open_table(spec.path)
    staging = tmp_path / "t" / spark_rewrite.STAGING / "1"
    a = {"k": "a", "v": Decimal("-1.50"), "at": AT, "n": 3, "x": 1.5}
    b = {"k": "b", "v": None, "at": None, "n": -4, "x": float("nan")}
    written(staging, False, "day=2026-01-02", [a, b])
    written(staging, True, "day=2026-01-02", [{**a, "_change_type": "insert"}, {**b, "_change_type": "insert"}])
    written(staging, False, "day=__HIVE_DEFAULT_PARTITION__", [b])
    write = Write(spec, 0, 7, "app.t", (), Append(""), {"note": "hello"})
    spark_rewrite._commit(table, write, spark_rewrite.Target((), 0), spark_rewrite._found(staging, COLUMNS))
    assert delta_files.head(spec.path) == 1
    done = delta_files.actions(spec.path, 1)
    assert next(a["txn"] for a in done if "txn" in a)["version"] == 7
    assert json.loads(done[0]["commitInfo"]["userMetadata"]) == {"note": "hello", "sqlrun.tick": "7"}
    days = {a["add"]["partitionValues"]["day"]: json.loads(a["add"]["stats"]) for a in done if "add" in a}
    assert days["2026-01-02"] == {
        "numRecords": 2,
        "minValues": {"k": "a", "v": -1.5, "at": "2026-01-02T03:04:05.678Z", "n": -4},
        "maxValues": {"k": "b", "v": -1.5, "at": "2026-01-02T03:04:05.679Z", "n": 3},
        "nullCount": {"k": 0, "v": 1, "at": 1, "n": 0, "x": 0},
    }
    assert days[None]["numRecords"] == 1
    held = delta_files.open_table(spec.path)
    assert sorted(map(str, pa.table(held.scan().read_all())["day"].to_pylist())) == ["2026-01-02", "2026-01-02", "None"]
    assert [a["cdc"]["path"] for a in done if "cdc" in a] == ["_change_data/day=2026-01-02/cdc-00000-x.c000.parquet"]
    assert not list(staging.rglob("*.parquet"))


@pytest.mark.parametrize("rows", [[], [{"k": "a", "_change_type": None}]])
def test_nothing_that_changed_is_no_commit(tmp_path: Path, rows: list[dict[str, object]]) -> None:
    spec = TableSpec("t", str(tmp_path / "t"), COLUMNS, ("day",))
    delta_files.create(spec)
    staging = tmp_path / "t" / spark_rewrite.STAGING / "1"
    written(staging, False, "day=2026-01-02", rows)
    target = spark_rewrite.Target(({"path": "old", "partition.day": DAY, "size_bytes": 1},), 1)
    write = Write(spec, 0, 7, "app.t", (), Append(""))
    table = delta_files.open_table(spec.path)
    spark_rewrite._commit(table, write, target, spark_rewrite._found(staging, COLUMNS))
    assert delta_files.head(spec.path) == 0


def test_only_files_that_can_hold_a_row_are_rewritten(tmp_path: Path) -> None:
    from deltalake import write_deltalake

    spec = TableSpec("t", str(tmp_path / "t"), (StoredColumn("k", "int"), StoredColumn("day", "date")), ("day",))
    delta_files.create(spec)
    days = [date(2026, 1, 1), date(2026, 1, 2), None]
    for low in (0, 100):
        rows = [{"k": low + number, "day": day} for number, day in enumerate(days)]
        schema = pa.schema([("k", pa.int32()), ("day", pa.date32())])
        write_deltalake(spec.path, pa.Table.from_pylist(rows, schema=schema), mode="append")
    table = delta_files.open_table(spec.path)

    def found(prune: Prune, *delta: tuple[int | None, date | None]) -> list[tuple[object, object]]:
        rows = pa.table({"k": [k for k, _ in delta], "day": pa.array([day for _, day in delta], pa.date32())})
        files = spark_rewrite._target(table, prune, rows).files
        stats = {f["path"]: f for f in delta_files.files_at(table, {"k"})}
        return sorted(((stats[f["path"]]["min.k"], f["partition.day"]) for f in files), key=str)

    by_day = Prune(partitions=("day",))
    assert found(by_day, (5, days[0])) == [(0, days[0]), (100, days[0])]
    assert found(by_day, (5, None)) == [(102, None), (2, None)]
    by_key = Prune(ranges=(("k", "day"),))
    assert found(by_key, (100, days[0]), (102, days[0])) == [(100, days[0]), (101, days[1]), (102, None)]
    assert found(by_key, (0, days[0]), (102, days[1])) == [(0, days[0]), (102, None)]
    assert len(found(by_key, (None, days[0]))) == len(found(Prune(), (1, None))) == 6
    # What isn't a partition's tells nothing of a file.
    assert len(found(Prune(partitions=("k",)), (1, None))) == 6
