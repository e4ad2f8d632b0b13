"""The power goes while Spark lands: what Spark then does with the files that are left. A sample, on real files.

`test_power_loss_stream.py` tries many more without a JVM.
"""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from sqlrun.engine_api import Landing, Relation, StoredColumn, TableSpec
from sqlrun.engines.delta.table_check import Subject
from sqlrun.engines.spark.engine import SparkEngine
from sqlrun.operations import doctor
from sqlrun.publish.ledger import Ledger
from sqlrun.sources.folder import Folder
from tests.run.test_power_loss import Files, lay_out, read

pytestmark = [pytest.mark.spark, pytest.mark.slow]
NOW = datetime(2026, 11, 22, tzinfo=timezone.utc)
COLUMNS = (StoredColumn("n", "int"), StoredColumn("file", "string"))
QUERY = "select cast(get_json_object(value, '$.n') as int) as n, file from lines"
TABLE, CHECKPOINT = "landed/1", "_sqlrun/checkpoints/landed/1"


def landing(source: Path, warehouse: Path) -> Landing:
    spec = TableSpec("landed", str(warehouse / TABLE), COLUMNS)
    return Landing(spec, Folder(str(source)), str(warehouse / CHECKPOINT), QUERY, "app")


def arrive(source: Path, number: int) -> None:
    (source / f"{number}.json").write_text(f'{{"n": {number}}}\n')


@pytest.fixture(scope="module")
def golden(engine: SparkEngine, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Files]:
    """Three batches; the first one was published, at version 1."""
    folder = tmp_path_factory.mktemp("golden")
    source = folder / "in"
    source.mkdir()
    given = landing(source, folder / "warehouse")
    engine.create(given.table)
    for number in range(3):
        arrive(source, number)
        engine.land(given)
    arrive(source, 3)
    return source, read(str(folder / "warehouse"))


def rows(engine: SparkEngine, given: Landing) -> list[Any]:
    version = engine.head(given.table.path)
    assert version is not None
    relation = Relation("r", given.table.path, COLUMNS, "new", version=version)
    return sorted(row["n"] for row in engine.query("select n from r", (relation,)).to_pylist())


LAST = f"{TABLE}/_delta_log/{3:020d}"
DAMAGES: dict[str, dict[str, bytes | None]] = {
    "newest commit empty": {f"{LAST}.json": b"", f"{TABLE}/_delta_log/.{3:020d}.json.crc": None},
    "a commit gone": {f"{TABLE}/_delta_log/{2:020d}.json": None},
    "offsets empty": {f"{CHECKPOINT}/offsets/2": b"", f"{CHECKPOINT}/commits/2": None},
    "files without their last line": {f"{CHECKPOINT}/sources/0/2": b"v1", f"{CHECKPOINT}/sources/0/.2.crc": None},
}


def test_nothing_is_moved_where_all_is_intact(golden: tuple[Path, Files], tmp_path: Path) -> None:
    """Spark's checksums are what the doctor takes them for."""
    lay_out(tmp_path, golden[1])
    said: list[str] = []
    found = doctor.of_table(Ledger(str(tmp_path), "app"), Subject("landed", TABLE, 1, 1, True), deep=False)
    doctor.heal(str(tmp_path), [found], NOW, said.append)

    assert said == []


@pytest.mark.long
@pytest.mark.parametrize("damage", DAMAGES)
def test_every_line_lands_once(engine: SparkEngine, golden: tuple[Path, Files], tmp_path: Path, damage: str) -> None:
    source, files = golden
    lay_out(tmp_path, {**files, **DAMAGES[damage]})
    said: list[str] = []
    found = doctor.of_table(Ledger(str(tmp_path), "app"), Subject("landed", TABLE, 1, 1, True), deep=False)
    doctor.heal(str(tmp_path), [found], NOW, said.append)
    given = landing(source, tmp_path)

    engine.land(given)
    assert said
    assert rows(engine, given) == [0, 1, 2, 3]
