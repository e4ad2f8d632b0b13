"""Power failure while Spark lands: its checkpoint and its table, damaged file by file, without a JVM.

The files are those of Spark 4.1 and Delta 4.4. `restart` does what Structured Streaming does at its start, as
`spark/test_power_loss_spark.py` proves with Spark.
"""

from __future__ import annotations

import json
import random
import shutil
import zlib
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pytest

from sqlrun.engine_api import Landing, StoredColumn, TableSpec
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.delta.table_check import Subject
from sqlrun.engines.spark import landing as spark_landing
from sqlrun.errors import EngineError, UsageError
from sqlrun.operations import doctor
from sqlrun.publish.ledger import Ledger
from sqlrun.sources.folder import Folder
from tests.run.test_power_loss import Files, cuts, read

pytestmark = [pytest.mark.slow, pytest.mark.disk]
NOW = datetime(2026, 11, 22, tzinfo=timezone.utc)
QUERY = "6af7c4fa-8b02-4566-a0ee-a1651f2f0ab0"
COLUMNS = (StoredColumn("file", "string"),)
TABLE, CHECKPOINT = "landed/1", "_sqlrun/checkpoints/landed/1"


def put(file: Path, text: str) -> None:
    """Write a file and Hadoop's checksum beside it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    data = text.encode()
    sums = b"".join(zlib.crc32(data[at : at + 512]).to_bytes(4, "big") for at in range(0, len(data), 512))
    file.with_name(f".{file.name}.crc").write_bytes(b"crc\0" + (512).to_bytes(4, "big") + sums)


class Stream:
    """A landing in the form that Spark writes."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.source = folder / "warehouse", folder / "in"
        self.source.mkdir(parents=True, exist_ok=True)
        self.table, self.checkpoint = str(self.folder / TABLE), self.folder / CHECKPOINT

    def begin(self) -> None:
        delta_table.create(TableSpec("landed", self.table, COLUMNS))
        put(self.checkpoint / "metadata", json.dumps({"id": QUERY}))

    def arrive(self, *names: str) -> None:
        for name in names:
            (self.source / name).write_text("{}\n")

    def batch(self, number: int, upto: str = "commit", compact: bool = False) -> None:
        """Land new files as a batch, up to a point: its list of files, its offsets, its rows, its end."""
        known = self.seen()
        fresh = sorted(f.name for f in self.source.iterdir() if f.name not in known)
        listed = [(n, at) for at, names in sorted(self.logs().items()) for n in names] if compact else []
        listed += [(n, number) for n in fresh]
        entries = [json.dumps({"path": f"file://{self.source}/{n}", "timestamp": 1, "batchId": at}) for n, at in listed]
        steps = ("sources", "offsets", "rows", "commit")
        todo = steps[: steps.index(upto) + 1]
        put(self.checkpoint / "sources/0" / f"{number}{'.compact' if compact else ''}", "\n".join(["v1", *entries]))
        if "offsets" in todo:
            self.offsets(number)
        if "rows" in todo:
            self.append(fresh, number)
        if "commit" in todo:
            self.commit(number)

    def offsets(self, number: int) -> None:
        text = f'v1\n{{"batchWatermarkMs":0,"conf":{{}}}}\n{{"logOffset":{number}}}'
        put(self.checkpoint / "offsets" / str(number), text)

    def commit(self, number: int) -> None:
        put(self.checkpoint / "commits" / str(number), 'v1\n{"nextBatchWatermarkMs":0}')
        (Path(self.table) / "_sqlrun_checkpoint").write_text(QUERY)

    def append(self, files: list[str], number: int) -> None:
        table = delta_table.open_table(self.table)
        held = table.transaction_version(QUERY)
        if held is None or held < number:
            delta_table.append_rows(table, [{"file": name} for name in files], delta_table.commit(QUERY, number, {}))

    def logs(self) -> dict[int, list[str]]:
        """Return the lists of files by batch; a compacted one replaces all before it."""
        found: dict[int, dict[str, None]] = {}
        for file in (self.checkpoint / "sources/0").glob("[0-9]*"):
            lines = file.read_text().splitlines()
            assert lines[0] == "v1"
            for entry in map(json.loads, lines[1:]):
                found.setdefault(entry["batchId"], {})[entry["path"].rsplit("/", 1)[-1]] = None
        return {number: list(names) for number, names in found.items()}

    def seen(self) -> set[str]:
        return {name for names in self.logs().values() for name in names}

    def numbers(self, folder: str) -> list[int]:
        return sorted(int(f.name) for f in (self.checkpoint / folder).glob("[0-9]*"))

    def restart(self) -> None:
        """Do what Spark does at its start: replay an unfinished latest batch, then land the files in no list."""
        if not (self.checkpoint / "metadata").exists():
            self.begin()
        for crc in self.checkpoint.rglob(".*.crc"):
            assert crc.with_name(crc.name[1:-4]).exists(), f"Spark takes {crc.name} for another query's"
        offsets, commits = self.numbers("offsets"), self.numbers("commits")
        for number in offsets:
            assert (self.checkpoint / f"offsets/{number}").read_text().count("\n") == 2
        newest = offsets[-1] if offsets else -1
        reached = newest
        logs = self.logs()
        if newest >= 0 and newest not in commits:
            self.append(logs[newest], newest)
            self.commit(newest)
        pending = [name for number, names in logs.items() if number > reached for name in names]
        fresh = [f.name for f in self.source.iterdir() if f.name not in self.seen()]
        if pending or fresh:
            self.append([*pending, *fresh], newest + 1)

    def rows(self) -> Counter[str]:
        table = delta_table.open_table(self.table)
        return Counter(pa.table(table.scan(columns=["file"]).read_all()).column("file").to_pylist())

    def heal(self, published: int) -> list[str]:
        said: list[str] = []
        ledger = Ledger(str(self.folder), "app")
        subject = Subject("landed", TABLE, published, published, True, advice="ADVICE")
        found = doctor.of_table(ledger, subject, deep=False)
        doctor.heal(str(self.folder), [found], NOW, said.append)
        return said


POINTS = ("sources", "offsets", "rows", "commit")


@pytest.fixture(scope="module", params=["first", *POINTS])
def golden(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Files, Files, int]:
    """Two published batches, then one more and a part of another; or the very first two."""
    stream = Stream(tmp_path_factory.mktemp("golden"))
    stream.begin()
    published = -1
    before: Files = {}
    if request.param != "first":
        for number in range(2):
            stream.arrive(f"{number}.json")
            stream.batch(number)
        before, published = read(str(stream.folder)), 2
    start = 0 if request.param == "first" else 2
    stream.arrive(f"{start}.json")
    stream.batch(start)
    stream.arrive(f"{start + 1}.json", "more.json")
    stream.batch(start + 1, "commit" if request.param == "first" else request.param, compact=start == 2)
    after = {
        name: data.replace(str(stream.source).encode(), b"SOURCE") for name, data in read(str(stream.folder)).items()
    }
    return before, after, published


def laid_out(folder: Path, golden: tuple[Files, Files, int], damage: dict[str, bytes | None]) -> Stream:
    stream = Stream(folder)
    names = ["0.json", "1.json", *(["2.json", "3.json"] if golden[2] > 0 else []), "more.json", "late.json"]
    stream.arrive(*names)
    for name, data in {**golden[1], **damage}.items():
        if data is not None:
            (stream.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (stream.folder / name).write_bytes(data)
    # The lists of files contain the folder's name, and Spark's checksum covers it.
    for file in (stream.checkpoint / "sources/0").glob("[0-9]*"):
        crc = file.with_name(f".{file.name}.crc")
        untouched = f"{CHECKPOINT}/sources/0/{file.name}" not in damage
        whole = f"{CHECKPOINT}/sources/0/{crc.name}" not in damage
        text = file.read_text().replace("SOURCE", str(stream.source))
        kept = crc.read_bytes() if crc.exists() else None
        put(file, text)
        if not (untouched and whole):
            crc.unlink() if kept is None else crc.write_bytes(kept)
    return stream


def exact(stream: Stream, published: int) -> None:
    stream.heal(published)
    assert stream.heal(published) == [], "healing heals nothing more"
    if delta_table.head(stream.table) is None:
        delta_table.create(TableSpec("landed", stream.table, COLUMNS))
    stream.restart()
    assert stream.rows() == Counter(file.name for file in stream.source.iterdir())


def fresh(golden: tuple[Files, Files, int]) -> list[str]:
    before, after, _ = golden
    return sorted(name for name in after if name not in before)


def test_without_damage_nothing_is_moved(golden: tuple[Files, Files, int], tmp_path: Path) -> None:
    stream = laid_out(tmp_path, golden, {})

    assert stream.heal(golden[2]) == []
    stream.restart()
    assert stream.rows() == Counter(file.name for file in stream.source.iterdir())


@pytest.mark.long
def test_one_damaged_file_is_repaired(golden: tuple[Files, Files, int], tmp_path: Path) -> None:
    """Every file, in every way."""
    for number, name in enumerate(fresh(golden)):
        left = cuts(f"{name}.json", golden[1][name])
        for way, data in left.items() if number % 2 else list(left.items())[::2]:
            folder = tmp_path / f"{number}{way}"
            try:
                exact(laid_out(folder, golden, {name: data}), golden[2])
            except Exception as error:
                raise AssertionError(f"{name} {way}: {error}") from error
            shutil.rmtree(folder)


@pytest.mark.parametrize("number", range(6))
def test_damage_of_some_files_is_repaired(golden: tuple[Files, Files, int], tmp_path: Path, number: int) -> None:
    draw = random.Random(number)
    damage = {}
    for name in fresh(golden):
        if draw.random() < 0.4:
            left = cuts(f"{name}.json", golden[1][name])
            damage[name] = left[draw.choice(sorted(left))]
    exact(laid_out(tmp_path, golden, damage), golden[2])


# ---------------------------------------------------------------------------------------- whose checkpoint it is


@pytest.fixture
def stream(tmp_path: Path) -> Iterator[Stream]:
    """Two published batches and an unpublished third one."""
    made = Stream(tmp_path)
    made.begin()
    for number in range(3):
        made.arrive(f"{number}.json")
        made.batch(number)
    yield made


def refused(stream: Stream) -> str:
    with pytest.raises((EngineError, UsageError)) as caught:
        stream.heal(2)
        spec = TableSpec("landed", stream.table, COLUMNS)
        spark_landing.require_own(Landing(spec, Folder(str(stream.source)), str(stream.checkpoint), "", "app"))
    assert stream.rows() == Counter(["0.json", "1.json", "2.json"])
    return str(caught.value)


def test_a_missing_checkpoint_is_rejected(stream: Stream) -> None:
    shutil.rmtree(stream.checkpoint)

    assert "is missing" in refused(stream) and "--full-refresh" in refused(stream)


def test_a_foreign_checkpoint_is_rejected(stream: Stream) -> None:
    put(stream.checkpoint / "metadata", json.dumps({"id": "another"}))

    assert "belongs to another table" in refused(stream)
    (Path(stream.table) / "_sqlrun_checkpoint").unlink()
    assert "no rows of its checkpoint" in refused(stream)


def test_corrupt_published_files_of_a_checkpoint_are_rejected(stream: Stream) -> None:
    """The list of a published batch is gone, and a newer one has to be landed again: its files are unknown."""
    (stream.checkpoint / "sources/0/1").unlink()
    (stream.checkpoint / "commits/2").write_text("")

    assert "ADVICE" in refused(stream)


def test_missing_files_cannot_be_landed_again(stream: Stream) -> None:
    (stream.source / "2.json").unlink()
    (stream.checkpoint / "offsets/2").write_text("")

    assert "2.json" in refused(stream) and "is missing" in refused(stream)
