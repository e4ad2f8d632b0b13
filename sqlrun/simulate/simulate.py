"""The simulator's folder of order files: a history at once, then one file for each tick. Shell: files and the clock."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from threading import Event

from sqlrun.errors import UsageError
from sqlrun.runtime.clock import MINUTES_PER_DAY
from sqlrun.simulate.orders import minutes, start_for
from sqlrun.simulate.settings import Settings, from_minute, to_minute

# Spark and DuckDB ignore names that start with a dot.
SETTINGS_FILE = ".simulate.json"
_STAMP = "%Y%m%dT%H%M%SZ"
_NAME = re.compile(r"orders-([0-9]{8}T[0-9]{6}Z)\.jsonl")
# Readers must take orders outside of these years for broken dates; one year on both sides is left for late events.
_YEARS = range(2021, 2049)


@dataclass(frozen=True, slots=True)
class Request:
    """Options of one call of the simulator; times are UTC, steps are minutes.

    `end` None means now. `start` None means early enough for about `orders` orders before the end, or, if that is None
    too, `length` before the end.
    """

    folder: Path
    settings: Settings
    start: datetime | None
    end: datetime | None
    orders: int | None
    length: timedelta
    step: int
    history_step: int
    live: bool
    speed: float


@dataclass(frozen=True, slots=True)
class Written:
    """One finished file: its number of lines, and the end of the arrivals in it."""

    path: Path
    end: datetime
    lines: int


def run(request: Request, *, now: Callable[[], datetime], stop: Event, say: Callable[[str], None]) -> None:
    """Complete the folder up to the end of the request and, if requested, continue live until `stop` is set.

    Raises: UsageError for contradictory times and for a folder made with other settings.
    """
    end = _floor(request.end or now(), request.step)
    start = _floor(_start(request, end), request.step)
    if start >= end:
        raise UsageError(f"The history is empty: it begins at {_iso(start)} and ends at {_iso(end)}.")
    done = folder_end(request.folder)
    files = lines = 0
    for file in write_history(
        request.folder, request.settings, start, end, step=request.step, history_step=request.history_step
    ):
        files, lines = files + 1, lines + file.lines
    if files:
        say(f"{lines:,} events in {files:,} files, arrived from {_iso(done or start)} to {_iso(end)}")
    else:
        say(f"{request.folder} already has all events up to {_iso(done or end)}. Nothing to add")
    if request.live:
        for file in live(request.folder, request.settings, step=request.step, speed=request.speed, stop=stop, now=now):
            say(f"{_iso(file.end)}  {file.lines:>7,} events  {file.path.name}")


def write_history(
    folder: Path, settings: Settings, start: datetime, end: datetime, *, step: int, history_step: int
) -> Iterator[Written]:
    """Write the files for the arrivals after `start` and up to `end`, oldest first; yield each when it is done.

    The last day has files of `step` minutes, earlier days have files of `history_step`. A folder with files is
    continued from its end, whatever `start` is: no period is written twice or left out. Therefore the same call
    completes a history that was stopped halfway.
    """
    for moment in (start, end):
        if moment.year not in _YEARS:
            raise UsageError(f"{moment:%Y-%m-%d} is out of range: simulate from {_YEARS[0]} to {_YEARS[-1]}.")
    _claim(folder, settings)
    start = folder_end(folder) or start
    yield from _write(folder, settings, to_minute(start), _ends(to_minute(start), to_minute(end), step, history_step))


def live(
    folder: Path, settings: Settings, *, step: int, speed: float, stop: Event, now: Callable[[], datetime]
) -> Iterator[Written]:
    """Write a file every `step` minutes of simulated time until `stop` is set, continuing at the folder's end.

    The simulated clock starts at the end of the folder, or now if that is later, and runs `speed` times as fast as the
    real one. Missing files before that are written at once.
    """
    _claim(folder, settings)
    real = now()
    first = folder_end(folder) or _floor(real, step)
    origin = max(first, real)

    def due() -> Iterator[int]:
        end = to_minute(_floor(first, step)) + step
        while _wait(from_minute(end) - origin, speed, stop, lambda: now() - real):
            yield end
            end += step

    yield from _write(folder, settings, to_minute(first), due())


def folder_end(folder: Path) -> datetime | None:
    """Return the end of a folder's arrivals, from its newest file's name; None without such a file."""
    names = (_NAME.fullmatch(path.name) for path in folder.glob("orders-*.jsonl"))
    stamps = [name[1] for name in names if name]
    return datetime.strptime(max(stamps), _STAMP).replace(tzinfo=timezone.utc) if stamps else None


def _start(request: Request, end: datetime) -> datetime:
    if request.start:
        return request.start
    if request.orders:
        return from_minute(start_for(request.settings, to_minute(end), request.orders))
    return end - request.length


def _wait(due: timedelta, speed: float, stop: Event, passed: Callable[[], timedelta]) -> bool:
    """Wait until the simulated clock has advanced by `due`; return False if `stop` is set before."""
    while (missing := due.total_seconds() / speed - passed().total_seconds()) > 0:
        # Short waits, because after a laptop's sleep a long one would continue.
        if stop.wait(min(missing, 1.0)):
            return False
    return not stop.is_set()


def _ends(start: int, end: int, step: int, history_step: int) -> Iterator[int]:
    """Yield the end of each file between minutes `start` and `end`, at round times."""
    fine_from = (end - MINUTES_PER_DAY) // history_step * history_step
    while start < end:
        width = history_step if start < fine_from else step
        start = min((start // width + 1) * width, end)
        yield start


def _write(folder: Path, settings: Settings, start: int, ends: Iterator[int]) -> Iterator[Written]:
    """Write a file for each end; it gets its name only when it is complete."""
    stream = minutes(settings, start, None)
    at = start
    for end in ends:
        moment = from_minute(end)
        path = folder / f"orders-{moment.strftime(_STAMP)}.jsonl"
        unfinished = folder / f".{path.name}.tmp"
        count = 0
        # Minute by minute, because a file of a busy day may not fit into memory.
        try:
            with unfinished.open("w", encoding="utf-8", newline="\n") as file:
                while at < end:
                    at, lines = next(stream)
                    file.writelines(lines)
                    count += len(lines)
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
        yield Written(path, moment, count)


def _claim(folder: Path, settings: Settings) -> None:
    """Write the settings to the folder, and reject a folder with other settings.

    Other settings would produce other content for the same event ids.
    """
    folder.mkdir(parents=True, exist_ok=True)
    note = folder / SETTINGS_FILE
    if not note.exists() or folder_end(folder) is None:
        note.write_text(json.dumps(asdict(settings)) + "\n", encoding="utf-8")
        return
    noted = json.loads(note.read_text(encoding="utf-8"))
    other = [
        f"{key} {noted.get(key)} (now {value})" for key, value in asdict(settings).items() if noted.get(key) != value
    ]
    if other:
        raise UsageError(
            f"{folder} has other settings: {', '.join(other)}. "
            "Continue with those, or choose an empty folder with --out."
        )


def _floor(moment: datetime, step: int) -> datetime:
    return from_minute(to_minute(moment) // step * step)


def _iso(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
