"""docs/errors/ holds one page for each code, as `error_pages.py` writes it.

After a wording or a case changed: SQLRUN_WRITE=1 pytest tests/commands/test_error_pages.py, then read the diff.
"""

from __future__ import annotations

import os

from tests.support import error_pages

PAGES = error_pages.pages()


def test_each_page_is_as_it_is_written() -> None:
    kept = {code: error_pages.FOLDER / f"{code}.md" for code in PAGES}
    if os.environ.get("SQLRUN_WRITE"):
        error_pages.FOLDER.mkdir(exist_ok=True)
        for code, path in kept.items():
            path.write_text(PAGES[code], encoding="utf-8")

    stale = [
        code for code, path in kept.items() if not path.exists() or path.read_text(encoding="utf-8") != PAGES[code]
    ]
    assert stale == []


def test_no_page_is_left_over() -> None:
    assert sorted(path.stem for path in error_pages.FOLDER.glob("*.md")) == sorted(PAGES)
