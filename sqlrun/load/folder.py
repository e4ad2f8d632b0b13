"""The files of a project's folder, their texts and their problems. Shell: the analyst's folders."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sqlrun.errors import Place, Problem
from sqlrun.load.yaml_reader import Reader
from sqlrun.runtime.disk_cache import Cache

# Maximum sizes in bytes: more than anyone writes by hand, and few enough to read in seconds.
MOST_BYTES = {".sql": 1_000_000, ".yml": 1_000_000, ".toml": 1_000_000, ".csv": 64_000_000}
# Texts of an editor that aren't saved yet, by the whole path of the file: they are read instead of the file.
UNSAVED: ContextVar[Mapping[str, str]] = ContextVar("unsaved", default=MappingProxyType({}))


@contextmanager
def unsaved(root: Path, texts: Mapping[str, str]) -> Iterator[None]:
    """Read some texts, by their names in the project, instead of its files."""
    token = UNSAVED.set({str(root.resolve() / name): text for name, text in texts.items()})
    try:
        yield
    finally:
        UNSAVED.reset(token)


@dataclass(frozen=True, slots=True)
class Folder:
    """The project's folder, and the problems found in it so far.

    `facts` has the hash of each contract, by name; `listed` the files of each folder that was read, `seen` their paths.
    """

    root: Path
    problems: list[Problem]
    cache: Cache
    facts: dict[str, str] = field(default_factory=dict)
    listed: dict[str, list[Path]] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)

    def name(self, file: Path) -> str:
        """Return the name of a file relative to the project."""
        return str(file)[len(str(self.root)) :].replace(os.sep, "/").lstrip("/")

    def files(self, room: str, suffix: str = "") -> list[Path]:
        """Return a folder's files, sorted, without hidden ones and links that lead outside the project."""
        if room not in self.listed:
            linked = (self.root / room).is_symlink()
            found = [
                entry.path
                for entry in _files(str(self.root / room))
                if not ((linked or entry.is_symlink()) and self.leads_out(Path(entry.path)))
            ]
            found += [path for path in self._unsaved(room) if path not in found]
            self.listed[room] = sorted(map(Path, found), key=lambda file: file.parts)
            self.seen.update(found)
        return [file for file in self.listed[room] if str(file).endswith(suffix)]

    def _unsaved(self, room: str) -> Iterator[str]:
        """Yield the paths in a folder of texts that aren't saved, as far as a file of that name would be listed."""
        top = str(self.root / room) + os.sep
        for path in UNSAVED.get():
            hidden = any(part.startswith(".") for part in Path(path.removeprefix(top)).parts)
            if path.startswith(top) and not hidden and not Path(path).exists():
                yield path

    def beside(self, file: Path, suffix: str) -> Path | None:
        """Return the file with the same name and another suffix; None if there is none."""
        other = file.with_suffix(suffix)
        return other if str(other) in self.seen or other.is_file() else None

    def leads_out(self, file: Path) -> bool:
        """Return whether a link leads outside the project, and record it: an error in it would print a foreign line."""
        if file.resolve().is_relative_to(self.root):
            return False
        hint = "Copy the file into the project, or link to a file of the project. Only sources may be elsewhere."
        self.problem("SR118", file, "this link points outside the project", hint)
        return True

    def text(self, file: Path) -> str | None:
        """Return a text file without its byte order mark, line ends normalized except in CSV; None after a problem."""
        most = MOST_BYTES[file.suffix]
        size, data = _bytes(file, most)
        if size > most:
            message = f"the file has {size:,} bytes, more than the {most:,} allowed for a {file.suffix} file"
            self.problem("SR101", file, message, "Split the file, or land its rows from a source.")
            return None
        try:
            text = data.decode("utf-8-sig")
            return text if file.suffix == ".csv" else one_line_end(text)
        except UnicodeDecodeError as error:
            start = data.rfind(b"\n", 0, error.start) + 1
            column = len(data[start : error.start].decode("utf-8", "replace")) + 1
            excerpt = data[start:].partition(b"\n")[0].decode("utf-8", "replace").rstrip("\r")
            place = Place(self.name(file), data.count(b"\n", 0, error.start) + 1, column)
            self.problems.append(
                Problem("SR101", place, "the file is not UTF-8 text", "Save the file as UTF-8.", excerpt)
            )
            return None

    def yaml(self, file: Path, text: str) -> Reader | None:
        """Return the reader of a YAML file; None if it can't be parsed, which is recorded."""
        reader = Reader(self.name(file), text, self.problems)
        if reader.root is None and not reader.broken:
            reader.problem("SR104", Place(reader.file), "the file is empty", "Add content, or delete the file.")
        return None if reader.root is None else reader

    def cached(self, kind: str, source: Sequence[object], hint: Any, make: Callable[[], Any]) -> Any:
        """Return the cached value of a source that had no problems; otherwise make it."""
        made: list[Any] = []

        def noted() -> Any:
            before = len(self.problems)
            made.append(make())
            return made[0] if len(self.problems) == before else None

        cached = self.cache.get_or_make(kind, source, hint, noted)
        return made[0] if made else cached

    def problem_at(self, code: str, place: Place, message: str, hint: str, excerpt: str) -> None:
        """Record a problem at a place of a file."""
        self.problems.append(Problem(code, place, message, hint, excerpt))

    def problem(self, code: str, file: Path, message: str, hint: str) -> None:
        """Record a problem of a whole file."""
        self.problems.append(Problem(code, Place(self.name(file)), message, hint))


def _bytes(file: Path, most: int) -> tuple[int, bytes]:
    """Return the size of a file and its content; b"" if it is larger than `most`."""
    unsaved = UNSAVED.get().get(str(file))
    if unsaved is not None:
        data = unsaved.encode("utf-8", "replace")
        return len(data), data if len(data) <= most else b""
    with file.open("rb", buffering=0) as opened:
        size = os.fstat(opened.fileno()).st_size
        return size, opened.readall() if size <= most else b""


def decoded(file: Path) -> str:
    """Return the text of a file that `Folder.text` rejected, with what can't be read replaced."""
    unsaved = UNSAVED.get().get(str(file))
    return one_line_end(file.read_bytes().decode("utf-8", "replace") if unsaved is None else unsaved)


def _files(top: str) -> Iterator[os.DirEntry[str]]:
    """Yield the files below a folder, without hidden ones; links are followed to files alone."""
    waiting = [top]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as listed:
                entries = [entry for entry in listed if not entry.name.startswith(".")]
        except OSError:
            continue
        # A link is resolved through its path, so a circular one is not a file.
        yield from (e for e in entries if (Path(e.path).is_file() if e.is_symlink() else e.is_file()))
        waiting += [entry.path for entry in reversed(entries) if entry.is_dir(follow_symlinks=False)]


def one_line_end(text: str) -> str:
    """Return a text with every line end as one character."""
    return text.replace("\r\n", "\n").replace("\r", "\n")
