"""The number of requests of a tick to an object store: none that a tick can do without."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sqlrun.engines.delta import deletion_vectors
from sqlrun.engines.delta import table as delta_table
from sqlrun.publish.ledger import Ledger
from sqlrun.storage import known_entries
from sqlrun.storage.factory import storage_of
from sqlrun.storage.object_store import ObjectStore
from tests.support import foreign_writers as others
from tests.support.foreign_writers import arrive, at
from tests.support.projects import Site
from tests.support.servers.object_stores import S3

# Requests of a tick by kind, without those of delta-rs. Seven tables are written, five of them one after the other.
BUSY = {"get": 3, "head": 22, "list": 25, "put": 30}
IDLE = {"get": 1, "head": 23, "list": 25, "put": 7}


@pytest.fixture
def site(s3: S3, tmp_path: Path, unchecked: None, monkeypatch: pytest.MonkeyPatch) -> Site:
    # No entry is asked for again because a machine is slow.
    monkeypatch.setattr(known_entries, "FRESH", 3600.0)
    made = others.opened(others.project(tmp_path / "shops"))
    made.warehouse = s3.warehouse(tmp_path)
    made.ledger = Ledger(made.warehouse, made.ledger.project)
    return made


def asked(site: Site, number: int) -> dict[str, int]:
    storage = storage_of(site.warehouse)
    before = storage.requests
    result = site.tick(at(number))
    assert result.published
    found = storage.requests - before
    assert result.requests == found.total()
    return dict(found)


@pytest.mark.slow
def test_a_warm_tick_makes_few_requests(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        arrive(site, number)
        asked(site, number)
    arrive(site, 3)
    # delta-rs asks six times for each commit, one after the other.
    monkeypatch.setattr(delta_table, "append_rows", lambda *_: pytest.fail("delta-rs wrote rows of a system table"))
    assert asked(site, 3) == BUSY
    assert asked(site, 4) == IDLE


def test_the_files_of_a_merge_are_uploaded_together(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The upload of rows ends only when that of their changes has begun."""
    for number in range(2):
        arrive(site, number)
        asked(site, number)
    arrive(site, 2)
    real, changes, waited = ObjectStore.upload, threading.Event(), list[bool]()

    def upload(self: ObjectStore, path: str, file: str) -> None:
        if "/stg_sales/" in path:
            if "/_change_data/" in path:
                changes.set()
            else:
                waited.append(changes.wait(30))
        real(self, path, file)

    monkeypatch.setattr(ObjectStore, "upload", upload)
    asked(site, 2)
    assert waited and all(waited)


@pytest.mark.parametrize("way", ["marked"], indirect=True)
def test_large_deletion_vectors_are_uploaded_beside_the_rows(
    site: Site, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their upload begins first, and ends only when that of the rows has begun."""
    monkeypatch.setattr(deletion_vectors, "INLINE", 0)
    for number in range(2):
        arrive(site, number)
        asked(site, number)
    arrive(site, 2)
    real_put, real_upload, rows, began = ObjectStore.put, ObjectStore.upload, threading.Event(), list[str]()

    def put(self: ObjectStore, path: str, data: bytes, *, synced: bool) -> None:
        if "/_vectors/" in path and "/fct_slots/" in path:
            began.append("vectors")
            assert rows.wait(30)
        real_put(self, path, data, synced=synced)

    def upload(self: ObjectStore, path: str, file: str) -> None:
        if "/fct_slots/" in path:
            began.append("rows")
            rows.set()
        real_upload(self, path, file)

    monkeypatch.setattr(ObjectStore, "put", put)
    monkeypatch.setattr(ObjectStore, "upload", upload)
    asked(site, 2)
    assert began[:2] == ["vectors", "rows"], (began, way)


@pytest.mark.parametrize(
    "together",
    [
        ("_sqlrun/format", "_sqlrun/environments", "_sqlrun/ledger/_delta_log", "_sqlrun/receipts/_delta_log"),
        ("/stg_sales/{}/_delta_log", "_sqlrun/checkpoints/stg_lines/{}", "_sqlrun/checkpoints/stg_lines/{}/batches"),
    ],
    ids=["the books", "the tables"],
)
def test_a_tick_begins_with_questions_at_once(
    site: Site, monkeypatch: pytest.MonkeyPatch, together: tuple[str, ...]
) -> None:
    """Each is answered only when all of them have been asked."""
    arrive(site, 0)
    asked(site, 0)
    tables = site.published[-1].plan.tables
    wanted = [
        path.format(tables["stg_lines" if "stg_lines" in path else "stg_sales"].path.rpartition("/")[2])
        for path in together
    ]
    real, barrier, seen = ObjectStore._asked, threading.Barrier(len(wanted)), set[str]()

    def ask(self: ObjectStore, kind: str, path: str, ask: Callable[[], Any]) -> Any:
        mine = next((end for end in wanted if path.endswith(end)), "")
        if mine and mine not in seen:
            seen.add(mine)
            barrier.wait(30)
        return real(self, kind, path, ask)

    monkeypatch.setattr(ObjectStore, "_asked", ask)
    asked(site, 1)
    assert len(seen) == len(wanted)
