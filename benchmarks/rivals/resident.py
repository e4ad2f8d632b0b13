"""A contender that stays warm, as a process: one request a line on standard input, one answer a line. Shell: the process.

It runs in the contender's own environment, so it imports nothing of sqlrun's.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from datetime import datetime
from typing import Any, Protocol


class Contender(Protocol):
    """What can be asked of one; files have arrived in `data/orders` before it is asked to take them in."""

    def tick(self, as_of: datetime) -> dict[str, Any]:
        """Take in what has arrived and bring the mart to `as_of`; figures that it knows itself may be told."""
        ...

    def mart(self) -> list[dict[str, Any]]:
        """Give the mart's rows."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...


def serve(contender: Contender) -> None:
    """Answer until standard input ends. What libraries print goes to standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["do"] == "tick":
                answer: dict[str, Any] = {"told": contender.tick(datetime.fromisoformat(request["as_of"]))}
            else:
                answer = {"rows": contender.mart()}
        except Exception:
            answer = {"error": "\n".join(traceback.format_exc().splitlines()[-12:])}
        answers.write(json.dumps(answer, default=str) + "\n")
        answers.flush()
    contender.close()
