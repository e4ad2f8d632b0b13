"""Changes of YAML files that rename a column: of names, and of SQL, conditions and CSV inside of them. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlrun.errors import Place
from sqlrun.graph.sql_words import UnclearError, words_to_rename
from sqlrun.language_server.refusal import RefusedError
from sqlrun.language_server.template_names import Change
from sqlrun.language_server.yaml_names import CONDITION, CSV, FIXTURE, REASONED, SQL, Mention, Mentions, Words
from sqlrun.test_definitions.declared_rows import passage_of

# Plain words of YAML that are no texts.
NO_TEXTS = frozenset(("null", "true", "false", "yes", "no", "on", "off", "y", "n"))


@dataclass(frozen=True, slots=True)
class Wanted:
    """A rename: the tables whose column it is, and of all tables the columns. A CTE's table is `model.cte`."""

    old: str
    new: str
    tables: Collection[str]
    columns: Mapping[str, Collection[str]]


def changes(mentions: Mentions, wanted: Wanted, lines: Sequence[str]) -> Iterator[Change]:
    """Yield the changes of a file with these lines.

    Raises: RefusedError for a name that can't be changed.
    """
    for mention in mentions.names:
        if _is_meant(mention, wanted):
            yield _of_name(mention, wanted, lines)
    for words in mentions.words:
        if words.table in wanted.tables:
            yield from _of_words(mentions, words, wanted, lines)


def _is_meant(mention: Mention, wanted: Wanted) -> bool:
    if mention.column.lower() != wanted.old.lower() or not set(mention.tables) & set(wanted.tables):
        return False
    also = [name for name in mention.tables if wanted.old in wanted.columns.get(name, ()) and name not in wanted.tables]
    if also:
        raise RefusedError(f"{mention.place} names `{wanted.old}` of several tables, also of `{also[0]}`")
    return True


def _of_name(mention: Mention, wanted: Wanted, lines: Sequence[str]) -> Change:
    place = mention.place
    line = lines[place.line - 1][place.column - 1 :] if place.line <= len(lines) else ""
    word = mention.column
    if line[:1] in ("'", '"') and line[1:].startswith(word + line[0]):
        return Change(place.file, place.line, place.column + 1, len(word), wanted.new)
    behind = line[len(word) : len(word) + 1]
    if not line.startswith(word) or behind.isalnum() or behind == "_":
        raise RefusedError(f"{place} names `{word}` in a form that can't be changed. Change it by hand")
    text = f'"{wanted.new}"' if wanted.new.lower() in NO_TEXTS else wanted.new
    return Change(place.file, place.line, place.column, len(word), text)


def _of_words(mentions: Mentions, words: Words, wanted: Wanted, lines: Sequence[str]) -> Iterator[Change]:
    passage = passage_of(mentions.reader, words.place, words.text)
    for start, length in _found(words, wanted):
        line = words.text.count("\n", 0, start) + 1
        place = passage.at(line, start - words.text.rfind("\n", 0, start))
        if not passage.exact:
            place = _in_file(words, lines, start, wanted.old)
        yield Change(place.file, place.line, place.column, length, wanted.new)


def _in_file(words: Words, lines: Sequence[str], start: int, word: str) -> Place:
    """Return the place in a file of a word of a folded text: the file has as many of them before it as the text."""
    pattern = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)", re.IGNORECASE)
    number = sum(1 for match in pattern.finditer(words.text) if match.end() <= start)
    line, column = words.place.line, words.place.column
    while line <= len(lines):
        for match in pattern.finditer(lines[line - 1], column - 1):
            if number == 0:
                return Place(words.place.file, line, match.start() + 1)
            number -= 1
        line, column = line + 1, 1
    return words.place


def is_same(before: Mentions, after: Mentions, wanted: Wanted) -> bool:
    """Return whether a file names the same columns after its changes, but for the new name."""
    names = [(one.tables, wanted.new if _is_meant(one, wanted) else one.column) for one in before.names]
    words = [(one.table, one.kind, _changed(one, wanted)) for one in before.words]
    return names == [(one.tables, one.column) for one in after.names] and words == [
        (one.table, one.kind, one.text) for one in after.words
    ]


def _changed(words: Words, wanted: Wanted) -> str:
    text = words.text
    if words.table in wanted.tables:
        for start, length in sorted(_found(words, wanted), reverse=True):
            text = text[:start] + wanted.new + text[start + length :]
    return text


def of_fixture(file: str, text: str, wanted: Wanted) -> Iterator[Change]:
    """Yield the changes of a file of rows, CSV or SQL."""
    for start, length in _found(Words("", file.rpartition(".")[2], text, Place(file)), wanted):
        column = start - text.rfind("\n", 0, start)
        yield Change(file, text.count("\n", 0, start) + 1, column, length, wanted.new)


def _found(words: Words, wanted: Wanted) -> Iterator[tuple[int, int]]:
    """Yield where a text names a column, and how long the name is there."""
    match words.kind:
        case kind if kind in (SQL, CONDITION):
            try:
                yield from words_to_rename(words.text, wanted.old, wanted.new)
            except UnclearError as error:
                raise RefusedError(f"the SQL at {words.place} {error}") from error
        case kind if kind == CSV:
            start = 0
            header = words.text.lstrip("\r\n").partition("\n")[0].rstrip("\r")
            before = len(words.text) - len(words.text.lstrip("\r\n"))
            for field in header.split(","):
                name = field.strip().strip('"')
                if name.lower() == wanted.old.lower():
                    yield before + start + field.index(name), len(name)
                start += len(field) + 1
        case kind if kind == REASONED and words.text.startswith(f"{wanted.old}: "):
            yield 0, len(wanted.old)
        case kind if kind in (REASONED, FIXTURE):
            return
