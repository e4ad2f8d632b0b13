"""Pauses of all answers: garbage collections of the server are small."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator

import pyarrow as pa
import pytest

from sqlrun.serve import command, snapshot


@pytest.fixture(autouse=True)
def settings_restored() -> Iterator[None]:
    thresholds, interval = gc.get_threshold(), sys.getswitchinterval()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)
    sys.setswitchinterval(interval)


@pytest.mark.slow
def test_a_collection_traverses_few_objects_while_the_server_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands of the CLI raise the thresholds, and one collection of 200,000 objects takes 80 ms beside ticks."""
    seen: list[tuple[int, bool]] = []

    class Server:
        def run(self, sockets: object) -> None:
            seen.append((gc.get_threshold()[0], gc.get_freeze_count() > 10_000))

    gc.set_threshold(200_000, 10, 10)
    monkeypatch.setattr(command, "server_of", lambda _: Server())

    command._run(object(), None)  # type: ignore[arg-type]

    assert seen == [(1_000, True)]


@pytest.mark.parametrize("lengths", [[], [3], [2, 0, 4]])
def test_a_table_in_one_piece_has_the_same_rows_and_its_parts_are_freed(lengths: list[int]) -> None:
    schema = pa.schema([("id", pa.string())])
    parts = [pa.record_batch([[f"r{n}" for n in range(length)]], schema=schema) for length in lengths]
    expected = pa.Table.from_batches(parts, schema).to_pylist()

    made = snapshot._in_one_piece(parts, schema)

    assert parts == [] and made.to_pylist() == expected
    assert made.schema == schema and made["id"].num_chunks <= 1
