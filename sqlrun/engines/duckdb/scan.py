"""Rows and changes of sqlrun's own tables as SELECTs over their Parquet files. Shell: DuckDB and Delta files."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import unquote

from sqlrun.engine_api import Relation, StoredColumn
from sqlrun.engines.delta import deletion_vectors, log_entries
from sqlrun.engines.delta import stats as delta_stats
from sqlrun.engines.delta import table as delta_table
from sqlrun.runtime.far_times import FarTime, ordered
from sqlrun.storage.urls import path_of
from sqlrun.transpile.writer import identifier, string, type_name

# Maximum number of microseconds that Delta's statistics cut off a time.
CUT = 999
# Columns of deleted rows: the index of a file, a block of its rows, and the block's bits, 1 for a deleted row.
_INDEX, _BLOCK, _BITS = '"_sqlrun.index"', '"_sqlrun.block"', '"_sqlrun.bits"'
# A block has 65,536 rows: 2 to the power of 16.
_SHIFT, _LAST_BIT = 16, 65_535
GLOB = re.compile(r"[*?\[]")
# Partition values in the log's spelling, by the file's path.
Values = Mapping[str, Mapping[str, str | None]]


@dataclass
class Reads:
    """Files that a statement opens, with their bytes and rows; DuckDB skips more by the files' own statistics."""

    files: int = 0
    bytes: int = 0
    rows: int = 0

    def add(self, files: Iterable[dict[str, Any]]) -> None:
        """Add files, as `files_at` returns them."""
        for file in files:
            self.files += 1
            self.bytes += file["size_bytes"] or 0
            self.rows += file.get("num_records") or 0


@dataclass(frozen=True, slots=True)
class Positions:
    """Rows of some files: the query returns the path `file` and the number `row` of each."""

    files: frozenset[str]
    query: str


NOWHERE = Positions(frozenset(), "")


def names(columns: tuple[StoredColumn, ...]) -> str:
    """Return the quoted names of columns."""
    return ", ".join(identifier(c.name, "duckdb") for c in columns)


def rows(session: Any, relation: Relation, reads: Reads) -> str:
    """Return a SELECT of a table of sqlrun's own at a version."""
    table, files = opened(relation)
    return scan(session, table, files, relation.columns, reads, relation.name, relation.where)


def opened(relation: Relation) -> tuple[Any, list[dict[str, Any]]]:
    """Return a table at a version, and its files that can have a needed row."""
    table = delta_table.open_table(relation.path, relation.version)
    files = delta_table.files_at(table, {column for column, _, _ in relation.ranges})
    return table, list(filter(overlapping(relation.ranges), files)) if relation.ranges else files


def overlapping(ranges: Iterable[tuple[str, Any, Any]]) -> Callable[[dict[str, Any]], bool]:
    """Return a filter: whether a file, by partition or statistics, can have a row in a (column, least, greatest)."""
    found: dict[str, list[tuple[Any, Any]]] = {}
    for column, low, high in ranges:
        found.setdefault(column, []).append((ordered(low), ordered(high)))
    merged = {column: _merged(ends) for column, ends in found.items()}

    def keep(row: dict[str, Any]) -> bool:
        for column, (lows, highs) in merged.items():
            if f"partition.{column}" in row:
                least = greatest = ordered(row[f"partition.{column}"])
            else:
                top = row.get(f"max.{column}")
                least, greatest = ordered(row.get(f"min.{column}")), ordered(top)
                # Statistics cut times to milliseconds: the maximum may be almost one more.
                greatest = greatest + CUT if isinstance(top, datetime | FarTime) else greatest
            if least is None or greatest is None:
                return True
            place = bisect_right(lows, greatest) - 1
            if place >= 0 and least <= highs[place]:
                return True
        return False

    return keep


def _merged(ends: list[tuple[Any, Any]]) -> tuple[list[Any], list[Any]]:
    """Merge overlapping ranges: return the lower ends in order, and the upper end of each.

    >>> _merged([(5, 6), (1, 3), (2, 4)])
    ([1, 5], [4, 6])
    """
    lows: list[Any] = []
    highs: list[Any] = []
    for low, high in sorted(ends):
        if highs and low <= highs[-1]:
            highs[-1] = max(highs[-1], high)
        else:
            lows.append(low)
            highs.append(high)
    return lows, highs


def scan(
    session: Any,
    table: Any,
    rows: list[dict[str, Any]],
    columns: tuple[StoredColumn, ...],
    reads: Reads,
    name: str,
    where: str,
) -> str:
    """Return a SELECT over those of a table's files, as `files_at` returns them, that can contain matching rows.

    `where` may use columns that are not among `columns`.
    """
    reads.add(rows)
    if not rows:
        return empty(columns)
    files = list(by_path(table, rows))
    partition_by, deleted = table.metadata().partition_columns, deletion_vectors.deleted(table)
    values = {file: values_of(row, partition_by) for file, row in zip(files, rows, strict=True)} if partition_by else {}
    # The view may read more columns than it returns, and columns that a file lacks are NULL.
    sources = live(session, files, values, columns, deleted, name, where=where)
    return " union all ".join(f"select {names(columns)} from {source}" for source in sources)


def by_path(table: Any, files: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return files, as `files_at` returns them, by their real paths, which identify their deleted rows."""
    root = path_of(table.table_uri)
    return {f"{root}/{unquote(row['path'])}": row for row in files}


def stored_rows(file: Mapping[str, Any], dead: Collection[Any]) -> int | None:
    """Return the number of rows in a file, as `files_at` returns it, with its deleted ones; None if it is unknown."""
    live: int | None = file.get("num_records")
    return None if live is None else live + len(dead)


def values_of(file: Mapping[str, Any], partition_by: Iterable[str]) -> dict[str, str | None]:
    """Return the partition values of a file, as `files_at` returns it, in the log's spelling."""
    return {name: delta_stats.partition_text(file[f"partition.{name}"]) for name in partition_by}


def live(
    session: Any,
    files: list[str],
    values: Values,
    columns: tuple[StoredColumn, ...],
    deleted: deletion_vectors.Deleted,
    name: str,
    *,
    places: bool = False,
    join: str = "",
    where: str = "",
    without: Positions = NOWHERE,
) -> list[str]:
    """Return the FROM clauses of the live rows `t` of files; those with deleted rows are separate.

    `name`: the session has the deleted rows as `_gone_<name>`. `places`: with the columns of a row's position. `join`:
    a semi join of all rows, before deleted ones are looked up. `where`: a condition. `without`: rows to leave out, too.
    """
    import pyarrow as pa

    whole = [file for file in files if file not in deleted and file not in without.files]
    marked = [file for file in files if file in deleted or file in without.files]
    found = [(f"{parquet(whole, values, columns, places=places)} as t{join}", where)] if whole or not marked else []
    if marked:
        rows = [deleted.get(file, pa.array([], pa.int64())) for file in marked]
        numbers = [pa.repeat(pa.scalar(place, pa.uint64()), len(each)) for place, each in enumerate(rows)]
        gone = pa.table({"file": pa.concat_arrays(numbers), "row": pa.concat_arrays(rows)})
        session.register(f"_gone_{name}", gone)
        bits = _bits(f"select file, row from {identifier(f'_gone_{name}', 'duckdb')}", without, marked)
        block, bit = _block_and_bit("t.file_row_number")
        looked_up = f"{join} left join ({bits}) as g on g.{_INDEX} = t.file_index and g.{_BLOCK} = {block}"
        is_live = f"get_bit(g.{_BITS}, {bit}) is distinct from 1"
        item = f"{parquet(marked, values, columns, places=True)} as t{looked_up}"
        found.append((item, f"{is_live} and ({where})" if where else is_live))
    return [f"{item} where {condition}" if condition else item for item, condition in found]


def _bits(gone: str, without: Positions, files: list[str]) -> str:
    """Return the query of deleted rows as bit strings: one for each file, by its index, and block of rows.

    A bit is looked up faster than a pair of numbers: an anti join with all numbers takes twice as long.
    """
    if not without.files.isdisjoint(files):
        place = f"list_position([{listed(files)}], file)"
        gone += f" union all select cast({place} - 1 as ubigint), row from ({without.query}) where {place} is not null"
    block, bit = _block_and_bit("row")
    return (
        f"select file as {_INDEX}, {block} as {_BLOCK}, bitstring_agg({bit}, 0, {_LAST_BIT}) as {_BITS} "
        f"from ({gone}) group by all"
    )


def _block_and_bit(row: str) -> tuple[str, str]:
    """Return the expressions of a row's block and of its bit in the block, from its number in the file.

    >>> _block_and_bit("row")
    ('row >> 16', 'cast(row & 65535 as integer)')
    """
    return f"{row} >> {_SHIFT}", f"cast({row} & {_LAST_BIT} as integer)"


def listed(files: Iterable[str]) -> str:
    """Return paths as a list of literals."""
    return ", ".join(string(file, "duckdb") for file in files)


def parquet(files: list[str], values: Values, columns: tuple[StoredColumn, ...], *, places: bool = False) -> str:
    """Return read_parquet over files; `values`: the log's values of the columns that files don't store.

    No column comes from a path: a parent folder may look like a partition, and paths may spell values differently.
    `places`: with the columns of a row's position.
    """
    read = f"read_parquet([{', '.join(string(pattern(file), 'duckdb') for file in files)}], hive_partitioning = false)"
    names = list(values[files[0]]) if files and values else []
    if not names:
        return read
    kinds = {c.name: type_name(c.type, "duckdb") for c in columns}
    items = [log_column([values[file][name] for file in files], kinds.get(name, "VARCHAR"), name) for name in names]
    where = ["filename", "file_index", "file_row_number"] if places else []
    # Delta's own MERGE writes partition columns into the files of a table with a change feed: use the log's values.
    stored = f"columns(lambda c: lower(c) not in ({listed(name.lower() for name in names)}))"
    return f"(select {', '.join([stored, *where, *items])} from {read})"


def log_column(texts: list[str | None], kind: str, name: str) -> str:
    """Return the expression of a column that files don't store, by the index of a row's file."""
    literals = ["null" if text is None else string(text, "duckdb") for text in texts]
    one = len(set(literals)) == 1
    value = (
        f"cast({literals[0]} as {kind})"
        if one
        else (f"(cast([{', '.join(literals)}] as {kind}[]))[cast(file_index as bigint) + 1]")
    )
    return f"{value} as {identifier(name, 'duckdb')}"


def pattern(path: str) -> str:
    """Return a path as the pattern that matches only this path.

    >>> pattern("/a[b]/c*.parquet")
    '/a[[]b]/c[*].parquet'
    """
    return GLOB.sub(r"[\g<0>]", path)


def empty(columns: tuple[StoredColumn, ...]) -> str:
    """Return a SELECT without rows."""
    items = ", ".join(f"cast(null as {type_name(c.type, 'duckdb')}) as {identifier(c.name, 'duckdb')}" for c in columns)
    return f"select {items} where false"


CHANGED = "case when _change_type in ('insert', 'update_postimage') then 1 else -1 end"


def changes(session: Any, relation: Relation, reads: Reads) -> str:
    """Return the query of the commits' changes, from the files that each commit names.

    delta-rs' own reader doesn't find change files in folders with escaped names (1.6.6).
    """
    files: dict[str, list[dict[str, Any]]] = {CHANGED: [], "1": [], "-1": []}
    for version in relation.commits:
        changed = delta_table.changed_files(relation.path, version)
        for weight, kind in ((CHANGED, "feed"), ("1", "added"), ("-1", "removed")):
            files[weight].extend(changed[kind])
    if any("deletionVector" in file for found in files.values() for file in found):
        return _fed(session, relation, reads)
    condition = f" where {relation.where}" if relation.where else ""
    pieces = []
    for weight, found in files.items():
        if found:
            reads.files += len(found)
            reads.bytes += sum(file.get("size") or 0 for file in found)
            reads.rows += sum(json.loads(file.get("stats") or "{}").get("numRecords", 0) for file in found)
            paths = [f"{relation.path}/{unquote(file['path'])}" for file in found]
            source = parquet(paths, entered(relation, paths, found), relation.columns)
            items = f'{names(relation.columns)}, cast({weight} as bigint) as "_weight"'
            pieces.append(f"select {items} from {source}{condition}")
    return " union all ".join(pieces) or empty((*relation.columns, StoredColumn("_weight", "bigint")))


def entered(relation: Relation, paths: list[str], entries: list[dict[str, Any]]) -> Values:
    """Return the partition values of log entries; an empty text is NULL (Delta protocol).

    Some writers leave them out of a file's removal: then they come from the entry that added the file.
    """
    newest = max(relation.commits, default=0)
    unknown = {entry["path"] for entry in entries if entry.get("partitionValues") is None}
    additions = log_entries.of_files(relation.path, newest, unknown) if unknown else {}
    values = [additions.get(entry["path"], entry).get("partitionValues") or {} for entry in entries]
    return {path: {name: text or None for name, text in each.items()} for path, each in zip(paths, values, strict=True)}


def _fed(session: Any, relation: Relation, reads: Reads) -> str:
    """Return the change feed read by delta-rs, for files whose deletion vectors decide which rows are live."""
    pieces = []
    condition = f" where {relation.where}" if relation.where else ""
    for number, table in enumerate(delta_table.change_feed(relation.path, relation.commits, None)):
        feed_table = f"_feed_{relation.name}_{number}"
        session.register(feed_table, table)
        reads.files += 1
        reads.bytes += table.nbytes
        reads.rows += table.num_rows
        items = f'{names(relation.columns)}, cast({CHANGED} as bigint) as "_weight"'
        pieces.append(f"select {items} from {identifier(feed_table, 'duckdb')}{condition}")
    return " union all ".join(pieces)
