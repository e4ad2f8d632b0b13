"""Standard streams that are closed, full or gone: a command does its work all the same. Shell: streams.

Whoever reads our output may leave (`| head`), and a terminal may go away: that is no mistake. A full disk is one,
which the exit code tells.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from contextlib import suppress
from typing import TextIO

# The reader has gone, or was never there.
GONE = (errno.EPIPE, errno.EIO, errno.EBADF, errno.ENXIO, errno.ECONNRESET)
LOST = 1
_lost: list[str] = []


class Steady(io.TextIOWrapper):
    """A standard stream that writes into nothing once it can't be written."""

    def write(self, text: str, /) -> int:
        """Write a text."""
        try:
            return super().write(text)
        except OSError as error:
            give_up(self, error)
            return len(text)

    def flush(self) -> None:
        """Write what is waiting."""
        try:
            super().flush()
        except OSError as error:
            give_up(self, error)
            with suppress(OSError):
                super().flush()


def repair() -> None:
    """Open what is closed of the first three files on nothing: what is opened next would take its number.

    Output goes by streams that no reader's leaving breaks, whoever writes.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            found = os.open(os.devnull, os.O_RDWR)
            if found != number:
                os.dup2(found, number)
                os.close(found)
            os.set_inheritable(number, True)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w" if number else "r", closefd=False))  # noqa: SIM115
        if number:
            setattr(sys, name, steady(getattr(sys, name)))


def steady(file: TextIO) -> TextIO:
    """Return a stream in place of one that is given up, which writes as that did."""
    if type(file) is not io.TextIOWrapper:
        return file
    encoding, errors = file.encoding, file.errors
    buffered, through = file.line_buffering, file.write_through
    return Steady(file.detach(), encoding, errors, line_buffering=buffered, write_through=through)


def give_up(file: TextIO, error: OSError) -> None:
    """Write into nothing from now on; what is lost by more than a reader's leaving is told at the end."""
    if error.errno not in GONE:
        _lost.append(error.strerror or type(error).__name__)
    with suppress(OSError, ValueError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, file.fileno())
        os.close(nothing)


def finish(code: int) -> int:
    """Write out what is waiting; give the exit code, which tells what was lost where nothing else was wrong."""
    for file in (sys.stdout, sys.stderr):
        with suppress(ValueError):  # closed by the command itself
            file.flush()
    if not _lost:
        return code
    with suppress(OSError, ValueError):
        print(f"sqlrun: the output can't be written: {_lost[0]}", file=sys.stderr, flush=True)
    _lost.clear()
    return code or LOST
