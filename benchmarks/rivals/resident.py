"""A contender that stays warm, as a process: one request a line on standard input, one answer a line. Shell: the process.

It runs in the contender's own environment, so it imports nothing of sqlrun's.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from datetime import datetime
from typing import Any, Protocol


class Contender(Protocol):
    """What can be asked of one; files have arrived in `data/orders` before it is asked to take them in."""

    def tick(self, as_of: datetime) -> dict[str, str]:
        """Take in what has arrived and bring the mart to `as_of`; which engine did what may be told."""
        ...

    def mart(self) -> list[dict[str, Any]]:
        """Give the mart's rows."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...


def channel() -> Callable[[dict[str, Any]], None]:
    """Give what answers. From now on what libraries print goes to standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(what: dict[str, Any]) -> None:
        answers.write(json.dumps(what, default=str) + "\n")
        answers.flush()

    return answer


def broken() -> dict[str, Any]:
    """Answer with the end of the exception that is being handled."""
    return {"error": "\n".join(traceback.format_exc().splitlines()[-12:])}


def serve(make: Callable[[], Contender]) -> None:
    """Answer until standard input ends."""
    answer = channel()
    contender = make()
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["do"] == "tick":
                answer({"engines": contender.tick(datetime.fromisoformat(request["as_of"]))})
            else:
                answer({"rows": contender.mart()})
        except Exception:
            answer(broken())
    contender.close()
