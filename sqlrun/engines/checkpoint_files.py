"""The files in which a landing table remembers its batches: where they are, and how they are read. Shell: files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

IDENTITY = "_sqlrun_checkpoint"


def checkpoint_of(path: str) -> str:
    """Tell where a landing table's checkpoint is, from the warehouse."""
    return f"_sqlrun/checkpoints/{path}"


def plans(checkpoint: Path) -> dict[int, dict[str, Any] | None]:
    """Read DuckDB's planned batches by number; None for one whose file is torn."""
    return {int(f.stem): plan_of(f) for f in (checkpoint / "batches").glob("*.json") if f.stem.isdigit()}


def numbers(folder: Path) -> list[int]:
    """List the batches that a folder of Spark's checkpoint has; none where there is no folder yet."""
    return sorted(int(f.name) for f in folder.iterdir() if f.name.isdigit()) if folder.is_dir() else []


def plan_of(file: Path) -> dict[str, Any] | None:
    """Read a planned batch; None where the file is torn."""
    try:
        plan = json.loads(file.read_text())
        return plan if plan["batch"] == int(file.stem) and isinstance(plan["files"], list) else None
    except (ValueError, KeyError, TypeError):
        return None
