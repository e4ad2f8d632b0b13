"""The pages and their files: read once, compressed once, with a hash as their ETag. Shell: the pages' files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sqlrun.serve.answers import LEAST_PACKED, NOT_FOUND, Answer, Headers, mark_of, matches, packed, packing

HERE = Path(__file__).parent
PAGES: Mapping[str, str] = {"/": "owner.html", "/operator": "operator.html"}
# The served folders, by the prefix of their files' addresses.
FOLDERS: Mapping[str, Path] = {"": HERE / "pages", "uplot/": HERE.parent / "report" / "pages" / "uplot"}
KINDS: Mapping[str, bytes] = {
    ".html": b"text/html; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".css": b"text/css; charset=utf-8",
    ".svg": b"image/svg+xml",
    ".png": b"image/png",
    ".webmanifest": b"application/manifest+json",
}
# The browser revalidates a file each time, so a new version shows immediately.
AGAIN: Headers = ((b"cache-control", b"no-cache"), (b"vary", b"accept-encoding"))


@dataclass(frozen=True, slots=True)
class Files:
    """The files by name. A request can't reach any other file, whatever its path."""

    bodies: Mapping[str, tuple[bytes, bytes]]
    packed: dict[tuple[str, str], bytes] = field(default_factory=dict)

    @staticmethod
    def read(more: Mapping[str, bytes]) -> Files:
        """Return all files of the pages, with body and media type by name; `more` are the bodies of generated ones."""
        found = {
            f"{prefix}{file.name}": (file.read_bytes(), KINDS[file.suffix])
            for prefix, folder in FOLDERS.items()
            for file in sorted(folder.iterdir())
            if file.suffix in KINDS
        }
        made = {name: (body, KINDS[Path(name).suffix]) for name, body in more.items()}
        return Files(found | made)

    def answer(self, name: str, accepts: bytes | None, has: bytes | None) -> Answer:
        """Return a file in a compression that the caller accepts; status 404 for an unknown name."""
        found = self.bodies.get(name)
        if found is None:
            return NOT_FOUND
        body, kind = found
        tag = f'W/"{mark_of(body)}"'.encode()
        headers: Headers = (*AGAIN, (b"etag", tag))
        if matches(has, tag):
            return Answer(304, kind=kind, headers=headers)
        how = packing(accepts) if len(body) >= LEAST_PACKED else ""
        if not how:
            return Answer(200, body, kind, headers)
        if (name, how) not in self.packed:
            self.packed[name, how] = packed(body, how)
        return Answer(200, self.packed[name, how], kind, (*headers, (b"content-encoding", how.encode())))
