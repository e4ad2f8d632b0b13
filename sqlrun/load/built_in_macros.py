"""The macros that come with sqlrun; a project's own macro of the same name replaces one. Shell: sqlrun's files."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path

from sqlrun.project import Macro

FOLDER = Path(__file__).with_name("macros")
# dbt's cross-database macros, and macros of its packages, as Spark SQL. A file's name begins with its package.
PACKAGES = FOLDER / "packages"
MACRO = re.compile(r"\{%-?\s*macro\s+(\w+).*?\{%-?\s*endmacro\s*-?%\}", re.DOTALL)


def beside(own: Collection[Macro]) -> tuple[Macro, ...]:
    """Return the macros whose names the project's own macros don't have; names ignore case."""
    names = {macro.name.lower() for macro in own}
    return tuple(macro for macro in _all() if macro.package or macro.name not in names)


@cache
def _all() -> tuple[Macro, ...]:
    files = sorted(FOLDER.glob("*.sql"))
    own = (Macro(file.stem, f"sqlrun/load/macros/{file.name}", file.read_text("utf-8")) for file in files)
    return (*own, *(macro for file in sorted(PACKAGES.glob("*.sql")) for macro in _of_package(file)))


def _of_package(file: Path) -> Iterator[Macro]:
    """Yield the macros of a file, each with its own text."""
    name = f"sqlrun/load/macros/packages/{file.name}"
    for found in MACRO.finditer(file.read_text("utf-8")):
        yield Macro(found[1], name, found[0], package=file.name.partition(".")[0])
