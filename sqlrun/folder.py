"""The files of a project's folder, their texts, and what is wrong with them. Shell: the analyst's folders."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlrun.cache import Cache
from sqlrun.errors import Place, Problem
from sqlrun.yaml_values import Reader

# More than anybody writes by hand, and little enough to be read in seconds.
MOST_BYTES = {".sql": 1_000_000, ".yml": 1_000_000, ".toml": 1_000_000, ".csv": 64_000_000}


@dataclass(frozen=True, slots=True)
class Folder:
    """The project's folder, and the problems found in it so far.

    `facts` hashes the contracts that were read, by name; `listed` holds the files of the rooms that were looked at.
    """

    root: Path
    problems: list[Problem]
    cache: Cache
    facts: dict[str, str] = field(default_factory=dict)
    listed: dict[str, list[Path]] = field(default_factory=dict)

    def name(self, file: Path) -> str:
        """Name a file as analysts do."""
        return str(file)[len(str(self.root)) :].replace(os.sep, "/").lstrip("/")

    def files(self, room: str, suffix: str = "") -> list[Path]:
        """List a room's files by name, but those of tools that hide behind a dot and links that lead out."""
        if room not in self.listed:
            found: list[Path] = []
            for above, folders, names in os.walk(self.root / room):
                folders[:] = [name for name in folders if not name.startswith(".")]
                place = Path(above)
                found += [file for name in names if not name.startswith(".") and (file := place / name).is_file()]
            linked = (self.root / room).is_symlink()
            self.listed[room] = sorted(f for f in found if not ((linked or f.is_symlink()) and self._leads_out(f)))
        return [file for file in self.listed[room] if file.name.endswith(suffix)]

    def _leads_out(self, file: Path) -> bool:
        """Tell whether a link leads out of the project, and note it: a mistake in it would print a foreign line."""
        if file.resolve().is_relative_to(self.root):
            return False
        hint = "Copy the file here, or link to one of the project; sources may lie anywhere."
        self.problem("SR118", file, "this link leads out of the project", hint)
        return True

    def text(self, file: Path) -> str | None:
        """Read a text file; a byte order mark is taken off, line ends are one character."""
        size, most = file.stat().st_size, MOST_BYTES[file.suffix]
        if size > most:
            message = f"the file has {size:,} bytes; sqlrun reads no more than {most:,} of a {file.suffix} file"
            self.problem("SR101", file, message, "Part it, or land its rows from a source.")
            return None
        data = file.read_bytes()
        try:
            return one_line_end(data.decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            start = data.rfind(b"\n", 0, error.start) + 1
            column = len(data[start : error.start].decode("utf-8", "replace")) + 1
            excerpt = data[start:].partition(b"\n")[0].decode("utf-8", "replace").rstrip("\r")
            place = Place(self.name(file), data.count(b"\n", 0, error.start) + 1, column)
            self.problems.append(Problem("SR101", place, "this is not UTF-8 text", "Save the file as UTF-8.", excerpt))
            return None

    def yaml(self, file: Path, text: str) -> Reader | None:
        """Read a YAML file; None where it is none, which is noted."""
        reader = Reader(self.name(file), text, self.problems)
        if reader.root is None and not reader.broken:
            reader.problem("SR104", Place(reader.file), "the file is empty", "Fill it, or delete it.")
        return None if reader.root is None else reader

    def kept(self, kind: str, source: Sequence[object], hint: Any, make: Callable[[], Any]) -> Any:
        """Take from the cache what was made of the same source before, if nothing was wrong with it; else make it."""
        made: list[Any] = []

        def noted() -> Any:
            before = len(self.problems)
            made.append(make())
            return made[0] if len(self.problems) == before else None

        kept = self.cache.kept(kind, source, hint, noted)
        return made[0] if made else kept

    def problem(self, code: str, file: Path, message: str, hint: str) -> None:
        """Note a problem of a file as a whole."""
        self.problems.append(Problem(code, Place(self.name(file)), message, hint))


def one_line_end(text: str) -> str:
    """Write every line end as one character."""
    return text.replace("\r\n", "\n").replace("\r", "\n")
