"""Planned batches in a checkpoint, whatever interrupts their folding."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlrun.sources import batches
from sqlrun.storage.local import LocalStorage


class Killed(BaseException):
    """The end of a process."""


@pytest.mark.parametrize("done", range(5))
def test_an_interrupted_fold_leaves_a_readable_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: int
) -> None:
    """The folded batch is written, and some of those in it are deleted, in the order in which the disk lists them."""
    checkpoint = str(tmp_path)
    assert batches.identify(checkpoint, "id")
    for number in range(1, 6):
        assert batches.plan(checkpoint, number, {f"part {number}": (0, number)})
    real, left = LocalStorage.delete, [done]

    def delete(self: LocalStorage, path: str) -> None:
        if not left[0]:
            raise Killed
        left[0] -= 1
        real(self, path)

    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(LocalStorage, "delete", delete)
        patched.setattr(batches, "_numbers", lambda _: [3, 1, 4, 2, 5])
        fold(checkpoint, 5)
        raise Killed
    found = batches.read(checkpoint)
    whole = {f"part {number}": (0, number) for number in range(1, 6)}

    assert batches.first_fault(found) is None
    assert batches.landed(batch for batch in found.values() if batch) == whole

    assert batches.plan(checkpoint, 6, {"part 6": (0, 6)})
    assert batches.first_fault(batches.read(checkpoint)) is None
    fold(checkpoint, 6)

    assert sorted(path.name for path in (tmp_path / batches.FOLDER).iterdir()) == ["6.json"]
    assert batches.landed(batch for batch in batches.read(checkpoint).values() if batch) == whole | {"part 6": (0, 6)}


def fold(checkpoint: str, number: int) -> None:
    known = [batch for batch in batches.read(checkpoint).values() if batch]
    batches.fold(checkpoint, number, known, {f"part {number}": (0, number)})


def test_a_reader_beside_a_fold_sees_all_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`sqlrun plan` reads without a lock: the batches that it has listed may be folded before it opens them."""
    checkpoint = str(tmp_path)
    assert batches.identify(checkpoint, "id")
    for number in range(1, 6):
        assert batches.plan(checkpoint, number, {f"part {number}": (0, number)})
    real, folded = LocalStorage.text, list[bool]()

    def text(self: LocalStorage, path: str) -> str:
        found = real(self, path)
        if not folded:
            folded.append(True)
            fold(checkpoint, 5)
        return found

    monkeypatch.setattr(LocalStorage, "text", text)
    found = batches.read(checkpoint)

    assert sorted(found) == [5]
    assert batches.landed(batch for batch in found.values() if batch) == {f"part {n}": (0, n) for n in range(1, 6)}
