"""What receipts of past ticks advise for the next one, as far as it is asked for. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

# What a row of receipts advises by.
COLUMNS = ("tick", "table", "strategy", "rows_in", "rows_read")
# So many past ticks say what the next one will cost.
LOOK_BACK = 50


class _Told(NamedTuple):
    tick: int
    changed: Any
    read: Any


@dataclass(frozen=True, slots=True)
class Advice:
    """The newest receipts of each table: as many as an estimate goes by, however many ticks there were.

    They may say anything: a book that was torn, or another tool's, advises nothing, and stops nothing.

    >>> ticks = [{**dict.fromkeys(COLUMNS, 1), "tick": n, "table": "fct", "strategy": "merge"} for n in range(90)]
    >>> advice = NOTHING.and_of(ticks[:89]).and_of(ticks[89:])
    >>> len(advice.reads("fct", "merge")), advice.reads("fct", "merge")[-1], advice.reads("stg", "merge")
    (50, (1, 1), [])
    """

    # By table and strategy; oldest first.
    told: Mapping[tuple[str, str], tuple[_Told, ...]]

    def and_of(self, rows: Iterable[Mapping[str, Any]]) -> Advice:
        """Take in rows of later ticks, in any order."""
        came: dict[tuple[str, str], list[_Told]] = {}
        for row in rows:
            if isinstance(row["tick"], int):
                one = _Told(row["tick"], row["rows_in"], row["rows_read"])
                came.setdefault((str(row["table"]), str(row["strategy"])), []).append(one)
        newest = {key: tuple(_sorted((*self.told.get(key, ()), *rows))[-LOOK_BACK:]) for key, rows in came.items()}
        return Advice({**self.told, **newest})

    def reads(self, table: str, strategy: str) -> list[tuple[Any, Any]]:
        """List how many rows past ticks read for how many changed ones of a table's inputs, newest last."""
        return [(one.read, one.changed) for one in self.told.get((table, strategy), ())]


def _sorted(rows: Iterable[_Told]) -> list[_Told]:
    return sorted(rows, key=lambda one: one.tick)


NOTHING = Advice({})
