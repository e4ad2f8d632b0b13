"""Errors: code, place, what is wrong, how to fix it. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field

# Maximum lengths: a longer line is cut around the place, a longer message at its end, since a file may be one line.
WIDEST_LINE = 110
LONGEST_MESSAGE = 600
# delta-rs prints the causes of an error below it, one line each, behind a colored arrow.
_FROM = re.compile(r"\s*\n\s*(?:\x1b\[\d*m)*↳(?:\x1b\[\d*m)*\s*")


def first_line(error: Exception) -> str:
    r"""Return an error's first line with its causes; its type if it has no text.

    >>> first_line(OSError("Generic error\n  \x1b[31m↳\x1b[0m No space left\n"))
    'Generic error: No space left'
    """
    text = _FROM.sub(": ", str(error).strip())
    return text.partition("\n")[0].removesuffix("\r") or type(error).__name__


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A place in a project file; line and column count from 1, the file is relative to the project.

    If not `exact`, the line is right but the column isn't known.
    """

    file: str
    line: int = 1
    column: int = 1
    exact: bool = field(default=True, compare=False)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in a project, with a stable code (SR1xx load, 2xx render, 3xx parse, 4xx graph, 5xx incremental).

    `excerpt` is the source line, shown with carets under the word at `place.column`; "" if there is none. `hint` says
    what exists and how to fix it.
    """

    code: str
    place: Place
    message: str
    hint: str = ""
    excerpt: str = ""

    def __str__(self) -> str:
        file = f"{self.place}" if self.place.file.isprintable() else repr(str(self.place))
        # A name with a line end would print a line of its own.
        lines = [f"{self.code} {file}  {_cut(self.message)}".replace("\n", "\\n")]
        if self.excerpt.strip():
            number = str(self.place.line)
            text, marks = drawn(self.excerpt.rstrip(), self.place.column)
            lines.append(f"  {number} | {text}")
            if self.place.exact:
                lines.append(f"  {' ' * len(number)} | {marks}")
        if self.hint:
            lines.append(f"  {_cut(self.hint)}")
        return "\n".join(lines)


def drawn(line: str, column: int) -> tuple[str, str]:
    """Return a source line and the carets under the word that begins at a column, for letters of any width.

    A tab becomes four blanks, invisible characters become escapes, and a long line is cut around the place.

    >>> drawn("select prize", 8)
    ('select prize', '       ^^^^^')
    >>> drawn("\\tid", 2)
    ('    id', '    ^^')
    """
    start = column - 1
    found = re.compile(r"\w+|`[^`]*`|.", re.DOTALL).match(line, start)
    end = max(found.end() if found else 0, start + 1)
    shown = [_seen(letter) for letter in line]
    first, last = 0, len(line)
    if sum(map(_width, shown)) > WIDEST_LINE:
        first = max(0, min(start - WIDEST_LINE // 2, len(line) - WIDEST_LINE))
        last, end = first + WIDEST_LINE, min(end, first + WIDEST_LINE)
    before, behind = "…" if first else "", "…" if last < len(line) else ""
    indent = len(before) + sum(map(_width, shown[first:start]))
    marks = "^" * max(1, sum(map(_width, shown[start:end])))
    return before + "".join(shown[first:last]) + behind, " " * indent + marks


def _seen(letter: str) -> str:
    if letter == "\t":
        return "    "
    return letter if letter.isprintable() or unicodedata.combining(letter) else repr(letter)[1:-1]


def _width(letters: str) -> int:
    """Return the number of terminal columns that letters take."""
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in letters
    )


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_MESSAGE else f"{text[:LONGEST_MESSAGE]}…"


class SqlrunError(Exception):
    """A failure with an explanation from sqlrun; `exit_code` is what the command line returns."""

    exit_code = 1


class ProjectError(SqlrunError):
    """The project or the command is wrong: all problems, in file order.

    `following` counts the problems that were left out because they only follow from these.
    """

    exit_code = 2

    def __init__(self, problems: Iterable[Problem], following: int = 0) -> None:
        self.problems = tuple(sorted(problems, key=lambda problem: (problem.place, problem.code)))
        self.following = following
        super().__init__("\n".join([*map(str, self.problems), *self.ending(self.problems)]))

    def ending(self, shown: Iterable[Problem]) -> list[str]:
        """Return the lines after the problems that are shown: what follows from them, and where to read more."""
        lines = []
        if self.following:
            verb = "problem follows" if self.following == 1 else "problems follow"
            lines.append(f"{self.following:,} more {verb} from these. Fix these first.")
        codes = " ".join(sorted({problem.code for problem in shown}))
        return [*lines, f"more: sqlrun error {codes}"] if codes else lines


class UsageError(SqlrunError):
    """The command names something that doesn't exist or makes no sense (exit code 2)."""

    exit_code = 2


class EngineError(SqlrunError):
    """An engine failed: its message, the model and the statement that it was running."""

    def __init__(self, message: str, *, model: str = "", statement: str = "") -> None:
        self.model = model
        self.statement = statement
        super().__init__(message)


class DataError(EngineError):
    """An expression of a model fails on a value of a row (SR533).

    `reason` is the engine's message, `expression` the expression in Spark SQL with the columns of the compiled
    statement; "" if the engine doesn't say which one it is.
    """

    def __init__(self, reason: str, expression: str = "", *, model: str = "", statement: str = "") -> None:
        self.reason = reason
        self.expression = expression
        where = f" in {_cut(expression)}" if expression else ""
        super().__init__(f"SR533 {reason}{where}", model=model, statement=statement)


class SourceError(EngineError):
    """A source can't be read, or has lost lines; its lines stay where they are, and a later tick may land them."""


class UnsuitedError(EngineError):
    """An engine can't do this and has written nothing; another engine may be able to."""


class LockedError(SqlrunError):
    """Another build has the lock of the warehouse (exit code 75, as sysexits' EX_TEMPFAIL)."""

    exit_code = 75
