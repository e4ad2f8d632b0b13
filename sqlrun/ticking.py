"""One tick, a tick every few minutes, or a walk through history. Shell: the clock, signals, the engine."""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sqlrun import lock, receipts, report
from sqlrun.artifacts import Artifacts
from sqlrun.build import Request, tick
from sqlrun.console import Console
from sqlrun.engines.choice import engine_of
from sqlrun.engines.duckdb import DuckDBEngine
from sqlrun.errors import EngineError, SqlrunError, UsageError
from sqlrun.events import Event, TickResult
from sqlrun.ledger import Ledger
from sqlrun.model import Profile
from sqlrun.pipeline import Prepared
from sqlrun.ticks import floor, parse_time

INTERRUPTED = 130
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def step_of(text: str) -> timedelta:
    """Read a step such as 5m, 30s, 1h.

    >>> step_of("5m")
    datetime.timedelta(seconds=300)
    """
    found = re.fullmatch(r"(\d+)([smhd])", text.strip())
    if not found or not int(found[1]):
        raise UsageError(f"`{text}` is not a step; write 30s, 5m, 1h or 1d")
    return timedelta(seconds=int(found[1]) * UNITS[found[2]])


def time_of(text: str) -> datetime:
    """Read a time that a user typed."""
    try:
        return parse_time(text)
    except ValueError:
        raise UsageError(f"`{text}` is not a time; write 2026-01-31T12:05 (UTC)") from None


def refuse_nonsense(options: dict[str, Any]) -> None:
    """Say at once what is wrong with the times that a user typed (UsageError), before anything runs."""
    if sum(1 for key in ("as_of", "every", "replay") if options[key]) > 1:
        raise UsageError("--as-of, --every and --replay exclude each other")
    step_of(options["every"] or options["step"])
    times = [time_of(text) for text in (options["as_of"], *(options["replay"] or ())) if text]
    if options["replay"] and times[1] < times[0]:
        raise UsageError("--replay goes forward: FROM lies before TO")


class Session:
    """A build: one lock, one engine, one or many ticks."""

    def __init__(
        self,
        root: Path,
        prepared: Prepared,
        target: Profile,
        names: tuple[str, ...],
        console: Console,
        clock: Callable[[], datetime],
        receipts: bool,
    ) -> None:
        self.root, self.prepared, self.target, self.names = root, prepared, target, names
        self.console, self.clock, self.receipts = console, clock, receipts
        self._stop = threading.Event()
        # The few rows that are checked are read without a job of Spark's.
        self._reader = DuckDBEngine() if target.engine != "duckdb" else None

    def run(self, options: dict[str, Any]) -> int:
        """Tick as the options say; give the exit code of the last tick that failed, else 0."""
        Path(self.target.warehouse).mkdir(parents=True, exist_ok=True)
        engine = engine_of(self.target)
        ledger = Ledger(self.target.warehouse, self.prepared.nouns.name)
        code = 0
        wait = self.console.print if options["wait"] else None
        with lock.hold(self.target.warehouse, self.clock(), wait) as holder, self._signals():
            try:
                refresh = options["full_refresh"]
                for as_of in self._times(options, ledger):
                    result = self._tick(engine, ledger, as_of, refresh, holder, options)
                    refresh = False
                    code = 0 if result.published else 1
                    if code and not options["every"]:
                        break
            except KeyboardInterrupt:
                self.console.print("Stopped. Nothing of this tick is published; the next build takes it back.", "error")
                return INTERRUPTED
            finally:
                engine.close()
        return code

    def _times(self, options: dict[str, Any], ledger: Ledger) -> Iterator[datetime]:
        """Give the ticks' times, waiting for each where the clock has to reach it."""
        step = step_of(options["every"] or options["step"])
        if options["as_of"]:
            yield time_of(options["as_of"])
        elif options["replay"]:
            first, last = (time_of(text) for text in options["replay"])
            while first <= last and not self._stop.is_set():
                yield first
                first += step
        else:
            yield self._now(step, ledger)
            while options["every"] and not self._stop.is_set():
                following = floor(self.clock(), step) + step
                self.console.print(f"Next tick at {following:%H:%M:%S} UTC; Ctrl-C stops.")
                if self._stop.wait(max(0.0, (following - self.clock()).total_seconds())):
                    return
                yield self._now(step, ledger)

    def _now(self, step: timedelta, ledger: Ledger) -> datetime:
        """Take the clock's time, rounded down; never before the published tick (a clock may go back)."""
        now = floor(self.clock(), step)
        published = ledger.read().published
        return max(now, published.as_of) if published else now

    def _tick(
        self, engine: Any, ledger: Ledger, as_of: datetime, refresh: bool, holder: str, options: dict[str, Any]
    ) -> TickResult:
        args = {name: value for name, value in options.items() if value not in (None, (), False)}
        artifacts = Artifacts(self.root / "target", self.prepared.nouns.name, self.clock, args)
        before = ledger.read().published

        def tell(event: Event) -> None:
            self.console.tell(event)
            artifacts.tell(event)

        request = Request(self.target.warehouse, as_of, self.names, refresh, self.target.threads, holder, self.clock)
        try:
            result = tick(self.prepared.space, engine, ledger, request, tell, self._reader)
        except SqlrunError as error:
            if not options["every"] or error.exit_code != 1:
                raise
            self.console.problem(error)
            return TickResult(0, as_of, False, 0.0, ())
        artifacts.finish(result)
        self.console.lines(report.closing(result, before.tick if before else 0))
        if self.receipts:
            self.console.lines(report.receipts_table(result))
        try:
            receipts.write(self.target.warehouse, result, self.target.engine, self.clock())
        except EngineError as error:
            self.console.problem(error)
        return result

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Let SIGINT and SIGTERM end the build after the tick it is in; a second one ends it at once.

        What a tick that was cut short has written is taken back when the next build starts.
        """

        def stop(number: int, frame: object) -> None:
            del frame
            if self._stop.is_set():
                raise KeyboardInterrupt
            self._stop.set()
            self.console.print(f"{signal.Signals(number).name}: stopping after this tick; again to stop at once.")

        before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
