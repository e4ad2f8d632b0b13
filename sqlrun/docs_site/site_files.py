"""target/docs/: a page and files that are named by their content. Shell: files under target/.

A run first adds files, then replaces the page that names them, then deletes the files that the page no longer names.
So a reader always finds the files of one run, whenever the run ends, and a file that sqlrun didn't write stays.
"""

from __future__ import annotations

import hashlib
import html
import json
import re
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlrun.docs_site.index import index
from sqlrun.docs_site.nodes import Pages
from sqlrun.docs_site.subject import Subject
from sqlrun.errors import SqlrunError
from sqlrun.runtime import atomic_files, own_folders

SOURCES = Path(__file__).parent / "pages"
FOLDER, FILES, PAGE = "docs", "files", "index.html"
# Loaded at the start, in this order, and by the page when it needs them.
STYLE, BEFORE = "site.css", "start.js"
STARTED = ("rendered.js", "search.js", "node.js", "graph.js", "site.js")
VIEWERS = {
    "graph": ("cytoscape/cytoscape.min.js",),
    "markdown": ("markdown-it/markdown-it.umd.min.js",),
    "sql": ("prism/prism-core.min.js", "prism/prism-sql.min.js"),
}
LICENSES = ("cytoscape/LICENSE", "markdown-it/LICENSE", "prism/LICENSE")
HASH = 12
OWN = re.compile(rf"[\w.-]+-([0-9a-f]{{{HASH}}})\.(?:js|css|txt)")


def write(root: Path, subject: Subject, env: str, at: datetime) -> Path:
    """Write the site of a project; return its page.

    Raises: SqlrunError if it can't be written; UsageError if a folder of it is a link.
    """
    own_folders.require_target(root)
    folder = root / own_folders.TARGET / FOLDER
    try:
        (folder / FILES).mkdir(parents=True, exist_ok=True)
        return _Site(folder).write(subject, env, at)
    except OSError as error:
        raise SqlrunError(f"can't write {folder}: {error.strerror or error}") from error


class _Site:
    """The folder of a site while it is written; `names` are the files that its page names."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names: set[str] = set()

    def write(self, subject: Subject, env: str, at: datetime) -> Path:
        pages = Pages(subject)
        found = dict(pages)
        scripts = {name: self._data("node", [name, page]) for name, page in found.items()}
        # Pairs, because a key `__proto__` of an object in a script is no key.
        columns = self._data("columns", [[name, pages.columns.names(name)] for name in subject.prepared.graph.order])
        viewers = {name: [self._copy(source) for source in sources] for name, sources in VIEWERS.items()}
        licenses = [self._copy(source, source.replace("/LICENSE", "-license.txt")) for source in LICENSES]
        document = {**index(subject, found, scripts, columns, env, at), "viewers": viewers, "licenses": licenses}
        start = [self._copy(BEFORE), self._data("index", document), *(self._copy(source) for source in STARTED)]
        page = (SOURCES / PAGE).read_text(encoding="utf-8")
        page = page.replace("{{ title }}", html.escape(subject.prepared.project.name))
        page = page.replace("{{ style }}", self._copy(STYLE))
        page = page.replace("{{ scripts }}", "\n".join(f'<script defer src="{name}"></script>' for name in start))
        atomic_files.put(self._folder / PAGE, page)
        self._delete_old()
        return self._folder / PAGE

    def _data(self, name: str, document: Any) -> str:
        """Write values as a script that hands them over to the page; return its name."""
        text = json.dumps(document, ensure_ascii=True, default=str, separators=(",", ":"))
        return self._put(f"data-{name}", ".js", f"sqlrunDocs.{name}({text});\n".encode())

    def _copy(self, source: str, name: str = "") -> str:
        stem, _, ending = (name or source.rpartition("/")[2]).rpartition(".")
        return self._put(stem, f".{ending}", (SOURCES / source).read_bytes())

    def _put(self, stem: str, ending: str, content: bytes) -> str:
        name = f"{stem}-{digest(content)}{ending}"
        file = self._folder / FILES / name
        # After a power failure a file may be empty.
        if not file.is_file() or file.read_bytes() != content:
            atomic_files.put(file, content)
        self._names.add(name)
        return f"{FILES}/{name}"

    def _delete_old(self) -> None:
        for file in own_files((self._folder / FILES).iterdir()):
            if file.name not in self._names:
                file.unlink(missing_ok=True)


def digest(content: bytes) -> str:
    """Return the part of a file's name that its content determines."""
    return hashlib.sha256(content).hexdigest()[:HASH]


def own_files(files: Iterable[Path]) -> list[Path]:
    """Return the files that a run wrote: their names end with the hash of their content."""
    return [
        file
        for file in sorted(files)
        if (found := OWN.fullmatch(file.name)) and file.is_file() and digest(file.read_bytes()) == found[1]
    ]
