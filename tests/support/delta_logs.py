"""Delta logs with other commit times."""

from __future__ import annotations

import json
from pathlib import Path


def commit_as_of(log: Path, moment: int) -> None:
    """Set the time of a log's entry, in milliseconds."""
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "commitInfo" in action:
            action["commitInfo"]["timestamp"] = moment
        if "remove" in action:
            action["remove"]["deletionTimestamp"] = moment
    log.write_text("".join(json.dumps(action) + "\n" for action in actions))
