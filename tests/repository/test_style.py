"""The style of docs/contributing/style.md: its words and its longest sentence, in pages, docstrings and comments."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

from tests.repository import readability

ROOT = Path(__file__).parents[2]
# These pages name the words that the style replaces.
LISTS = {ROOT / "docs" / "contributing" / "style.md"}
PAGES = sorted({*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").rglob("*.md")} - LISTS)
MODULES = sorted((ROOT / "sqlrun").rglob("*.py"))
SOURCES = [*MODULES, *(file for name in ("tests", "benchmarks") for file in sorted((ROOT / name).rglob("*.py")))]

# The words of the style that no name has between its underscores.
WORDS = (
    "(?:anew|afresh|aside|besides|heed(?:s|ed)?|mend(?:s|ed)?|nobody|somebody|parted|tells?|told|torn|touched"
    "|turns?(?<!return)(?<!returns)|upkeep)"
)
IN_A_NAME = re.compile(rf"(?:^|_){WORDS}(?:_|$)", re.IGNORECASE)
# What a definition looks like in a lowercase text. Prose may look like it; parsing tells them apart.
LIKE_A_DEFINITION = re.compile(rf"{WORDS}(?![a-z0-9])\w*\s*(?:[-+|&/*]?=|[:,()\]]|in\b|if\b|$)", re.MULTILINE)
# A method of Python's file objects.
ALLOWED = {("sqlrun/storage/remote_files.py", "tell")}


def test_a_word_of_the_list_and_a_long_sentence_are_found() -> None:
    page = readability.measure(
        "# Ticks\n\nThe build is told `anew` of it, [anew](anew.md). " + "So it goes on " * 11 + ".\n"
    )

    assert page.banned == ((3, "told"), (3, "anew"))
    assert [len(each.split()) for each in page.long] == [44 + 1]
    assert page.passive == 0.5


def test_pages_follow_the_style() -> None:
    wrong = {}
    for page in PAGES:
        measured = readability.measure(page.read_text(encoding="utf-8"))
        if measured.banned or measured.long:
            wrong[str(page.relative_to(ROOT))] = (*measured.banned, *measured.long)

    assert wrong == {}


def test_docstrings_and_comments_use_the_words_of_the_style() -> None:
    wrong = {str(file.relative_to(ROOT)): found for file in MODULES if (found := list(banned(file.read_text("utf-8"))))}

    assert wrong == {}


def banned(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the word of each forbidden place in docstrings and comments; backticks are skipped."""
    if not readability.BANNED.search(source):
        return  # parsing takes most of the time
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            text = ast.get_docstring(node, clean=False) or ""
            yield from ((node.body[0].lineno + line, word) for line, word in readability.forbidden(prose(text)))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield from ((token.start[0], word) for _, word in readability.forbidden(token.string.lstrip("#")))


def prose(docstring: str) -> str:
    """Return a docstring without its doctests."""
    return "\n".join(line for line in docstring.split("\n") if not line.lstrip().startswith((">>>", "...")))


def test_names_avoid_the_words_of_the_style() -> None:
    wrong = {}
    for file in SOURCES:
        path, text = str(file.relative_to(ROOT)), file.read_text("utf-8")
        found = {name for name in [file.stem, *names(text)] if IN_A_NAME.search(name) and (path, name) not in ALLOWED}
        wrong |= {path: found} if found else {}

    assert wrong == {}


def test_a_name_with_a_word_of_the_style_is_found() -> None:
    planted = """
import os as torn
TOLD = 1
class Upkeep:
    parted: int = 0
    def _mend(self, turn, *, aside=(), **besides):
        self.told_of = returned = attend = turning = 2
        for nobody, (touched, _) in []:
            with open() as built_anew: pass
        try: pass
        except OSError as somebody: pass
        match self:
            case {"told": told, **tells}: pass
        return [tell for tell in ()], lambda mended: told, (heed := 1)
"""

    assert {name for name in names(planted) if IN_A_NAME.search(name)} == {
        "torn", "TOLD", "Upkeep", "parted", "_mend", "turn", "aside", "besides", "told_of", "nobody", "touched",
        "built_anew", "somebody", "told", "tells", "tell", "mended", "heed",
    }  # fmt: skip
    for name in ("told_x", "x_told", "_told", "TOLD"):
        for text in (f"{name} = 1", f"def {name}(): ...", f"def f(a, {name}): ...", f"for {name} in (): ..."):
            assert name in names(text), text
    assert list(names("told(1)  # which was told, or told: in prose")) == []


def names(source: str) -> Iterator[str]:
    """Yield the names that a source defines; none if it can't define one with a word of the style."""
    if not LIKE_A_DEFINITION.search(source.lower()):
        return  # parsing takes most of the time
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.Name(ctx=ast.Store()):
                yield node.id
            case ast.Attribute(ctx=ast.Store()):
                yield node.attr
            case ast.arg():
                yield node.arg
            case ast.alias(asname=str(name)) | ast.ExceptHandler(name=str(name)):
                yield name
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                yield name


def test_no_text_says_two_words_twice_in_a_row() -> None:
    """A merge of two rewrites of one sentence leaves such texts."""
    twice = re.compile(r"\b(\w+ \w+) \1\b")
    wrong = {str(page.relative_to(ROOT)): found for page in PAGES if (found := twice.findall(page.read_text("utf-8")))}
    for file in MODULES:
        texts = (node.value for node in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(node, ast.Constant))
        found = [hit for text in texts if isinstance(text, str) for hit in twice.findall(text)]
        wrong |= {str(file.relative_to(ROOT)): found} if found else {}

    assert wrong == {}
