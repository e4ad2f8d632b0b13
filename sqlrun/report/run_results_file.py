"""target/run_results.json, rewritten atomically while a build runs. Shell: files under target/."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path

from sqlrun.errors import SqlrunError
from sqlrun.events import CheckResult, Event, NodeResult, Note, Started, TickResult
from sqlrun.outcome import Outcome
from sqlrun.report.run_results import Invocation, check_result, document, json_of, node_result
from sqlrun.runtime import atomic_files

NAME = "run_results.json"
# The argument with the time that the caller asked for; `as_of` is the tick's.
ASKED = "asked_as_of"
# A write contains all results. Above FEW results the file is written at most once in PAUSE seconds, unless something
# failed, because writes after each step would grow with the square of the steps.
FEW, PAUSE = 100, 1.0
# Statuses of steps that are written together with the checks that follow.
WELL = ("success", "no-op")


class Artifacts:
    """The results of one tick in `folder`; `args` are the options of the build."""

    def __init__(
        self, folder: Path, project: str, clock: Callable[[], datetime], args: Mapping[str, object] | None = None
    ) -> None:
        self._file, self._clock = folder / NAME, clock
        self._args: dict[str, object] = {"which": "build", **(args or {})}
        self._run = Invocation(str(uuid.uuid4()), project, clock(), self._args)
        self._lock = threading.Lock()
        self._what: dict[int, str] = {}
        self._results: list[str] = []
        self._follow = 0  # checks of the last step that are still to come
        self._owed = False  # something other than passed checks was added since the last write
        self._written = 0.0  # monotonic seconds of the last write
        try:
            folder.mkdir(parents=True, exist_ok=True)
            # Written at once, so that a reader doesn't take the last build's results for this one's, and an unwritable
            # disk is reported before anything runs.
            self._write(synced=False)
        except OSError as error:
            raise self._refusal(error) from error

    def emit(self, event: Event) -> None:
        """Add a result to the file. A full disk doesn't stop a tick: `finish` reports it."""
        with self._lock:
            now = self._clock()
            match event:
                case Started():
                    self._what[event.index] = event.what
                    return
                case Note():
                    return
                case NodeResult():
                    self._follow = event.follow
                    well, owed = event.status in WELL, True
                    self._add(node_result(self._run.project, event, now, self._what.get(event.index, "")))
                case CheckResult():
                    self._follow -= 1
                    well = event.status is Outcome.PASS
                    owed = not well
                    self._add(check_result(self._run.project, event, now))
            # Surviving a power failure needs fsync, surviving a kill doesn't. Passed checks can be recomputed.
            self._owed = self._owed or owed
            if well and self._follow > 0:
                return  # the next result follows at once
            if well and len(self._results) > FEW and time.monotonic() - self._written < PAUSE:
                return
            try:
                self._write(synced=self._owed)
            except OSError:
                return
            self._owed = False

    def finish(self, result: TickResult) -> None:
        """Write the final file, with the outcome of the tick.

        Raises: SqlrunError if it can't be written.
        """
        with self._lock:
            if "as_of" in self._args:
                self._args[ASKED] = self._args["as_of"]
            self._args |= {"tick": result.tick, "as_of": result.as_of.isoformat(), "published": result.published}
            try:
                self._write(synced=True, elapsed=result.seconds)
            except OSError as error:
                raise self._refusal(error) from error

    def _add(self, result: dict[str, object]) -> None:
        # Stored as JSON, because each later write contains all results.
        self._results.append(json_of(result))

    def _write(self, *, synced: bool, elapsed: float | None = None) -> None:
        """Replace the file atomically: a reader never sees half of one."""
        now = self._clock()
        if elapsed is None:
            elapsed = max(0.0, (now - self._run.started_at).total_seconds())
        text = document(self._run, self._results, elapsed, now)
        atomic_files.put(self._file, text, synced=synced)
        self._written = time.monotonic()

    def _refusal(self, error: OSError) -> SqlrunError:
        return SqlrunError(f"can't write {self._file}: {error.strerror or error}")
