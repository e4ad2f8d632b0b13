"""The files of a source: which there are, which have changed since they landed, which are gone. Shell: files."""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote

from sqlrun.engines import checkpoint_files
from sqlrun.errors import EngineError
from sqlrun.load.source_file_names import is_source_file
from sqlrun.runtime.text_lines import text_lines

# Size in bytes and time of the last change in nanoseconds; None where that is not remembered.
Stat = tuple[int | None, int | None]
# A file that is at rest for so many seconds is taken for whole, even if its last line doesn't end.
SETTLES = 10.0
SHOWN = 3


def listed(folder: str) -> dict[str, Stat]:
    """List the files of a source with their state: *.json, *.jsonl, *.ndjson; hidden ones are being written."""
    try:
        entries = list(os.scandir(folder))
    except FileNotFoundError as error:
        raise EngineError(f"the source folder {folder} does not exist") from error
    except OSError as error:
        raise EngineError(f"the source folder {folder} can't be read: {error.strerror}") from error
    found: dict[str, Stat] = {}
    for entry in entries:
        if entry.name[0] not in "._" and is_source_file(entry):
            with suppress(OSError):  # it went while the folder was read
                stat = entry.stat()
                found[entry.name] = stat.st_size, stat.st_mtime_ns
    return found


def read_whole(folder: str, name: str, expected: Stat) -> bytes | None:
    """Read a file; None where it is another than was listed, or changes while it is read.

    Raises: FileNotFoundError.
    """
    with (Path(folder) / name).open("rb") as file:
        data = file.read()
        stat = os.fstat(file.fileno())
    same = expected[0] is None or (stat.st_size, stat.st_mtime_ns) == expected
    return data if same and len(data) == stat.st_size else None


def half_written(folder: str, name: str, stat: Stat) -> bool:
    """Tell whether a file was changed a moment ago and its last line doesn't end."""
    size, changed_at = stat
    if not size or changed_at is None or time.time() - changed_at / 1e9 >= SETTLES:
        return False
    try:
        with (Path(folder) / name).open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) not in (b"\n", b"\r")
    except OSError:  # it went, or became empty
        return True


def changed(known: Mapping[str, Stat], present: Mapping[str, Stat]) -> list[str]:
    """Name the landed files that are others now than when they landed."""

    def differs(name: str, then: Stat) -> bool:
        return any(old is not None and old != now for old, now in zip(then, present[name], strict=True))

    return sorted(name for name, then in known.items() if name in present and differs(name, then))


def some(names: Iterable[str]) -> str:
    """Name the first few of some files.

    >>> some(["a", "b", "c", "d"])
    'a, b, c and 1 more'
    """
    known = list(names)
    more = f" and {len(known) - SHOWN:,} more" if len(known) > SHOWN else ""
    return ", ".join(known[:SHOWN]) + more


def waiting(names: list[str]) -> str:
    """Tell of files that are being written; empty where there are none."""
    if not names:
        return ""
    them = "file is" if len(names) == 1 else "files are"
    return f"{len(names):,} {them} being written and left for the next tick: {some(names)}"


def warning(known: Mapping[str, Stat], present: Mapping[str, Stat]) -> str:
    """Tell of files that were changed after they landed; empty where there are none."""
    names = changed(known, present)
    if not names:
        return ""
    them = "file was" if len(names) == 1 else "files were"
    return (
        f"{len(names):,} {them} changed after landing and not read again: {some(names)}. Send what is new as a new "
        "file, or land all anew with --full-refresh"
    )


def gone(name: str, source: str, names: list[str]) -> EngineError:
    """Say that files that a batch is to land can't be read any more."""
    them = "a file" if len(names) == 1 else f"{len(names):,} files"
    return EngineError(
        f"{name} was about to land {them} of {source} that can't be found any more: {some(names)}. "
        "Put back what is missing, or go on without it: sqlrun build --accept-lost-files",
        model=name,
    )


def landed_by(checkpoint: Path) -> set[str]:
    """Name the files that a checkpoint, of either engine, remembers as landed."""
    # A torn plan was never carried out.
    planned = {
        name for plan in checkpoint_files.plans(checkpoint).values() if plan is not None for name in plan["files"]
    }
    return planned | {name for name, _, _ in spark_log(checkpoint)}


def spark_log(checkpoint: Path) -> Iterator[tuple[str, int, int]]:
    """Give name, time of change in milliseconds, and batch of each file in the log of a Spark source."""
    folder = checkpoint / "sources" / "0"
    logs = [log for log in folder.iterdir() if not log.name.startswith(".")] if folder.is_dir() else []
    for line in itertools.chain.from_iterable(text_lines(log.read_text())[1:] for log in logs):
        try:
            entry = json.loads(line)
            found = unquote(entry["path"].rsplit("/", 1)[-1]), entry["timestamp"], entry["batchId"]
        except (ValueError, KeyError, TypeError) as error:
            raise EngineError(f"{folder} can't be read: {error}. `sqlrun doctor` tells what to do") from error
        yield found
