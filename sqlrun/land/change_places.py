"""Which change event of a database a row came from, by the columns that the project declares about changes. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlrun.engine_api import StoredColumn
from sqlrun.incremental.landing import query as landing_query
from sqlrun.incremental.landing.shape import renamed
from sqlrun.incremental.stages import Stage
from sqlrun.project import Source
from sqlrun.transpile.writer import identifier, string

# In the order by which changes are compared.
PARTS = ("position", "committed_at", "transaction")
# Kinds of changes whose events have no fields but the key: they say nothing about the others.
KEYS_ALONE = ("d", "t")
LINE = f"try_cast(try_cast({landing_query.RAW} as json) as map(varchar, json))"


@dataclass(frozen=True, slots=True)
class First:
    """The first change event with a difference; a part is "" if no column has it."""

    position: str = ""
    committed_at: str = ""
    transaction: str = ""

    def __str__(self) -> str:
        """Return the words for it.

        >>> str(First("164/2", "2026-11-24 06:36:58", "9")), str(First("164/2"))
        ('the transaction 9 of 2026-11-24 06:36:58 UTC, position 164/2', 'the change, position 164/2')
        """
        what = f"the transaction {self.transaction}" if self.transaction else "the change"
        at = f" of {self.committed_at} UTC" if self.committed_at else ""
        return f"{what}{at}{f', position {self.position}' if self.position else ''}"


@dataclass(frozen=True, slots=True)
class Places:
    """What a landing table has about the change events of its rows: DuckDB expressions over it.

    `declared`: names of the source's columns by what they describe; `landed`: the columns of the table that have them.
    Both are empty for a source of anything else.
    """

    declared: Mapping[str, str] = field(default_factory=dict)
    landed: Mapping[str, StoredColumn] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[StoredColumn, ...]:
        """Return the columns of the table that the expressions read, without the hidden ones."""
        return tuple(self.landed.values())

    @property
    def are_ordered(self) -> bool:
        """Return whether each landed row has its position."""
        return "position" in self.landed

    def value(self, part: str) -> str:
        """Return the expression of a part as a text; NULL if it isn't known.

        A quarantined row may have its values in the line alone.
        """
        found = []
        if part in self.landed:
            found.append(_text(part, identifier(self.landed[part].name, "duckdb")))
        if part in self.declared:
            found.append(_text(part, f"{LINE}[{string(self.declared[part], 'duckdb')}] ->> '$'"))
        return f"coalesce({', '.join(found)})" if found else "cast(null as varchar)"

    def row(self) -> str:
        """Return the expression of a row's change event, which `found` reads; NULL if nothing is known."""
        known = any(part in self.landed or part in self.declared for part in PARTS)
        parts = f"{{{', '.join(f'{part!r}: {self.value(part)}' for part in PARTS)}}}"
        return parts if known else "cast(null as varchar)"

    def has_fields(self) -> str:
        """Return the condition that an event has the fields of its row."""
        kinds = ", ".join(string(kind, "duckdb") for kind in KEYS_ALONE)
        return f"coalesce({self.value('op')} not in ({kinds}), true)"


NONE = Places()


def of(source: Source, stage: Stage) -> Places:
    """Return what the landing table of a source has about changes."""
    if source.changes is None:
        return NONE
    declared = {c.comes_from: c.name for c in source.columns if c.comes_from in ("op", "snapshot", *PARTS)}
    columns = {column.name: column for column in stage.public}
    names = {own: name for name, own in (renamed(stage.node) if stage.node is not None else {}).items()}
    landed = {part: columns[names[own]] for part, own in declared.items() if names.get(own) in columns}
    return Places(declared, landed)


def found(parts: Mapping[str, Any] | None) -> First | None:
    """Return the first change event of a group; None if nothing is known about it."""
    texts = {part: str(value) for part, value in (parts or {}).items() if value is not None}
    return First(**texts) if texts else None


def earliest(firsts: list[First | None]) -> First | None:
    """Return the first of several change events.

    >>> earliest([None, First("2"), First("1", "", "7")])
    First(position='1', committed_at='', transaction='7')
    """
    known = [first for first in firsts if first is not None]
    return min(known, key=lambda first: (first.position, first.committed_at), default=None)


def _text(part: str, value: str) -> str:
    if part != "committed_at":
        return f"cast({value} as varchar)"
    return f"strftime(try_cast({value} as timestamptz), '%Y-%m-%d %H:%M:%S')"
