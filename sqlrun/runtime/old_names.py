"""Old names of commands and keys that still work, each reported once per command. Shell: stderr."""

from __future__ import annotations

import sys

from sqlrun.runtime import streams

_reported: set[tuple[str, str]] = set()


def begin() -> None:
    """Start a command: forget which old names were reported."""
    _reported.clear()


def warn(old: str, new: str, place: str = "") -> None:
    """Print once that `old` is now `new`; `place` is the file and line of the old name."""
    if (old, place) in _reported:
        return
    _reported.add((old, place))
    where = f"{place}: " if place else ""
    try:
        sys.stderr.write(f"Warning: {where}`{old}` is now `{new}`. The old name works in this version only.\n")
        sys.stderr.flush()
    except OSError as error:
        streams.give_up(sys.stderr, error)
