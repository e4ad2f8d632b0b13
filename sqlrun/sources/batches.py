"""The batches that the DuckDB engine has planned of a source, in `batches/N.json` of a checkpoint. Shell: files.

A plan is written before its batch is committed, so that a batch whose commit is missing is carried out again with the
very same parts. Old plans are folded into the newest, which keeps its own parts apart.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlrun.runtime import atomic_files
from sqlrun.source_api import UNKNOWN, Position, Positions

IDENTITY, FOLDER = "id", "batches"
KEEP = 64  # batch files before they are folded into one


@dataclass(frozen=True, slots=True)
class Batch:
    """A planned batch: `parts` are its own, `landed` all that it and the batches folded into it have."""

    number: int
    parts: Positions
    landed: Positions
    is_folded: bool = False


def began(checkpoint: Path) -> bool:
    """Return whether the DuckDB engine has written this checkpoint."""
    return (checkpoint / IDENTITY).exists()


def identity(checkpoint: Path) -> str:
    """Return the checkpoint's own id, which the table's transactions carry; "" where there is none yet."""
    file = checkpoint / IDENTITY
    return file.read_text().strip() if file.exists() else ""


def name_of(number: int) -> str:
    """Return the file of a batch, from the checkpoint."""
    return f"{FOLDER}/{number}.json"


def read(checkpoint: Path) -> dict[int, Batch | None]:
    """Return the planned batches by number; None for one whose file is torn."""
    return {int(f.stem): _batch(f) for f in (checkpoint / FOLDER).glob("*.json") if f.stem.isdigit()}


def landed(batches: Iterable[Batch]) -> dict[str, Position]:
    """Return the newest position of each part of some batches."""
    found: dict[str, Position] = {}
    for batch in sorted(batches, key=lambda each: each.number):
        found |= batch.landed
    return found


def first_fault(found: Mapping[int, Batch | None]) -> int | None:
    """Return the first batch that is torn or missing: they begin at 1, or at the one that older ones are folded into.

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


def plan(checkpoint: Path, number: int, parts: Positions) -> bool:
    """Write a batch's plan; return False where another build has planned this number, with other parts perhaps."""
    return atomic_files.write_new(checkpoint / name_of(number), _planned(number, parts))


def replan(checkpoint: Path, number: int, parts: Positions) -> None:
    """Replace a batch's plan before it is committed: what is left out belongs to the next batch."""
    atomic_files.write(checkpoint / name_of(number), _planned(number, parts))


def are_many(checkpoint: Path) -> bool:
    """Return whether there are enough plans to fold."""
    return len(list((checkpoint / FOLDER).glob("*.json"))) > KEEP


def fold(checkpoint: Path, number: int, known: Iterable[Batch], newest: Positions) -> None:
    """Fold all batches into batch `number`.

    Their commits must be durable: what is folded can't be carried out again.
    """
    seen = landed(known)
    folded = {"batch": number, "files": sorted(seen), "newest": list(newest), "stats": seen}
    atomic_files.write(checkpoint / name_of(number), json.dumps(folded))
    for file in (checkpoint / FOLDER).glob("*.json"):
        # A later one is another build's, which has overtaken this one.
        if int(file.stem) < number:
            file.unlink(missing_ok=True)


def _batch(file: Path) -> Batch | None:
    try:
        plan = json.loads(file.read_text())
        if plan["batch"] != int(file.stem) or not isinstance(plan["files"], list):
            return None
    except (ValueError, KeyError, TypeError):
        return None
    everything = _positions(plan, plan["files"])
    if "newest" in plan:
        return Batch(plan["batch"], _positions(plan, plan["newest"]), everything, is_folded=True)
    return Batch(plan["batch"], everything, everything)


def _positions(plan: dict[str, Any], names: list[str]) -> dict[str, Position]:
    stats = plan.get("stats", {})
    return {name: (stats[name][0], stats[name][1]) if name in stats else UNKNOWN for name in names}


def _planned(number: int, parts: Positions) -> str:
    return json.dumps({"batch": number, "files": list(parts), "stats": dict(parts)})
