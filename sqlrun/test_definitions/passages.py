"""Passages of a file that are parsed as rows, with their places, and the columns of these rows. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlrun.errors import Place
from sqlrun.project import Column


@dataclass(frozen=True, slots=True)
class Table:
    """The table that rows belong to: its name in the test, and its columns' types; empty if they aren't known."""

    name: str
    types: Mapping[str, str]

    @classmethod
    def of(cls, name: str, columns: tuple[Column, ...]) -> Table:
        """Return a table with the columns of a contract."""
        return cls(name, {column.name: column.type for column in columns})


@dataclass(frozen=True, slots=True)
class Passage:
    """A text in a file: the place of its first letter, and the file's lines for excerpts."""

    text: str
    place: Place
    exact: bool  # its lines are consecutive lines of the file, all indented to the same column
    lines: tuple[str, ...]

    def at(self, line: int, column: int) -> Place:
        """Return the place in the file of a place in the text; both count from 1."""
        if not self.exact:
            return self.place
        return Place(self.place.file, self.place.line + line - 1, self.place.column + column - 1)

    def padded(self) -> str:
        """Return the text padded so that each letter has its line and column of the file."""
        margin = " " * (self.place.column - 1)
        return "\n" * (self.place.line - 1) + "\n".join(margin + line for line in self.text.split("\n"))
