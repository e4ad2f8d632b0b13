"""The pages and what they load: read once, marked by their bytes, packed once. Shell: the pages' files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sqlrun.serve.answers import LEAST_PACKED, NOT_FOUND, Answer, Headers, mark_of, matches, packed, packing

HERE = Path(__file__).parent
PAGES: Mapping[str, str] = {"/": "owner.html", "/operator": "operator.html"}
# The folders that are shown, by what their files' addresses begin with.
FOLDERS: Mapping[str, Path] = {"": HERE / "pages", "uplot/": HERE.parent / "report" / "pages" / "uplot"}
KINDS: Mapping[str, bytes] = {
    ".html": b"text/html; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".css": b"text/css; charset=utf-8",
    ".svg": b"image/svg+xml",
    ".png": b"image/png",
    ".webmanifest": b"application/manifest+json",
}
# Asked for again each time, and told "the same" by its mark: a new version shows at once.
AGAIN: Headers = ((b"cache-control", b"no-cache"), (b"vary", b"accept-encoding"))


@dataclass(frozen=True, slots=True)
class Files:
    """The files by name. Nothing else can be asked for, whatever a path says."""

    bodies: Mapping[str, tuple[bytes, bytes]]
    packed: dict[tuple[str, str], bytes] = field(default_factory=dict)

    @staticmethod
    def read(more: Mapping[str, bytes]) -> Files:
        """Read all files of the pages: name -> body and kind; `more` are those that are made."""
        found = {
            f"{prefix}{file.name}": (file.read_bytes(), KINDS[file.suffix])
            for prefix, folder in FOLDERS.items()
            for file in sorted(folder.iterdir())
            if file.suffix in KINDS
        }
        made = {name: (body, KINDS[Path(name).suffix]) for name, body in more.items()}
        return Files(found | made)

    def answer(self, name: str, accepts: bytes | None, has: bytes | None) -> Answer:
        """Return a file, packed as the caller likes it; 404 for what isn't one of them."""
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
