"""A warm contender as a process: requests on standard input, answers on standard output. Shell: the process.

It runs in the contender's own environment, so it imports nothing of sqlrun.
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
    """Interface of a contender; files are in `data/orders` before `tick` is called."""

    def tick(self, as_of: datetime) -> dict[str, str]:
        """Process new files and update the mart to `as_of`; the result may name the engine of each table."""
        ...

    def mart(self) -> list[dict[str, Any]]:
        """Return the mart's rows."""
        ...

    def close(self) -> None:
        """Release all resources."""
        ...


def channel() -> Callable[[dict[str, Any]], None]:
    """Return a function that writes answers. From then on libraries print to standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(what: dict[str, Any]) -> None:
        answers.write(json.dumps(what, default=str) + "\n")
        answers.flush()

    return answer


def broken() -> dict[str, Any]:
    """Return an answer with the end of the current exception."""
    return {"error": "\n".join(traceback.format_exc().splitlines()[-12:])}


def serve(make: Callable[[], Contender]) -> None:
    """Answer requests until standard input ends."""
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
