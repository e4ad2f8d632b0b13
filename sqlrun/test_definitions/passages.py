"""Texts inside of a file that are read as rows, with their places; and the columns that the rows must fit. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlrun.errors import Place
from sqlrun.project import Column


@dataclass(frozen=True, slots=True)
class Table:
    """What rows are of: its name as the test says it, and its columns' types; no columns where they aren't known."""

    name: str
    types: Mapping[str, str]

    @classmethod
    def of(cls, name: str, columns: tuple[Column, ...]) -> Table:
        """Take the columns of a contract."""
        return cls(name, {column.name: column.type for column in columns})


@dataclass(frozen=True, slots=True)
class Passage:
    """A text in a file: where its first letter stands, and the lines to show of it."""

    text: str
    place: Place
    exact: bool  # its lines stand below each other in the file, all in from the same column
    lines: tuple[str, ...]

    def at(self, line: int, column: int) -> Place:
        """Find a place of the text, counted from 1, in the file."""
        if not self.exact:
            return self.place
        return Place(self.place.file, self.place.line + line - 1, self.place.column + column - 1)

    def padded(self) -> str:
        """Write the text so that each letter has the line and the column that it has in the file."""
        margin = " " * (self.place.column - 1)
        return "\n" * (self.place.line - 1) + "\n".join(margin + line for line in self.text.split("\n"))
