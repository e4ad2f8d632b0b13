"""Writers of one log on a store that loses answers: each acknowledged commit is there once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from sqlrun.storage.factory import storage_of
from tests.support.projects import ROOT
from tests.support.servers.unreliable import ALL, NONE, Faults, Unreliable

pytestmark = [pytest.mark.servers]
KINDS = ("lost", "unanswered", "refused", "refused_after", "cut")


@dataclass(frozen=True)
class Lake:
    """A test's folder of a store, and the proxy before the store."""

    through: Unreliable
    root: str


@pytest.fixture(params=["s3", "gcs", "azure"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    name, scheme = {"s3": ("through", "s3"), "gcs": ("through_gcs", "gs"), "azure": ("through_azure", "az")}[
        request.param
    ]
    return Lake(request.getfixturevalue(name), f"{scheme}://lake{tmp_path}")


@pytest.mark.parametrize("kind", KINDS)
def test_a_lost_answer_is_recognized(lake: Lake, kind: str) -> None:
    """Of two writers the first one wins, whatever became of its answers."""
    through, storage, path = lake.through, storage_of(lake.root), f"{lake.root}/log/1"
    left = [2]

    def first_two(method: str, _: str) -> bool:
        left[0] -= method == "PUT"
        return method == "PUT" and left[0] >= 0

    through.faults, through.picks = Faults(**{kind: 1.0}), first_two
    assert storage.put_if_absent(path, b"one", synced=True)
    assert not storage.put_if_absent(path, b"two", synced=True)
    assert storage.read(path) == b"one"
    assert through.happened == {kind: 2}


@pytest.mark.parametrize("kind", KINDS)
def test_a_failed_read_is_repeated(lake: Lake, kind: str) -> None:
    through, storage, root, left = lake.through, storage_of(lake.root), lake.root, [1]
    for name in ("a", "b"):
        storage.put(f"{root}/{name}", name.encode() * 10_000, synced=True)

    def first(method: str, _: str) -> bool:
        left[0] -= method == "GET"
        return method == "GET" and left[0] >= 0

    through.picks, through.faults = first, Faults(**{kind: 1.0})
    assert storage.read(f"{root}/a") == b"a" * 10_000
    left[0] = 1
    assert sorted(storage.names(root)) == ["a", "b"]
    assert through.happened == {kind: 2}


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_is_deleted_although_an_answer_is_lost(lake: Lake, kind: str) -> None:
    """The repeated request finds no object, which Google's store reports as an error; the others have to go, too."""
    through, storage, left = lake.through, storage_of(lake.root), [3]
    for number in range(40):
        storage.put(f"{lake.root}/table/{number}", b"1", synced=True)

    def first_three(method: str, _: str) -> bool:
        left[0] -= method in ("DELETE", "POST")
        return method in ("DELETE", "POST") and left[0] >= 0

    through.picks, through.faults = first_three, Faults(**{kind: 1.0})
    storage.delete_folder(f"{lake.root}/table")
    assert storage.names(f"{lake.root}/table") == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_is_moved_although_an_answer_is_lost(lake: Lake, kind: str) -> None:
    through, storage, left = lake.through, storage_of(lake.root), [1]
    for number in range(4):
        storage.put(f"{lake.root}/table/{number}", b"1", synced=True)

    def copy(method: str, _: str) -> bool:
        left[0] -= method == "PUT"
        return method == "PUT" and left[0] >= 0

    through.picks, through.faults = copy, Faults(**{kind: 1.0})
    storage.move(f"{lake.root}/table", f"{lake.root}/aside")
    assert sorted(storage.names(f"{lake.root}/aside")) == ["0", "1", "2", "3"]
    assert storage.names(f"{lake.root}/table") == []


@pytest.mark.parametrize("kind", ["unanswered", "cut"])
@pytest.mark.parametrize(
    "step", [("POST", "?uploads", "comp=block&"), ("POST", "?uploadId", "comp=blocklist")], ids=["begin", "end"]
)
def test_a_large_object_is_written_although_an_answer_is_lost(
    lake: Lake, kind: str, step: tuple[str, str, str]
) -> None:
    """The first request begins an upload of several parts, or is a part of it on Azure; the last one ends it."""
    through, storage, data, left = lake.through, storage_of(lake.root), bytes(11_000_000), [1]
    method, query, of_azure = step

    def first(asked: str, path: str) -> bool:
        found = (asked == method and query in path) or (asked == "PUT" and of_azure in path)
        left[0] -= found
        return found and left[0] == 0

    through.picks, through.faults = first, Faults(**{kind: 1.0})
    storage.put(f"{lake.root}/large", data, synced=True)
    assert storage.read(f"{lake.root}/large") == data
    assert through.happened == {kind: 1}


@pytest.mark.slow
def test_contended_commits_are_there_once(lake: Lake) -> None:
    """Two processes write one log; what they were told is what is there."""
    lake.through.faults = ALL
    contended(lake.through, f"{lake.root}/log", writers=2, commits=100)
    assert lake.through.happened.keys() >= {"lost", "unanswered", "refused", "refused_after", "delayed"}


def contended(through: Unreliable, log: str, writers: int, commits: int) -> None:
    """Let processes write one log at once, and compare what they were told with what is there."""
    command = [sys.executable, "-m", "tests.support.committer", log, str(commits)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    running = [
        subprocess.Popen([*command, str(n)], env=environment, stdout=subprocess.PIPE, text=True) for n in range(writers)
    ]
    acknowledged = sorted(tuple(each) for one in running for each in json.loads(one.communicate(timeout=3600)[0]))
    assert [one.returncode for one in running] == [0] * writers

    through.faults = NONE
    storage = storage_of(log)
    there = [json.loads(storage.read(f"{log}/{name}")) for name in storage.names(log)]
    assert sorted((each["writer"], each["number"], each["version"]) for each in there) == acknowledged
    assert sorted(each["version"] for each in there) == list(range(writers * commits))
