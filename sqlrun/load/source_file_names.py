"""Which files in a source's folder are its own, by name and kind. Shell: folders."""

from __future__ import annotations

import os

ENDINGS = (".json", ".jsonl", ".ndjson")


def is_source_file(entry: os.DirEntry[str]) -> bool:
    """Tell whether what lies in a source's folder is one of its files, by its name and its kind.

    A link that leads nowhere or round in a circle is none, nor a folder or a pipe, nor one whose name is no UTF-8: no
    table could name it.
    """
    try:
        entry.name.encode()
        return entry.name.endswith(ENDINGS) and entry.is_file()
    except (OSError, UnicodeEncodeError):
        return False
