"""Objects as files for DuckDB: read through a cache of immutable files. Shell: the network.

A table's data files never change, so an object that this process has written or read needs no further request.
"""

from __future__ import annotations

import io
import re
from datetime import datetime, timezone
from typing import Any

from fsspec import AbstractFileSystem

from sqlrun.storage import file_cache, urls
from sqlrun.storage.factory import store_of

# Bytes of a block of a large file.
BLOCK = 1_000_000
ESCAPED = re.compile(r"\[([*?\[])\]")


class _Large(io.RawIOBase):
    """A large object, read in blocks."""

    def __init__(self, path: str, size: int) -> None:
        super().__init__()
        self._path, self.size, self._place = path, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self.size}[whence]
        self._place = base + offset
        return self._place

    def read(self, size: int = -1) -> bytes:
        end = self.size if size < 0 else min(self.size, self._place + size)
        found = b"" if end <= self._place else self._bytes(self._place, end)
        self._place = max(end, self._place)
        return found

    def _bytes(self, start: int, end: int) -> bytes:
        if end - start >= BLOCK:
            return store_of(self._path).read_range(self._path, start, end - start)
        blocks = [self._block(number) for number in range(start // BLOCK, (end - 1) // BLOCK + 1)]
        first = start // BLOCK * BLOCK
        return b"".join(blocks)[start - first : end - first]

    def _block(self, number: int) -> bytes:
        name = f"{self._path}#{number}"
        data = file_cache.cached(name)
        if data is None:
            start = number * BLOCK
            data = store_of(self._path).read_range(self._path, start, min(BLOCK, self.size - start))
            file_cache.keep(name, data)
        return data


class RemoteFiles(AbstractFileSystem):  # type: ignore[misc]
    """The file system that DuckDB reads URLs through; it writes none."""

    protocol = tuple(urls.KINDS)
    cachable = False

    def glob(self, path: str, **_: Any) -> list[str]:
        """Return the one path that an escaped pattern matches: sqlrun passes no other patterns."""
        return [ESCAPED.sub(r"\1", path)]

    def open(self, path: str, mode: str = "rb", **_: Any) -> Any:
        """Open an object for reading."""
        if "r" not in mode:
            raise NotImplementedError(mode)
        data = file_cache.cached(path)
        if data is not None:
            return io.BytesIO(data)
        size = self.size(path)
        if size > file_cache.WHOLE:
            return _Large(path, size)
        data = store_of(path).read(path)
        file_cache.keep(path, data)
        return io.BytesIO(data)

    def size(self, path: str) -> int:
        """Return an object's size."""
        data = file_cache.cached(path)
        size = file_cache.size(path) if data is None else len(data)
        if size is None:
            found = store_of(path).stamp(path)
            if found is None:
                raise FileNotFoundError(2, "No such object", path)
            size = found.size
            file_cache.note_sizes({path: size})
        return size

    def exists(self, path: str, **_: Any) -> bool:
        """Return whether there is an object, without a request: sqlrun names only files that it knows of."""
        return True

    def isfile(self, path: str) -> bool:
        """Return that a path is a file: sqlrun names no folders."""
        return True

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """Return what is known of an object."""
        return {"name": path, "size": self.size(path), "type": "file"}

    def modified(self, path: str) -> datetime:
        """Return a time that never changes, as files don't."""
        return datetime(2000, 1, 1, tzinfo=timezone.utc)
