"""The target's rows that a MERGE joins with its delta `s`. Shell: DuckDB and Delta files.

DuckDB's Parquet reader decodes all columns of a row before a join on texts drops it. So if few rows of many can match
and rows are wide, the keys are read first, then the whole rows at the positions that matched.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from sqlrun.engine_api import Merge, StoredColumn, Write
from sqlrun.engines.delta import deletion_vectors
from sqlrun.engines.delta.merge_sql import same
from sqlrun.engines.duckdb import scan as duckdb_scan
from sqlrun.engines.duckdb.copy import FILE, ROW
from sqlrun.engines.duckdb.scan import listed

# Minimum number of target rows, and of these for each row of the delta, at which keys are read first.
MANY_ROWS = 200_000
FEW_KEYS = 100
# Minimum number of rows of a file that is read alone.
LARGE = 100_000
NESTED = ("array<", "struct<", "map<")


def keys_first(statement: Merge, columns: Iterable[StoredColumn], rows: Iterable[int | None], changed: int) -> bool:
    """Return whether to read the keys before whole rows; `rows`: the number of rows of each file, None if unknown."""
    counts = list(rows)
    if None in counts or not any(c.type.startswith(NESTED) and c.name not in statement.key for c in columns):
        return False
    return sum(count or 0 for count in counts) >= max(MANY_ROWS, FEW_KEYS * changed)


def everything(session: Any, write: Write, values: duckdb_scan.Values, deleted: deletion_vectors.Deleted) -> str:
    """Return the query of all live rows of files, with their positions; `values`: by file, the log's values."""
    columns = write.table.columns
    if not values:
        return f"select *, null::varchar as {FILE}, null::bigint as {ROW} from ({duckdb_scan.empty(columns)})"
    return _rows(columns, duckdb_scan.live(session, list(values), values, columns, deleted, "_target", places=True))


def matched(
    session: Any,
    write: Write,
    statement: Merge,
    values: duckdb_scan.Values,
    deleted: deletion_vectors.Deleted,
    large: Collection[str],
) -> str:
    """Return the query of the live rows that match the delta; it may return a few more of small files.

    `large`: files that are read one by one. A comparison of row numbers alone reaches the Parquet reader, which then
    decodes only these rows. Files that are read together would read each other's row numbers as well.
    """
    columns = write.table.columns
    keys = tuple(column for column in columns if column.name in statement.key)
    sources = duckdb_scan.live(session, list(values), values, columns, deleted, "_target", places=True)
    on = " and ".join(same(statement))
    found = f"select t.{FILE} as file, t.{ROW} as place from ({_rows(keys, sources)}) as t join s on {on}"
    session.execute(f"create or replace temp table _places as {found}").fetchall()
    hit = {file for (file,) in session.execute("select distinct file from _places").fetchall()}
    small = [file for file in values if file in hit and file not in large]
    groups = [*([file] for file in values if file in hit and file in large), *([small] if small else [])]
    pieces = []
    for number, files in enumerate(groups):
        there = {file: values[file] for file in files}
        sources = duckdb_scan.live(session, files, there, columns, deleted, f"_target_{number}", places=True)
        places = f"(select distinct place from _places where file in ({listed(files)}))"
        pieces.append(_rows(columns, sources, f" semi join {places} as p on p.place = t.file_row_number"))
    return " union all ".join(pieces) or everything(session, write, {}, deleted)


def _rows(chosen: tuple[StoredColumn, ...], sources: list[str], near: str = "") -> str:
    items = f"{duckdb_scan.names(chosen)}, filename as {FILE}, file_row_number as {ROW}"
    return " union all ".join(f"select {items} from {source}{near}" for source in sources)
