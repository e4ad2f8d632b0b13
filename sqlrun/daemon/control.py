"""`sqlrun up` and `sqlrun down`: start, inspect and stop the daemon. Shell: processes, the terminal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from sqlrun.daemon import protocol
from sqlrun.daemon.compatibility import identity
from sqlrun.engines.factory import settings_of
from sqlrun.errors import EngineError, UsageError
from sqlrun.load import load, profile
from sqlrun.report.console import Console

UNSUPPORTED = "the daemon needs Linux; without it, commands run on their own, as after `sqlrun down`"
BEGIN = "import sys; sys.path[:] = {path!r}; from sqlrun.daemon.server import main; main({given!r})"
# Maximum seconds for a daemon to end after its last command.
LONGEST_END = 30.0


def up(root: Path, name: str | None, idle: float, *, look: bool) -> int:
    """Start the project's daemon and wait until it is warm; only print its state if it runs already, or with `look`.

    A daemon with other code, another Python or the like is replaced.
    """
    console, path = Console(), _address(root)
    target = profile.load(root, name or load.read(root).project.profile)
    settings = None if target.engine == "duckdb" else settings_of(target)
    if target.engine == "auto":
        settings = {key: value for key, value in settings_of(target).items() if key.startswith("spark.")}
    status = _status(path, settings=settings)
    if look:
        console.lines(_lines(status, path) if status else ["There is no daemon: `sqlrun up` starts one."])
        return 0 if status else 1
    if status is not None and (status["stopping"] or not status["fits"] or not status["suits"]):
        other = f"other settings than profile {target.name}'s" if status["fits"] else "another version of sqlrun"
        console.lines([f"The daemon was started with {other}; restarting it."])
        _stop(path, console)
        status = None
    if status is None:
        first = _start(root.resolve(), settings, idle, path)
        # The first status arrives before the daemon starts Spark.
        status = _status(path, settings=settings) or first
    while status["spark"]["state"] == "starting":
        time.sleep(0.2)
        status = _status(path)
        if status is None:
            raise EngineError("the daemon ended while Spark started")
    console.lines(_lines(status, path))
    return 0


def down(root: Path) -> int:
    """Stop the project's daemon after its running commands; do nothing if there is none."""
    console = Console()
    stopped = _stop(_address(root), console)
    console.lines(["The daemon has ended." if stopped else "There is no daemon."])
    return 0


def _address(root: Path) -> str:
    if not protocol.is_supported():
        raise UsageError(UNSUPPORTED)
    return protocol.address(str(root))


def _status(path: str, **more: Any) -> dict[str, Any] | None:
    """Return a daemon's status; None if there is none."""
    try:
        with protocol.connect(path) as connection:
            protocol.send(connection, {"identity": identity(), **more})
            return protocol.receive(connection)[0]
    except (FileNotFoundError, ConnectionRefusedError):
        return None
    except (protocol.WireError, OSError) as error:
        raise EngineError(f"the daemon doesn't answer: {error or type(error).__name__}") from error


def _stop(path: str, console: Console) -> bool:
    """Ask a daemon to end and wait for it."""
    status = _status(path, stop=True)
    if status is None:
        with suppress(OSError, protocol.WireError):
            protocol.require_private(str(Path(path).parent), kind=0o040000)
            Path(path).unlink()  # left by a killed daemon
        return False
    if status["running"]:
        console.lines([f"The daemon ends after its running commands: {', '.join(map(str, status['running']))}."])
    begun = time.monotonic()
    while status is not None:
        if not status["running"] and time.monotonic() - begun > LONGEST_END:
            raise EngineError(f"the daemon, pid {status['pid']}, doesn't end")
        begun = time.monotonic() if status["running"] else begun
        time.sleep(0.1)
        status = _status(path)
    return True


def _start(root: Path, settings: dict[str, str] | None, idle: float, path: str) -> dict[str, Any]:
    """Start a daemon and return its first status. Raises: EngineError with its output if it doesn't start."""
    task = json.dumps({"root": os.path.realpath(root), "idle": idle})
    code = BEGIN.format(path=[entry or str(Path.cwd()) for entry in sys.path], given=task)
    flags: list[str] = getattr(subprocess, "_args_from_interpreter_flags")()  # noqa: B009  as multiprocessing does
    started = subprocess.Popen(
        [sys.executable, *flags, "-c", code],
        cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        text=True, errors="replace",
    )  # fmt: skip
    assert started.stdin and started.stdout
    with started.stdin, started.stdout:
        # Settings may contain secrets: an argument would show them to other users.
        started.stdin.write(json.dumps(settings))
        started.stdin.close()
        output = []
        for line in started.stdout:
            output.append(line.rstrip())
            with suppress(ValueError, TypeError, KeyError):
                if json.loads(line)["pid"] == started.pid:
                    started.returncode = 0  # it keeps running: don't wait for it
                    return {**json.loads(line), "fits": True}
    started.wait()
    status = _status(path)
    if status is not None:
        return status  # another `sqlrun up` was faster
    raise EngineError(f"the daemon doesn't start: {output[-1] if output else f'exit code {started.returncode}'}")


def _lines(status: dict[str, Any], path: str) -> list[str]:
    spark = status["spark"]
    state = {
        "none": f"not running: {spark['trouble'] or 'it ended; the next command that needs it starts it'}",
        "starting": "starting",
        "ready": f"started in {spark['seconds']:.1f}s, free",
        "lent": f"started in {spark['seconds']:.1f}s, lent to a command",
    }[spark["state"]]
    running = ", ".join(map(str, status["running"])) or "none"
    return [
        f"daemon     up, pid {status['pid']}, {path}",
        "warm       Python's libraries: sqlglot, DuckDB, delta-rs, pyarrow, pandas, Great Expectations",
        f"Spark      {state}",
        f"commands   {status['served']} so far; now: {running}",
        f"ends       {_duration(status['idle'])} after the last command, or by `sqlrun down`",
        *([] if status["fits"] else ["It was started with another version of sqlrun: `sqlrun up` restarts it."]),
    ]


def _duration(seconds: float) -> str:
    return f"{seconds / 60:.0f}m" if seconds >= 60 else f"{seconds:.0f}s"
