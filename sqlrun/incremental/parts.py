"""The parts of a statement, and which of them are computed first where it is too long written out. Pure.

Spark's analyzer writes a part out wherever it is read. A part that reads the one before three times makes the
statement three times as long, and a chain of such parts takes Spark hours and all of its memory. A part that is
computed before the statement is a table to it, however often it is read.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

# Name and indented text, each part behind those that it reads.
Parts = tuple[tuple[str, str], ...]
# Rows of a whole table may be many; what has changed, or is touched by a change, mostly is little.
WHOLE = re.compile(r"_(?:old|new)_[0-9]+")
SMALLER = 10
PART = re.compile(r"(\w+) as \(\n(.*?)\n\)(,?)\n", re.DOTALL)
WORD = re.compile(r"\w+")


def joined(parts: Iterable[tuple[str, str]], final: str) -> str:
    """Write a statement of its parts and the SELECT that it ends in."""
    body = ",\n".join(f"{name} as (\n{text}\n)" for name, text in parts)
    return f"with\n{body}\n{final}" if body else final


def split(text: str) -> tuple[Parts, str]:
    r"""Take a statement that `joined` has written into its parts and its last SELECT; any other has no parts.

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
    r"""Count a statement and its parts, each as often as it is read.

    >>> written_out((("a", "select 1"), ("b", "from a union from a"), ("c", "from b, b, a")), "from c")
    9
    """
    reads = _reads(parts, final)
    return _sizes(reads, ())[FINAL]


def first(parts: Parts, final: str, most: int) -> tuple[str, ...]:
    """Choose the parts that are computed before a statement, in order, so that nothing is longer than `most`.

    Each of them is short enough itself, given those before it. Chosen is what shortens the statement most, changes
    rather than whole tables. What no choice shortens stays as it is: it is no longer than its text.
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
    """Leave out the parts that a SELECT reads neither itself nor through others."""
    reads = _reads(parts, final)
    found, waiting = set[str](), [FINAL]
    while waiting:
        new = set(reads[waiting.pop()]) - found
        found |= new
        waiting += new
    return tuple(part for part in parts if part[0] in found)


# What stands for the last SELECT among names of parts.
FINAL = ""


def _reads(parts: Parts, final: str) -> dict[str, list[str]]:
    """List for each part, and the last SELECT, what they read, as often as they do."""
    names = {name for name, _ in parts}
    return {name: [word for word in WORD.findall(text) if word in names] for name, text in (*parts, (FINAL, final))}


def _sizes(reads: Mapping[str, list[str]], chosen: Collection[str]) -> dict[str, int]:
    """Count what each is written out; one that is computed before is a table wherever it is read."""
    sizes: dict[str, int] = {}
    for name, read in reads.items():
        sizes[name] = 1 + sum(1 if other in chosen else sizes[other] for other in read)
    return sizes


def _times(reads: Mapping[str, list[str]], chosen: Collection[str]) -> dict[str, int]:
    """Count how often each part is written out in all statements together."""
    times = dict.fromkeys(reads, 0)
    for name in reversed(list(reads)):
        own = 1 if name == FINAL or name in chosen else times[name]
        for other in reads[name]:
            times[other] += own
    return times
