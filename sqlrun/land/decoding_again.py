"""Decode quarantined values again, for a replay: their schema may be registered now. Shell: the registry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlrun.engine_api import Dialect, Engine, Relation
from sqlrun.incremental.landing import query as landing_query
from sqlrun.land import quarantine_query
from sqlrun.source_api import SourceReader
from sqlrun.sources import factory
from sqlrun.sources.message_values import UNDECODED
from sqlrun.transpile.writer import string

# Limits of the lines of one statement, which has their texts as literals.
MOST_LINES, MOST_CHARACTERS = 1_000, 4_000_000


@dataclass(frozen=True, slots=True)
class Again:
    """A line that was decoded again: its id in the quarantine, its text now, and its fault, if it still has one."""

    id: str
    text: str
    fault: str | None

    def row(self, dialect: Dialect) -> str:
        """Return the line as a row of SQL's VALUES."""
        fault = "cast(null as string)" if dialect == "spark" else "cast(null as varchar)"
        if self.fault is not None:
            fault = string(self.fault, dialect)
        return f"({string(self.id, dialect)}, {string(self.text, dialect)}, {fault})"


def lines(
    reader: Engine, source: SourceReader, held: Relation, book: Relation, events: Sequence[str]
) -> Iterator[list[Again]]:
    """Yield the requested lines that have another text or another fault than before, some for each statement.

    Raises: EngineError if the registry doesn't answer.
    """
    decode = factory.decoder_of_quarantined(source)
    if decode is None:
        return
    listed = ", ".join(string(event, "duckdb") for event in events)
    raw, reason = landing_query.RAW, landing_query.REASON
    sql = (
        f"select {quarantine_query.id_of('duckdb')} as id, min({raw}) as raw, min({reason}) as reason from held "
        f"where starts_with({raw}, '{UNDECODED}') group by 1 "
        f"having id in (select id from book where kind = '{quarantine_query.REPLAY}' and event in ({listed})) "
        "order by 1"
    )
    found = reader.query(sql, (held, book)).to_pylist()
    texts, faults = decode([row["raw"] for row in found])
    some, size = list[Again](), 0
    for row, text, fault in zip(found, texts, faults, strict=True):
        if fault == row["reason"]:
            continue
        some.append(Again(row["id"], text, fault))
        size += len(text)
        if len(some) == MOST_LINES or size > MOST_CHARACTERS:
            yield some
            some, size = [], 0
    if some:
        yield some
