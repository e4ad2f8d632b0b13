"""Delta logs as if they had been written at another time."""

from __future__ import annotations

import json
from pathlib import Path


def commit_as_of(log: Path, moment: int) -> None:
    """Rewrite an entry of a log as if it had been written at a moment, in milliseconds."""
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "commitInfo" in action:
            action["commitInfo"]["timestamp"] = moment
        if "remove" in action:
            action["remove"]["deletionTimestamp"] = moment
    log.write_text("".join(json.dumps(action) + "\n" for action in actions))
