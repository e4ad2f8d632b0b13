"""Storage of a warehouse on an object store: S3 and compatible stores, GCS, Azure. Shell: the network.

There are no folders: each prefix of a key counts as one. There is no rename: `move` copies.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import timedelta
from functools import cached_property, partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from sqlrun.errors import UsageError
from sqlrun.storage import file_cache, store_errors, urls
from sqlrun.storage.known_entries import FOLDERS, LogEntries
from sqlrun.storage.leases import Leases
from sqlrun.storage.storage import Entry, Item, Result, Stamp
from sqlrun.storage.store_errors import StoreError
from sqlrun.storage.store_options import StoreOptions

if TYPE_CHECKING:
    from obstore.store import ObjectStore as Store

# Maximum number of tries of a conditional write, and the longest pause between two, in seconds.
TRIES, PAUSE = 8, 5.0
# Maximum number of times that a request is made whose answer is lost.
CUT_OFF = 5
LONGEST = timedelta(seconds=60)
RETRIES = {"max_retries": 8, "retry_timeout": LONGEST}
# Maximum number of threads that wait for answers to one caller's questions.
AT_ONCE = 16


def _stamp(found: Any) -> Stamp:
    """Return a stamp of what the store says about an object: its tag changes with its bytes."""
    return Stamp(found["e_tag"] or str(found["last_modified"]), 0, found["size"])


class ObjectStore:
    """Objects of a bucket, by their URLs. `Storage` documents each method."""

    writes_whole = True

    def __init__(self, root: str, options: StoreOptions) -> None:
        self.root, self.options = root, options
        self._counts, self._counting = Counter[str](), Lock()
        self._entries = LogEntries()
        self.leases = Leases(self)

    @property
    def requests(self) -> Counter[str]:
        """Return the number of this process's requests so far, by kind, without those of delta-rs."""
        with self._counting:
            return self._counts.copy()

    def count(self, kind: str, number: int = 1) -> None:
        """Count requests."""
        with self._counting:
            self._counts[kind] += number

    def at_once(self, do: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """Return `do` of each item, several at once."""
        found = list(items)
        if len(found) < 2:
            return [do(item) for item in found]
        with ThreadPoolExecutor(min(len(found), AT_ONCE), "sqlrun-store") as threads:
            return list(threads.map(do, found))

    @cached_property
    def _store(self) -> Store:
        return self._opened(RETRIES)

    @cached_property
    def _once(self) -> Store:
        """Return a store that repeats nothing: a repeated conditional write couldn't recognize its own success."""
        return self._opened({"max_retries": 0, "retry_timeout": LONGEST})

    @cached_property
    def _api(self) -> Any:
        """Return the library's functions."""
        try:
            import obstore
        except ImportError as error:
            raise UsageError(
                f"SR796 {self.root} is on an object store, but the package obstore isn't installed. "
                "Run pip install 'sqlrun[store]'"
            ) from error
        return obstore

    def _opened(self, retries: Any) -> Store:
        from obstore.store import from_url

        options: Any = self.options
        try:
            return from_url(
                self.root, config=options.config, client_options=options.client or None, retry_config=retries
            )
        except Exception as error:
            raise store_errors.explained(self.root, error) from error

    def _key(self, path: str) -> str:
        return path[len(self.root) + 1 :].rstrip("/")

    @contextmanager
    def _request(self, kind: str, path: str) -> Iterator[None]:
        """Count a request, and explain its error; a missing object stays a FileNotFoundError."""
        self.count(kind)
        try:
            yield
        except FileNotFoundError as error:
            if store_errors.no_bucket(error) or store_errors.answer_lost(error):
                raise store_errors.explained(path, error) from error
            raise FileNotFoundError(2, "No such object", path) from None
        except (StoreError, UsageError):
            raise
        except Exception as error:
            if type(error).__name__ == "AlreadyExistsError":
                raise
            raise store_errors.explained(path, error) from error

    def _prefix(self, folder: str) -> str | None:
        key = self._key(folder)
        return f"{key}/" if key else None

    def _asked(self, kind: str, path: str, ask: Callable[[], Result]) -> Result:
        """Return the answer to a request that may be repeated; repeat it if it was lost, which the library doesn't."""
        for number in range(CUT_OFF):
            try:
                with self._request(kind, path):
                    return ask()
            except StoreError as error:
                if number == CUT_OFF - 1 or not store_errors.answer_lost(error.__cause__ or error):
                    raise
        raise AssertionError

    def read(self, path: str) -> bytes:
        """Return an object's bytes."""
        if (known := self._entries.body(path)) is not None:
            return known

        def ask() -> tuple[Stamp, bytes]:
            found = self._api.get(self._store, self._key(path))
            return _stamp(found.meta), bytes(found.bytes())

        stamp, data = self._asked("get", path, ask)
        self._entries.note(path, stamp, data)
        return data

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """Return some of an object's bytes."""
        key = self._key(path)
        return bytes(
            self._asked("get", path, lambda: self._api.get_range(self._store, key, start=start, length=length))
        )

    def text(self, path: str) -> str:
        """Return an object's text."""
        return self.read(path).decode()

    def ends(self, path: str, length: int) -> tuple[bytes, bytes]:
        """Return an object's first and last bytes."""
        found = self.stamp(path)
        if found is None:
            raise FileNotFoundError(2, "No such object", path)
        if found.size <= length * 2:
            data = self.read(path)
            return data[:length], data[max(0, len(data) - length) :]
        return self.read_range(path, 0, length), self.read_range(path, found.size - length, length)

    def stamp(self, path: str) -> Stamp | None:
        """Return the stamp of an object."""
        if self._key(path) == "":
            return None
        if (known := self._entries.stamp(path)) is not None:
            return known
        try:
            with self._request("head", path):
                found = self._api.head(self._store, self._key(path))
        except FileNotFoundError:
            return None
        self._entries.note(path, _stamp(found))
        return _stamp(found)

    def is_there(self, path: str) -> bool:
        """Return whether there is an object, or one below a prefix."""
        return self.stamp(path) is not None or self.is_folder(path)

    def is_folder(self, path: str) -> bool:
        """Return whether there is an object below a prefix."""
        prefix = self._prefix(path)
        return bool(
            self._asked("list", path, lambda: next(iter(self._api.list(self._store, prefix, chunk_size=1)), None))
        )

    def _below(self, folder: str) -> list[str]:
        """Return the keys of all objects below a prefix."""
        prefix = self._prefix(folder)
        pages = self._asked("list", folder, lambda: list(self._api.list(self._store, prefix, chunk_size=1000)))
        return [each["path"] for page in pages for each in page]

    def names(self, folder: str) -> list[str]:
        """Return the names below a prefix, up to the next slash."""
        return [entry.name for entry in self.entries(folder)]

    def entries(self, folder: str) -> list[Entry]:
        """Return the entries below a prefix, up to the next slash."""
        prefix = self._prefix(folder)
        found = self._asked("list", folder, lambda: self._api.list_with_delimiter(self._store, prefix))
        if folder.endswith(FOLDERS):
            for each in found["objects"]:
                self._entries.note(f"{folder}/{each['path'].rpartition('/')[2]}", _stamp(each))
        folders = [Entry(each.rstrip("/").rpartition("/")[2], True, 0, 0.0) for each in found["common_prefixes"]]
        return [
            *folders,
            *(
                Entry(each["path"].rpartition("/")[2], False, each["size"], each["last_modified"].timestamp())
                for each in found["objects"]
            ),
        ]

    def put(self, path: str, data: bytes, *, synced: bool) -> None:
        """Write an object; an acknowledged object is durable."""
        self._entries.forget([path])
        self._put(path, data)

    def upload(self, path: str, file: str) -> None:
        """Write an object from a local file, and keep a small one for readers in this process."""
        data = Path(file)
        self._put(path, data)
        if data.stat().st_size <= file_cache.WHOLE:
            file_cache.keep(path, data.read_bytes())

    def _put(self, path: str, data: bytes | Path) -> None:
        self._asked("put", path, partial(self._api.put, self._store, self._key(path), data))

    def put_if_absent(self, path: str, data: bytes, *, synced: bool) -> bool:
        """Write an object, if there is none.

        An answer may be lost after the store has written the object. The repeated write then finds its own object,
        which it recognizes by its bytes: commits and leases contain a unique id.
        """
        doubt = False
        for number in range(TRIES):
            try:
                done = self._created(path, data)
            except StoreError as error:
                if number == TRIES - 1 or not store_errors.passing(error.__cause__ or error):
                    raise
                doubt = True
                time.sleep(min(PAUSE, 0.05 * 2**number) * (0.5 + random.random()))
                continue
            return done or (doubt and self._is(path, data))
        raise AssertionError

    def _created(self, path: str, data: bytes) -> bool:
        from obstore.exceptions import AlreadyExistsError

        try:
            with self._request("put", path):
                done = self._api.put(self._once, self._key(path), data, mode="create", use_multipart=False)
        except AlreadyExistsError:
            return False
        self._entries.note(path, Stamp(done["e_tag"] or "", 0, len(data)), data)
        return True

    def _is(self, path: str, data: bytes) -> bool:
        try:
            return self.read(path) == data
        except FileNotFoundError:
            return False

    def make_folder(self, folder: str) -> None:
        """Do nothing: a prefix exists with its objects."""

    def move(self, path: str, to: str) -> None:
        """Copy the objects at and below a path, then delete them."""
        whole, target = self._key(path), self._key(to)
        found = [whole] if self.stamp(path) is not None else self._below(path)

        def copy(key: str) -> None:
            self._api.copy(self._store, key, target + key[len(whole) :])

        for key in found:
            self._asked("copy", path, partial(copy, key))
        self._delete(path, found)

    def link(self, path: str, to: str) -> None:
        """Copy an object, unless the copy exists."""
        if self.stamp(to) is None:
            self._asked("copy", path, partial(self._api.copy, self._store, self._key(path), self._key(to)))

    def delete(self, path: str) -> None:
        """Delete an object."""
        self._delete(path, [self._key(path)])

    def _delete(self, path: str, keys: list[str]) -> None:
        if not keys:
            return
        self._entries.forget(f"{self.root}/{key}" for key in keys)
        try:
            self._asked("delete", path, lambda: self._api.delete(self._store, keys))
        except FileNotFoundError:
            # GCS and Azure report a missing object, also one that the first try of a request has deleted. The library
            # then leaves the keys after it.
            if len(keys) > 1:
                self.at_once(lambda key: self._delete(path, [key]), keys)

    def delete_folder(self, folder: str) -> None:
        """Delete all objects below a prefix, and the leases that this process holds there."""
        self.leases.forget_below(folder)
        self._delete(folder, self._below(folder))

    def delete_empty(self, folder: str) -> None:
        """Do nothing: a prefix without objects doesn't exist."""

    def sync(self, folder: str) -> None:
        """Do nothing: an acknowledged object is durable."""

    def hold(self, path: str, text: str, taken: Callable[[str], None]) -> AbstractContextManager[None]:
        """Hold a lease, as `Leases` describes."""
        return self.leases.hold(path, text, taken)

    def holder(self, path: str) -> str:
        """Return the text of a lease's holder."""
        return self.leases.holder(path)

    def require_usable(self, warehouse: str) -> None:
        """Reject a store on which two writers of one object both succeed, before the first build writes anything."""
        with suppress(FileNotFoundError):
            self.read(f"{warehouse}/_sqlrun/format")  # unlike a HEAD, its error says why
            return
        path = f"{warehouse}/_sqlrun/probe-{random.getrandbits(64):016x}"
        try:
            first, second = (self.put_if_absent(path, word, synced=True) for word in (b"first", b"second"))
        finally:
            self.delete(path)
        if not first or second:
            raise UsageError(
                f"SR795 {urls.root_of(warehouse)} ignores conditional writes (If-None-Match): two builds could "
                "overwrite each other's commits. Nothing was published. Use a store that has them: S3, GCS, Azure, "
                "MinIO, Ceph, R2, versitygw"
            )
