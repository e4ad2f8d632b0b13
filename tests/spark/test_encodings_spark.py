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
# Too many values for a dictionary, from `i` in 0 to 4,999.
VALUES = {
    "string": "'ü' || hash(i)",
    "tinyint": "(i % 128)::tinyint",
    "smallint": "(i * 13 % 65536 - 32768)::smallint",
    "int": "(i * 7919 % 1000003 - 500000)::int",
    "bigint": "i * 1844674407370955",
    "boolean": "i % 3 = 0",
    "decimal(9,2)": "(i * -1.37)::decimal(9, 2)",
    "decimal(18,2)": "(i * 1000000.37)::decimal(18, 2)",
    "decimal(38,10)": "(i * 1.0000000001)::decimal(38, 10)",
    "date": "date '1901-02-03' + (i * 13)::int",
    "timestamp": "timestamptz '1901-02-03 04:05:06.000001+00' + interval (i * 977) minute",
    "timestamp_ntz": "timestamp '1901-02-03 04:05:06.000001' + interval (i * 977) minute",
    "binary": "('b' || hash(i))::blob",
    "array<bigint>": "[i * 31, null, -i]",
    "map<string,decimal(10,2)>": "map {'k' || i: (i * 1.01)::decimal(10, 2)}",
    "struct<a:int,b:array<struct<c:string>>>": "{'a': i::int, 'b': [{'c': 'c' || hash(i)}]}",
}
FLOATING = {"double": "i / 3.0::double", "array<float>": "[(i / 7.0)::float]"}


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


def encodings(spec: TableSpec) -> set[str]:
    files = [pq.ParquetFile(file).metadata for file in Path(spec.path).glob("*.parquet")]
    groups = [file.row_group(number) for file in files for number in range(file.num_row_groups)]
    return {each for group in groups for number in range(group.num_columns) for each in group.column(number).encodings}


def test_spark_and_delta_rs_read_the_second_encodings(engine: SparkEngine, tmp_path: Path) -> None:
    spec = written(tmp_path, VALUES)

    assert {"DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY"} <= encodings(spec)
    by_spark = seen(engine, spec)
    assert len(by_spark) == ROWS
    assert by_spark == seen(DuckDBEngine(), spec) == held(spec.path)


@pytest.mark.parametrize(("kinds", "vectors"), [(FLOATING, True), (VALUES | FLOATING, True), (VALUES, False)])
def test_other_tables_have_the_first_encodings(
    kinds: dict[str, str], vectors: bool, engine: SparkEngine, tmp_path: Path
) -> None:
    """Spark doesn't read streams of bytes, and old readers know no second encodings."""
    spec = written(tmp_path, kinds, vectors=vectors)

    assert encodings(spec) <= {"PLAIN", "RLE", "RLE_DICTIONARY", "PLAIN_DICTIONARY"}
    assert seen(engine, spec) == seen(DuckDBEngine(), spec)
