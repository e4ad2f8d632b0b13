"""Spark's log of a source whose folder was moved: whole paths, made to be the present ones. Shell: files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from sqlrun.engines.delta import log_faults
from sqlrun.runtime import atomic_files


def follow(logs: Path, folder: str) -> bool:
    """Have a source's log name its files where they are now; tell whether they were elsewhere.

    `logs`: the folder of the log. `folder`: the source's, as Spark spells it, a URI without a last slash. Spark takes a
    file at another path for another file, and can't begin again at a path that isn't the source's; sqlrun tells files
    apart by their names alone. Where this is cut short some files of the log are right, and the next time goes on.
    """
    names = [file.name for file in logs.iterdir()] if logs.is_dir() else []
    moved = False
    for name in log_faults.source_logs(names).values():
        text = (logs / name).read_text("utf-8")
        now = "\n".join(_lines(text, folder))
        if now != text:
            _write(logs / name, now)
            moved = True
    return moved


def _lines(text: str, folder: str) -> Iterator[str]:
    """Give a log's lines with present paths; those that are right as they are, to the letter."""
    version, *lines = text.split("\n")
    yield version
    for line in lines:
        if not line:
            yield line
            continue
        entry = json.loads(line)
        before, _, name = entry["path"].rpartition("/")
        if before == folder:
            yield line
        else:
            yield json.dumps(entry | {"path": f"{folder}/{name}"}, ensure_ascii=False, separators=(",", ":"))


def _write(file: Path, text: str) -> None:
    """Write a file anew, and the checksum that Hadoop keeps beside it: the old one never stands beside the new text."""
    checksum = file.with_name(f".{file.name}.crc")
    is_summed = checksum.exists()
    checksum.unlink(missing_ok=True)
    atomic_files.write(file, text)
    if is_summed:
        checksum.write_bytes(log_faults.checksum_of(text.encode()))
