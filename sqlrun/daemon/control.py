"""What `sqlrun up` and `sqlrun down` do: a server started, looked at, stopped. Shell: processes, the terminal."""

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
from sqlrun.errors import EngineError, UsageError
from sqlrun.load import load, profile
from sqlrun.report.console import Console

UNSUPPORTED = "a warm server needs Linux: here, commands run without one, as after `sqlrun down`"
BEGIN = "import sys; sys.path[:] = {path!r}; from sqlrun.daemon.server import main; main({given!r})"
# How long a server that was told to end may take to do so, once its commands have.
LONGEST_END = 30.0


def up(root: Path, name: str | None, idle: float, *, look: bool) -> int:
    """Start the project's server and wait until it is warm; only tell how it is where it runs already, or with `look`.

    One that was started by other code, with another Python or the like, is replaced.
    """
    console, path = Console(), _address(root)
    target = profile.load(root, name or load.read(root).project.profile)
    settings = None if target.engine == "duckdb" else dict(target.settings)
    if target.engine == "auto":
        settings = {key: value for key, value in target.settings.items() if key.startswith("spark.")}
    told = _status(path, settings=settings)
    if look:
        console.lines(_lines(told, path) if told else ["There is no server. `sqlrun up` starts one."])
        return 0 if told else 1
    if told is not None and (told["stopping"] or not told["fits"] or not told["suits"]):
        other = f"other settings than profile {target.name}'s" if told["fits"] else "another version of sqlrun"
        console.lines([f"The server was started with {other}; it restarts."])
        _stop(path, console)
        told = None
    if told is None:
        first = _start(root.resolve(), settings, idle, path)
        # Its first word comes before it begins with Spark.
        told = _status(path, settings=settings) or first
    while told["spark"]["state"] == "starting":
        time.sleep(0.2)
        told = _status(path)
        if told is None:
            raise EngineError("the server ended while Spark started")
    console.lines(_lines(told, path))
    return 0


def down(root: Path) -> int:
    """Have the project's server end once the commands that it runs have; nothing where there is none."""
    console = Console()
    stopped = _stop(_address(root), console)
    console.lines(["The server has ended." if stopped else "There is no server."])
    return 0


def _address(root: Path) -> str:
    if not protocol.is_supported():
        raise UsageError(UNSUPPORTED)
    return protocol.address(str(root))


def _status(path: str, **more: Any) -> dict[str, Any] | None:
    """Ask a server how it is; None where there is none."""
    try:
        with protocol.connect(path) as connection:
            protocol.send(connection, {"identity": identity(), **more})
            return protocol.receive(connection)[0]
    except (FileNotFoundError, ConnectionRefusedError):
        return None
    except (protocol.WireError, OSError) as error:
        raise EngineError(f"there is a server that doesn't answer: {error or type(error).__name__}") from error


def _stop(path: str, console: Console) -> bool:
    """Ask a server to end, and wait until it has."""
    told = _status(path, stop=True)
    if told is None:
        with suppress(OSError, protocol.WireError):
            protocol.require_private(str(Path(path).parent), kind=0o040000)
            Path(path).unlink()  # left by a server that was killed
        return False
    if told["running"]:
        console.lines([f"The server ends after the commands that it runs: {', '.join(map(str, told['running']))}."])
    begun = time.monotonic()
    while told is not None:
        if not told["running"] and time.monotonic() - begun > LONGEST_END:
            raise EngineError(f"the server, pid {told['pid']}, doesn't end")
        begun = time.monotonic() if told["running"] else begun
        time.sleep(0.1)
        told = _status(path)
    return True


def _start(root: Path, settings: dict[str, str] | None, idle: float, path: str) -> dict[str, Any]:
    """Start a server, and give what it says when it is ready; raise what it says where it doesn't start."""
    given = json.dumps({"root": os.path.realpath(root), "idle": idle})
    code = BEGIN.format(path=[entry or str(Path.cwd()) for entry in sys.path], given=given)
    flags: list[str] = getattr(subprocess, "_args_from_interpreter_flags")()  # noqa: B009  as multiprocessing does
    started = subprocess.Popen(
        [sys.executable, *flags, "-c", code],
        cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        text=True, errors="replace",
    )  # fmt: skip
    assert started.stdin and started.stdout
    with started.stdin, started.stdout:
        # Settings may hold secrets: they pass through no argument that others could read.
        started.stdin.write(json.dumps(settings))
        started.stdin.close()
        said = []
        for line in started.stdout:
            said.append(line.rstrip())
            with suppress(ValueError, TypeError, KeyError):
                if json.loads(line)["pid"] == started.pid:
                    started.returncode = 0  # it goes on: nobody is to wait for it
                    return {**json.loads(line), "fits": True}
    started.wait()
    told = _status(path)
    if told is not None:
        return told  # another `sqlrun up` was faster
    raise EngineError(f"the server doesn't start: {said[-1] if said else f'exit code {started.returncode}'}")


def _lines(told: dict[str, Any], path: str) -> list[str]:
    spark = told["spark"]
    state = {
        "none": f"not kept: {spark['trouble'] or 'it ended; the next command that needs it has it started'}",
        "starting": "is being started",
        "ready": f"started in {spark['seconds']:.1f}s, free",
        "lent": f"started in {spark['seconds']:.1f}s, lent to a command",
    }[spark["state"]]
    running = ", ".join(map(str, told["running"])) or "none"
    return [
        f"server     up, pid {told['pid']}, {path}",
        "warm       Python's libraries: sqlglot, DuckDB, delta-rs, pyarrow, pandas, Great Expectations",
        f"Spark      {state}",
        f"commands   {told['served']} so far; now: {running}",
        f"ends       {_duration(told['idle'])} after the last command, or by `sqlrun down`",
        *([] if told["fits"] else ["It was started with another version of sqlrun: `sqlrun up` restarts it."]),
    ]


def _duration(seconds: float) -> str:
    return f"{seconds / 60:.0f}m" if seconds >= 60 else f"{seconds:.0f}s"
