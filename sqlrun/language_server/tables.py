"""The tables, aliases and CTEs of a text that is being typed, as far as they can be seen without a parser. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sqlrun.language_server.index import Index, Known
from sqlrun.project import NOWHERE

CALL = re.compile(
    r"\{\{-?\s*(?:ref\(\s*['\"](?P<ref>\w+)['\"]\s*\)"
    r"|source\(\s*['\"](?P<group>\w+)['\"]\s*,\s*['\"](?P<table>\w+)['\"]\s*\))\s*-?\}\}"
)
# Words behind a table that aren't its alias.
_WORDS = frozenset({
    "where", "join", "left", "right", "inner", "full", "cross", "on", "using", "group", "order", "having", "qualify",
    "limit", "union", "except", "intersect", "lateral", "window", "select", "semi", "anti", "natural",
})  # fmt: skip
_READ = re.compile(r"\b(?:from|join)\s+(?P<name>[\w.`]+)(?:\s+(?:as\s+)?(?P<alias>\w+))?", re.IGNORECASE)
_CTE = re.compile(r"(?:\bwith|,)\s*(?P<name>\w+)\s+as\s*\(", re.IGNORECASE)
# What hides text from the search: comments and texts in quotes.
_HIDDEN = re.compile(
    r"--[^\n]*|/\*.*?(?:\*/|\Z)|'(?:[^'\\\n]|\\.)*'?|\"(?:[^\"\\\n]|\\.)*\"?|\{#.*?(?:#\}|\Z)", re.DOTALL
)
MOST = 1_000_000


@dataclass(frozen=True, slots=True)
class Part:
    """A CTE of the text, or the query after them: where it is, its masked text, and what it reads by alias."""

    name: str
    start: int
    end: int
    body: str
    reads: tuple[tuple[str, str], ...]


def masked(text: str) -> str:
    """Return the text with each call of ref() and source() as one word, and without comments and quotes.

    All places stay the same. The word is `ref.name`, or `group.name` for a source.
    """

    def word(found: re.Match[str]) -> str:
        key = f"ref.{found['ref']}" if found["ref"] else f"{found['group']}.{found['table']}"
        return key.ljust(len(found[0]))

    return _HIDDEN.sub(lambda found: " " * len(found[0]), CALL.sub(word, text))


def parts(text: str) -> list[Part]:
    """Return the CTEs of a text and its last query, which has the name ""."""
    if len(text) > MOST:
        return []
    plain = masked(text)
    found: list[Part] = []
    last = 0
    for cte in _CTE.finditer(plain):
        if cte.start() < last:
            continue
        last = _closing(plain, cte.end())
        found.append(_part(cte["name"], plain, cte.end(), last))
    return [*found, _part("", plain, last, len(text))]


def _part(name: str, plain: str, start: int, end: int) -> Part:
    body = plain[start:end]
    return Part(name, start, end, body, tuple(_reads(body)))


def _closing(text: str, start: int) -> int:
    depth = 1
    for bracket in re.compile(r"[()]").finditer(text, start):
        depth += 1 if bracket[0] == "(" else -1
        if not depth:
            return bracket.start()
    return len(text)


def _reads(text: str) -> Iterator[tuple[str, str]]:
    for found in _READ.finditer(text):
        name, alias = found["name"].strip("`"), found["alias"] or ""
        yield (alias if alias.lower() not in _WORDS and alias else name.rpartition(".")[2]), name


def aliases(text: str, offset: int, index: Index) -> dict[str, tuple[Known, ...]]:
    """Return the columns of each table that the query around a place reads, by its alias; CTEs included."""
    found = parts(text)
    here = next((part for part in found if part.start <= offset <= part.end), None)
    ctes = {part.name: part for part in found if part.name}
    if here is None:
        return {}
    return {alias: _columns(name, ctes, index, frozenset()) for alias, name in here.reads}


def made(text: str, index: Index) -> frozenset[str]:
    """Return the names of all columns of the CTEs of a text."""
    ctes = {part.name: part for part in parts(text) if part.name}
    return frozenset(column.name for name in ctes for column in _columns(name, ctes, index, frozenset()))


def _columns(name: str, ctes: dict[str, Part], index: Index, seen: frozenset[str]) -> tuple[Known, ...]:
    noun = index.nouns.get(name.removeprefix("ref."))
    if name not in ctes:
        return noun.columns if noun else ()
    if name in seen:
        return ()
    part = ctes[name]
    inner = {alias: _columns(read, ctes, index, seen | {name}) for alias, read in part.reads}
    listed = re.search(r"\bselect\b(?:\s+distinct\b)?(.*?)(?:\bfrom\b|\Z)", part.body, re.IGNORECASE | re.DOTALL)
    made: dict[str, Known] = {}
    for item in _items(listed[1]) if listed else ():
        star = re.fullmatch(r"(?:(\w+)\.)?\*", item)
        if star:
            sources = [inner.get(star[1], ())] if star[1] else list(inner.values())
            made |= {column.name: column for columns in sources for column in columns}
        elif word := re.search(r"(\w+)`?$", item):
            same = [column for columns in inner.values() for column in columns if column.name == word[1]]
            bare = re.fullmatch(r"(?:\w+\.)?\w+", item)
            made[word[1]] = same[0] if same and bare else Known(word[1], "", True, "", "", NOWHERE)
    return tuple(made.values())


def _items(text: str) -> Iterator[str]:
    depth, start = 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and not depth:
            yield text[start:at].strip()
            start = at + 1
    if text[start:].strip():
        yield text[start:].strip()
