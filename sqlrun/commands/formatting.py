"""`sqlrun format`: lay out the SQL of a project by sqlfmt, without a change of its meaning. Shell: the SQL files.

sqlfmt reads SQL with Jinja as it is, renders nothing, and has one style. Its settings are those of sqlfmt itself,
`[tool.sqlfmt]` of pyproject.toml, so editors that run sqlfmt agree with it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from sqlrun import pipeline
from sqlrun.errors import UsageError
from sqlrun.load.folder import Folder, unsaved
from sqlrun.report.console import Console
from sqlrun.runtime import atomic_files, packages
from sqlrun.runtime.disk_cache import Cache
from sqlrun.runtime.text_lines import text_lines
from sqlrun.runtime.text_table import counted

# sqlfmt's settings that have a meaning here.
SETTINGS = ("line_length", "no_jinjafmt")
# Folders of a project that may have SQL.
ROOMS = ("models", "macros", "expectations", "analyses")


def format_files(root: Path, paths: Sequence[Path], *, check: bool, diff: bool) -> int:
    """Run `sqlrun format`; with `check` or `diff` write nothing, and return 1 if a file isn't laid out.

    Raises: ProjectError if the project has problems, UsageError for a path without SQL of the project, SQL that sqlfmt
    can't read, and a layout that would change what a model means. Nothing is written then.
    """
    packages.require("`sqlrun format`", "format")
    root = root.resolve()
    prepared = pipeline.prepare(root, Cache.of(root))
    files = _chosen(root, paths)
    texts = {file: file.read_bytes().decode("utf-8") for file in files}
    formatted = dict(_changes(root, texts))
    _require_same(root, formatted, prepared.workspace.prints)
    console = Console()
    for file, text in formatted.items():
        name = file.relative_to(root).as_posix()
        if diff:
            old, new = (list(text_lines(each)) for each in (texts[file], text))
            console.lines(list(difflib.unified_diff(old, new, name, name, lineterm="")))
        elif check:
            console.lines([f"{name} isn't formatted"])
        else:
            atomic_files.write(file, text)
            console.lines([f"formatted {name}"])
    same = counted(len(files) - len(formatted), "file")
    if check or diff:
        console.lines([f"{counted(len(formatted), 'file')} to format, {same} unchanged."])
        return 1 if formatted else 0
    console.lines([f"{counted(len(formatted), 'file')} formatted, {same} unchanged."])
    return 0


def _chosen(root: Path, paths: Sequence[Path]) -> list[Path]:
    """Return the SQL files of the project at some paths, or all of them."""
    folder = Folder(root, [], Cache(None))
    every = [file for room in ROOMS for file in folder.files(room, ".sql")]
    if not paths:
        return every
    chosen: dict[Path, None] = {}
    for path in paths:
        whole = path.resolve()
        found = [file for file in every if file.resolve() == whole or whole in file.resolve().parents]
        if not found:
            raise UsageError(f"{path} has no SQL of the project. Name files or folders in {', '.join(ROOMS)}")
        chosen |= dict.fromkeys(found)
    return list(chosen)


def _changes(root: Path, texts: Mapping[Path, str]) -> Iterator[tuple[Path, str]]:
    """Yield the new texts of the files that aren't laid out."""
    from sqlfmt.api import format_string
    from sqlfmt.config import load_config_file
    from sqlfmt.exception import SqlfmtError
    from sqlfmt.mode import Mode

    try:
        settings = {key: value for key, value in load_config_file([root], None).items() if key in SETTINGS}
        mode = Mode(**cast(dict[str, Any], settings))
    except SqlfmtError as error:
        raise UsageError(f"[tool.sqlfmt] of pyproject.toml can't be used: {error}") from error
    for file, text in texts.items():
        try:
            new = format_string(text.replace("\r\n", "\n"), mode)
        except SqlfmtError as error:
            name = file.relative_to(root).as_posix()
            raise UsageError(f"sqlfmt can't read {name}: {ValueError.__str__(error)}. Nothing was written") from error
        new = new.replace("\n", "\r\n") if "\r\n" in text else new
        if new != text:
            yield file, new


def _require_same(root: Path, formatted: Mapping[Path, str], prints: Mapping[str, str]) -> None:
    """Check that each model means the same with the new texts: a model of another meaning would be rebuilt."""
    with unsaved(root, {file.relative_to(root).as_posix(): text for file, text in formatted.items()}):
        after = pipeline.prepare(root).workspace.prints
    changed = [name for name, meaning in prints.items() if after.get(name) != meaning]
    if changed:
        raise UsageError(
            f"the new layout would change what {', '.join(changed)} means, so nothing was written. Write "
            "`-- fmt: off` above the lines that must stay as they are"
        )
