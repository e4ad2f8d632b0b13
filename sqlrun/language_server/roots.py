"""Which project a file of an editor belongs to. Shell: files."""

from __future__ import annotations

from pathlib import Path


def root_of(file: Path) -> Path | None:
    """Return the nearest folder above a file that has a project; None if there is none."""
    for folder in file.resolve().parents:
        try:
            if b"[tool.sqlrun" in (folder / "pyproject.toml").read_bytes():
                return folder
        except OSError:
            continue
    return None
