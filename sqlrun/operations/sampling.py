"""A share of a table's keys, the same in the table and in its query. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlrun.engine_api import Dialect, StoredColumn
from sqlrun.maintain import row_hash

PARTS = 1_000_000


@dataclass(frozen=True, slots=True)
class Sample:
    """Which keys are looked at: so many of 100, other ones for another seed."""

    percent: float
    seed: int

    def condition(self, keys: Iterable[StoredColumn], dialect: Dialect) -> str:
        """Write the condition that a row's key is among them.

        >>> Sample(5, 7).condition([StoredColumn("n", "bigint")], "duckdb")[-19:]
        ' % 1000000 < 50000)'
        """
        number = row_hash.number(keys, dialect, f"{self.seed}:")
        return f"({number} % {PARTS} < {round(self.percent / 100 * PARTS)})"
