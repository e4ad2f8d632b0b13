"""The reader of a declared source. Shell: the sources."""

from __future__ import annotations

from sqlrun.project import Source
from sqlrun.source_api import SourceReader
from sqlrun.sources.folder import Folder


def reader_of(root: str, source: Source) -> SourceReader:
    """Return the reader of a source by its format; `root` is the project's folder."""
    match source.format:
        case "json":
            return Folder(f"{root}/{source.path}")
        case _:
            raise AssertionError(f"unsupported format {source.format}")
