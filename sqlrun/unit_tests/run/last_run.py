"""Results of the last run of each unit test, for `--failed`. Shell: target/unit_tests.json."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from sqlrun.runtime import atomic_files
from sqlrun.unit_tests.choosing import Statuses

FILE = "target/unit_tests.json"


def read(root: Path) -> Statuses | None:
    """Return the statuses by test; None if the file is missing or invalid."""
    try:
        found = json.loads((root / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    known = found.get("tests") if isinstance(found, dict) else None
    if not isinstance(known, dict) or not all(isinstance(status, str) for status in known.values()):
        return None
    return known


def write(root: Path, there: Iterable[str], statuses: Statuses) -> None:
    """Write the tests' statuses, atomically. Tests that didn't run retain theirs; tests not in `there` are deleted.

    Raises: OSError.
    """
    known = {**(read(root) or {}), **statuses}
    kept = {name: known[name] for name in there if name in known}
    atomic_files.put(root / FILE, json.dumps({"tests": kept}, indent=2) + "\n")
