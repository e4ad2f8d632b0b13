"""After a source's folder has moved, Spark's log names its files at their current place."""

from __future__ import annotations

import json
from pathlib import Path

from sqlrun.runtime import hadoop_checksums
from sqlrun.source_api import Streamed
from sqlrun.sources import stream_checkpoint

HERE, THERE = "file:/old%20place/data/orders", "file:/new/data/orders"


def entry(folder: str, name: str, batch: int) -> str:
    return json.dumps({"path": f"{folder}/{name}", "timestamp": 1, "batchId": batch}, separators=(",", ":"))


def log_of(checkpoint: Path, name: str, *entries: str, summed: bool = True) -> Path:
    """Write a file of the log as Spark does, with Hadoop's checksum beside it."""
    file = checkpoint / "sources" / "0" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    text = "\n".join(["v1", *entries])
    file.write_text(text)
    if summed:
        file.with_name(f".{name}.crc").write_bytes(hadoop_checksums.checksum_of(text.encode()))
    return file


def state(checkpoint: Path) -> dict[str, tuple[bytes, int]]:
    """Return each file's content and identity."""
    return {f.name: (f.read_bytes(), f.stat().st_ino) for f in (checkpoint / "sources" / "0").iterdir()}


def files(checkpoint: Path) -> list[Streamed]:
    return sorted(stream_checkpoint.source_files(str(checkpoint)), key=lambda each: each.part)


def test_every_file_of_the_log_has_the_present_folder(tmp_path: Path) -> None:
    """Also compact ones; names, times and batches stay, and so does a matching checksum."""
    compact = log_of(tmp_path, "9.compact", *(entry(HERE, f"{n}%20b.jsonl", n) for n in range(10)))
    last = log_of(tmp_path, "10", entry(HERE, "gr%C3%BCn.jsonl", 10))
    before = files(tmp_path)
    assert stream_checkpoint.relocate(str(tmp_path), lambda: THERE)
    assert files(tmp_path) == before
    assert last.read_text() == "v1\n" + entry(THERE, "gr%C3%BCn.jsonl", 10)
    for file in (compact, last):
        assert HERE not in file.read_text()
        checksum = file.with_name(f".{file.name}.crc").read_bytes()
        assert hadoop_checksums.fits(file.read_bytes(), checksum)
    assert len(state(tmp_path)) == 4


def test_a_correct_log_is_not_written(tmp_path: Path) -> None:
    log_of(tmp_path, "0", entry(THERE, "a.jsonl", 0))
    log_of(tmp_path, "1")
    before = state(tmp_path)
    assert not stream_checkpoint.relocate(str(tmp_path), lambda: THERE)
    assert state(tmp_path) == before
    assert not stream_checkpoint.relocate(str(tmp_path / "none"), lambda: THERE)


def test_an_interrupted_relocation_is_completed(tmp_path: Path) -> None:
    """One file is updated, another lacks its checksum and isn't written yet."""
    right = log_of(tmp_path, "0", entry(THERE, "a.jsonl", 0))
    log_of(tmp_path, "1", entry(HERE, "b.jsonl", 1), summed=False)
    kept = right.stat().st_ino
    assert stream_checkpoint.relocate(str(tmp_path), lambda: THERE)
    assert right.stat().st_ino == kept
    assert (tmp_path / "sources" / "0" / "1").read_text() == "v1\n" + entry(THERE, "b.jsonl", 1)
    assert not (tmp_path / "sources" / "0" / ".1.crc").exists()


def test_only_the_folder_changes(tmp_path: Path) -> None:
    """Text that Spark may add to an entry, and letters beyond ASCII, stay unchanged."""
    line = '{"path":"file:/ä/ö.jsonl","timestamp":1,"batchId":0,"more":"é"}'
    file = log_of(tmp_path, "0", line)
    assert stream_checkpoint.relocate(str(tmp_path), lambda: "file:/ü")
    assert file.read_text() == "v1\n" + line.replace("/ä/", "/ü/")
