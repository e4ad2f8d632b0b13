"""A daemon with fake commands, and a client of it: `python -m tests.support.warm_fake server|client`.

It loads no libraries, so that both start at once.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from types import ModuleType
from typing import Any


def command(prog_name: str) -> None:
    """Run the fake command that the arguments name."""
    what, *rest = sys.argv[1:]
    if what == "tell":
        seen = {
            "argv": sys.argv, "program": prog_name, "folder": str(Path.cwd()), "umask": os.umask(0),
            "variables": {name: value for name, value in os.environ.items() if name.startswith("CANARY")},
            "terminals": [stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)],
            "encodings": [sys.stdout.encoding, sys.stdout.errors], "pid": os.getpid(),
            "input": sys.stdin.read() if rest else "", "left": hasattr(os, "left_behind"),
            "ignores": signal.getsignal(signal.SIGHUP) is signal.SIG_IGN,
        }  # fmt: skip
        print("on stderr", file=sys.stderr)
        print(json.dumps(seen))
    elif what == "leave":
        os.environ["CANARY_LEFT"] = "1"
        os.chdir("/")
        os.umask(0o077)
        setattr(os, "left_behind", True)  # noqa: B010
    elif what == "exit":
        sys.exit(int(rest[0]))
    elif what == "raise":
        raise ValueError("as it comes")
    elif what == "width":
        print(os.get_terminal_size(1).columns)
    elif what == "wait":
        try:
            print(os.getpid(), flush=True)  # inside `try`: the signal arrives as soon as this is read
            time.sleep(60)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
            sys.exit(130)
    elif what == "sleep":
        print(os.getpid(), flush=True)
        time.sleep(60)
    elif what == "linger":
        atexit.register(linger)
    sys.exit(0)


def linger() -> None:
    """Take long to exit."""
    print(os.getpid(), flush=True)
    time.sleep(60)


def signal_elsewhere() -> None:
    """Receive SIGHUP in this thread at the first input: the main thread's call isn't interrupted."""
    os.read(0, 1)
    signal.pthread_kill(threading.get_ident(), signal.SIGHUP)


def fork_slowly(seconds: float) -> None:
    """Make a fork wait before it becomes its command."""
    from sqlrun.daemon import command as forked

    become = forked._become

    def later(*given: Any) -> None:
        time.sleep(seconds)
        become(*given)

    forked._become = later


def main() -> None:
    what, *rest = sys.argv[1:]
    fake: Any = ModuleType("sqlrun.cli.main")
    fake.main = command
    sys.modules["sqlrun.cli.main"] = fake
    from sqlrun.daemon import client, protocol, server

    protocol.PATIENCE = float(os.environ.pop("PATIENCE", "2"))
    if what == "server":
        fork_slowly(float(os.environ.pop("SLOW_FORKS", "0")))
        server.load = lambda settings: None
        server.main(rest[0])
    if os.environ.pop("SIGNAL_ELSEWHERE", ""):
        threading.Thread(target=signal_elsewhere, daemon=True).start()
    sys.argv = ["sqlrun", *rest]
    code = client.handed_over(".", rest, "sqlrun")
    heavy = {"click", "sqlglot", "pyarrow", "duckdb", "pathlib", "subprocess"} & sys.modules.keys()
    if what == "light":
        print(sorted(heavy))
    sys.exit(99 if code is None else code)


if __name__ == "__main__":
    assert Path(__file__).name == "warm_fake.py"
    main()
