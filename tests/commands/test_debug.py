"""`sqlrun debug`: what it tries in a warehouse, and what it says of one that can't hold tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlrun.commands.debug import debug_command
from sqlrun.storage.local import LocalStorage
from tests.support.projects import copy_project


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return copy_project(tmp_path)


def test_it_reads_writes_races_and_travels(root, capsys):
    assert debug_command(root, "duckdb") == 0

    output = capsys.readouterr().out
    for name in ("engine            duckdb:", "commit race      ", "write and read   ", "time travel      "):
        assert f"{name} ok" in output
    assert list((root / "warehouse" / "duckdb").iterdir()) == []


def test_a_store_that_overwrites_is_reported(root, capsys, monkeypatch):
    """As one does that ignores the condition of a write."""

    def put(self: LocalStorage, path: str, data: bytes, *, synced: bool) -> bool:
        self.put(path, data, synced=synced)
        return True

    monkeypatch.setattr(LocalStorage, "put_if_absent", put)

    assert debug_command(root, "duckdb") == 1
    assert "commit race       the second of two writers of one file wasn't refused" in capsys.readouterr().out


def test_a_cluster_that_isnt_there_is_reported_before_anything_is_written(root, capsys):
    text = "engine: spark\nwarehouse: lake\nsettings:\n  spark.remote: sc://127.0.0.1:1\n"
    (root / "profiles" / "far.yml").write_text(text)

    assert debug_command(root, "far") == 1
    assert "engine            SR813 no Spark Connect server answers at 127.0.0.1:1" in capsys.readouterr().out
    assert not (root / "lake").exists()
