"""The simulator's history at once, then one piece for each tick, written to a folder or a topic. Shell: the clock."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Protocol

from sqlrun.errors import UsageError
from sqlrun.runtime.clock import MINUTES_PER_DAY
from sqlrun.simulate.orders import minutes, start_for
from sqlrun.simulate.settings import Settings, from_minute, to_minute

# Readers must take orders outside of these years for broken dates; one year on both sides is left for late events.
_YEARS = range(2021, 2049)


@dataclass(frozen=True, slots=True)
class Written:
    """One finished piece: the end of its arrivals, its number of lines, and its file if it is one."""

    end: datetime
    lines: int
    path: Path | None = None


class Place(Protocol):
    """Where the lines go: each piece completely or not at all."""

    @property
    def name(self) -> str:
        """Return the place for messages."""

    @property
    def has_fine_pieces(self) -> bool:
        """Return whether the last day of a history has pieces of `step`; else all are of `history_step`."""

    def claim(self, settings: Settings) -> None:
        """Note the settings there. Raises: UsageError if it has lines of other settings, or of another writer."""

    def end(self) -> datetime | None:
        """Return the end of the arrivals there; None without any."""

    def write(self, end: datetime, minutes: Iterable[tuple[int, list[str]]]) -> Written:
        """Write a piece that ends at `end`: the lines, with line ends, of each of its minutes."""


@dataclass(frozen=True, slots=True)
class Request:
    """Options of one call of the simulator; times are UTC, steps are minutes.

    `end` None means now. `start` None means early enough for about `orders` orders before the end, or, if that is None
    too, `length` before the end.
    """

    place: Place
    settings: Settings
    start: datetime | None
    end: datetime | None
    orders: int | None
    length: timedelta
    step: int
    history_step: int
    live: bool
    speed: float


def run(request: Request, *, now: Callable[[], datetime], stop: Event, say: Callable[[str], None]) -> None:
    """Complete the place up to the end of the request and, if requested, continue live until `stop` is set.

    Raises: UsageError for contradictory times and for a place with lines of other settings.
    """
    end = _floor(request.end or now(), request.step)
    start = _floor(_start(request, end), request.step)
    if start >= end:
        raise UsageError(f"The history is empty: it begins at {_iso(start)} and ends at {_iso(end)}.")
    place, settings = request.place, request.settings
    done = place.end()
    pieces = lines = files = 0
    for piece in write_history(place, settings, start, end, step=request.step, history_step=request.history_step):
        pieces, lines, files = pieces + 1, lines + piece.lines, files + (piece.path is not None)
    if pieces:
        where = f"{files:,} files" if files else place.name
        say(f"{lines:,} events in {where}, arrived from {_iso(done or start)} to {_iso(end)}")
    else:
        say(f"{place.name} already has all events up to {_iso(done or end)}. Nothing to add")
    if request.live:
        for piece in live(place, settings, step=request.step, speed=request.speed, stop=stop, now=now):
            say(f"{_iso(piece.end)}  {piece.lines:>7,} events  {piece.path.name if piece.path else place.name}")


def write_history(
    place: Place, settings: Settings, start: datetime, end: datetime, *, step: int, history_step: int
) -> Iterator[Written]:
    """Write the pieces for the arrivals after `start` and up to `end`, oldest first; yield each when it is done.

    A file of the last day has `step` minutes; other pieces have `history_step`. A place with lines is
    continued from its end, whatever `start` is: no period is written twice or left out. Therefore the same call
    completes a history that was stopped halfway.
    """
    for moment in (start, end):
        if moment.year not in _YEARS:
            raise UsageError(f"{moment:%Y-%m-%d} is out of range: simulate from {_YEARS[0]} to {_YEARS[-1]}.")
    place.claim(settings)
    start = place.end() or start
    step = step if place.has_fine_pieces else history_step
    yield from _write(place, settings, to_minute(start), _ends(to_minute(start), to_minute(end), step, history_step))


def live(
    place: Place, settings: Settings, *, step: int, speed: float, stop: Event, now: Callable[[], datetime]
) -> Iterator[Written]:
    """Write a piece every `step` minutes of simulated time until `stop` is set, continuing at the place's end.

    The simulated clock starts at the end of the place, or now if that is later, and runs `speed` times as fast as the
    real one. Missing pieces before that are written at once.
    """
    place.claim(settings)
    real = now()
    first = place.end() or _floor(real, step)
    origin = max(first, real)

    def due() -> Iterator[int]:
        end = to_minute(_floor(first, step)) + step
        while _wait(from_minute(end) - origin, speed, stop, lambda: now() - real):
            yield end
            end += step

    yield from _write(place, settings, to_minute(first), due())


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
    """Yield the end of each piece between minutes `start` and `end`, at round times."""
    fine_from = (end - MINUTES_PER_DAY) // history_step * history_step
    while start < end:
        width = history_step if start < fine_from else step
        start = min((start // width + 1) * width, end)
        yield start


def _write(place: Place, settings: Settings, start: int, ends: Iterator[int]) -> Iterator[Written]:
    """Write a piece for each end."""
    stream = minutes(settings, start, None)
    for end in ends:
        # Minute by minute, because a piece of a busy day may not fit into memory.
        yield place.write(from_minute(end), itertools.islice(stream, end - start))
        start = end


def _floor(moment: datetime, step: int) -> datetime:
    return from_minute(to_minute(moment) // step * step)


def _iso(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
