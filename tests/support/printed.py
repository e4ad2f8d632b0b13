"""Lines of a process that runs: waiting for one never hangs a test run. Shell: threads."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator

from tests.support.waiting import HUNG


def until(process: subprocess.Popen[str], words: str) -> Iterator[str]:
    """Yield the printed lines up to the one with the words; a process that doesn't print it is killed."""
    assert process.stdout is not None
    patience = threading.Timer(HUNG, process.kill)
    patience.start()
    try:
        for line in process.stdout:
            yield line
            if words in line:
                return
    finally:
        patience.cancel()
    raise AssertionError(f"the process didn't print `{words}`")
