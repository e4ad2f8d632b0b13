"""`sqlrun test --watch`: run the affected tests after each save. Shell: the project, the terminal, the clock."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sqlrun import pipeline
from sqlrun.errors import SqlrunError, UsageError
from sqlrun.pipeline import Prepared
from sqlrun.project import UnitTest
from sqlrun.report.console import Console
from sqlrun.report.log_lines import Line
from sqlrun.runtime.disk_cache import Cache
from sqlrun.runtime.text_table import counted
from sqlrun.unit_tests import choosing
from sqlrun.unit_tests.affected import Seen, changed_tests, seen
from sqlrun.unit_tests.file_watcher import Saved, saves
from sqlrun.unit_tests.output import shown
from sqlrun.unit_tests.project_tests import chosen, run_tests

# Options for a run that ends.
ALONE = ("failed", "junit", "as_json", "coverage", "min_coverage")
INTERRUPTED = 130


def watch(root: Path, options: Mapping[str, Any]) -> int:
    """Run the selected tests, then, until Ctrl-C, the tests that each save affects."""
    if any(options[name] not in (None, False) for name in ALONE):
        raise UsageError("--watch can't be combined with --failed, --junit, --json or --coverage.")
    watched = _Watched(root.resolve(), options)
    # A shell starts background processes with SIGINT ignored; `kill -INT` should still end the watch.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        # Polling begins before the first run, so that a save during it is not lost.
        following = saves(watched.root)
        watched.begin()
        for saved in following:
            watched.saved(saved)
    except KeyboardInterrupt:
        watched.console.print("Stopped.")
    finally:
        signal.signal(signal.SIGINT, before)
    return INTERRUPTED


class _Watched:
    """A project that is loaded again after each save, and its tests' dependencies when it was last valid."""

    def __init__(self, root: Path, options: Mapping[str, Any]) -> None:
        self.root, self._options = root, options
        self.console = Console(quiet=options["quiet"])
        self._cache = Cache.of(root) or Cache(None)
        self._seen: Seen = {}

    def begin(self) -> None:
        """Run all selected tests."""
        self._print_errors(lambda: self._run(None))
        self.console.print(f"Watching {self.root.name}; Ctrl-C stops.", "dim")

    def saved(self, saved: Saved) -> None:
        """Run the tests that a save affects."""
        self._print_errors(lambda: self._run(saved))

    def _print_errors(self, work: Callable[[], None]) -> None:
        """Run work and print its errors: the project may be invalid until the next save."""
        try:
            work()
        except SqlrunError as error:
            self.console.problem(error)
        except OSError as error:
            self.console.problem(SqlrunError(f"{error.filename}: {error.strerror}"))
        except RecursionError:
            self.console.problem(UsageError("a query is nested too deeply. Split it into CTEs or models (SR301)"))

    def _run(self, saved: Saved | None) -> None:
        prepared = self._prepared()
        selected = chosen(self.root, prepared, self._options)
        now = seen(prepared, selected)
        names = changed_tests(self._seen, now)
        tests = tuple(test for test in selected if choosing.key_of(test) in names)
        self._seen = now
        if saved is None and not tests:
            self.console.print(shown.NOTHING, "warning")
        elif not tests:
            self.console.print(f"{_files(saved)} saved: no test is affected{_after(saved)}.", "dim")
        else:
            self._results(prepared, tests, saved)

    def _prepared(self) -> Prepared:
        """Return the loaded project; unchanged parts come from memory."""
        self._cache = self._cache.again()
        return pipeline.prepare(self.root, self._cache)

    def _results(self, prepared: Prepared, tests: tuple[UnitTest, ...], saved: Saved | None) -> None:
        if saved is not None:
            self.console.print(f"{_files(saved)} saved: {counted(len(tests), 'test')} to run")
        results = run_tests(self.root, prepared, tests, self.console, self._options, self._cache)
        if saved is not None:
            good = all(result.status == "pass" for result in results)
            text = f"{counted(len(results), 'test')} ran{_after(saved)}."
            self.console.lines([Line(text, style="good" if good else "error")])


def _files(saved: Saved | None) -> str:
    if saved is None:
        return ""
    more = len(saved.files) - 2
    return f"{', '.join(saved.files[:2])}{f' and {more} more' if more > 0 else ''}"


def _after(saved: Saved | None) -> str:
    return "" if saved is None else f", {max(0.0, time.time() - saved.at) * 1000:.0f} ms after the save"
