"""Watcher for saves of a project's files. Shell: the analyst's folders, the clock.

It polls the modification time of each file. Polling needs no library and works on any file system, also in a
container; for a few hundred files it takes less than a millisecond.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOMS = ("models", "macros", "seeds", "snapshots", "expectations", "tests")
FILES = ("pyproject.toml",)
# Seconds between two polls; polling a large project takes at most a tenth of the time.
PAUSE = 0.012
SHARE = 10
# Seconds to wait for an editor that empties a file before it writes it.
PATIENCE = 0.25
# Maximum age of a save in seconds. A renamed file may be older; then its save counts from its detection.
OLDEST = 2.0

# Modification time in nanoseconds, size, and inode.
State = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Saved:
    """Written, new or deleted files by their path in the project, and the time of the save (seconds since 1970)."""

    files: tuple[str, ...]
    at: float


def look(root: Path) -> Mapping[str, State]:
    """Return the state of every file that a unit test could depend on."""
    found: dict[str, State] = {}
    waiting = [str(root / room) for room in ROOMS]
    for name in FILES:
        try:
            found[str(root / name)] = _state(os.stat(root / name))  # noqa: PTH116
        except OSError:
            continue
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.name.startswith(".") or entry.name == "__pycache__":
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        found[entry.path] = _state(entry.stat())
        except OSError:
            continue  # it was deleted meanwhile; the next poll reports that
    return found


def _state(found: os.stat_result) -> State:
    return found.st_mtime_ns, found.st_size, found.st_ino


def saves(root: Path) -> Iterator[Saved]:
    """Wait for saves and yield each with all files written together; never ends.

    The first poll happens at the call. A file that is still being written delays a save, until two polls are equal and
    no changed file is empty.
    """
    return _saves(root, look(root))


def _saves(root: Path, before: Mapping[str, State]) -> Iterator[Saved]:
    while True:
        started = time.perf_counter()
        now = look(root)
        cost = time.perf_counter() - started
        if now != before:
            now = _settled(root, before, now)
            files = changed(before, now)
            before = now
            if files:
                yield Saved(tuple(Path(file).relative_to(root).as_posix() for file in files), _when(files, now))
                continue
        time.sleep(max(PAUSE, SHARE * cost))


def changed(before: Mapping[str, State], now: Mapping[str, State]) -> tuple[str, ...]:
    """Return the names of the files that differ between two polls, sorted.

    >>> changed({"a": (1, 1, 1), "b": (1, 1, 1)}, {"a": (2, 1, 1), "c": (1, 1, 1)})
    ('a', 'b', 'c')
    """
    return tuple(sorted(file for file in before.keys() | now.keys() if before.get(file) != now.get(file)))


def _settled(root: Path, before: Mapping[str, State], now: Mapping[str, State]) -> Mapping[str, State]:
    last = time.monotonic() + PATIENCE
    while time.monotonic() < last:
        time.sleep(PAUSE / 3)
        then, now = now, look(root)
        half = any(file not in now or now[file][1] == 0 for file in changed(before, now))
        if now == then and not half:
            break
    return now


def _when(files: tuple[str, ...], now: Mapping[str, State]) -> float:
    here = time.time()
    newest = max((now[file][0] / 1e9 for file in files if file in now), default=here)
    return newest if here - OLDEST < newest <= here else here
