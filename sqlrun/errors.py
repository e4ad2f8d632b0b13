"""What goes wrong, said once: code, place, what is there, what to do. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A spot in a project file; line and column count from 1, the file is relative to the project."""

    file: str
    line: int = 1
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in a project: a stable code (SR1xx load, 2xx render, 3xx parse, 4xx graph, 5xx incremental).

    `excerpt` is the source line, shown with a caret under `place.column`; empty where there is none.
    `hint` says what exists and what to do.
    """

    code: str
    place: Place
    message: str
    hint: str = ""
    excerpt: str = ""

    def __str__(self) -> str:
        lines = [f"{self.code} {self.place}  {self.message}"]
        if self.excerpt.strip():
            number = str(self.place.line)
            lines.append(f"  {number} | {self.excerpt.rstrip()}")
            lines.append(f"  {' ' * len(number)} | {' ' * (self.place.column - 1)}^")
        if self.hint:
            lines.append(f"  {self.hint}")
        return "\n".join(lines)


class SqlrunError(Exception):
    """Any failure that sqlrun explains itself; `exit_code` is what the command line returns."""

    exit_code = 1


class ProjectError(SqlrunError):
    """The project or the command is wrong: every problem that was found, in file order."""

    exit_code = 2

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda problem: (problem.place, problem.code)))
        super().__init__("\n".join(str(problem) for problem in self.problems))


class UsageError(SqlrunError):
    """The command asks for something that does not exist or makes no sense (exit code 2)."""

    exit_code = 2


class EngineError(SqlrunError):
    """An engine failed: its message, the model and the statement that it was running."""

    def __init__(self, message: str, *, model: str = "", statement: str = "") -> None:
        self.model = model
        self.statement = statement
        super().__init__(message)


class LockedError(SqlrunError):
    """Another build holds the warehouse (exit code 75, as sysexits' EX_TEMPFAIL)."""

    exit_code = 75
