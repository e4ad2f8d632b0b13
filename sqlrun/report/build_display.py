"""Terminal output of a build: every step, steps of ticks with news, or one line per tick. Shell: the terminal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from sqlrun.events import CheckResult, Event, NodeResult, Note, TickResult
from sqlrun.outcome import Level
from sqlrun.report import log_lines
from sqlrun.report.console import Console
from sqlrun.report.log_lines import Line
from sqlrun.runtime.text_lines import text_lines

# verbose: every line of every tick. steps: all lines of a tick with news, otherwise one line. ticks: one line per tick,
# and its problems in full.
Detail = Literal["verbose", "steps", "ticks"]
# With `steps`, a tick that takes more seconds than this prints its steps, even if it has no news in the end.
PATIENCE = 30.0


@dataclass(frozen=True, slots=True)
class UnitTestRun:
    """Number and seconds of the unit tests that ran before a build; 0 if all were known to pass."""

    tests: int = 0
    seconds: float = 0.0


class BuildDisplay:
    """Selects the lines that a build prints; any thread may call the methods."""

    def __init__(self, console: Console, detail: Detail = "steps", unit_tests: UnitTestRun | None = None) -> None:
        self.console, self.detail = console, detail
        self.unit_tests = unit_tests or UnitTestRun()
        self._printed_notes: set[object] = set()

    def begin_build(self, opening: Iterable[Line]) -> None:
        """Print what the project contains; `steps` holds it back until there is news."""
        if self.detail == "steps":
            self.console.hold()
        self.console.log(opening if self.detail == "verbose" else [line for line in opening if line.style != "dim"])

    def begin_tick(self) -> None:
        """Start a tick: `ticks` holds its lines back, `steps` releases them after `PATIENCE`."""
        self.console.begin_tick()
        if self.detail == "ticks":
            self.console.hold()
        elif self.detail == "steps":
            self.console.release_after(PATIENCE)

    def emit(self, event: Event) -> None:
        """Print an event of a tick, at once or when there is news."""
        if self.detail == "steps":
            if isinstance(event, CheckResult) and event.status.level is Level.NOTE:
                return  # printed at the end of the tick
            if is_news(event):
                self.console.release()
        self.console.emit(event)

    def end_tick(self, result: TickResult, before: int) -> bool:
        """Print the summary of a tick; return whether its report has news."""
        unit_tests, self.unit_tests = self.unit_tests, UnitTestRun()
        if self.detail == "verbose":
            self._close(result, before, unit_tests)
            return True
        idle = before > 0 and log_lines.is_idle(result)
        if self.detail == "steps" and not (idle and self.console.drop()):
            self.console.release()
            self._close(result, before, unit_tests)
            return True
        self.console.drop()
        return self._one_line(result, before)

    def end_broken_tick(self) -> None:
        """Print the steps of a tick that an error ended, unless `detail` is `ticks`."""
        if self.detail == "ticks":
            self.console.drop()
        else:
            self.console.release()

    def _close(self, result: TickResult, before: int, unit_tests: UnitTestRun) -> None:
        self.console.lines(log_lines.closing(result, before, unit_tests.tests, unit_tests.seconds))

    def _one_line(self, result: TickResult, before: int) -> bool:
        if not result.published:
            self._close(result, before, UnitTestRun())
            return True
        self.console.lines([log_lines.tick_line(result), *self._notes(result)])
        problems = log_lines.failures(result, Level.WARNING)
        self.console.lines(problems)
        return bool(problems)

    def _notes(self, result: TickResult) -> list[Line]:
        """Return the notes on a tick that this build hasn't printed yet."""
        lines: list[Line] = []
        for node in result.nodes:
            for text in (text for stage in node.stages for text in text_lines(stage.note)):
                if self.is_first(text):
                    lines.append(Line(f"  {text}", style="dim"))
        for check in result.checks:
            evaluated = check.status.evaluated or self.detail == "ticks"
            if (
                check.status.level is Level.NOTE
                and evaluated
                and self.is_first((check.check_id, check.model, check.type))
            ):
                lines += log_lines.check_details(check)
        return lines

    def is_first(self, note: object) -> bool:
        """Return whether to print a note: for the first time in this build, or every time if all steps are printed."""
        known = note in self._printed_notes
        self._printed_notes.add(note)
        return not known or self.detail == "verbose"


def is_news(event: Event) -> bool:
    """Return whether an event shows that a tick changes something, or that something is wrong."""
    match event:
        case NodeResult():
            return event.status != "no-op"
        case CheckResult():
            return event.status.level in (Level.WARNING, Level.BLOCKS)
        case Note():
            return event.is_news
        case _:
            return False
