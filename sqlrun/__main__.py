"""`sqlrun` and `python -m sqlrun`. Shell: the command line, the process."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import sys

# Until the handlers are installed, a Ctrl-C ends the process silently.
if sys.argv[0].endswith(("sqlrun", "sqlrun/__main__.py", "-m")) and _signal.getsignal(2) is _signal.default_int_handler:
    _signal.signal(2, 0)

import atexit
import os
import threading

from sqlrun.daemon.entry import main
from sqlrun.runtime import streams
from sqlrun.runtime.stopping import INTERRUPTED, STOPPED, end_at_once, install, leave


def run() -> None:
    """Run the command and end the process without the interpreter's cleanup, which takes 0.2 s."""
    streams.repair()
    install()
    try:
        _run()
    except KeyboardInterrupt:  # a signal may come at any step, even while leaving
        leave(INTERRUPTED, STOPPED)


def run_as_dbt() -> None:
    """Run `sqlrun-dbt`: a command of dbt as one of sqlrun."""
    from sqlrun.cli.as_dbt import rewrite_arguments

    if rewrite_arguments():
        run()


def _run() -> None:
    try:
        main()
    except SystemExit as end:
        end_at_once()
        code = 0 if end.code is None else end.code
        if not isinstance(code, int):
            raise
        code = streams.finish(code)
        if not may_leave():
            sys.exit(code)
        atexit._run_exitfuncs()
        os._exit(streams.finish(code))


def may_leave() -> bool:
    """Return whether nothing needs an ordinary end of the process: a thread, a JVM, a profiler, a debugger."""
    watched = sys.getprofile() is not None or sys.gettrace() is not None or sys.flags.inspect
    alone = all(thread.daemon or thread is threading.main_thread() for thread in threading.enumerate())
    return alone and not watched and "pyspark" not in sys.modules


if __name__ == "__main__":
    run()
