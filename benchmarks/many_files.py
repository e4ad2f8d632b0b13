"""Find new files among very many: seconds and memory of the first listing, and of one after a few files came late.

python -m benchmarks.many_files --files 1000000
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from sqlrun.errors import Place
from sqlrun.project import Column, Files, Source
from sqlrun.sources import batches
from sqlrun.sources.files import Files as Reader

PER_FOLDER = 1_000
T = TypeVar("T")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--keep", type=Path, help="a folder for the files, which stay there")
    chosen = parser.parse_args()
    root = chosen.keep or Path(tempfile.mkdtemp(prefix="sqlrun-many-files-"))
    try:
        measure(root, chosen.files)
    finally:
        if not chosen.keep:
            shutil.rmtree(root)


def measure(root: Path, count: int) -> None:
    write(root / "data", count)
    columns = (Column("id", "string", "The id.", Place("")),)
    source = Source("g", "s", "csv", "data", columns, "Files.", Place(""), files=Files())
    reader = Reader.of(str(root / "data"), source)
    checkpoint = str(root / "checkpoint")
    batches.identify(checkpoint, "id")
    first = timed("list all of them for the first time", lambda: reader.pending({}))
    assert len(first.ready) == count
    timed("write the plan of a batch with all of them", lambda: batches.plan(checkpoint, 1, first.ready))
    for number in range(10):
        late = root / "data" / folder_of(number * PER_FOLDER) / f"late-{number}.csv"
        late.write_text("id\n1\n")
        os.utime(late, (0, 0))
    known = timed(
        "read the checkpoint", lambda: batches.landed(one for one in batches.read(checkpoint).values() if one)
    )
    second = timed("list them again: 10 late ones with old times, in old folders", lambda: reader.pending(known))
    assert len(second.ready) == 10, len(second.ready)
    print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024:,} MB at most")


def timed(what: str, run: Callable[[], T]) -> T:
    started = time.perf_counter()
    found = run()
    print(f"{time.perf_counter() - started:6.1f} s  {what}")
    return found


def folder_of(number: int) -> str:
    hour = number // PER_FOLDER
    return f"day={2020 + hour // 8760}-{hour // 730 % 12 + 1:02}-{hour // 24 % 28 + 1:02}/hour={hour % 24:02}-{hour}"


def write(root: Path, count: int) -> None:
    at = time.time() - 3_600
    for number in range(count):
        folder = root / folder_of(number)
        if number % PER_FOLDER == 0:
            folder.mkdir(parents=True, exist_ok=True)
        file = os.open(f"{folder}/{number:07}.csv", os.O_CREAT | os.O_WRONLY)
        os.write(file, b"id\n1\n")
        os.close(file)
        os.utime(f"{folder}/{number:07}.csv", (at, at))


if __name__ == "__main__":
    main()
