"""sqlrun as a warm process: `python -m benchmarks.rivals.sqlrun PROFILE`, in a project's folder. Shell: the process.

It is the session of `sqlrun build --every` with complete ticks, but the suite sets the ticks' times, not the clock.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks import mart_readers
from benchmarks.rivals.resident import broken, channel
from sqlrun import pipeline
from sqlrun.cli.options import utc_now
from sqlrun.commands.selection import chosen
from sqlrun.events import TickResult
from sqlrun.publish.ledger import Ledger
from sqlrun.report.build_display import BuildDisplay
from sqlrun.report.console import Console
from sqlrun.run.session import Session, Times, times_of
from sqlrun.runtime.disk_cache import Cache

OPTIONS = {"every": None, "replay": None, "as_of": None, "step": "5m", "full_refresh": False, "env": None}
OPTIONS |= {"wait": False, "accept_lost_files": False}


class Fed(Session):
    """A session that runs a tick on request, one after the other."""

    def begin(self) -> int:
        """Answer requests until standard input ends."""
        self._answer = channel()
        self._last: TickResult | None = None
        try:
            code = self.run(OPTIONS, times_of(OPTIONS))
        except BaseException:
            self._answer(broken())
            raise
        if code and self._last is not None:
            failures = [f"{node.name}: {node.message}" for node in self._last.nodes if node.status == "error"]
            failures += [f"{c.model}: {c.type} {c.message}" for c in self._last.checks if c.status.blocks]
            self._answer({"error": "the tick was not published: " + "; ".join(failures)})
        return code

    def _times(self, times: Times, ledger: Ledger) -> Iterator[datetime]:
        for line in sys.stdin:
            request = json.loads(line)
            if request["do"] == "land ahead":
                self._land_ahead()
                self._answer({})
                continue
            if request["do"] != "tick":
                self._answer({"rows": mart_readers.of_sqlrun(self.root)})
                continue
            yield datetime.fromisoformat(request["as_of"])
            assert self._last is not None
            stages = [stage for node in self._last.nodes for stage in node.stages]
            self._answer({"engines": {stage.table: stage.engine for stage in stages if stage.engine}})

    def _tick(self, *arguments: Any) -> TickResult:
        self._last = super()._tick(*arguments)
        return self._last


def main(name: str) -> int:
    """Prepare the project in this folder and run ticks."""
    root = Path.cwd()
    prepared, target = pipeline.prepare_to_build(root, name, Cache.of(root))
    names = chosen(prepared, (), ())
    return Fed(root, prepared, target, names, BuildDisplay(Console(quiet=True)), utc_now, False).begin()


sys.exit(main(sys.argv[1]))
