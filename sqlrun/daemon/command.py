"""A fork of the server becomes the command that somebody gave: their streams, folder, variables. Shell: the process."""

from __future__ import annotations

import atexit
import ctypes
import io
import os
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from sqlrun.daemon import protocol
from sqlrun.runtime import stopping, streams

PR_SET_PDEATHSIG = 1
# Exit codes of commands that came to an end of their own: Spark can be lent to the next one.
ENDS = (None, 0, 1, 2, 75)


@dataclass(frozen=True, slots=True)
class Command:
    """A command in its fork. `control` is where Spark is asked for.

    `connection` leads to who gave the command; it is open for as long as anything of the command is at work.
    """

    request: dict[str, Any]
    files: Sequence[int]
    control: socket.socket
    connection: socket.socket

    def run(self) -> NoReturn:
        """Be the command, and end as it does.

        All that Python does when a process ends is done, but for taking the libraries down object by object.
        """
        code = 1
        try:
            code = streams.finish(self._code())
            _finish()
        except KeyboardInterrupt:  # outside of what catches it within a command, as in `__main__.py`
            stopping.leave(stopping.INTERRUPTED, stopping.STOPPED)
        except BaseException:
            sys.excepthook(*sys.exc_info())
            code = code or 120
        finally:
            os._exit(code)

    def _code(self) -> int:
        _become(self.request, self.files)
        from sqlrun.cli.main import main
        from sqlrun.engines.spark import borrowed

        stopping.install()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, stopping.SIGNALS)
        borrowed.offer(self._ask)
        try:
            main(prog_name=self.request["program"])
        except SystemExit as ended:
            stopping.end_at_once()
            getattr(threading, "_shutdown")()  # noqa: B009  waits for threads, as multiprocessing's forks do
            if ended.code in ENDS and borrowed.is_idle():
                protocol.send(self.control, {"free": True})
            if ended.code is None or isinstance(ended.code, int):
                return ended.code or 0
            print(ended.code, file=sys.stderr)
        return 1

    def _ask(self, key: str) -> tuple[int, str] | None:
        protocol.send(self.control, {"spark": key})
        answer, _ = protocol.receive(self.control)
        if "port" in answer:
            return answer["port"], answer["secret"]
        if answer.get("told"):
            print(f"sqlrun: restarting Spark: {answer['told']}", file=sys.stderr)
        return None


def _finish() -> None:
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()


def die_with(parent: int, number: int = signal.SIGKILL) -> None:
    """Have the kernel send this process a signal when its parent ends, however that ends."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, number, 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def _become(request: dict[str, Any], files: Sequence[int]) -> None:
    _take_signals_as_given(request["ignored"])
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.setpgid(0, 0)
    os.umask(request["umask"])
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = list(request["argv"])
    for name, number, how in zip(("stdin", "stdout", "stderr"), range(3), request["streams"], strict=True):
        made = _stream(number, *how)
        setattr(sys, name, made)
        setattr(sys, f"__{name}__", made)
    streams.repair()


def _take_signals_as_given(ignored: Sequence[int]) -> None:
    """Have each signal do what it does in a process that begins."""
    for each in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        if each in ignored or each in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(each, signal.SIG_IGN)
        else:
            signal.signal(each, signal.default_int_handler if each == signal.SIGINT else signal.SIG_DFL)


def _stream(number: int, encoding: str, errors: str, line_buffering: bool, write_through: bool) -> io.TextIOWrapper:
    """Open a standard stream as Python does when it begins."""
    raw = open(number, "rb" if number == 0 else "wb", closefd=False)  # noqa: SIM115
    return io.TextIOWrapper(raw, encoding, errors, "\n" if number else None, line_buffering, write_through)
