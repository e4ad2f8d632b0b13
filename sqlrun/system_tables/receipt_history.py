"""Run stats of past ticks, as far as estimates for the next tick use them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

# Columns of run stats that estimates use.
COLUMNS = ("tick", "table", "strategy", "rows_in", "rows_read")
# Number of past ticks used to estimate the cost of the next one.
LOOK_BACK = 50


class _Row(NamedTuple):
    tick: int
    changed: Any
    read: Any


@dataclass(frozen=True, slots=True)
class Advice:
    """The latest run stats of each table, at most as many as an estimate uses.

    They may contain anything: a corrupt or foreign table gives no advice and causes no error.

    >>> ticks = [{**dict.fromkeys(COLUMNS, 1), "tick": n, "table": "fct", "strategy": "merge"} for n in range(90)]
    >>> advice = NOTHING.and_of(ticks[:89]).and_of(ticks[89:])
    >>> len(advice.reads("fct", "merge")), advice.reads("fct", "merge")[-1], advice.reads("stg", "merge")
    (50, (1, 1), [])
    """

    # By table and strategy, oldest first.
    rows_by_table: Mapping[tuple[str, str], tuple[_Row, ...]]

    def and_of(self, rows: Iterable[Mapping[str, Any]]) -> Advice:
        """Return this advice with the rows of later ticks, which may come in any order."""
        later: dict[tuple[str, str], list[_Row]] = {}
        for row in rows:
            if isinstance(row["tick"], int):
                one = _Row(row["tick"], row["rows_in"], row["rows_read"])
                later.setdefault((str(row["table"]), str(row["strategy"])), []).append(one)
        newest = {
            key: tuple(_sorted((*self.rows_by_table.get(key, ()), *rows))[-LOOK_BACK:]) for key, rows in later.items()
        }
        return Advice({**self.rows_by_table, **newest})

    def reads(self, table: str, strategy: str) -> list[tuple[Any, Any]]:
        """Return pairs of rows read and changed input rows of past ticks for a table and a strategy, latest last."""
        return [(one.read, one.changed) for one in self.rows_by_table.get((table, strategy), ())]


def _sorted(rows: Iterable[_Row]) -> list[_Row]:
    return sorted(rows, key=lambda one: one.tick)


NOTHING = Advice({})
