"""Behavior of every storage, on a local disk, an S3-compatible server, and emulators of Azure and GCS."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from sqlrun.errors import EngineError, LockedError, UsageError
from sqlrun.runtime import atomic_files
from sqlrun.sources import batches
from sqlrun.storage import leases, lock
from sqlrun.storage.factory import storage_of
from sqlrun.storage.local import LocalStorage
from sqlrun.storage.object_store import ObjectStore
from sqlrun.storage.storage import Storage
from sqlrun.storage.store_errors import StoreError
from tests.support.script import FIVE, START
from tests.support.servers.object_stores import S3

NAMES = (
    "a b", "ä%20ö", "x=1%2F2", "quote'\"", "line\nend", "\u2028", "..a", "-rf", "*", "[a]", "%", "#?&", "né\u0301", "💧"
)  # fmt: skip


class FullDiskError(OSError):
    pass


@dataclass(frozen=True)
class Place:
    """A storage, a warehouse's folder in it, and a way to make its writes fail halfway."""

    storage: Storage
    root: str
    full: mock._patch
    failure: type[OSError] = FullDiskError

    def path(self, name: str) -> str:
        return f"{self.root}/{name}"

    def let_go(self, path: str) -> None:
        """Delete a lock as another process does."""
        if isinstance(self.storage, ObjectStore):
            ObjectStore(self.storage.root, self.storage.options).delete_folder(self.path(path))
        else:
            self.storage.delete(self.path(path))

    def found(self) -> dict[str, bytes]:
        """Return all files by their path."""
        return dict(self._below(""))

    def _below(self, folder: str) -> Iterator[tuple[str, bytes]]:
        for entry in self.storage.entries(self.path(folder)):
            name = f"{folder}{entry.name}"
            if entry.is_folder:
                yield from self._below(f"{name}/")
            else:
                yield name, self.storage.read(self.path(name))


class _Half(FileIO):
    """A file on a disk that is full after the first half."""

    def writelines(self, parts: Iterable[Any], /) -> None:
        data = b"".join(parts)
        self.write(data[: len(data) // 2])
        raise FullDiskError(28, "No space left on device")


def _half(file: Path, mode: str) -> _Half:
    assert mode == "wb"
    return _Half(file, "w")


@pytest.fixture(params=["local", *(pytest.param(kind, marks=pytest.mark.servers) for kind in ("s3", "azure", "gcs"))])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param != "local":
        warehouse = request.getfixturevalue(request.param).warehouse(tmp_path)
        full = mock.patch("obstore.put", side_effect=OSError("status code: 507 <Code>InsufficientStorage</Code>"))
        return Place(storage_of(warehouse), warehouse, full, StoreError)
    return Place(storage_of(str(tmp_path)), str(tmp_path), mock.patch.object(Path, "open", _half))


@pytest.mark.parametrize("synced", [False, True])
def test_written_files_are_read(place: Place, synced: bool) -> None:
    """Missing folders are created; an existing file is replaced."""
    for data in (b"", b"\r\n\x00\xff", b"short"):
        place.storage.put(place.path("a/b/file"), data, synced=synced)
        assert place.storage.read(place.path("a/b/file")) == data
    assert place.found() == {"a/b/file": b"short"}


@pytest.mark.parametrize("synced", [False, True])
def test_a_failed_write_leaves_the_old_file_and_no_other(place: Place, synced: bool) -> None:
    place.storage.put(place.path("old"), b"old", synced=False)
    for name in ("old", "new"):
        for write in (place.storage.put, place.storage.put_if_absent):
            with place.full, pytest.raises(place.failure):
                write(place.path(name), b"new and longer", synced=synced)
            assert place.found() == {"old": b"old"}


def test_a_reader_never_sees_half_of_a_file(place: Place) -> None:
    whole, seen, done = [bytes([n]) * 100_000 for n in range(8)], set[bytes](), threading.Event()
    place.storage.put(place.path("file"), whole[0], synced=False)

    def read() -> None:
        while not done.is_set():
            seen.add(place.storage.read(place.path("file")))

    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read)
        for data in whole:
            place.storage.put(place.path("file"), data, synced=False)
        done.set()
        reading.result()
    assert seen <= set(whole)


@pytest.mark.parametrize("synced", [False, True])
def test_put_if_absent_leaves_an_existing_file(place: Place, synced: bool) -> None:
    assert place.storage.put_if_absent(place.path("log/1"), b"first", synced=synced)
    assert not place.storage.put_if_absent(place.path("log/1"), b"second", synced=synced)
    assert place.found() == {"log/1": b"first"}


def test_one_of_many_writers_of_a_file_wins(place: Place) -> None:
    """The file is the winner's and complete."""
    with ThreadPoolExecutor(8) as pool:
        for number in range(50):
            start = threading.Barrier(8)

            def write(who: int, start: threading.Barrier = start, number: int = number) -> bool:
                start.wait()
                return place.storage.put_if_absent(place.path(f"log/{number}"), bytes([who]) * 1000, synced=False)

            won = list(pool.map(write, range(8)))
            assert won.count(True) == 1
            assert place.storage.read(place.path(f"log/{number}")) == bytes([won.index(True)]) * 1000
    assert len(place.found()) == 50


def test_a_text_is_utf_8(place: Place) -> None:
    place.storage.put(place.path("text"), "ä\r\n\u2028".encode(), synced=False)
    assert place.storage.text(place.path("text")) == "ä\r\n\u2028"
    place.storage.put(place.path("text"), b"\xff", synced=False)
    with pytest.raises(UnicodeDecodeError):
        place.storage.text(place.path("text"))


def test_the_ends_of_a_file(place: Place) -> None:
    for data, ends in ((b"", (b"", b"")), (b"ab", (b"ab", b"ab")), (b"PAR1....PAR2", (b"PAR1", b"PAR2"))):
        place.storage.put(place.path("file"), data, synced=False)
        assert place.storage.ends(place.path("file"), 4) == ends


def test_a_file_of_many_parts(place: Place) -> None:
    """A store gets a large file in several requests; it is there as a whole."""
    data = random.Random(1).randbytes(12_000_001)
    place.storage.put(place.path("large"), data, synced=False)
    assert place.storage.read(place.path("large")) == data
    assert place.storage.ends(place.path("large"), 8) == (data[:8], data[-8:])
    assert place.found().keys() == {"large"}


@pytest.mark.parametrize("name", ["gone", "gone/too", "file/below"])
def test_missing_paths(place: Place, name: str) -> None:
    place.storage.put(place.path("file"), b"1", synced=False)
    path = place.path(name)
    if name != "file/below":
        for read in (place.storage.read, place.storage.text, lambda p: place.storage.ends(p, 4)):
            with pytest.raises(FileNotFoundError):
                read(path)
        place.storage.delete(path)
        place.storage.move(path, place.path("elsewhere"))
    assert place.storage.stamp(path) is None
    assert not place.storage.is_there(path) and not place.storage.is_folder(path)
    assert place.storage.names(path) == place.storage.entries(path) == []
    place.storage.delete_folder(path)
    place.storage.delete_empty(path)
    assert place.found() == {"file": b"1"}


def test_another_file_has_another_stamp(place: Place) -> None:
    path = place.path("log/1")
    place.storage.put(path, b"one", synced=False)
    first = place.storage.stamp(path)
    assert first is not None and first.size == 3 and first == place.storage.stamp(path)
    place.storage.put(place.path("log/2"), b"two", synced=False)
    second = place.storage.stamp(place.path("log/2"))
    place.storage.put(path, b"longer", synced=False)
    assert len({first, second, place.storage.stamp(path)}) == 3


def test_a_folder_is_listed(place: Place) -> None:
    assert place.storage.names(place.root) == place.storage.entries(place.root) == []
    for name in ("table/a.json", "table/.a.crc", "table/part=1/b", "other"):
        place.storage.put(place.path(name), b"12", synced=False)

    assert sorted(place.storage.names(place.path("table"))) == [".a.crc", "a.json", "part=1"]
    found = {entry.name: entry for entry in place.storage.entries(place.path("table"))}
    assert {name: entry.is_folder for name, entry in found.items()} == {
        ".a.crc": False,
        "a.json": False,
        "part=1": True,
    }
    assert found["a.json"].size == 2 and abs(found["a.json"].modified - time.time()) < 3600
    assert place.storage.is_folder(place.path("table/part=1")) and place.storage.is_there(place.path("table/part=1"))
    assert place.storage.is_there(place.path("other")) and not place.storage.is_folder(place.path("other"))


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_a_name_is_any_text(place: Place, name: str) -> None:
    if name == "line\nend" and isinstance(place.storage, ObjectStore):
        pytest.skip("obstore has no such keys; a table has no such names")
    path = place.path(f"{name}/{name}")
    assert place.storage.put_if_absent(path, b"1", synced=True)
    place.storage.put(path, name.encode(), synced=False)
    assert place.storage.names(place.root) == place.storage.names(place.path(name)) == [name]
    assert place.storage.text(path) == name and place.storage.stamp(path) is not None
    place.storage.move(place.path(name), place.path(f"to/{name}"))
    assert place.found() == {f"to/{name}/{name}": name.encode()}
    place.storage.delete(place.path(f"to/{name}/{name}"))
    place.storage.delete_folder(place.path(f"to/{name}"))
    assert place.found() == {}


def test_a_folder_is_deleted_with_its_contents(place: Place) -> None:
    for name in ("table/_delta_log/0", "table/a/b/c", "table2/a"):
        place.storage.put(place.path(name), b"1", synced=False)
    place.storage.delete_folder(place.path("table"))
    assert place.found() == {"table2/a": b"1"} and not place.storage.is_there(place.path("table"))
    place.storage.delete_empty(place.path("table2"))
    assert place.found() == {"table2/a": b"1"}
    place.storage.delete(place.path("table2/a"))
    place.storage.delete_empty(place.path("table2"))
    assert not place.storage.is_there(place.path("table2"))


def test_a_file_gets_a_second_name(place: Place) -> None:
    """It lives as long as one of them, and a name that exists stays as it is."""
    place.storage.put(place.path("a"), b"1", synced=False)
    place.storage.link(place.path("a"), place.path("deep/down/b"))
    place.storage.put(place.path("c"), b"2", synced=False)
    place.storage.link(place.path("a"), place.path("c"))
    place.storage.delete(place.path("a"))

    assert place.storage.read(place.path("deep/down/b")) == b"1"
    assert place.storage.read(place.path("c")) == b"2"
    with pytest.raises(OSError, match="No such"):
        place.storage.link(place.path("a"), place.path("d"))


def test_files_and_folders_are_moved(place: Place) -> None:
    for name in ("table/_delta_log/0", "table/a", "file"):
        place.storage.put(place.path(name), name.encode(), synced=False)
    place.storage.move(place.path("table"), place.path("aside/now/table"))
    place.storage.move(place.path("file"), place.path("aside/now/file"))
    moved = {"aside/now/table/_delta_log/0": b"table/_delta_log/0", "aside/now/table/a": b"table/a"}
    assert place.found() == {**moved, "aside/now/file": b"file"}


def test_a_folder_is_made_for_others_to_write_to(place: Place) -> None:
    for _ in range(2):
        place.storage.make_folder(place.path("table/part=1"))
    place.storage.put(place.path("table/part=1/a"), b"1", synced=False)
    place.storage.sync(place.root)
    assert place.found() == {"table/part=1/a": b"1"}


def test_a_lock_has_one_holder(place: Place) -> None:
    """The second process gets the holder's name, and waits or gives up; no rest of a longer name remains."""
    holders: list[str] = []

    def refuse(text: str) -> None:
        holders.append(text)
        raise LockedError("taken")

    for text in ("a longer name", "short"):
        with place.storage.hold(place.path("books/lock"), text, refuse):
            assert place.storage.holder(place.path("books/lock")) == text
            with pytest.raises(LockedError), place.storage.hold(place.path("books/lock"), "other", refuse):
                pass
    assert holders == ["a longer name", "short"]

    free, waits = threading.Event(), threading.Event()

    def wait() -> None:
        with place.storage.hold(place.path("books/lock"), "second", lambda _: waits.set()):
            assert free.is_set()

    with ThreadPoolExecutor(1) as pool:
        with place.storage.hold(place.path("books/lock"), "first", refuse):
            waiting = pool.submit(wait)
            assert waits.wait(10)
            free.set()
        waiting.result(10)


def test_a_lock_whose_file_was_deleted_is_no_longer_held(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "RENEWAL", leases.TERM)  # each question is one to the store
    with lock.hold(place.root, START) as me:
        lock.require(place.root, me)
        place.let_go("_sqlrun/lock")
        with pytest.raises(LockedError, match="its lock file is missing"):
            lock.require(place.root, me)
        with lock.hold(place.root, START + FIVE), pytest.raises(LockedError, match="taken over by another build: pid"):
            lock.require(place.root, me)


def test_the_lock_of_a_process_that_died_is_free(place: Place) -> None:
    code = (
        "import os, sys; from sqlrun.storage.factory import storage_of\n"
        "with storage_of(sys.argv[1]).hold(sys.argv[1], 'dead', print): os._exit(1)"
    )
    assert subprocess.run([sys.executable, "-c", code, place.path("lock")], check=False).returncode == 1
    with place.storage.hold(place.path("lock"), "living", pytest.fail):
        assert place.storage.holder(place.path("lock")) == "living"


def test_questions_are_answered_in_their_order(place: Place) -> None:
    """Where answers take time, several are awaited at once."""
    for number in range(40):
        place.storage.put(place.path(str(number)), str(number).encode(), synced=False)
    paths, threads = [place.path(str(number)) for number in range(40)], set[int]()

    def read(path: str) -> bytes:
        threads.add(threading.get_ident())
        return place.storage.read(path)

    assert place.storage.at_once(read, paths) == [str(number).encode() for number in range(40)]
    assert place.storage.at_once(read, []) == []
    assert (len(threads) > 1) == isinstance(place.storage, ObjectStore)
    with pytest.raises(FileNotFoundError, match="missing"):
        place.storage.at_once(read, [*paths, place.path("missing")])


@pytest.mark.servers
def test_a_plan_is_read_again_only_where_it_has_changed(s3: S3, tmp_path: Path) -> None:
    """Another process may replace a plan; each reader lists the folder first."""
    warehouse = s3.warehouse(tmp_path)
    storage, checkpoint = storage_of(warehouse), f"{warehouse}/_sqlrun/checkpoints/stg/1"
    assert isinstance(storage, ObjectStore)
    for number in (1, 2):
        assert batches.plan(checkpoint, number, {f"{number}.jsonl": (None, number)})
    before = storage.requests
    for _ in range(3):
        assert list(batches.read(checkpoint)) == [1, 2]
    assert storage.requests - before == {"list": 3}

    other = ObjectStore(storage.root, storage.options)
    other.put(f"{checkpoint}/{batches.name_of(1)}", b"", synced=True)
    assert batches.read(checkpoint)[1] is None
    assert storage.requests - before == {"list": 4, "get": 1}
    other.delete(f"{checkpoint}/{batches.name_of(2)}")
    assert list(batches.read(checkpoint)) == [1]


# Only a local disk has links.


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    """Deleting, moving and listing affect the link itself; a warehouse with a link is rejected before that."""
    storage, inside, outside = LocalStorage(), tmp_path / "in", tmp_path / "out"
    for folder in (inside / "_sqlrun", outside):
        folder.mkdir(parents=True)
        (folder / "mine").write_text("mine")
    for name, to in (("folder", outside), ("file", outside / "mine")):
        (inside / name).symlink_to(to)

    assert {entry.name for entry in storage.entries(str(inside)) if entry.is_folder} == {"_sqlrun"}
    with pytest.raises(UsageError, match="SR743"):
        storage.require_usable(str(inside))
    with pytest.raises(OSError):
        storage.delete_folder(str(inside / "folder"))
    storage.delete(str(inside / "file"))
    storage.delete_folder(str(inside))
    assert (outside / "mine").read_text() == "mine"


def test_a_synced_write_syncs_the_file_and_its_folder(tmp_path: Path) -> None:
    """Syncing the file system is one call for all writes."""
    storage, synced = LocalStorage(), list[str]()
    real = os.fsync

    def fsync(handle: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{handle}").readlink()))
        real(handle)

    with mock.patch("os.fsync", fsync):
        for write in (storage.put, storage.put_if_absent):
            write(str(tmp_path / write.__name__), b"1", synced=False)
            assert synced == []
            write(str(tmp_path / f"{write.__name__} synced"), b"1", synced=True)
            assert len(synced) == 2 and synced[0].endswith(".tmp") and synced[1] == str(tmp_path)
            synced.clear()
        storage.sync(str(tmp_path))
    assert synced == []


def test_a_read_only_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "_sqlrun").write_text("a file")
    with (
        pytest.raises(EngineError, match=r"the lock file .*_sqlrun/lock can't be written"),
        lock.hold(str(tmp_path), START),
    ):
        pass


@pytest.mark.parametrize("path", ["file:///tmp/warehouse", "http://a/b", "memory://"])
def test_other_addresses_are_refused(path: str) -> None:
    with pytest.raises(UsageError, match="SR790"):
        storage_of(path)


@pytest.mark.parametrize("path", ["/tmp/a:b", "/tmp/a://b", "warehouse/local", "/tmp/s3:"])
def test_a_path_is_of_the_local_disk(path: str) -> None:
    assert isinstance(storage_of(path), LocalStorage)


def test_a_text_of_other_files_is_written_alike(tmp_path: Path) -> None:
    atomic_files.put(tmp_path / "text", "ä")
    assert LocalStorage().text(str(tmp_path / "text")) == "ä"
