"""New data files of a table: written in place, or in a temporary folder and uploaded. Shell: files, the network.

DuckDB writes files on a disk. On an object store they get their final names by uploads, several at once, before a
commit names them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Protocol

from sqlrun.storage import urls
from sqlrun.storage.factory import LOCAL, store_of

# Maximum number of uploads at once.
AT_ONCE = 8


class Stage(Protocol):
    """The folder that an engine writes a table's new files to."""

    root: str

    def make_folder(self, folder: str) -> None:
        """Create a folder in the stage."""

    def drop(self, file: str) -> None:
        """Delete a file that isn't needed."""

    def finish(self, file: str) -> str:
        """Begin to put a file in its place; return its path there."""

    def put(self, path: str, data: bytes) -> None:
        """Begin to write a file of the table, which isn't synced."""

    def wait(self) -> None:
        """Return when all files are in their places, or can't be put there. Raises: OSError."""


class _InPlace:
    """The table's own folder."""

    def __init__(self, path: str) -> None:
        self.root = path

    def make_folder(self, folder: str) -> None:
        LOCAL.make_folder(folder)

    def drop(self, file: str) -> None:
        LOCAL.delete(file)

    def finish(self, file: str) -> str:
        return file

    def put(self, path: str, data: bytes) -> None:
        LOCAL.put(path, data, synced=False)

    def wait(self) -> None:
        return


class _Uploaded:
    """A temporary folder, whose files are uploaded to a table's URL."""

    def __init__(self, path: str, folder: str, pool: ThreadPoolExecutor) -> None:
        self.root = folder
        self._path, self._pool = path, pool
        self._running: list[Future[None]] = []

    def make_folder(self, folder: str) -> None:
        Path(folder).mkdir(parents=True, exist_ok=True)

    def drop(self, file: str) -> None:
        Path(file).unlink()

    def finish(self, file: str) -> str:
        url = f"{self._path}/{Path(file).relative_to(self.root)}"
        self._running.append(self._pool.submit(_upload, url, file))
        return url

    def put(self, path: str, data: bytes) -> None:
        self._running.append(self._pool.submit(partial(store_of(path).put, path, data, synced=False)))

    def wait(self) -> None:
        wait(self._running)
        for each in self._running:
            each.result()


def _upload(url: str, file: str) -> None:
    """Upload a file, and delete it: a stage may have many large ones."""
    store_of(url).upload(url, file)
    Path(file).unlink()


@contextmanager
def staged(path: str) -> Iterator[Stage]:
    """Return the stage of a table's new files."""
    if not urls.is_url(path):
        yield _InPlace(path)
        return
    with tempfile.TemporaryDirectory(prefix="sqlrun-") as folder, ThreadPoolExecutor(AT_ONCE) as pool:
        yield _Uploaded(path, folder, pool)
