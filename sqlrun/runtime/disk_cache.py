"""Cache of results about a project, by the hash of all of their inputs. Shell: target/cache.jsonl."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import platform
from collections.abc import Callable, Iterable
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from sqlrun.runtime import own_folders
from sqlrun.runtime.serialize import Ask, Form, NotStored, form, nothing

FILE = "target/cache.jsonl"
# Libraries whose version results depend on: another version invalidates the cache.
LIBRARIES = ("sqlglot", "jinja2", "yaml", "ruamel.yaml")
MOST_BYTES = 500_000_000
# False with `--no-cache`.
WANTED: ContextVar[bool] = ContextVar("cache", default=True)


class Cache:
    """Results by key. A key is the hash of everything that the result depends on, so entries are never stale.

    Only results without a problem are cached. A corrupt file, or one of another version of sqlrun, is ignored; so is an
    entry of the wrong type. The hash in the file's head is no secret: who may write target/ may write models/ too.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._known: dict[bytes, bytes] = {}
        self._used: dict[bytes, bytes] = {}
        self._new = False
        self.made: dict[str, int] = {}  # number of misses, by kind
        if file is not None:
            self._known = _read(file)

    @classmethod
    def of(cls, root: Path) -> Cache | None:
        """Open the cache of a project; None if it is switched off.

        Raises: UsageError if target/ is not the project's own.
        """
        own_folders.require_target(root)
        return cls(root / FILE) if WANTED.get() else None

    def again(self) -> Cache:
        """Return a cache for the next load of the project, with the same entries and without reading the file."""
        following = Cache(None)
        following._file, following._known = self._file, self._known
        return following

    def unwritten(self) -> Cache:
        """Return a cache with a copy of the entries, which is never written: for texts that aren't saved."""
        found = Cache(None)
        found._known = dict(self._known)
        return found

    def get_or_make(self, kind: str, source: object, hint: Any, make: Callable[[], Any], ask: Ask = nothing) -> Any:
        """Return the cached result for `source`, or make and cache it; None means a problem and is not cached."""
        key = _key(kind, source)
        shape: Form = form(hint)  # type: ignore[assignment]
        if key in self._known:
            try:
                value = shape.read(json.loads(self._known[key]), ask)
            except (NotStored, ValueError, ArithmeticError, RecursionError):
                pass
            else:
                self._used[key] = self._known[key]
                return value
        self.made[kind] = self.made.get(kind, 0) + 1
        value = make()
        if value is not None:
            self._used[key] = self._known[key] = json.dumps(shape.write(value), separators=(",", ":")).encode()
            self._new = True
        return value

    def knows(self, kind: str, source: object) -> bool:
        """Return whether there is an entry for `source`."""
        return _key(kind, source) in self._known

    @property
    def is_empty(self) -> bool:
        """Return whether the file had no entries."""
        return not self._known

    def mark(self) -> int:
        """Return a position for `since`."""
        return len(self._used)

    def since(self, mark: int) -> bytes:
        """Return the entries used since a mark, for `learn` in another process."""
        return _lines(list(self._used.items())[mark:])

    def learn(self, lines: bytes) -> None:
        """Add the entries that another process used."""
        entries = _entries(lines)
        self._new = self._new or not entries.keys() <= self._known.keys()
        self._known.update(entries)
        self._used.update(entries)

    def save(self) -> None:
        """Write the used entries; a failure only makes the next run slower."""
        if self._file is None or not self._new:
            return
        body = _lines(self._used.items())
        temporary = self._file.with_name(f"{self._file.name}.{os.getpid()}")
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_bytes(_head(body) + body)
            temporary.replace(self._file)
        except OSError:
            with suppress(OSError):
                temporary.unlink()
        self._new = False


def digest(value: object) -> str:
    """Return the hash of a plain value."""
    return hashlib.blake2b(WRITE(value).encode("utf-8", "replace"), digest_size=16).hexdigest()


def _plain(value: object) -> object:
    return f"{type(value).__name__} {value!r}"  # TOML's times, decimals


WRITE = json.JSONEncoder(default=_plain).encode


def _read(file: Path) -> dict[bytes, bytes]:
    """Return the entries of a file, one on each line: key, blank, JSON."""
    try:
        if file.stat().st_size > MOST_BYTES:
            return {}
        data = file.read_bytes()
    except OSError:
        return {}
    cut = data.find(b"\n") + 1
    if data[:cut] != _head(data[cut:]):
        return {}
    return _entries(data[cut:])


def _key(kind: str, source: object) -> bytes:
    return digest([kind, source]).encode()


def _lines(entries: Iterable[tuple[bytes, bytes]]) -> bytes:
    return b"".join(b"%b %b\n" % entry for entry in entries)


def _entries(lines: bytes) -> dict[bytes, bytes]:
    return {key: value for key, _, value in (line.partition(b" ") for line in lines.split(b"\n")) if key}


def _head(body: bytes) -> bytes:
    """Return the file's first line: the program that wrote it, and a hash that shows it is complete."""
    return f"{_stamp()} {hashlib.blake2b(body, digest_size=16).hexdigest()}\n".encode()


def _stamp() -> str:
    """Return a hash of the program: sqlrun's own files and the libraries that parse projects."""
    package = Path(__file__).parent.parent
    files = (*package.rglob("*.py"), *(package / "load" / "macros").rglob("*.sql"))
    own = sorted((str(f.relative_to(package)), f.stat().st_mtime_ns, f.stat().st_size) for f in files)
    return digest([platform.python_version(), own, [_version(name) for name in LIBRARIES]])


def _version(name: str) -> object:
    found = importlib.util.find_spec(name)
    if found is None or found.origin is None:
        return None
    places = (Path(found.origin), Path(found.origin).parent)
    return [[str(place), place.stat().st_mtime_ns] for place in places]
