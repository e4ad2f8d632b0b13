"""Leases on a store without file locks: renewals, takeovers, holders that slept."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sqlrun.errors import LockedError
from sqlrun.storage import leases, lock
from sqlrun.storage.leases import Leases
from sqlrun.storage.storage import Entry
from tests.support.script import FIVE, START
from tests.support.servers.object_stores import S3

PLACE = "s3://lake/w/_sqlrun/lock"


class Memory:
    """Objects in memory; `after` runs after each write."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.after: Callable[[str], None] = lambda path: None
        self.asked = 0
        self._lock = threading.Lock()

    def read(self, path: str) -> bytes:
        self.asked += 1
        if path not in self.objects:
            raise FileNotFoundError(path)
        return self.objects[path]

    def entries(self, folder: str) -> list[Entry]:
        self.asked += 1
        with self._lock:
            below = [path.removeprefix(f"{folder}/") for path in self.objects if path.startswith(f"{folder}/")]
        return [Entry(name, False, 0, 0.0) for name in below if "/" not in name]

    def put_if_absent(self, path: str, data: bytes, *, synced: bool) -> bool:
        self.asked += 1
        with self._lock:
            done = self.objects.setdefault(path, data) is data
        self.after(path)
        return done

    def delete(self, path: str) -> None:
        with self._lock:
            self.objects.pop(path, None)


@pytest.fixture
def store() -> Memory:
    return Memory()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "TERM", 0.6)
    monkeypatch.setattr(leases, "RENEWAL", 0.1)
    monkeypatch.setattr(leases, "LOOK", 0.02)


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """No process can look whether another one lives, as on two machines."""
    monkeypatch.setattr(leases, "_machine", list)


@pytest.fixture
def asleep(monkeypatch: pytest.MonkeyPatch) -> None:
    """No lease is renewed in the background."""
    monkeypatch.setattr(Leases, "_renew", lambda self, held: None)


def refuse(text: str) -> None:
    raise LockedError(text)


def numbers(store: Memory) -> list[int]:
    return sorted(int(path.rpartition("/")[2]) for path in store.objects)


def test_a_lease_is_renewed_and_released(store: Memory) -> None:
    """Each renewal is the next number; older ones are deleted, and the release stays as the last."""
    mine = Leases(store)
    with mine.hold(PLACE, "me", refuse):
        time.sleep(0.35)
        assert numbers(store)[-1] >= 3 and len(store.objects) <= 2
        assert mine.holder(PLACE) == "me" and Leases(store).holder(PLACE) == "me"
    assert len(store.objects) == 1 and Leases(store).holder(PLACE) == ""
    with Leases(store).hold(PLACE, "next", pytest.fail):
        assert Leases(store).holder(PLACE) == "next"


@pytest.mark.usefixtures("elsewhere")
def test_a_living_holder_refuses_another(store: Memory) -> None:
    """Without knowledge of its process the other one sees that it renews."""
    other = Leases(store).hold(PLACE, "other", refuse)
    with Leases(store).hold(PLACE, "me", refuse), pytest.raises(LockedError, match="me"), other:
        pass


@pytest.mark.usefixtures("elsewhere")
def test_a_dead_holder_is_overtaken_after_its_term(store: Memory) -> None:
    """The waiter measures how long it sees no change, by its own clock."""
    Leases(store)._step(PLACE, 7, "dead", "token")
    began = time.monotonic()
    with Leases(store).hold(PLACE, "next", pytest.fail):
        assert time.monotonic() - began >= leases.TERM
        assert numbers(store)[0] >= 8
    assert "dead" not in str(store.objects)


@pytest.mark.usefixtures("elsewhere", "asleep")
def test_a_holder_that_slept_learns_who_came(store: Memory) -> None:
    sleeper = Leases(store)
    with sleeper.hold(PLACE, "sleeper", refuse):
        with Leases(store).hold(PLACE, "next", pytest.fail):
            assert sleeper.holder(PLACE) == "next" == Leases(store).holder(PLACE)
        assert sleeper.holder(PLACE) == "next"  # it doesn't get the lock back
    assert json.loads(store.objects[max(store.objects)])["free"]


@pytest.mark.usefixtures("elsewhere", "asleep")
def test_a_number_that_was_deleted_is_no_lease(store: Memory) -> None:
    """A sleeper whose next number was used and deleted may write it again, and then sees that others are ahead."""
    sleeper = Leases(store)
    with sleeper.hold(PLACE, "sleeper", refuse):
        store.objects.clear()
        Leases(store)._step(PLACE, 9, "ahead", "token")
        time.sleep(leases.TERM)
        assert sleeper.holder(PLACE) == "ahead"
        assert numbers(store) == [9]
    assert numbers(store) == [9]


@pytest.mark.usefixtures("elsewhere")
def test_one_of_many_waiters_takes_a_free_lock(store: Memory) -> None:
    """At most one holds the lock at any time."""
    inside, most, done = [0], [0], list[int]()

    def work(number: int) -> None:
        with Leases(store).hold(PLACE, str(number), lambda _: None):
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            time.sleep(0.01)
            inside[0] -= 1
        done.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(20)
    assert sorted(done) == list(range(6)) and most == [1]


def test_a_renewal_that_was_written_and_failed_is_confirmed_later(store: Memory) -> None:
    failed = list[str]()

    def fail_once(path: str) -> None:
        if path.endswith("2") and len(failed) < 2:
            failed.append(path)
            raise OSError("no answer")

    store.after = fail_once
    mine = Leases(store)
    with mine.hold(PLACE, "me", refuse):
        time.sleep(0.7)
        assert len(failed) == 2 and mine.holder(PLACE) == "me"
        assert numbers(store)[-1] > 2


def test_a_fresh_lease_needs_no_request(store: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "RENEWAL", 5.0)
    monkeypatch.setattr(leases, "TERM", 20.0)
    mine = Leases(store)
    with mine.hold(PLACE, "me", refuse):
        before = store.asked
        assert mine.holder(PLACE) == "me" and store.asked == before


def test_a_build_that_was_overtaken_stops_before_its_next_write(
    s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a server: the other one's store knows nothing of the first one's process."""
    warehouse = s3.warehouse(tmp_path)
    monkeypatch.setattr(leases, "_machine", list)
    monkeypatch.setattr(Leases, "_renew", lambda self, held: None)
    with lock.hold(warehouse, START) as me:
        lock.require(warehouse, me)
        monkeypatch.setattr("sqlrun.storage.factory._stores", theirs := dict[str, object]())
        mine = lock.storage_of(warehouse)
        with lock.hold(warehouse, START + FIVE):
            theirs.clear()
            time.sleep(leases.TERM)
            assert mine is not lock.storage_of(warehouse)
            with pytest.raises(LockedError, match="taken over by another build"):
                lock.require(warehouse, me)
