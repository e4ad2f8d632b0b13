"""Measure how hard a page is to read: words of the list in docs/contributing/style.md, long sentences, passive voice.

`python -m tests.repository.readability PATH…` prints a row for each page, and each place that the style forbids.
"""

from __future__ import annotations

import re
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# Words of sqlrun's former English, and words that call a task easy; docs/contributing/style.md names the replacements.
BANNED = re.compile(
    r"(?i)\b(?:anew|afresh|besides|by turns|in turn|heed(?:s|ed|ing)?|mend(?:s|ed|ing)?|told|tells?|telling|of then"
    r"|of now|sets? aside|setting aside|torn|upkeep|loss(?:es)? of power|those that|gone on with|so many"
    r"|(?:brought|brings?) up to date|(?:by|of) itself|nobody|somebody|taken back|what (?:has )?landed|stands at|parted"
    r"|who(?:ever)? reads|counts? for nothing|middle|receipts?|fit for|only grows?|put together|touched|whose turn"
    r"|simply|obviously|easily)\b"
)
LONGEST = 40  # words
BE = r"(?:is|are|was|were|be|been|being)"
PARTICIPLE = (
    r"(?:\w+ed|built|done|found|given|held|kept|known|left|lost|made|meant|put|read|said|seen|sent|set|shown|taken|torn"
    r"|thrown|told|written|run)"
)
PASSIVE = re.compile(rf"(?i)\b{BE}\s+(?:not\s+|never\s+|only\s+|also\s+|then\s+|all\s+)?{PARTICIPLE}\b")


@dataclass(frozen=True, slots=True)
class Page:
    """What was measured of a page: sentences as lists of words, and the places that the style forbids."""

    sentences: tuple[str, ...]
    banned: tuple[tuple[int, str], ...]

    @property
    def long(self) -> tuple[str, ...]:
        """Return the sentences of more than `LONGEST` words."""
        return tuple(each for each in self.sentences if len(each.split()) > LONGEST)

    @property
    def median(self) -> float:
        """Return the median length of a sentence in words; 0 for a page without one."""
        return statistics.median([len(each.split()) for each in self.sentences] or [0])

    @property
    def passive(self) -> float:
        """Return the share of sentences in the passive voice, from 0 to 1."""
        return sum(bool(PASSIVE.search(each)) for each in self.sentences) / max(1, len(self.sentences))


def prose_lines(text: str) -> Iterator[tuple[int, str]]:
    """Return the numbered lines of a Markdown text, without blocks and spans of code, link targets and comments.

    >>> list(prose_lines("Run `it`.\\n```bash\\nls\\n```\\nSee [a](b.md)."))
    [(1, 'Run CODE.'), (2, ''), (3, ''), (4, ''), (5, 'See [a].')]
    """
    blank = re.compile(r"<!--.*?-->|^ *(```|~~~).*?^ *\1[^\n]*$", re.DOTALL | re.MULTILINE)
    without = blank.sub(lambda found: "\n" * found[0].count("\n"), text)
    without = re.sub(r"`+[^`]+`+", lambda found: "CODE" + "\n" * found[0].count("\n"), without)
    without = re.sub(r"\]\([^)]*\)", lambda found: "]" + "\n" * found[0].count("\n"), without)
    yield from enumerate(without.splitlines(), 1)


def sentences(lines: Iterator[tuple[int, str]]) -> Iterator[str]:
    """Return the sentences of prose. A heading, a row of a table and an item of a list end one."""
    paragraph = list[str]()
    for _, line in (*lines, (0, "")):
        begins = re.match(r"\s*(?:[-*#|]|\d+\.)\s*", line)
        if not line.strip() or begins:
            yield from _split(" ".join(paragraph))
            paragraph = []
        if begins:
            cells = line.split("|") if line.lstrip().startswith("|") else [line[begins.end() :]]
            if len(cells) > 1 or line.lstrip().startswith("#"):
                for cell in cells:
                    yield from _split(cell)
                continue
            paragraph = cells
        elif line.strip():
            paragraph.append(line.strip())


def _split(paragraph: str) -> Iterator[str]:
    for each in re.split(r"(?<=[.!?])\s+(?=[A-Z`\[*\"'(]|CODE|\w)", paragraph):
        if len(each.split()) > 2:
            yield each


def forbidden(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the word of each place that the style forbids in a Markdown text."""
    yield from ((number, hit[0]) for number, line in prose_lines(text) for hit in BANNED.finditer(line))


def measure(text: str) -> Page:
    """Return what is measured of a Markdown text."""
    return Page(tuple(sentences(prose_lines(text))), tuple(forbidden(text)))


def pages(paths: list[str]) -> Iterator[Path]:
    """Return the Markdown files that are named or lie below a named folder."""
    for path in map(Path, paths):
        yield from sorted(path.rglob("*.md")) if path.is_dir() else [path]


def main(paths: list[str]) -> int:
    """Print a row for each page, then each forbidden place; return the exit code: 1 if there is one."""
    wrong = 0
    print("sentences  median words  long  passive  page")
    for path in pages(paths):
        page = measure(path.read_text())
        print(f"{len(page.sentences):9}  {page.median:12.0f}  {len(page.long):4}  {page.passive:7.0%}  {path}")
        for number, word in page.banned:
            print(f"    {path}:{number}: {word}")
        for each in page.long:
            print(f"    {len(each.split())} words: {each[:100]}…")
        wrong += len(page.banned) + len(page.long)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
