"""A build's log as JSON lines, one for each event, in the form of dbt's structured logs. Pure.

Names of events: LogStartLine, LogModelResult, LogSeedResult, LogTestResult; Note for any other line of the log, and
MainEncounteredError for an error that ends the build. Orchestrators that run dbt read them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlrun.artifacts import unique_ids
from sqlrun.artifacts.unique_ids import moment
from sqlrun.events import CheckResult, Event, NodeResult, Note, Started
from sqlrun.report.log_lines import Line, Style, line

NOTE, FAILURE = "Note", "MainEncounteredError"
# dbt's codes of the events.
CODES = {
    "LogStartLine": "Q011", "LogModelResult": "Q012", "LogSeedResult": "Q016", "LogTestResult": "Q007", NOTE: "Z050",
    FAILURE: "Z002",
}  # fmt: skip
LEVELS: Mapping[Style, str] = {"warning": "warn", "error": "error"}


@dataclass(frozen=True, slots=True)
class JsonLog:
    """The log of one build: its id, its project, the process, and the ids of the selected nodes of the manifest.

    A result of any other node is a note, because readers look for its node among the selected ones: an
    unselected table in a tick, or a check that no file declares, such as an anomaly.
    """

    invocation: str
    project: str
    pid: int
    nodes: Collection[str]

    def event(self, event: Event, at: datetime, what: str = "") -> str:
        """Return the JSON line of an event; `what` is the text of the step's `Started`, for a result without a kind."""
        shown = line(event, what)
        message = _text(shown)
        level = LEVELS.get(shown.style, "info")
        match event:
            case Started():
                kind, _, _ = event.what.partition(" ")
                info = self._node(kind, event.what.rpartition(" ")[2], "started", at, None)
                if info["unique_id"] not in self.nodes:
                    return self._line(NOTE, message, "info", at, {"msg": message})
                return self._line("LogStartLine", message, "info", at, self._about(event.index, event.total, info))
            case NodeResult():
                kind = event.kind or what.partition(" ")[0]
                name = "LogSeedResult" if kind == "seed" else "LogModelResult"
                began = at - timedelta(seconds=event.seconds)
                info = self._node(kind, event.name, event.status, began, at)
                if info["unique_id"] not in self.nodes:
                    return self._line(NOTE, message, level, at, {"msg": message})
                about = self._about(event.index, event.total, info)
                more = {"status": event.status, "execution_time": round(event.seconds, 6), "description": message}
                return self._line(name, message, level, at, {**about, **more})
            case CheckResult():
                return self._check(event, message, level, at)
            case Note():
                return self._line(NOTE, message, level, at, {"msg": message})

    def _check(self, event: CheckResult, message: str, level: str, at: datetime) -> str:
        node = unique_ids.test(self.project, event.model, event.type, event.columns, event.check_id)
        if node not in self.nodes:
            return self._line(NOTE, message, level, at, {"msg": message})
        status = event.status.dbt
        name = unique_ids.test_name(event.model, event.type, event.columns, event.check_id)
        info = self._info(node, "test", name, "test", status, at - timedelta(seconds=event.seconds), at)
        failed = event.unexpected if event.status.evaluated else 0
        about = {"name": name, "status": status, "num_failures": failed, "execution_time": round(event.seconds, 6)}
        return self._line("LogTestResult", message, level, at, {**about, "node_info": info})

    def note(self, text: Line | str, at: datetime) -> str:
        """Return the JSON line of any other line of the log."""
        shown = Line(text) if isinstance(text, str) else text
        message = _text(shown)
        return self._line(NOTE, message, LEVELS.get(shown.style, "info"), at, {"msg": message})

    def failure(self, text: str, at: datetime) -> str:
        """Return the JSON line of an error that ends the build."""
        return self._line(FAILURE, text, "error", at, {"exc": text})

    def _node(self, kind: str, name: str, status: str, began: datetime, ended: datetime | None) -> dict[str, object]:
        of = "seed" if kind == "seed" else "model"
        node = unique_ids.table(self.project, name, is_seed=of == "seed")
        return self._info(node, of, name, "seed" if of == "seed" else "incremental", status, began, ended)

    def _info(
        self, node: str, kind: str, name: str, stored: str, status: str, began: datetime, ended: datetime | None
    ) -> dict[str, object]:
        return {
            "unique_id": node,
            "resource_type": kind,
            "node_name": name,
            "node_path": "",
            "materialized": stored,
            "node_status": status,
            "node_started_at": moment(began),
            "node_finished_at": moment(ended) if ended else "",
            "meta": {},
        }

    def _about(self, index: int, total: int, info: Mapping[str, object]) -> dict[str, object]:
        return {"index": index, "total": total, "node_info": info}

    def _line(self, name: str, message: str, level: str, at: datetime, data: Mapping[str, object]) -> str:
        info = {
            "name": name,
            "code": CODES[name],
            "level": level,
            "msg": message,
            "invocation_id": self.invocation,
            "pid": self.pid,
            "thread": "MainThread",
            "ts": moment(at),
            "category": "",
            "extra": {},
        }
        return json.dumps({"info": info, "data": data})


def _text(shown: Line) -> str:
    """Return a line without dots."""
    return f"{shown.text} {shown.tag}" if shown.tag else shown.text
