"""Lock files on a local disk, by `flock`. Shell: a lock file."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def hold(path: str, text: str, taken: Callable[[str], None]) -> Iterator[None]:
    """Lock a file and write the holder's name into it; `Storage.hold` documents `taken`."""
    descriptor = _open_locked(Path(path), taken)
    try:
        # Write the new text before cutting off the end of the old one, so that readers always find a holder's name.
        os.pwrite(descriptor, text.encode(), 0)
        os.ftruncate(descriptor, len(text.encode()))
        yield
    finally:
        os.close(descriptor)


def _open_locked(file: Path, taken: Callable[[str], None]) -> int:
    """Open the file and lock it; again if `sqlrun clean` deleted it in between, because a lock goes with its file."""
    while True:
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            _lock(descriptor, taken)
            if _is_there(file, descriptor):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _lock(descriptor: int, taken: Callable[[str], None]) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        taken(os.pread(descriptor, 4096, 0).decode("utf-8", "replace"))
        fcntl.flock(descriptor, fcntl.LOCK_EX)


def _is_there(file: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), file.stat())
    except FileNotFoundError:
        return False
