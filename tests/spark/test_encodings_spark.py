"""Files with Parquet's second encodings, which DuckDB writes: Spark and delta-rs read the same rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from sqlrun.engine_api import Merge, StoredColumn, TableSpec, Write
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.engines.spark.engine import SparkEngine
from tests.engines.test_own_writes import held, seen

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROWS = 5_000
# Too many values for a dictionary, from `i` in 0 to 4,999. Neighbours are at opposite limits of the type where all
# readers can read it.
VALUES = {
    "string": "'ü' || hash(i)",
    "tinyint": "(i % 256 - 128)::tinyint",
    "smallint": "(case i % 2 when 0 then i - 32768 else 32767 - i end)::smallint",
    "int": "(case i % 2 when 0 then i - 2147483648 else -i end)::int",
    "bigint": "case i % 2 when 0 then i - 9223372036854775808 else 9223372036854775807 - i end::bigint",
    "boolean": "i % 3 = 0",
    "decimal(9,2)": "case i % 2 when 0 then i - 9999999.99 else 9999999.99 - i end::decimal(9, 2)",
    "decimal(18,2)": "case i % 2 when 0 then i - 9999999999999999.99 else 9999999999999999.99 - i end::decimal(18, 2)",
    "decimal(38,10)": "(i * 1.0000000001)::decimal(38, 10)",
    "date": "case i % 2 when 0 then date '0001-01-01' + i::int else date '9999-12-31' - i::int end",
    "timestamp": "timestamptz '1901-02-03 04:05:06.000001+00' + interval (i * 977) minute",
    "timestamp_ntz": "timestamp '1901-02-03 04:05:06.000001' + interval (i * 977) minute",
    "binary": "('b' || hash(i))::blob",
    "array<bigint>": "[i * 31, null, -i]",
    "map<string,decimal(10,2)>": "map {'k' || i: (i * 1.01)::decimal(10, 2)}",
    "map<int,date>": "map {i::int: date '2026-01-01' + i::int}",
    "struct<a:int,b:array<struct<c:string>>>": "{'a': i::int, 'b': [{'c': 'c' || hash(i)}]}",
}
FLOATING = {"double": "i / 3.0::double", "array<float>": "[(i / 7.0)::float]"}
WIDE = {"int": "(case i % 2 when 0 then i - 2147483648 else 2147483647 - i end)::int"}
NESTED = {"array<struct<`a: B`:int>>": f"[{{'a: B': {WIDE['int']}}}]", "map<int,int>": f"map {{i::int: {WIDE['int']}}}"}
PACKED = {"smallint", "int", "bigint", "decimal(9,2)", "decimal(18,2)", "date", "timestamp", "timestamp_ntz"}


def written(folder: Path, kinds: dict[str, str], *, vectors: bool = True) -> TableSpec:
    """Write a table with a column of each type; each seventh value is NULL."""
    columns = tuple(StoredColumn(f"c{number}", kind) for number, kind in enumerate(kinds))
    spec = TableSpec("t", str(folder / "t"), (StoredColumn("k", "bigint"), *columns), vectors=vectors)
    items = ", ".join(
        f"case when i % 7 <> 3 then {value} end as c{number}" for number, value in enumerate(kinds.values())
    )
    engine = DuckDBEngine()
    engine.create(spec)
    every = tuple((column.name, f"s.{column.name}") for column in spec.columns)
    delta = f"select i as k, {items} from range({ROWS}) as r(i)"
    engine.write(Write(spec, 0, 1, "app", (), Merge(delta, ("k",), (), every, every), {}))
    return spec


def encodings(spec: TableSpec) -> dict[str, set[str]]:
    """Return the encodings of each top-level column's values, by its type."""
    found: dict[str, set[str]] = {column.type: set() for column in spec.columns}
    kinds = {column.name: column.type for column in spec.columns}
    for file in Path(spec.path).glob("*.parquet"):
        metadata = pq.ParquetFile(file).metadata
        for group in (metadata.row_group(number) for number in range(metadata.num_row_groups)):
            for chunk in (group.column(number) for number in range(group.num_columns)):
                found[kinds[chunk.path_in_schema.split(".")[0]]].update(chunk.encodings)
    return found


def test_spark_and_delta_rs_read_the_second_encodings(engine: SparkEngine, tmp_path: Path) -> None:
    spec = written(tmp_path, VALUES)

    by_type = encodings(spec)
    assert {kind for kind in VALUES if "DELTA_BINARY_PACKED" in by_type[kind]} >= PACKED
    assert all("DELTA_LENGTH_BYTE_ARRAY" in by_type[kind] for kind in ("string", "binary"))
    by_spark = seen(engine, spec)
    assert len(by_spark) == ROWS
    assert by_spark == seen(DuckDBEngine(), spec) == held(spec.path)


@pytest.mark.parametrize(
    ("kinds", "vectors"),
    [(FLOATING, True), (VALUES | FLOATING, True), (WIDE, True), (NESTED, True), (VALUES, False)],
    ids=["floating", "some-floating", "wide", "nested", "no-vectors"],
)
def test_other_tables_have_the_first_encodings(
    kinds: dict[str, str], vectors: bool, engine: SparkEngine, tmp_path: Path
) -> None:
    """Spark doesn't read streams of bytes, delta-rs no wide differences, and old readers no second encodings."""
    spec = written(tmp_path, kinds, vectors=vectors)

    assert set.union(*encodings(spec).values()) <= {"PLAIN", "RLE", "RLE_DICTIONARY", "PLAIN_DICTIONARY"}
    assert seen(engine, spec) == seen(DuckDBEngine(), spec) == held(spec.path)
