"""docs/errors/ holds one page for each code, as `error_pages.py` writes it.

After a wording or a case changed: SQLRUN_WRITE=1 pytest tests/test_error_pages.py, then read the diff.
"""

from __future__ import annotations

import os

import pytest

from tests import error_pages

PAGES = error_pages.pages()


@pytest.mark.parametrize("code", PAGES)
def test_the_page_is_as_it_is_written(code: str) -> None:
    path = error_pages.FOLDER / f"{code}.md"
    if os.environ.get("SQLRUN_WRITE"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(PAGES[code], encoding="utf-8")

    assert path.read_text(encoding="utf-8") == PAGES[code]


def test_no_page_is_left_over() -> None:
    assert sorted(path.stem for path in error_pages.FOLDER.glob("*.md")) == sorted(PAGES)
