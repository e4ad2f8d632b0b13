"""What a MERGE found out about a table's keys, for readers of the version that it made. Shell: threads.

A MERGE has looked up each changed key in the table. Of the rows with such a key, the new version has those in the files
that the MERGE added, and the matched rows that it left unchanged. So a reader need not look the keys up again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlrun.engines.delta import table_facts

if TYPE_CHECKING:
    from deltalake import DeltaTable

FACT = "merged rows"


@dataclass(frozen=True, slots=True)
class MergedRows:
    """The key of a MERGE, the log's paths of the files before it, and the positions of unchanged rows by file."""

    key: tuple[str, ...]
    before: frozenset[str]
    unchanged: Mapping[str, list[int]]


def keep(table: DeltaTable, version: int, found: MergedRows) -> None:
    """Cache what the MERGE that made a version of an open table found out."""
    table_facts.note(table, version, FACT, found)


def of(table: DeltaTable) -> MergedRows | None:
    """Return what the MERGE that made the version of an open table found out; None if it isn't known."""
    return table_facts.once(table, FACT, lambda: None)


def hand_on(table: DeltaTable, other: DeltaTable) -> None:
    """Copy the cached fact, if any, to another object of the same table and version."""
    table_facts.handed_on(table, other, FACT)
