"""Priorities of threads and of this process. Shell: the kernel."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from pathlib import Path

# The kernel's lowest priority.
LAST = 19
AUTOGROUP = Path("/proc/self/autogroup")


def lower_thread(by: int) -> None:
    """Lower the priority of the current thread."""
    if sys.platform == "linux":  # elsewhere a thread has no priority of its own
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, min(LAST, os.getpriority(os.PRIO_PROCESS, thread) + by))


def apply_nice_to_session() -> None:
    """Let the nice value of this process count between sessions, too, if it leads a session and is nicer than 0.

    Linux groups processes by their sessions: a nice value alone orders the processes of one session (sched(7), "The
    autogroup feature"). A service is the leader of its own session, a command in a terminal isn't.
    """
    if sys.platform != "linux" or os.getsid(0) != os.getpid():
        return
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    if nice > 0:
        with suppress(OSError):  # a kernel without autogroups
            AUTOGROUP.write_text(str(nice))
