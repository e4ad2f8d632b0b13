"""What receipts of past ticks advise for the next one, as far as it is asked for. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlrun.plan.engine_cost import Past

# What a row of receipts advises by.
COLUMNS = ("tick", "engine", "table", "strategy", "rows_in", "rows_read", "seconds", "commits")
# So many past ticks say what the next one will cost.
LOOK_BACK = 50
# Older ticks say nothing of what the machine does today.
MOST_PAST = 2_000


class _Told(NamedTuple):
    tick: int
    strategy: str
    changed: Any
    read: Any
    past: Past


@dataclass(frozen=True, slots=True)
class Advice:
    """The newest receipts of each table: as many as a prediction goes by, however many ticks there were.

    They may say anything: a book that was torn, or another tool's, advises nothing, and stops nothing.

    >>> ticks = [{**dict.fromkeys(COLUMNS, 1), "tick": n, "table": "fct", "strategy": "merge"} for n in range(90)]
    >>> advice = NOTHING.and_of(ticks[:89]).and_of(ticks[89:])
    >>> len(advice.past()), advice.reads("fct", "merge")[-1], advice.reads("stg", "merge")
    (50, (1, 1), [])
    """

    # By table, engine, strategy, and whether the tick changed the table; oldest first.
    told: Mapping[tuple[str, str, str, bool], tuple[_Told, ...]]

    def and_of(self, rows: Iterable[Mapping[str, Any]]) -> Advice:
        """Take in rows of later ticks, in any order."""
        came: dict[tuple[str, str, str, bool], list[_Told]] = {}
        for row in rows:
            if not isinstance(row["tick"], int):
                continue
            past = Past(row["engine"], row["table"], row["rows_in"], row["rows_read"], row["seconds"])
            one = _Told(row["tick"], str(row["strategy"]), row["rows_in"], row["rows_read"], past)
            came.setdefault((str(row["table"]), str(row["engine"]), one.strategy, bool(row["commits"])), []).append(one)
        newest = {key: tuple(_sorted((*self.told.get(key, ()), *rows))[-LOOK_BACK:]) for key, rows in came.items()}
        return Advice({**self.told, **newest})

    def reads(self, table: str, strategy: str) -> list[tuple[Any, Any]]:
        """List how many rows past ticks read for how many changed ones of a table's inputs, newest last."""
        mine = (rows for (name, _, how, _), rows in self.told.items() if (name, how) == (table, strategy))
        return [(one.read, one.changed) for one in _sorted(one for rows in mine for one in rows)[-LOOK_BACK:]]

    def past(self) -> tuple[Past, ...]:
        """List what tables took in ticks that changed them, newest last."""
        rows = _sorted(one for (*_, committed), rows in self.told.items() for one in rows if committed)
        newest = max((one.tick for kept in self.told.values() for one in kept), default=0)
        return tuple(one.past for one in rows if one.tick > newest - MOST_PAST)


def _sorted(rows: Iterable[_Told]) -> list[_Told]:
    return sorted(rows, key=lambda one: one.tick)


NOTHING = Advice({})
