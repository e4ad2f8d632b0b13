"""The order of rows in the new files of a MERGE. Shell: DuckDB and Delta files.

Two orders make later scans cheap. A new partition is in the order of its key's time: later changes are close in time,
so their scans skip the other rows. Without a time, the large files of a large partition are in the order of the key's
first text. Each row group then has few values of it, as a dictionary: it takes half the bytes, and a scan compares each
value once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlrun.engine_api import Merge, Write
from sqlrun.engines.duckdb import scan as duckdb_scan
from sqlrun.transpile.writer import identifier, string

# Minimum number of rows of a partition, and of a file in it, that is written in the order of its key's first text.
LARGE = 2_000_000
LARGE_FILE = 250_000


@dataclass(frozen=True, slots=True)
class RowOrder:
    """The column by which rows are sorted, "" for any order, and the files whose rows are in this order already."""

    column: str = ""
    sorted_files: frozenset[str] = frozenset()

    @property
    def clause(self) -> str:
        """Return the ORDER BY; "" for any order."""
        return f" order by {identifier(self.column, 'duckdb')}" if self.column else ""


def row_order(
    session: Any, write: Write, files: Mapping[str, int | None], staying: int, incoming: int, live: int
) -> RowOrder:
    """Return the order of a partition's new file with the remaining rows of `files` and with inserted rows.

    `files`: their numbers of rows, None if unknown. `staying`, `incoming`: the numbers of remaining and inserted rows.
    `live`: the number of all rows of the partition.
    """
    match write.statement:
        case Merge(key=key):
            types = {c.name: c.type for c in write.table.columns if c.name not in write.table.partition_by}
            times = [name for name in key if types.get(name) in ("timestamp", "timestamp_ntz")]
            # A key of one column has another value in each row.
            texts = [name for name in key if types.get(name) == "string"] if len(key) > 1 else []
            if times:
                return RowOrder(times[0]) if staying <= incoming else RowOrder()
            if not texts or live < LARGE or staying + incoming < LARGE_FILE:
                return RowOrder()
            large = (file for file, rows in files.items() if (rows or 0) >= LARGE_FILE)
            return RowOrder(texts[0], frozenset(file for file in large if _is_sorted(session, file, texts[0])))
        case _:
            return RowOrder()


def _is_sorted(session: Any, file: str, column: str) -> bool:
    """Return whether most row groups of a file begin where the previous one ended, or later."""
    path, name = string(duckdb_scan.pattern(file), "duckdb"), string(column, "duckdb")
    ends = (
        "select stats_min_value as least, lag(stats_max_value) over (order by row_group_id) as before "
        f"from parquet_metadata({path}) where path_in_schema = {name}"
    )
    ((share,),) = session.execute(f"select avg((least >= before)::int) from ({ends})").fetchall()
    return bool(share is not None and share > 1 / 2)
