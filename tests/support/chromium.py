"""The Chromium of this machine: where it is, and how it is started for tests."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needed = pytest.mark.skipif(PROGRAM is None, reason="no Chromium on this machine: `apt-get install chromium` has one")
DESK, PHONE = (1280, 800), (375, 667)
# Screenshots are kept there, to be looked at.
KEEP = os.environ.get("SQLRUN_SCREENSHOTS")


@contextmanager
def launched() -> Iterator[Any]:
    """Start it, to be driven by playwright."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # In a container of root's Chromium has no sandbox to offer; it opens our own pages alone.
        found = playwright.chromium.launch(executable_path=PROGRAM, args=["--no-sandbox"])
        yield found
        found.close()


def picture(opened: Any, folder: Path, name: str, whole: bool = False) -> Path:
    """Take a screenshot; it is kept where the environment says so."""
    file = Path(KEEP or folder) / f"{name}.png"
    file.parent.mkdir(parents=True, exist_ok=True)
    opened.screenshot(path=file, full_page=whole)
    return file
