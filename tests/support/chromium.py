"""This machine's Chromium: its path, and how tests start it."""

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
# Folder for screenshots, to look at them later.
KEEP = os.environ.get("SQLRUN_SCREENSHOTS")


@contextmanager
def launched() -> Iterator[Any]:
    """Start Chromium, to be driven by playwright."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # As root in a container Chromium has no sandbox; it opens only sqlrun's own pages.
        found = playwright.chromium.launch(executable_path=PROGRAM, args=["--no-sandbox"])
        yield found
        found.close()


def picture(opened: Any, folder: Path, name: str, whole: bool = False) -> Path:
    """Take a screenshot; it is saved in `KEEP` if that is set."""
    file = Path(KEEP or folder) / f"{name}.png"
    file.parent.mkdir(parents=True, exist_ok=True)
    opened.screenshot(path=file, full_page=whole)
    return file
