"""Hand a command over to the project's daemon, or let this process run it. Shell: a socket, signals.

Until the message with the command is sent nothing has been done, and any doubt makes this process run it. Afterwards
the command belongs to the daemon: this process passes signals on and exits as the command did.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

from sqlrun.daemon import protocol
from sqlrun.daemon.compatibility import differing, identity

# Signals that end or stop a process by default.
PASSED = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGTSTP")
    if hasattr(signal, name)
)  # fmt: skip
GONE = (
    "sqlrun: the daemon ended while it ran this command. Nothing of an unfinished tick is published, and the next "
    "build rolls it back. Run the command again."
)


def handed_over(root: str, arguments: Sequence[str], program: str) -> int | None:
    """Run a command in the daemon of a project's folder and return its exit code; None: run it in this process.

    If a running daemon isn't used, the reason is printed on stderr, in one line.
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
        _print_reason("it is gone; `sqlrun up` restarts it")
        return None
    except (protocol.WireError, OSError) as error:
        _print_reason(str(error))
        return None
    with connection:
        refusal = _refusal(connection, root)
        if not refusal:
            return _follow(connection, arguments, program)
    _print_reason(refusal)
    return None


def _print_reason(why: str) -> None:
    print(f"sqlrun: without the daemon: {why}", file=sys.stderr)


def _refusal(connection: socket.socket, root: str) -> str:
    """Send this process's identity; return why the daemon can't run its command, "" if it can."""
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
    return str(answer.get("refused") or "it sent no answer")


def _follow(connection: socket.socket, arguments: Sequence[str], program: str) -> int:
    """Send the command to the daemon and exit as it does."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    ignored = [int(number) for number in PASSED if signal.getsignal(number) is signal.SIG_IGN]

    def pass_on(number: int, frame: FrameType | None) -> None:
        del frame
        try:
            connection.send(bytes([number]))
        except OSError:
            return  # it has ended, and its exit code arrives next
        if number == signal.SIGTSTP:
            os.kill(os.getpid(), signal.SIGSTOP)

    for number in (*PASSED, signal.SIGCONT):
        if number not in ignored:
            signal.signal(number, pass_on)
    try:
        connection.settimeout(None)
        protocol.send(connection, _request(arguments, program, ignored), (0, 1, 2))
        while True:
            _wait(connection)
            answer, _ = protocol.receive(connection)
            if "exit" in answer:
                return int(answer["exit"])
            if "signal" in answer:
                return _die(int(answer["signal"]))
    except (protocol.WireError, OSError):
        print(GONE, file=sys.stderr)
        return 1


def _wait(connection: socket.socket) -> None:
    """Wait for the daemon, and run signal handlers meanwhile.

    A signal that arrives just before a blocking call doesn't interrupt it, and its handler would run only afterwards.
    So each signal also writes to a pipe that this call waits for.
    """
    woken, waker = os.pipe()
    for end in (woken, waker):
        os.set_blocking(end, False)
    before = signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    try:
        while connection.fileno() not in select.select([connection.fileno(), woken], [], [])[0]:
            os.read(woken, 4096)
    finally:
        signal.set_wakeup_fd(before)
        os.close(woken)
        os.close(waker)


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
    """End by a signal, as the command did."""
    if number in (signal.SIGQUIT, signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    return 128 + number
