"""The benchmarks' input: order files of a history of any length, and the same ticks after each. Shell: files.

Every history ends at the same time and has the same number of orders a day. A longer history therefore starts earlier,
and nothing else differs: the ticks' files are the same bytes for all sizes.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

from sqlrun.runtime.clock import MINUTES_PER_DAY
from sqlrun.simulate.orders import events, start_for
from sqlrun.simulate.orders_folder import OrdersFolder
from sqlrun.simulate.settings import Settings, from_minute, to_minute
from sqlrun.simulate.simulate import write_history

STEP = 5
FIRST = datetime(2026, 11, 2, 12, 10, tzinfo=timezone.utc)
# 1,000,000 orders are eight days: the window of seven days is full in every size.
LARGE = Settings(orders_per_day=125_000, restaurants=1000)
SMALL = Settings()


@dataclass(frozen=True, slots=True)
class Tick:
    """One tick's arriving file and its time; `more` are further files."""

    file: str
    as_of: datetime
    lines: int
    more: tuple[str, ...] = ()

    @property
    def files(self) -> tuple[str, ...]:
        """Return all files that arrive."""
        return (self.file, *self.more)


@dataclass(frozen=True, slots=True)
class World:
    """A history and the ticks after it. `days` is the length of the history."""

    name: str
    orders: int
    new: int
    days: float
    history: tuple[str, ...]
    history_lines: int
    as_of: datetime
    ticks: tuple[Tick, ...]


def size_of(text: str) -> int:
    """Return the number of orders in 1m, 250k or 20000.

    >>> size_of("1m"), size_of("250k")
    (1000000, 250000)
    """
    units = {"k": 1_000, "m": 1_000_000}
    text = text.strip().lower().replace("_", "").replace(",", "")
    return int(float(text[:-1]) * units[text[-1]]) if text[-1] in units else int(text)


def make(folder: Path, name: str, settings: Settings, orders: int, new: int, ticks: int) -> World:
    """Write a world's files, or find them from an earlier run."""
    ends = times(settings, new, ticks)
    begin = from_minute(start_for(settings, to_minute(ends[0]), orders) // STEP * STEP)
    days = (ends[0] - begin) / timedelta(days=1)
    wanted = {"settings": asdict(settings), "begin": begin.isoformat(), "end": ends[0].isoformat(), "new": new}
    note = folder / "world.json"
    known = json.loads(note.read_text()) if note.is_file() else {}
    if {key: known.get(key) for key in wanted} != wanted:
        known = {**wanted, "lines": {"history": _write_history(folder, settings, begin, ends[0])}}
    for start, end in itertools.pairwise(ends):
        if file_of(end) not in known["lines"]:
            known["lines"][file_of(end)] = _write_tick(folder, settings, start, end)
    note.write_text(json.dumps(known))
    lines = known["lines"]
    history = tuple(str(path) for path in sorted((folder / "history").glob("*.jsonl")))
    made = tuple(Tick(str(folder / "ticks" / file_of(end)), end, lines[file_of(end)]) for end in ends[1:])
    return World(name, orders, new, days, history, lines["history"], ends[0], made)


def times(settings: Settings, new: int, ticks: int) -> list[datetime]:
    """Return the end of the history and of each tick: the distance is the time of `new` orders, in 5-minute steps."""
    ends = [to_minute(FIRST)]
    for _ in range(ticks):
        end = ends[-1] + STEP
        while start_for(settings, end, new) < ends[-1]:
            end += STEP
        ends.append(end)
    return [from_minute(end) for end in ends]


def file_of(end: datetime) -> str:
    """Return a tick's file name, which sorts after the history's."""
    return f"tick-{end:%Y%m%dT%H%M}.jsonl"


def _write_history(folder: Path, settings: Settings, begin: datetime, end: datetime) -> int:
    # Contenders' results for another history are useless.
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "ticks").mkdir(parents=True)
    step = MINUTES_PER_DAY // 24
    found = write_history(
        OrdersFolder(folder / "history"), settings, begin, end, step=step, history_step=MINUTES_PER_DAY
    )
    return sum(file.lines for file in found)


def _write_tick(folder: Path, settings: Settings, start: datetime, end: datetime) -> int:
    found = events(settings, to_minute(start), to_minute(end))
    (folder / "ticks" / file_of(end)).write_text("".join(found), encoding="utf-8")
    return len(found)


def arrive(file: str, folder: Path) -> None:
    """Make a file appear in a source folder, complete, without copying it."""
    target = folder / Path(file).name
    if not target.exists():
        os.link(file, target)
