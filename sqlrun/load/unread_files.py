"""Report files in the project's folders and in sources' folders that sqlrun doesn't read. Shell: folders, target/.

In the project's own folders such a file is an error, because it may be a missing model or check. Other programs write
to a source's folder, so an unread file there is reported once and doesn't fail the build.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from sqlrun.errors import EngineError, Place, Problem
from sqlrun.load.folder import Folder
from sqlrun.load.yaml_reader import listed
from sqlrun.project import Source
from sqlrun.runtime.text_lines import text_lines

SUFFIXES: Mapping[str, tuple[str, ...]] = {
    "models": (".sql", ".yml"),
    "snapshots": (".yml",),
    "macros": (".sql", ".yml"),
    "seeds": (".csv", ".yml"),
    "expectations": (".yml", ".sql"),
    "profiles": (".yml",),
}
# Files that people and their tools leave anywhere.
QUIET = frozenset(
    {
        ".md", ".txt", ".rst", ".adoc", ".bak", ".orig", ".rej", ".swp", ".swo", ".tmp", ".log", ".pyc", ".lock",
        ".png", ".jpg", ".jpeg", ".gif", ".svg", ".pdf", ".drawio", ".code-workspace", ".ini", ".db",
    }
)  # fmt: skip
QUIET_NAMES = frozenset({"readme", "license", "licence", "makefile", "codeowners", "notice", "changelog"})
DOCS = "{% docs"
# A line of a dbt_project.yml without settings.
MARKER = re.compile(r"((name|version|config-version|profile):.*|---|\s*(#.*)?)")
_SETTINGS = (
    "`sqlrun import-dbt` converts a dbt project. Or move its settings to pyproject.toml, under [tool.sqlrun], and move "
    "this file out of the project."
)
_PACKAGES = (
    "sqlrun has no packages: `sqlrun import-dbt` makes those of a dbt project a part of it. Or copy the macros that "
    "you call into macros/, one in each file. Then remove this file."
)
# Files that dbt reads in a project's folder.
OF_DBT: Mapping[str, str] = {
    "dbt_project.yml": _SETTINGS,
    "dbt_project.yaml": _SETTINGS,
    "packages.yml": _PACKAGES,
    "dependencies.yml": _PACKAGES,
    "profiles.yml": "Write each profile into a file of its own, such as profiles/duckdb.yml, and remove this file.",
}
ROOMS_OF_DBT: Mapping[str, str] = {
    "analyses": "Make it a model, or move it out of the project.",
    "analysis": "Make it a model, or move it out of the project.",
    "dbt_packages": _PACKAGES,
}
_SINGULAR = "Move the test to expectations/, where a SQL check reads one model by ref()."
_GENERIC = "sqlrun has no generic tests. Write an expectation or a SQL check in expectations/."
_PYTHON = (
    "sqlrun has no Python models. Write a SELECT in models/NAME.sql, or land the files that Python writes as a source."
)
BOOK = "unread.json"
# Maximum number of names that are reported for one source.
MOST = 5


def problems(folder: Folder) -> None:
    """Record the project's files that look like part of it but aren't read (SR117)."""
    for room, suffixes in SUFFIXES.items():
        for file in folder.files(room):
            if file.suffix not in suffixes and (not quiet(file.name) or _has_docs(file)):
                _note(folder, file, _instead(room, file, suffixes))
    names = {entry.name for entry in os.scandir(folder.root)}
    for name, hint in OF_DBT.items():
        if name in names and not (hint is _SETTINGS and _is_marker(folder.root / name)):
            _note(folder, folder.root / name, hint)
    for room, hint in ROOMS_OF_DBT.items():
        for file in folder.files(room) if room in names else ():
            if not quiet(file.name):
                _note(folder, file, hint)
    for file in _tests(folder.root / "tests") if "tests" in names else ():
        text = file.read_bytes().decode("utf-8", "replace")
        if "{% test" in text or "{%- test" in text or "{% data_test" in text:
            _note(folder, file, _GENERIC)
        elif "ref(" in text or "source(" in text:
            _note(folder, file, _SINGULAR)


def quiet(name: str) -> bool:
    """Return whether a file needs no report: documents, and files that editors and systems leave.

    >>> quiet("README.md"), quiet("orders.sql~"), quiet("orders.py"), quiet("orders.json.gz")
    (True, True, False, False)
    """
    path = Path(name.lower())
    hidden = name.startswith((".", "#")) or name.endswith("~")
    return hidden or path.suffix in QUIET or path.name in QUIET_NAMES


def _note(folder: Folder, file: Path, hint: str) -> None:
    folder.problems.append(Problem("SR117", Place(folder.name(file)), "sqlrun doesn't read this file", hint))


def _is_marker(file: Path) -> bool:
    """Return whether a `dbt_project.yml` has no settings: programs that run dbt only look whether there is one."""
    with suppress(OSError):
        lines = text_lines(file.read_bytes().decode("utf-8", "replace"))
        return all(MARKER.fullmatch(line) for line in lines)
    return False


def _instead(room: str, file: Path, suffixes: tuple[str, ...]) -> str:
    if file.suffix == ".py" and room == "models":
        return _PYTHON
    if room == "snapshots" and file.suffix == ".sql":
        return "Declare the snapshot in YAML, with `relation` and `config`, as dbt does since 1.9. Remove this file."
    if file.suffix == ".md":
        return "Write the text of the docs block into the contract's `description`, and remove the block."
    return f"Rename the file, or move it out of {room}/, which contains {' and '.join(suffixes)} files."


def _has_docs(file: Path) -> bool:
    if file.suffix != ".md":
        return False
    with suppress(OSError):
        return DOCS in file.read_bytes().decode("utf-8", "replace").replace("{%-", "{%")
    return False


def _tests(room: Path) -> Iterator[Path]:
    """Yield the files that may be dbt's tests; folders below one with Python tests are Python's."""
    entries = [entry for entry in os.scandir(room) if not entry.name.startswith(".")]
    yield from (Path(e.path) for e in entries if e.name.endswith(".sql") and e.is_file())
    if any(entry.name.endswith(".py") for entry in entries):
        return
    for entry in entries:
        if entry.is_dir() and entry.name != "fixtures":
            yield from sorted(Path(entry.path).rglob("*.sql"))


def in_sources(root: Path, sources: Iterable[Source]) -> dict[str, tuple[str, ...]]:
    """Return the names in sources' folders that don't land, by folder."""
    found: dict[str, tuple[str, ...]] = {}
    by_path: dict[str, list[Source]] = {}
    for source in sources:
        if source.path and source.lands:
            by_path.setdefault(source.path, []).append(source)
    for path, known in by_path.items():
        with suppress(OSError, EngineError):
            names = [name for name in _unread(str(root / path), known) if not _unfinished(name)]
            if names:
                found[path] = tuple(names)
    return found


def _unread(folder: str, known: Iterable[Source]) -> list[str]:
    """Return the names below a folder that none of its sources reads. A plain folder doesn't look into folders."""
    from sqlrun.sources import file_choice, file_tree  # only a build looks into the folders of sources
    from sqlrun.sources import folder as source_folder

    nested = [source for source in known if not source.is_plain_folder]
    if not nested:
        return source_folder.unread(folder)
    plain = [file_choice.TOP_LEVEL] if any(source.is_plain_folder for source in known) else []
    return file_tree.unread(folder, [*plain, *map(file_choice.choice_of, nested)])


def _unfinished(name: str) -> bool:
    """Return whether a file is hidden, still being written, or a description of the folder."""
    name = name.rpartition("/")[2] or name
    return name.startswith((".", "_", "#")) or name.endswith(("~", ".tmp", ".part", ".swp", ".lock", ".md"))


def messages(root: Path, sources: Iterable[Source]) -> tuple[str, ...]:
    """Return messages about files that don't land, and record them, so that each is reported once."""
    found, file = in_sources(root, sources), root / "target" / BOOK
    before: dict[str, list[str]] = {}
    if found:
        with suppress(OSError, ValueError):
            before = json.loads(file.read_text(encoding="utf-8"))
    new = {path: [name for name in names if name not in before.get(path, ())] for path, names in found.items()}
    nested = {source.path for source in sources if source.path and not source.is_plain_folder}
    texts = tuple(_message(path, names, path in nested) for path, names in new.items() if names)
    if texts:
        with suppress(OSError):
            file.parent.mkdir(exist_ok=True)
            file.write_text(json.dumps(found), encoding="utf-8")
    return texts


def _message(path: str, names: list[str], is_nested: bool) -> str:
    shown = listed(names[:MOST]) + (f" and {len(names) - MOST:,} more" if len(names) > MOST else "")
    if is_nested:
        return (
            f"no source reads these files of {path}: {shown}. Extend `files:` of a source, or move them elsewhere. "
            "Names must be in UTF-8."
        )
    return (
        f"sqlrun can't land these files of {path}: {shown}. "
        "A source's files are JSON lines in *.json, *.jsonl or *.ndjson, "
        "uncompressed, not in subfolders, with names in UTF-8. Declare `files:` to read others, such as "
        '`files: "**/*.json.gz"`, and `format:` for CSV, Parquet or Avro. Or move these files elsewhere.'
    )
