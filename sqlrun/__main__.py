"""`sqlrun` and `python -m sqlrun`. Shell: the command line, the process."""

from __future__ import annotations

import atexit
import os
import sys
import threading

from sqlrun.front import main


def run() -> None:
    """Carry out the command, and end the process without taking everything in it apart, which takes 0.2 s."""
    try:
        main()
    except SystemExit as end:
        code = 0 if end.code is None else end.code
        if not isinstance(code, int) or not may_leave():
            raise
        atexit._run_exitfuncs()
        # Whoever reads our output has gone where this fails: Python says so, in the ordinary way.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def may_leave() -> bool:
    """Tell whether nothing waits for an ordinary end: a thread, a JVM, who profiles or debugs the command."""
    watched = sys.getprofile() is not None or sys.gettrace() is not None or sys.flags.inspect
    alone = all(thread.daemon or thread is threading.main_thread() for thread in threading.enumerate())
    return alone and not watched and "pyspark" not in sys.modules


if __name__ == "__main__":
    run()
