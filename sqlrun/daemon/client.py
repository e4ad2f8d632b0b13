"""A command handed over to the project's server, or not: whoever can't hand over runs it. Shell: a socket, signals.

Up to the message that brings the command nothing has been done, and any doubt ends in running it here. Afterwards it is
the server's: this process passes signals on and ends as the command did.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

from sqlrun.daemon import protocol
from sqlrun.daemon.compatibility import differing, identity

# Each ends or stops a process, unless that has its own way with it.
PASSED = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGTSTP")
    if hasattr(signal, name)
)  # fmt: skip
GONE = (
    "sqlrun: the server ended while it ran this command. Nothing of an unfinished tick is published, and the next "
    "build takes it back; run the command again."
)


def handed_over(root: str, arguments: Sequence[str], program: str) -> int | None:
    """Have the server of a project's folder run a command, and give its exit code; None: run it here.

    Why a server that is there isn't used is told on stderr, in one line.
    """
    if not protocol.is_supported():
        return None
    try:
        path = protocol.address(root)
        if not os.path.lexists(path):
            return None
        connection = protocol.connect(path)
    except FileNotFoundError:
        return None
    except ConnectionRefusedError:
        _tell("it is gone; `sqlrun up` starts another")
        return None
    except (protocol.WireError, OSError) as error:
        _tell(str(error))
        return None
    with connection:
        refusal = _refusal(connection, root)
        if not refusal:
            return _follow(connection, arguments, program)
    _tell(refusal)
    return None


def _tell(why: str) -> None:
    print(f"sqlrun: without the server: {why}", file=sys.stderr)


def _refusal(connection: socket.socket, root: str) -> str:
    """Introduce this process, and say why the server can't stand in for it; "" where it can."""
    try:
        if any(stream is None for stream in (sys.stdin, sys.stdout, sys.stderr)):
            return "a standard stream is closed"
        protocol.send(connection, {"hello": identity(), "root": os.path.realpath(root)})
        answer, _ = protocol.receive(connection)
    except (protocol.WireError, OSError) as error:
        return f"it doesn't answer ({error or type(error).__name__})"
    if answer.get("ready"):
        return ""
    differs = differing(identity(), answer.get("identity") or {})
    if differs:
        return f"it was started with other {', '.join(differs)}; `sqlrun up` restarts it"
    return str(answer.get("refused") or "it gave no answer")


def _follow(connection: socket.socket, arguments: Sequence[str], program: str) -> int:
    """Hand the command to the server and end as it does."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    ignored = [int(number) for number in PASSED if signal.getsignal(number) is signal.SIG_IGN]

    def pass_on(number: int, frame: FrameType | None) -> None:
        del frame
        try:
            connection.send(bytes([number]))
        except OSError:
            return  # it has ended; how, is about to be read
        if number == signal.SIGTSTP:
            os.kill(os.getpid(), signal.SIGSTOP)

    for number in (*PASSED, signal.SIGCONT):
        if number not in ignored:
            signal.signal(number, pass_on)
    try:
        connection.settimeout(None)
        protocol.send(connection, _request(arguments, program, ignored), (0, 1, 2))
        while True:
            told, _ = protocol.receive(connection)
            if "exit" in told:
                return int(told["exit"])
            if "signal" in told:
                return _die(int(told["signal"]))
    except (protocol.WireError, OSError):
        print(GONE, file=sys.stderr)
        return 1


def _request(arguments: Sequence[str], program: str, ignored: list[int]) -> dict[str, Any]:
    os.umask(umask := os.umask(0o077))
    streams = [
        [each.encoding, each.errors, each.line_buffering, each.write_through]  # type: ignore[union-attr]
        for each in (sys.stdin, sys.stdout, sys.stderr)
    ]
    return {
        "argv": [sys.argv[0], *arguments],
        "program": program,
        "folder": os.getcwd(),  # noqa: PTH109
        "environment": dict(os.environ),
        "umask": umask,
        "ignored": ignored,
        "streams": streams,
    }


def _die(number: int) -> int:
    """End as the command did: by a signal."""
    if number in (signal.SIGQUIT, signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    return 128 + number
