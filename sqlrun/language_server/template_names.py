"""Changes of rendered SQL as changes of its template: outside of tags, and in texts that a tag passes on. Pure.

A change may be mapped wrongly: the template with all changes has to be rendered, and compared with the SQL with all
changes.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from sqlrun.graph.column_names import Edit, Symbol
from sqlrun.project import Rendered

TAG = re.compile(r"\{\{.*?(?:\}\}|\Z)|\{%.*?(?:%\}|\Z)|\{#.*?(?:#\}|\Z)", re.DOTALL)
# Arguments of config() that name columns.
CONFIG = re.compile(r"\b(?:partition_by|updated_at|check_cols)\s*=\s*(\[[^\]]*\]|\([^)]*\)|'[^']*'|\"[^\"]*\")")
# A line with more tags isn't aligned with what it is rendered to.
MOST_TAGS = 20
TEXT = re.compile(r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"")


@dataclass(frozen=True, slots=True, order=True)
class Change:
    """A change of `length` letters of a line of a file; line and column count from 1."""

    file: str
    line: int
    column: int
    length: int
    text: str


@dataclass(slots=True)
class Template:
    """The changes of one template.

    `follow`: columns that have to be renamed too, since a tag names them. `lost`: the first line of a name that no part
    of the template has.
    """

    changes: set[Change] = field(default_factory=set)
    follow: set[Symbol] = field(default_factory=set)
    lost: int = 0


def changes(rendered: Rendered, edits: Iterable[Edit], old: str, new: str) -> Template:
    """Return the changes of a template for those of its rendered SQL."""
    made, text = Template(), _Text(rendered)
    for edit in edits:
        word = rendered.sql[edit.start : edit.end]
        at, near = text.place(edit.start, word)
        if at is not None:
            made.changes.add(text.change(at, len(word), edit.text))
            continue
        found = text.passed(near, edit.start, old)
        found = found or [*_in_tags(text.source, near, old)] or [*_in_tags(text.source, text.tags, old)]
        if not found:
            made.lost = made.lost or text.line(edit.start)
        elif edit.naming is not None:
            made.follow.add(edit.naming)
        else:
            made.changes |= {text.change(hit, len(old), new) for hit in found}
    return made


def config_changes(rendered: Rendered, old: str, new: str) -> Iterator[Change]:
    """Yield the changes of a template's `config()` that name a column of its own model."""
    text = _Text(rendered)
    for start, end in text.tags:
        for call in CONFIG.finditer(text.source, start, end):
            for quoted in TEXT.finditer(text.source, call.start(1), call.end(1)):
                if quoted[0][1:-1].lower() == old.lower():
                    yield text.change(quoted.start() + 1, len(old), new)


class _Text:
    """A template beside its rendered SQL."""

    def __init__(self, rendered: Rendered) -> None:
        self.rendered, self.source = rendered, rendered.model.sql
        self.tags = [match.span() for match in TAG.finditer(self.source)]
        self._starts = [0, *(match.end() for match in re.finditer("\n", self.source))]
        self._lines = [0, *(match.end() for match in re.finditer("\n", rendered.sql))]

    def line(self, start: int) -> int:
        """Return the line of the template for a place of the rendered SQL."""
        return self.rendered.lines[bisect_right(self._lines, start) - 1]

    def change(self, at: int, length: int, text: str) -> Change:
        """Return a change at a place of the template."""
        number = bisect_right(self._starts, at)
        return Change(self.rendered.model.file, number, at - self._starts[number - 1] + 1, length, text)

    def place(self, start: int, word: str) -> tuple[int | None, list[tuple[int, int]]]:
        """Return the place in the template of a word of the rendered SQL, or the tags that may have made it."""
        number = bisect_right(self._lines, start) - 1
        line = self.rendered.sql[self._lines[number] :].partition("\n")[0]
        first = self._starts[self.rendered.lines[number] - 1]
        last = self._end(first)
        near = [tag for tag in self.tags if tag[0] < last and tag[1] > first]
        for at, tag in _aligned(self.source, first, last, near, line, start - self._lines[number]):
            if tag is None and _is_word(self.source, at, word):
                return at, near
            return None, near if tag is None else [tag]
        outside = [hit for hit in _words(self.source, first, last, word) if not _inside(self.tags, hit)]
        is_made = any(True for _ in _in_tags(self.source, near, word))
        return (outside[0] if len(outside) == 1 and not is_made else None), near

    def passed(self, tags: Iterable[tuple[int, int]], start: int, word: str) -> list[int]:
        """Return the places of a word in the texts of tags that are rendered as they are, around a place."""
        found = []
        for hit, (first, last) in _quoted(self.source, tags, word):
            begin = start - (hit - first)
            if begin >= 0 and self.rendered.sql.startswith(self.source[first:last], begin):
                found.append(hit)
        return found

    def _end(self, first: int) -> int:
        """Return the end of a line, or of the line in which a tag ends that began in it."""
        end = self.source.find("\n", first)
        while (over := next((tag for tag in self.tags if tag[0] < end < tag[1]), None)) is not None:
            end = self.source.find("\n", over[1])
        return len(self.source) if end < 0 else end


def _aligned(
    source: str, first: int, last: int, tags: Sequence[tuple[int, int]], line: str, column: int
) -> Iterator[tuple[int, tuple[int, int] | None]]:
    """Yield the place in a template, or the tag, that made a letter of a rendered line; nothing if it isn't known."""
    if len(tags) > MOST_TAGS or any(tag[0] < first for tag in tags):
        return
    ends = [first, *(tag[1] for tag in tags)]
    plain = [source[start:end] for start, end in zip(ends, [*(tag[0] for tag in tags), last], strict=True)]
    found = re.fullmatch("(.*?)".join(f"({re.escape(part)})" for part in plain), line)
    for number in range(len(plain) if found else 0):
        assert found is not None
        if found.start(2 * number + 1) <= column < found.end(2 * number + 1):
            yield ends[number] + column - found.start(2 * number + 1), None
        elif number < len(tags) and found.start(2 * number + 2) <= column < found.end(2 * number + 2):
            yield tags[number][0], tags[number]


def _is_word(text: str, start: int, word: str) -> bool:
    return (
        text.startswith(word, start) and text[start + len(word) : start + len(word) + 1].strip("_").isalnum() is False
    )


def _inside(tags: Iterable[tuple[int, int]], at: int) -> bool:
    return any(start <= at < end for start, end in tags)


def _in_tags(source: str, tags: Iterable[tuple[int, int]], word: str) -> Iterator[int]:
    """Yield the places of a word in the texts in quotes of some tags."""
    return (hit for hit, _ in _quoted(source, tags, word))


def _quoted(source: str, tags: Iterable[tuple[int, int]], word: str) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield the places of a word in the texts in quotes of some tags, each with the beginning and end of the text."""
    for start, end in tags:
        for quoted in TEXT.finditer(source, start, end) if not source.startswith("{#", start) else ():
            inside = quoted.start() + 1, quoted.end() - 1
            yield from ((hit, inside) for hit in _words(source, *inside, word))


def _words(source: str, start: int, end: int, word: str) -> Iterator[int]:
    pattern = re.compile(rf"(?<![\w`]){re.escape(word)}(?![\w`])", re.IGNORECASE)
    return (match.start() for match in pattern.finditer(source, start, end))
