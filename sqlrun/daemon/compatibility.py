"""Attributes of a process that the daemon must share with a client to run its commands. Shell: the process.

Every command that finds a daemon computes them, so this module imports nothing slow.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import resource
import sys
from collections.abc import Iterator

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120  pathlib is slow to import
# Variables that are read only once, when Python or a library starts.
BORN = re.compile(r"PYTHON\w*|LANG|LANGUAGE|LC_\w+|TZ|LD_\w+|MALLOC_\w+|OMP_\w+|OPENBLAS_\w+|ARROW_\w+")


def identity() -> dict[str, str]:
    """Return, by name, all that a command's result depends on except for arguments, environment and files."""
    limits = [(name, resource.getrlimit(getattr(resource, name))) for name in dir(resource) if name[:7] == "RLIMIT_"]
    return {
        "sqlrun's code": _hash(_files(PACKAGE)),
        "Python": repr((sys.executable, sys.version, _flags(), sys.warnoptions)),
        "libraries": repr([(folder, _changed(folder)) for folder in sys.path if folder.endswith("-packages")]),
        "locale, time zone or libraries' variables": _hash(
            sorted(v for v in os.environ.items() if BORN.fullmatch(v[0]))
        ),
        "limits": repr((limits, sorted(os.sched_getaffinity(0)))),
        "user": repr((os.getresuid(), os.getresgid(), sorted(os.getgroups()))),
    }


def differing(mine: dict[str, str], theirs: dict[str, str]) -> list[str]:
    """Return the names of the parts in which two identities differ.

    >>> differing({"Python": "3.11", "user": "1"}, {"Python": "3.12", "user": "1"})
    ['Python']
    """
    return [name for name in sorted(mine.keys() | theirs.keys()) if mine.get(name) != theirs.get(name)]


def _flags() -> tuple[object, ...]:
    """Return Python's startup flags; the UTF-8 mode, which an unnamed locale switches on, counts by its effect."""
    flags = re.sub(r"utf8_mode=\d", "", repr(sys.flags))
    encoding = io.TextIOWrapper(io.BytesIO()).encoding.lower()
    options = sorted((name, value) for name, value in sys._xoptions.items() if name != "utf8")
    return flags, sys.getfilesystemencoding(), encoding, options


def _files(folder: str) -> Iterator[tuple[str, int, int]]:
    """Yield each file below a folder with its change time and size, except for compiled Python."""
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.is_dir(follow_symlinks=False):
                if entry.name != "__pycache__":
                    yield from _files(entry.path)
            else:
                yield entry.path, *_state(entry)


def _state(entry: os.DirEntry[str]) -> tuple[int, int]:
    try:
        stat = entry.stat()
    except OSError:  # a broken link, or a file deleted meanwhile
        return 0, -1
    return stat.st_mtime_ns, stat.st_size


def _changed(folder: str) -> int:
    try:
        return os.stat(folder).st_mtime_ns  # noqa: PTH116
    except OSError:
        return 0


def _hash(value: object) -> str:
    found = list(value) if isinstance(value, Iterator) else value
    return hashlib.blake2b(repr(found).encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
