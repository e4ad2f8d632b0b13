"""A group of requests is in the source with its keys, or not at all, wherever the disk fails."""

from __future__ import annotations

import errno
import sqlite3
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from sqlrun.runtime import atomic_files
from sqlrun.serve.ingest import key_record, writer
from sqlrun.serve.ingest.key_record import KeyRecord
from sqlrun.serve.ingest.writer import HIDDEN, KEYS, Accepted, Conflict, Full, Request, Unwritable, Writer
from sqlrun.storage.local import LocalStorage
from tests.support import ingested
from tests.support.ingested import JSON, PATH, SENDER, now


def request(text: str, key: str | None = None) -> Request:
    data = f"{text}\n".encode()
    return Request(data, 1, sha256(data).digest(), None if key is None else sha256(key.encode()).digest())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data" / "source"


def landed(folder: Path) -> list[str]:
    return [line for file in sorted(folder.glob("*.jsonl")) for line in file.read_text().split("\n")[:-1]]


def left(folder: Path) -> list[str]:
    return sorted(p.name for p in (folder / HIDDEN).iterdir() if p.name not in (KEYS, f"{KEYS}-wal"))


def failing(error: BaseException) -> Any:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    return fail


NO_SPACE = OSError(errno.ENOSPC, "No space left on device")
SQLITE_FULL = sqlite3.OperationalError("database or disk is full")
STEPS = {
    "lines": (LocalStorage, "put"),
    "keys": (KeyRecord, "add"),
    "move": (LocalStorage, "move"),
    "sync": (atomic_files, "sync_one"),
}


@pytest.mark.parametrize("error", [NO_SPACE, SQLITE_FULL, OSError(errno.EIO, "Input/output error")], ids=str)
@pytest.mark.parametrize("step", STEPS)
def test_where_a_group_fails_its_requests_can_be_sent_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch, step: str, error: Exception
) -> None:
    made = Writer(str(folder), now)
    assert made.write([request("before", "0")])
    with monkeypatch.context() as broken:
        broken.setattr(*STEPS[step], failing(error))
        with pytest.raises(Unwritable if "put" in str(error) else Full):
            made.write([request("a", "1"), request("b", "2")])
    again = made.write([request("a", "1"), request("b", "2"), request("c", "3"), request("x", "1")])

    assert [type(outcome) for outcome in again] == [Accepted, Accepted, Accepted, Conflict]
    assert sorted(landed(folder)) == ["a", "b", "before", "c"]
    assert left(folder) == []


@pytest.mark.parametrize("step", STEPS)
def test_what_a_dead_server_left_is_finished_or_deleted_by_the_next_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    made = Writer(str(folder), now)
    made.write([request("before", "0")])
    with monkeypatch.context() as broken:
        broken.setattr(*STEPS[step], failing(SystemExit()))
        with pytest.raises(SystemExit):
            made.write([request("a", "1"), request("b")])
    made.close()
    Writer(str(folder), now).recover()
    finished = step == "move"  # the first sync is that of the lines, before their keys

    assert sorted(landed(folder)) == (["a", "b", "before"] if finished else ["before"])
    assert left(folder) == []


def test_a_lines_file_that_was_archived_before_the_next_start_is_not_written_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Writer(str(folder), now)
    made.write([request("a", "1")])
    made.close()
    for file in folder.glob("*.jsonl"):
        file.unlink()
    following = Writer(str(folder), now)
    following.recover()
    (found,) = following.write([request("a", "1")])

    assert isinstance(found, Accepted) and found.again
    assert landed(folder) == []


def test_a_temporary_file_of_a_dead_server_is_deleted_and_no_other(folder: Path) -> None:
    (folder / HIDDEN).mkdir(parents=True)
    name = "ingest-20261121T120000000000Z-00000000.jsonl"
    for each in (name, f".{name}.{'0' * 32}.tmp", "mine.jsonl", "notes.txt"):
        (folder / HIDDEN / each).write_text("{")
    Writer(str(folder), now).recover()

    assert left(folder) == ["mine.jsonl", "notes.txt"]


def test_a_repeated_request_of_the_same_group_is_written_once(folder: Path) -> None:
    outcomes = Writer(str(folder), now).write([request("a", "1"), request("a", "1"), request("b", "1"), request("a")])

    assert [type(each) for each in outcomes] == [Accepted, Accepted, Conflict, Accepted]
    assert [each.again for each in outcomes if isinstance(each, Accepted)] == [False, True, False]
    assert landed(folder) == ["a", "a"]


def test_keys_that_a_user_deleted_are_begun_again(folder: Path) -> None:
    """Or the server would add keys to a file without a name, and forget them when it stops."""
    made = Writer(str(folder), now)
    made.write([request("a", "1")])
    for file in (folder / HIDDEN).iterdir():
        file.unlink()
    made.write([request("b", "2")])
    made.close()
    (found,) = Writer(str(folder), now).write([request("b", "2")])

    assert isinstance(found, Accepted) and found.again


def test_corrupt_keys_are_reported_and_nothing_is_written(folder: Path) -> None:
    (folder / HIDDEN).mkdir(parents=True)
    (folder / HIDDEN / KEYS).write_bytes(b"not a database" * 1000)

    with pytest.raises(Unwritable, match=r"keys\.db can't be used: file is not a database"):
        Writer(str(folder), now).write([request("a", "1")])
    assert landed(folder) == []


def test_keys_of_a_newer_sqlrun_are_left_alone(folder: Path) -> None:
    made = Writer(str(folder), now)
    made.write([request("a", "1")])
    made.close()
    newer = sqlite3.connect(folder / HIDDEN / KEYS, isolation_level=None)
    newer.execute("pragma user_version = 2")
    newer.close()

    with pytest.raises(Unwritable, match="version 2"):
        Writer(str(folder), now).write([request("b", "1")])


def test_nothing_is_written_through_a_link(folder: Path, tmp_path: Path) -> None:
    folder.mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (folder / HIDDEN).symlink_to(tmp_path / "elsewhere")

    with pytest.raises(Unwritable):
        Writer(str(folder), now).write([request("a", "1")])
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_old_keys_are_forgotten_a_few_at_a_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_record, "FORGOTTEN_AT_ONCE", 2)
    at = [now()]
    made = Writer(str(folder), lambda: at[0])
    made.write([request(str(n), str(n)) for n in range(5)])
    at[0] += writer.KEYS_ARE_KNOWN_FOR + ingested.timedelta(seconds=2)
    known = []
    for _ in range(3):
        made.write([])
        assert made._record is not None
        known.append(len(made._record.find([request("", str(n)).key or b"" for n in range(5)])))

    assert known == [3, 1, 0]


@pytest.mark.parametrize(("error", "status"), [(NO_SPACE, 507), (OSError(errno.EROFS, "Read-only"), 503)], ids=str)
def test_a_sender_is_asked_to_try_again_and_the_log_has_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: OSError, status: int
) -> None:
    root = ingested.project(tmp_path / "project")
    keyed = {**SENDER, **JSON, "Idempotency-Key": "k"}
    with ingested.client(root) as asked:
        with monkeypatch.context() as broken:
            broken.setattr(LocalStorage, "put", failing(error))
            answers = [asked.post(PATH, content='{"a":1}', headers=keyed) for _ in range(2)]
        assert [(a.status_code, a.headers["retry-after"]) for a in answers] == [(status, "30")] * 2
        assert str(tmp_path) not in answers[0].text
        assert asked.post(PATH, content='{"a":1}', headers=keyed).status_code == 202

    assert ingested.lines(root) == ['{"a":1}']
    assert capsys.readouterr().err.count("no lines are accepted") == 1
