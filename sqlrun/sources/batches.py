"""Batches that the DuckDB engine has planned of a source, in `batches/N.json` of a checkpoint. Shell: files.

A plan is written before its batch is committed, so that a batch without a commit is run again with exactly the same
parts. Old plans are folded into the latest, which records its own parts separately.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from sqlrun.source_api import UNKNOWN, AcceptedLoss, Position, Positions
from sqlrun.storage.factory import storage_of

IDENTITY, FOLDER = "id", "batches"
PLAN = re.compile(r"(0|[1-9][0-9]*)\.json")
ATTEMPTS = 5  # a fold comes after many batches, so a second one during a read is unlikely
KEEP = 64  # maximum number of batch files before they are folded into one
# From this number of parts on, positions are written as two lists instead of by name: a million parts are read in a
# quarter of the time, and every part is still known by its name, so that a late one in an old folder is found.
MANY = 1_000


@dataclass(frozen=True, slots=True)
class Batch:
    """A planned batch: `parts` are its own, `landed` those of all batches folded into it, its own included.

    `lost` are the losses accepted with it, or with a batch folded into it.
    """

    number: int
    parts: Positions
    landed: Positions
    is_folded: bool = False
    lost: tuple[AcceptedLoss, ...] = ()


def began(checkpoint: str) -> bool:
    """Return whether the DuckDB engine has written this checkpoint."""
    return storage_of(checkpoint).stamp(f"{checkpoint}/{IDENTITY}") is not None


def identity(checkpoint: str) -> str:
    """Return the checkpoint's id, which the table's transactions carry; "" if it has none yet."""
    try:
        return storage_of(checkpoint).text(f"{checkpoint}/{IDENTITY}").strip()
    except (FileNotFoundError, NotADirectoryError):
        return ""


def identify(checkpoint: str, name: str) -> bool:
    """Write a checkpoint's id; return False if another build has written one."""
    storage = storage_of(checkpoint)
    storage.make_folder(f"{checkpoint}/{FOLDER}")
    return storage.put_if_absent(f"{checkpoint}/{IDENTITY}", name.encode(), synced=True)


def name_of(number: int) -> str:
    """Return the file of a batch, relative to the checkpoint."""
    return f"{FOLDER}/{number}.json"


def read(checkpoint: str) -> dict[int, Batch | None]:
    """Return the planned batches by number; None for one with a corrupt file.

    Batches before the newest folded one are left out: they are part of it, and a fold that was interrupted may have
    deleted any of them.
    """
    for _ in range(ATTEMPTS - 1):
        with suppress(FileNotFoundError):  # a build has folded batches since they were listed
            return _read(checkpoint)
    return _read(checkpoint)


def _read(checkpoint: str) -> dict[int, Batch | None]:
    found, numbers = dict[int, Batch | None](), sorted(_numbers(checkpoint), reverse=True)
    batches = storage_of(checkpoint).at_once(lambda number: _batch(checkpoint, number), numbers)
    for number, batch in zip(numbers, batches, strict=True):
        found[number] = batch
        if batch is not None and batch.is_folded:
            break
    return dict(sorted(found.items()))


def landed(batches: Iterable[Batch]) -> dict[str, Position]:
    """Return the latest position of each part of some batches."""
    found: dict[str, Position] = {}
    for batch in sorted(batches, key=lambda each: each.number):
        found |= batch.landed
        if not batch.is_folded:
            found |= {loss.part: (loss.since, loss.resumes) for loss in batch.lost if loss.part not in batch.parts}
    return found


def first_fault(found: Mapping[int, Batch | None]) -> int | None:
    """Return the first batch that is corrupt or missing; None if there is none.

    Batches begin at 1, or at the one that older ones are folded into.

    >>> first_fault({1: Batch(1, {}, {}), 3: Batch(3, {}, {})}), first_fault({1: None}), first_fault({})
    (2, 1, None)
    """
    expected = None
    for number in sorted(found):
        batch = found[number]
        if expected is None:
            expected = number if batch is not None and batch.is_folded else 1
        if number != expected or batch is None:
            return expected
        expected += 1
    return None


def plan(checkpoint: str, number: int, parts: Positions, lost: Sequence[AcceptedLoss] = ()) -> bool:
    """Write a batch's plan; return False if another build has planned this number, possibly with other parts."""
    file = f"{checkpoint}/{name_of(number)}"
    return storage_of(checkpoint).put_if_absent(file, _planned(number, parts, lost), synced=True)


def replan(checkpoint: str, number: int, parts: Positions, lost: Sequence[AcceptedLoss] = ()) -> None:
    """Replace a batch's plan before it is committed: parts that are left out belong to the next batch."""
    storage_of(checkpoint).put(f"{checkpoint}/{name_of(number)}", _planned(number, parts, lost), synced=True)


def withdraw(checkpoint: str, number: int) -> None:
    """Delete a new batch's plan before its commit: none of its parts can be read. The next batch has this number."""
    storage_of(checkpoint).delete(f"{checkpoint}/{name_of(number)}")


def fold(checkpoint: str, number: int, known: Iterable[Batch], newest: Positions) -> None:
    """Fold all batches into batch `number`.

    Their commits must be durable: a folded batch can't be run again.
    """
    batches = sorted(known, key=lambda each: each.number)
    storage, seen = storage_of(checkpoint), landed(batches)
    ordered = {name: seen[name] for name in sorted(seen)}
    folded = {"batch": number, "newest": list(newest)} | _listed(ordered)
    folded |= _losses([loss for batch in batches for loss in batch.lost])
    storage.put(f"{checkpoint}/{name_of(number)}", json.dumps(folded).encode(), synced=True)
    for each in _numbers(checkpoint):
        # A later batch is another build's, which has overtaken this one.
        if each < number:
            storage.delete(f"{checkpoint}/{name_of(each)}")


def _numbers(checkpoint: str) -> list[int]:
    """Return the numbers of the planned batches, unordered."""
    names = storage_of(checkpoint).names(f"{checkpoint}/{FOLDER}")
    return [int(found[1]) for name in names if (found := PLAN.fullmatch(name))]


def _batch(checkpoint: str, number: int) -> Batch | None:
    try:
        plan = json.loads(storage_of(checkpoint).text(f"{checkpoint}/{name_of(number)}"))
        if plan["batch"] != number or not isinstance(plan["files"], list):
            return None
        everything = _positions(plan)
    except (ValueError, KeyError, TypeError):
        return None
    lost = tuple(AcceptedLoss(**loss) for loss in plan.get("lost", ()))
    if "newest" in plan:
        newest = {name: everything.get(name, UNKNOWN) for name in plan["newest"]}
        return Batch(plan["batch"], newest, everything, is_folded=True, lost=lost)
    return Batch(plan["batch"], everything, everything, lost=lost)


def _positions(plan: dict[str, Any]) -> dict[str, Position]:
    names = plan["files"]
    if "ends" in plan:
        return dict(zip(names, zip(plan["begins"], plan["ends"], strict=True), strict=True))
    stats = plan.get("stats", {})
    return {name: (stats[name][0], stats[name][1]) if name in stats else UNKNOWN for name in names}


def _planned(number: int, parts: Positions, lost: Sequence[AcceptedLoss]) -> bytes:
    return json.dumps({"batch": number} | _listed(parts) | _losses(lost)).encode()


def _listed(parts: Positions) -> dict[str, Any]:
    """Return parts with their positions as JSON."""
    if len(parts) < MANY:
        return {"files": list(parts), "stats": dict(parts)}
    begins, ends = ([position[side] for position in parts.values()] for side in (0, 1))
    return {"files": list(parts), "begins": begins, "ends": ends}


def _losses(lost: Sequence[AcceptedLoss]) -> dict[str, Any]:
    return {"lost": [asdict(loss) for loss in lost]} if lost else {}
