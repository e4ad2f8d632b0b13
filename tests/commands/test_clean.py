"""`sqlrun clean`: deletes what nobody is writing, in an order in which it can be stopped and begun again."""

from __future__ import annotations

import errno
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from pathlib import Path
from unittest import mock

import pytest
from click.testing import CliRunner, Result

from sqlrun.cli.main import main
from sqlrun.errors import LockedError
from sqlrun.storage import lock
from tests.support import broken

NOW = datetime.now(timezone.utc)
LOCKED = 75


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project, and files in the places of a warehouse's."""
    broken.write(
        tmp_path,
        {
            "pyproject.toml": '[tool.sqlrun]\nname = "shops"\nprofile = "here"\n',
            "profiles/here.yml": "engine: duckdb\nwarehouse: warehouse\n",
            "data/orders/1.jsonl": "{}",
            "target/manifest.json": "{}",
            "warehouse/stg_lines/abc/_delta_log/0.json": "{}",
            "warehouse/stg_lines/abc/part.parquet": "",
            "warehouse/fct/def/part.parquet": "",
            "warehouse/_sqlrun/format": '{"format": 1, "project": "shops", "sqlrun": "0.1.0"}',
            "warehouse/_sqlrun/lock": "",
            "warehouse/_sqlrun/ledger/_delta_log/0.json": "{}",
            "warehouse/_sqlrun/environments/dev/ledger/_delta_log/0.json": "{}",
            "warehouse/_sqlrun/checkpoints/stg_lines/abc/batches/0.json": "{}",
        },
    )
    return tmp_path


@pytest.fixture
def warehouse(root: Path) -> Path:
    return root / "warehouse"


def clean(root: Path) -> Result:
    return CliRunner().invoke(main, ["--project-dir", str(root), "clean", "--warehouse"])


def files(folder: Path) -> set[str]:
    return {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}


def test_all_is_deleted_but_what_the_analyst_has(root: Path) -> None:
    shown = clean(root)

    assert shown.exit_code == 0, shown.output
    assert not (root / "warehouse").exists()
    assert not (root / "target").exists()
    assert (root / "data/orders/1.jsonl").exists()
    assert clean(root).exit_code == 0


def test_a_warehouse_under_a_build_is_left_alone(root: Path, warehouse: Path) -> None:
    with lock.hold(str(warehouse), NOW):
        before = files(root)
        shown = clean(root)
        assert files(root) == before

    assert shown.exit_code == LOCKED
    assert f"pid {os.getpid()} on {os.uname().nodename}, since 20" in " ".join(shown.output.split())
    assert clean(root).exit_code == 0


def test_a_folder_that_is_no_warehouse_is_left_alone(root: Path, warehouse: Path) -> None:
    (warehouse / "_sqlrun").rename(root / "elsewhere")
    before = files(root)

    shown = clean(root)

    assert shown.exit_code == 2
    assert "is not a warehouse of sqlrun" in " ".join(shown.output.split())
    assert files(root) == before


def stopped(root: Path, deleted: int) -> set[str]:
    """Have it be overtaken when it has deleted so many things; give the files that stay in the warehouse."""
    real, calls = lock.require, iter(range(deleted))

    def require(warehouse: str, me: str) -> None:
        if next(calls, None) is None:
            (Path(warehouse) / "_sqlrun" / "lock").write_text("{}")
        real(warehouse, me)

    with mock.patch.object(lock, "require", require):
        shown = clean(root)
    assert shown.exit_code == LOCKED, shown.output
    assert "was taken over by another build" in " ".join(shown.output.split())
    return files(root / "warehouse")


@pytest.mark.slow
def test_wherever_it_stops_it_can_be_begun_again(root: Path) -> None:
    """The ledger goes first, so that no reader sees half a warehouse; the lock and the mark stay to the end."""
    left = [stopped(root, deleted) for deleted in (0, 1, 1, 1, 1)]

    assert len(left[0]) == 8
    assert not any("ledger" in file for file in left[2])
    assert left[2] >= {"fct/def/part.parquet", "stg_lines/abc/part.parquet"}
    assert left[4] == {"_sqlrun/format", "_sqlrun/lock", "_sqlrun/checkpoints/stg_lines/abc/batches/0.json"}
    assert clean(root).exit_code == 0
    assert files(root) == {"pyproject.toml", "profiles/here.yml", "data/orders/1.jsonl"}


def test_a_disk_of_its_own_is_left_empty(root: Path, warehouse: Path) -> None:
    """A folder that something is mounted at can't be deleted."""
    real = os.rmdir

    def mounted(path: str, *, dir_fd: int | None = None) -> None:
        if path == str(warehouse):
            raise OSError(errno.EBUSY, "Device or resource busy")
        real(path, dir_fd=dir_fd)

    with mock.patch("os.rmdir", mounted):
        shown = clean(root)

    assert shown.exit_code == 0, shown.output
    assert list(warehouse.iterdir()) == []


def test_who_waited_for_a_warehouse_that_was_deleted_holds_the_new_one(warehouse: Path) -> None:
    """A lock goes with its file: the file that was waited for is gone."""
    waits = threading.Event()

    def wait() -> bool:
        with lock.hold(str(warehouse), NOW, lambda _: waits.set()) as me:
            lock.require(str(warehouse), me)
            with pytest.raises(LockedError), lock.hold(str(warehouse), NOW):
                pass
        return True

    with ThreadPoolExecutor() as pool:
        with lock.hold(str(warehouse), NOW):
            waiting = pool.submit(wait)
            assert waits.wait(10)
            (warehouse / "_sqlrun" / "lock").unlink()
        assert waiting.result(10)
