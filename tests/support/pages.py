"""Files that a page of the docs has its reader write: blocks with `file=NAME`."""

from __future__ import annotations

import re
from pathlib import Path


def files(page: Path) -> dict[str, str]:
    """Return the texts of a page's files by path."""
    return dict(re.findall(r"^```\w+ file=(\S+)\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE))
