"""Standard streams that survive when they are closed, full or gone. Shell: streams.

A reader may leave (`| head`), and a terminal may close: neither is an error. A full disk is one, and sets the exit
code.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from contextlib import suppress
from typing import TextIO

# Errors of a stream without a reader.
GONE = (errno.EPIPE, errno.EIO, errno.EBADF, errno.ENXIO, errno.ECONNRESET)
LOST = 1
_lost: list[str] = []


class Steady(io.TextIOWrapper):
    """A standard stream that discards its output after a failed write."""

    def write(self, text: str, /) -> int:
        """Write a text, or discard it after a failure."""
        try:
            return super().write(text)
        except OSError as error:
            give_up(self, error)
            return len(text)

    def flush(self) -> None:
        """Write the buffered output, or discard it after a failure."""
        try:
            super().flush()
        except OSError as error:
            give_up(self, error)
            with suppress(OSError):
                super().flush()


def repair() -> None:
    """Open closed standard streams on /dev/null, so that the next opened file doesn't take their number.

    Output goes through streams that don't fail when a reader leaves.
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
    """Return a steady stream in place of another one, with its settings."""
    if type(file) is not io.TextIOWrapper:
        return file
    encoding, errors = file.encoding, file.errors
    buffered, through = file.line_buffering, file.write_through
    return Steady(file.detach(), encoding, errors, line_buffering=buffered, write_through=through)


def give_up(file: TextIO, error: OSError) -> None:
    """Discard all further output; errors other than a reader's leaving affect the exit code at the end."""
    if error.errno not in GONE:
        _lost.append(error.strerror or type(error).__name__)
    with suppress(OSError, ValueError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, file.fileno())
        os.close(nothing)


def finish(code: int) -> int:
    """Flush the output and return the exit code; lost output turns a success into a failure."""
    for file in (sys.stdout, sys.stderr):
        with suppress(ValueError):  # closed by the command itself
            file.flush()
    if not _lost:
        return code
    with suppress(OSError, ValueError):
        print(f"sqlrun: the output can't be written: {_lost[0]}", file=sys.stderr, flush=True)
    _lost.clear()
    return code or LOST
