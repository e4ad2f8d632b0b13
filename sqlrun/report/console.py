"""Terminal output of a command: plain lines, or colors and progress on a terminal. Shell: the terminal."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, TextIO

from sqlrun.errors import EngineError, ProjectError
from sqlrun.events import CheckResult, Event, NodeResult, Note, Started
from sqlrun.outcome import Outcome
from sqlrun.report.log_lines import DOTS, LOUD, Line, Span, Style, checks, dropped_lines, line, running
from sqlrun.runtime import streams
from sqlrun.runtime.fitted_table import fitted
from sqlrun.runtime.text_lines import text_lines
from sqlrun.runtime.text_table import counted, escaped

if TYPE_CHECKING:
    from rich.console import Console as Screen
    from rich.live import Live
    from rich.text import Text

_COLOURS: dict[Style, str] = {"dim": "dim", "good": "green", "warning": "yellow", "error": "red"}
_LONGEST_STATEMENT = 30
_MOST_PROBLEMS = 200
# Passed checks of one model are printed as one line, this many seconds after the last one.
_PATIENCE = 0.3
# Consoles that draw progress on the terminal. `problem` removes the progress before it prints.
_drawing: list[Console] = []


def _utc_now() -> datetime:
    return datetime.now(timezone.utc)


def is_lively(out: TextIO, environ: Mapping[str, str]) -> bool:
    """Return whether to print colors and progress: on a capable terminal, unless the environment turns them off."""
    if environ.get("NO_COLOR") or environ.get("CI", "false") != "false" or environ.get("TERM", "dumb") == "dumb":
        return False
    return out.isatty()


def encodable(text: str, file: TextIO) -> str:
    """Return a text with escapes for characters that the file's encoding lacks, as under LANG=C."""
    encoding = file.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


class Console:
    """Terminal output of the commands; any thread and any signal handler may call the methods."""

    def __init__(
        self,
        *,
        quiet: bool = False,
        out: TextIO | None = None,
        err: TextIO | None = None,
        environ: Mapping[str, str] | None = None,
        clock: Callable[[], datetime] = _utc_now,
    ) -> None:
        self._quiet, self._clock = quiet, clock
        self._out, self._err = out or sys.stdout, err or sys.stderr
        self._lively = is_lively(self._out, os.environ if environ is None else environ)
        # Reentrant, because a signal handler may interrupt the thread that holds the lock.
        self._lock = threading.RLock()
        self._waiting: deque[tuple[str, Line | str]] = deque()
        self._busy = False
        # Lines of a build's log, held back until they are released; None if lines are printed at once.
        self._held: list[tuple[str, Line | str]] | None = None
        self._patience: threading.Timer | None = None
        self._steps = _Steps()
        self._passed: list[CheckResult] = []
        self._timer: threading.Timer | None = None
        self._due = 0.0
        self._screen: Screen | None = None
        self._live: Live | None = None

    def print(self, text: str, style: Style = "plain") -> None:
        """Print one line of a build's log, with the time."""
        self.lines([Line(text, style=style)])

    def lines(self, lines: Iterable[Line | str]) -> None:
        """Print lines: a `Line` with the time, unless quiet; a str unchanged."""
        with self._lock:
            self._count_passes()
            if not self._steps.running:
                self._stop_drawing()
            for each in lines:
                self._print(each)

    def log(self, lines: Iterable[Line]) -> None:
        """Print lines of a build's log; after `hold`, hold them back."""
        with self._lock:
            for each in lines:
                self._log(each)

    def hold(self) -> None:
        """Hold the log's lines back until `release` prints or `drop` discards them."""
        with self._lock:
            self._let_go()
            self._held = []

    def release_after(self, seconds: float) -> None:
        """Release the held lines after some seconds. This starts a thread, so the process must not fork until then."""
        with self._lock:
            if self._held is not None and self._patience is None:
                self._patience = threading.Timer(seconds, self.release)
                self._patience.daemon = True
                self._patience.start()

    def release(self) -> None:
        """Print the held lines, each with its original time."""
        with self._lock:
            for stamp, each in self._let_go():
                self._print(each, stamp)

    def drop(self) -> bool:
        """Discard the held lines; return whether lines were still held back."""
        with self._lock:
            was_holding = self._held is not None
            self._passed = [] if was_holding else self._passed
            self._let_go()
            self._stop_drawing()
            return was_holding

    def begin_tick(self) -> None:
        """Reset the steps for a new tick."""
        with self._lock:
            self._steps = _Steps()

    def _let_go(self) -> list[tuple[str, Line | str]]:
        if self._patience is not None:
            self._patience.cancel()
        held, self._held, self._patience = self._held or [], None, None
        return held

    def table(
        self,
        names: Sequence[str],
        rows: Sequence[Sequence[object]],
        ending: str,
        everything: str = "--output json",
        whole: Container[str] = (),
    ) -> None:
        """Print rows fitted to the terminal, then `ending`, then what was cut, which the option `everything` prints.

        Columns in `whole` are never cut.
        """
        found = fitted(names, rows, self.columns, self.cut_mark, whole)
        self.lines([*found.lines, ending, *found.notes(self.columns or 0, self.cut_mark, everything)])

    def raw(self, text: str) -> None:
        """Print a result for other programs unchanged; on a terminal, with control characters escaped."""
        with self._lock:
            text = escaped(text, "\n\t") if self._out.isatty() else text
            self._write(self._out, text if text.endswith("\n") else f"{text}\n")

    def emit(self, event: Event) -> None:
        """Print an event of a build; after `hold`, hold it back."""
        with self._lock:
            if not isinstance(event, CheckResult) or event.model not in {check.model for check in self._passed}:
                self._count_passes()
            match event:
                case Started():
                    self._steps.start(event)
                    self._draw()
                    if not self._live:
                        self._log(line(event))
                case NodeResult():
                    what = self._steps.finish(event)
                    for each in (line(event, what), *dropped_lines(event)):
                        self._log(each)
                    for stage in event.stages:
                        for note in text_lines(stage.note):
                            self._log(Line(f"  {note}", style="dim"))
                    if self._steps.done >= self._steps.total:
                        self._stop_drawing()
                case CheckResult(status=Outcome.PASS):
                    self._passed.append(event)
                    self._count_passes_soon()
                case CheckResult() | Note():
                    self._log(line(event))

    def problem(self, error: Exception) -> None:
        """Print an error on stderr: each problem of a project, or one failure and its statement."""
        for console in list(_drawing):
            console.close()
        with self._lock:
            self._count_passes()
            self._write(self._err, escaped(_problem_text(error), "\n") + "\n")

    def close(self) -> None:
        """Remove the progress from the terminal, and print pending lines."""
        with self._lock:
            self._count_passes()
            self._stop_drawing()

    def _count_passes_soon(self) -> None:
        # No event marks the last check of a model, and the next event may be minutes away.
        self._due = time.monotonic() + _PATIENCE
        if self._timer is None:
            self._count_passes_after(_PATIENCE)

    def _count_passes_after(self, seconds: float) -> None:
        self._timer = threading.Timer(seconds, self._passes_are_due)
        self._timer.daemon = True
        self._timer.start()

    def _passes_are_due(self) -> None:
        """Print the passed checks, or wait again if more came meanwhile: one timer costs less than one per check."""
        with self._lock:
            self._timer = None
            left = self._due - time.monotonic()
            if self._passed and left > 0:
                self._count_passes_after(left)
            else:
                self._count_passes()

    def _count_passes(self) -> None:
        passed, self._passed = self._passed, []
        for each in checks(passed):
            self._log(each)

    def _log(self, each: Line) -> None:
        if self._held is None:
            self._print(each)
        else:
            self._held.append((self._stamp(), each))

    def _stamp(self) -> str:
        return f"{self._clock():%H:%M:%S}  "

    def _print(self, each: Line | str, stamp: str | None = None) -> None:
        if isinstance(each, Line) and self._quiet and each.style not in LOUD:
            return
        self._waiting.append((stamp or self._stamp(), each))
        if self._busy:
            return  # called by a signal handler: the interrupted call prints this line after its own
        self._busy = True
        try:
            while self._waiting:
                self._put(*self._waiting.popleft())
        finally:
            self._busy = False

    def _put(self, stamp: str, each: Line | str) -> None:
        if isinstance(each, str):
            head, tag, style = each, "", ""
            spans: tuple[Span, ...] = ()
        else:
            spans = each.spans
            tag, style = each.tag, _COLOURS.get(each.style, "")
            stamp = stamp if each.text or tag else ""
            head = stamp + each.head(self._dots(len(stamp) + len(tag) + 1))
        head, tag = encodable(escaped(head, "\n\t"), self._out), encodable(escaped(tag), self._out)
        head = head if tag else head.rstrip()
        try:
            if self._live or (self._lively and (style or spans)):
                from rich.text import Text

                text = Text.assemble((head, "" if tag else style), (tag, style))
                for start, end, inner in spans:
                    text.stylize(_COLOURS.get(inner, ""), len(stamp) + start, len(stamp) + end)
                self._rich().print(text, soft_wrap=True)
            else:
                self._out.write(f"{head}{tag}\n")
                self._out.flush()
        except OSError as error:
            # A reader that closes the pipe (`| head`), or a full disk, must not end a build halfway.
            streams.give_up(self._out, error)

    def _dots(self, reserved: int) -> int:
        """Return the column where dots end: dbt's, or an earlier one so that the line doesn't wrap."""
        if not self._out.isatty():
            return DOTS
        return min(DOTS, self._size()[0] - reserved)

    @property
    def columns(self) -> int | None:
        """Width of the terminal in characters; None if the output isn't a terminal."""
        return self._size()[0] if self._out.isatty() else None

    @property
    def cut_mark(self) -> str:
        """Mark at the end of a cut text, in the encoding of the output."""
        return "…" if encodable("…", self._out) == "…" else "..."

    def _size(self) -> tuple[int, int]:
        try:
            columns, rows = os.get_terminal_size(self._out.fileno())
        except (OSError, ValueError):
            columns, rows = 0, 0
        return columns or 80, rows or 24  # some terminals don't report their size

    def _write(self, file: TextIO, text: str) -> None:
        try:
            file.write(encodable(text, file))
            file.flush()
        except OSError as error:
            streams.give_up(file, error)  # `sqlrun show | head` isn't an error

    def _rich(self) -> Screen:
        if self._screen is None:
            from rich.console import Console as Screen

            self._screen = Screen(
                file=self._out, force_terminal=True, color_system="standard", markup=False, highlight=False, emoji=False
            )
        return self._screen

    def _draw(self) -> None:
        if self._live is not None or not self._lively or self._quiet:
            return
        from rich.live import Live

        # rich calls `_picture` in its own thread, under its lock. Printing takes this class's lock and then rich's, so
        # `_picture` must not take this class's lock: that could be a deadlock.
        self._live = Live(
            console=self._rich(), get_renderable=self._picture, transient=True, refresh_per_second=5, screen=False
        )
        self._live.start()
        _drawing.append(self)
        atexit.register(self.close)  # otherwise a build that dies leaves the cursor hidden

    def _stop_drawing(self) -> None:
        if self._live is None:
            return
        live, self._live = self._live, None
        _drawing.remove(self)
        atexit.unregister(self.close)
        live.stop()

    def _picture(self) -> Text:
        from rich.text import Text

        columns, rows = self._size()
        lines = self._steps.lines(columns, max(1, min(8, rows - 4)))
        return Text(encodable("\n".join(lines), self._out), style="dim", no_wrap=True, overflow="crop")


class _Steps:
    """Running steps and their start. `running` is replaced, never mutated, so that another thread may read it."""

    def __init__(self) -> None:
        self.running: Mapping[int, tuple[str, float]] = {}
        self.done, self.total = 0, 0

    def start(self, event: Started) -> None:
        """Record a step that starts."""
        self.total = event.total
        self.running = {**self.running, event.index: (event.what, time.monotonic())}

    def finish(self, node: NodeResult) -> str:
        """Record a step that ended; return its description."""
        what, _ = self.running.get(node.index, ("", 0.0))
        self.running = {index: step for index, step in self.running.items() if index != node.index}
        self.done += 1
        return what

    def lines(self, columns: int, most: int) -> list[str]:
        """Return the lines that show the running steps."""
        now = time.monotonic()
        steps = [(what, now - since) for what, since in self.running.values()]
        return running(steps, self.done, self.total, columns, most)


def _problem_text(error: Exception) -> str:
    if isinstance(error, ProjectError):
        count = len(error.problems)
        problems = error.problems[:_MOST_PROBLEMS]
        texts = [str(problem).replace("\t", " ") for problem in problems]
        only = f", of which the first {_MOST_PROBLEMS} are shown" if count > _MOST_PROBLEMS else ""
        ending = [f"Found {counted(count, 'problem')}{only}.", *error.ending(problems)]
        return "\n\n".join([*texts, "\n".join(ending)])
    text = f"Error: {error}"
    if isinstance(error, EngineError):
        text = f"Error in {error.model}: {error}" if error.model else text
        statement = text_lines(error.statement.strip())
        if statement:
            shown = [f"    {part}" for part in statement[:_LONGEST_STATEMENT]]
            more = len(statement) - len(shown)
            text = "\n".join([text, "  while it ran:", *shown, *([f"    ... {more} more lines"] if more else [])])
    return text
