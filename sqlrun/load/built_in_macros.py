"""The macros that come with sqlrun; a project's own macro of the same name replaces one. Shell: sqlrun's files."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from pathlib import Path

from sqlrun.project import Macro

FOLDER = Path(__file__).with_name("macros")


def beside(own: Collection[Macro]) -> tuple[Macro, ...]:
    """Return the macros whose names the project's own macros don't have; names ignore case."""
    names = {macro.name.lower() for macro in own}
    return tuple(macro for macro in _all() if macro.name not in names)


@cache
def _all() -> tuple[Macro, ...]:
    files = sorted(FOLDER.glob("*.sql"))
    return tuple(Macro(file.stem, f"sqlrun/load/macros/{file.name}", file.read_text("utf-8")) for file in files)
