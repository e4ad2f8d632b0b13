"""Intact and truncated commits, as Spark and as delta-rs write them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from sqlrun.engines.delta import table_check
from sqlrun.engines.delta.log_faults import commit_fault

TRANSACTION = {"txn": {"appId": "shop.fct", "version": 3}}


def commit(operation: str, metrics: dict[str, Any], *rows: int | None) -> list[str]:
    """Return a commit that adds a file for each count of rows; None leaves the count out."""
    info = {"operation": operation, "operationParameters": {"mode": "Append"}, "operationMetrics": metrics}
    adds = [{"add": {"path": f"{n}", "stats": json.dumps({"numRecords": r} if r is not None else {})}} for n, r in
            enumerate(rows)]  # fmt: skip
    return [json.dumps(action) for action in ({"commitInfo": info}, TRANSACTION, *adds)]


WHOLE = {
    "Spark's, all files have rows": commit("WRITE", {"numFiles": "2", "numOutputRows": "7"}, 3, 4),
    "Spark's, one file of two had no rows and was left out": commit(
        "WRITE", {"numFiles": "2", "numOutputRows": "3"}, 3
    ),
    "Spark's, no rows at all": commit("WRITE", {"numFiles": "1", "numOutputRows": "0"}),
    "Spark's, without statistics": commit("WRITE", {"numFiles": "2", "numOutputRows": "7"}, None, None),
    "a stream's": commit("STREAMING UPDATE", {"numAddedFiles": "2", "numOutputRows": "7"}, 3, 4),
    "delta-rs'": commit("WRITE", {"num_added_files": 2, "num_added_rows": 7}, 3, 4),
}


@pytest.mark.parametrize("name", WHOLE)
def test_an_intact_commit_passes(name: str) -> None:
    assert commit_fault("\n".join(WHOLE[name]) + "\n", transaction=True) == ""


@pytest.mark.parametrize("name", [name for name in WHOLE if "without" not in name and "no rows at all" not in name])
def test_a_commit_without_its_last_line_is_damaged(name: str) -> None:
    """Truncated at the end of a line, it is still JSON."""
    assert "is truncated: it announces" in commit_fault("\n".join(WHOLE[name][:-1]) + "\n", transaction=True)


@pytest.mark.parametrize("text", ["", " \n", '{"commitInfo": {', "3\n", json.dumps(TRANSACTION)])
def test_invalid_commits_are_reported(text: str) -> None:
    assert commit_fault(text, transaction=True)


def test_a_changed_file_is_checked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, opened = tmp_path / "part.parquet", list[str]()
    file.write_bytes(b"PAR1 rows PAR1")
    real = table_check._ends_of
    monkeypatch.setattr(table_check, "_ends_of", lambda path: opened.append(path) or real(path))

    assert [table_check.parquet_fault(str(file), 14) for _ in range(3)] == ["", "", ""] and len(opened) == 1
    assert table_check.parquet_fault(str(file), 15) == "has 14 bytes instead of 15" and len(opened) == 1

    # The same size, later.
    file.write_bytes(b"PAR1 rows \0\0\0\0")
    os.utime(file, ns=(0, file.stat().st_mtime_ns + 1))
    assert table_check.parquet_fault(str(file), 14) == "is incomplete: it doesn't begin and end like a Parquet file"
    file.unlink()
    assert table_check.parquet_fault(str(file), 14) == "is missing"
