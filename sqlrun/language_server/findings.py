"""What an editor underlines: problems of a project, and edits that change a strategy. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlrun.errors import Problem
from sqlrun.incremental.stages import ORDER
from sqlrun.language_server.index import Noun
from sqlrun.language_server.positions import span


@dataclass(frozen=True, slots=True)
class Finding:
    """A message about the characters `start` to `end` of a line, which counts from 0. `code` is "" for none."""

    file: str
    line: int
    start: int
    end: int
    level: str  # error | warning | information
    code: str
    message: str


def of_problem(problem: Problem) -> Finding:
    """Return a problem as a finding."""
    place = problem.place
    start, end = span(problem.excerpt, place.column, exact=place.exact)
    if not problem.excerpt:
        start, end = place.column - 1, place.column
    message = f"{problem.message}\n{problem.hint}" if problem.hint else problem.message
    return Finding(place.file, place.line - 1, start, end, "error", problem.code, message)


def all_of(problems: Iterable[Problem], following: int) -> list[Finding]:
    """Return problems as findings; the last one says how many others follow from them."""
    found = [of_problem(problem) for problem in problems]
    if following and found:
        last = found[-1]
        verb = "problem follows" if following == 1 else "problems follow"
        text = f"{last.message}\n{following:,} more {verb} from these. Fix these first."
        found[-1] = Finding(last.file, last.line, last.start, last.end, last.level, last.code, text)
    return found


def turned(before: Mapping[str, Noun], now: Mapping[str, Noun]) -> list[Finding]:
    """Return a finding for each model whose strategy differs from that of the saved text."""
    found = []
    for key, noun in now.items():
        old = before.get(key)
        if old is None or not old.strategy or not noun.strategy or old.strategy == noun.strategy:
            continue
        worse = ORDER.index(noun.strategy) > ORDER.index(old.strategy)
        level = "warning" if worse else "information"
        message = f"this edit turns {old.strategy} into {noun.strategy}: {noun.reason}"
        found.append(Finding(noun.file, 0, 0, 1, level, "", message))
    return found
