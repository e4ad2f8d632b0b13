"""Output of a build as JSON lines. Shell: standard output."""

from __future__ import annotations

from sqlrun.events import Event, NodeResult, Started
from sqlrun.report.console import Console
from sqlrun.report.json_log import JsonLog
from sqlrun.report.log_lines import Line


class JsonConsole(Console):
    """Prints every event and every line of a build as one JSON line, at once; any thread may call the methods."""

    def __init__(self, log: JsonLog) -> None:
        super().__init__(environ={"NO_COLOR": "1"})
        self._json_log = log
        self._what: dict[int, str] = {}

    def emit(self, event: Event) -> None:
        """Print an event of a build."""
        with self._lock:
            what = ""
            match event:
                case Started():
                    self._what[event.index] = event.what
                case NodeResult():
                    what = self._what.pop(event.index, "")
                case _:
                    pass
            self._write(self._out, self._json_log.event(event, self._clock(), what) + "\n")

    def problem(self, error: Exception) -> None:
        """Print an error as an event; the command prints it on stderr as well, if it ends by it."""
        text = "\n".join(map(str, error.problems)) if hasattr(error, "problems") else str(error)
        with self._lock:
            self._write(self._out, self._json_log.failure(text, self._clock()) + "\n")

    def _put(self, stamp: str, each: Line | str) -> None:
        del stamp
        if isinstance(each, Line) and not each.text and not each.tag:
            return
        self._write(self._out, self._json_log.note(each, self._clock()) + "\n")
