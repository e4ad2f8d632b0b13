"""The parts of a statement, and which of them to compute first if the statement is too long expanded. Pure.

Spark's analyzer expands a part wherever it is read. A part that reads the previous one three times makes the statement
three times as long, and a chain of such parts takes Spark hours and all of its memory. A part that is computed before
the statement is a table, however often it is read.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

# (name, indented text), each part after the parts that it reads.
Parts = tuple[tuple[str, str], ...]
# Parts with rows of a whole table may be large; changes and affected rows are mostly small.
WHOLE = re.compile(r"_(?:old|new)_[0-9]+")
SMALLER = 10
PART = re.compile(r"(\w+) as \(\n(.*?)\n\)(,?)\n", re.DOTALL)
WORD = re.compile(r"\w+")


def joined(parts: Iterable[tuple[str, str]], final: str) -> str:
    """Return a statement of its parts and its last SELECT."""
    body = ",\n".join(f"{name} as (\n{text}\n)" for name, text in parts)
    return f"with\n{body}\n{final}" if body else final


def split(text: str) -> tuple[Parts, str]:
    r"""Split a statement that `joined` has written into its parts and its last SELECT; any other has no parts.

    >>> split("with\na as (\n    select 1\n),\nb as (\n    from a\n)\nselect * from b")
    ((('a', '    select 1'), ('b', '    from a')), 'select * from b')
    >>> split("with a as (select 1) select * from a")
    ((), 'with a as (select 1) select * from a')
    """
    parts: list[tuple[str, str]] = []
    place = len("with\n")
    found = PART.match(text, place) if text.startswith("with\n") else None
    while found is not None:
        parts.append((found[1], found[2]))
        place = found.end()
        if not found[3]:
            return tuple(parts), text[place:]
        found = PART.match(text, place)
    return (), text


def written_out(parts: Parts, final: str) -> int:
    r"""Return the number of parts, the last SELECT included, in the expanded statement.

    >>> written_out((("a", "select 1"), ("b", "from a union from a"), ("c", "from b, b, a")), "from c")
    9
    """
    reads = _reads(parts, final)
    return _sizes(reads, ())[FINAL]


def first(parts: Parts, final: str, most: int) -> tuple[str, ...]:
    """Return the parts to compute before a statement, in order, so that no expanded text has more than `most` parts.

    Each of them is short enough itself, given those before it. The choice is greedy: the part that shortens the
    statement most, with changes preferred to whole tables. A statement that no choice shortens stays as it is.
    """
    reads, chosen = _reads(parts, final), set[str]()
    while True:
        sizes = _sizes(reads, chosen)
        if sizes[FINAL] <= most:
            break
        times = _times(reads, chosen)
        saved = {
            name: (times[name] - 1) * (sizes[name] - 1) * (1 if WHOLE.fullmatch(name) else SMALLER)
            for name, _ in parts
            if name not in chosen and sizes[name] <= most
        }
        best = max(saved, key=lambda name: saved[name], default=FINAL)
        if not saved.get(best):
            break
        chosen.add(best)
    return tuple(name for name, _ in parts if name in chosen)


def needed(parts: Parts, final: str) -> Parts:
    """Return the parts that a SELECT reads, directly or through others."""
    reads = _reads(parts, final)
    found, waiting = set[str](), [FINAL]
    while waiting:
        new = set(reads[waiting.pop()]) - found
        found |= new
        waiting += new
    return tuple(part for part in parts if part[0] in found)


# Stands for the last SELECT among the names of parts.
FINAL = ""


def _reads(parts: Parts, final: str) -> dict[str, list[str]]:
    """Return for each part and the last SELECT the names that it reads, with repetitions."""
    names = {name for name, _ in parts}
    return {name: [word for word in WORD.findall(text) if word in names] for name, text in (*parts, (FINAL, final))}


def _sizes(reads: Mapping[str, list[str]], chosen: Collection[str]) -> dict[str, int]:
    """Return the expanded size of each part; a part that is computed before counts as one table."""
    sizes: dict[str, int] = {}
    for name, read in reads.items():
        sizes[name] = 1 + sum(1 if other in chosen else sizes[other] for other in read)
    return sizes


def _times(reads: Mapping[str, list[str]], chosen: Collection[str]) -> dict[str, int]:
    """Return how often each part occurs in all expanded statements together."""
    times = dict.fromkeys(reads, 0)
    for name in reversed(list(reads)):
        own = 1 if name == FINAL or name in chosen else times[name]
        for other in reads[name]:
            times[other] += own
    return times
