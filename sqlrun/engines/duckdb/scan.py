"""Relations of a statement as DuckDB views over the tables' Parquet files. Shell: DuckDB and Delta files."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import unquote

from sqlrun.engine_api import Relation, StoredColumn
from sqlrun.engines.delta import deletion_vectors, log_entries
from sqlrun.engines.delta import stats as delta_stats
from sqlrun.engines.delta import table as delta_table
from sqlrun.runtime.far_times import FarTime, ordered
from sqlrun.transpile.writer import identifier, string, type_name

WITH = re.compile(r"\s*with\s+(recursive\s+)?", re.IGNORECASE)
# Microseconds that Delta's statistics may leave out of a time.
CUT = 999
GLOB = re.compile(r"[*?\[]")
# For each file, by its path: its partition's values, in the words of Delta's log.
Values = Mapping[str, Mapping[str, str | None]]


@dataclass
class Reads:
    """What a statement opens: files, their bytes and rows; DuckDB skips more by the files' own statistics."""

    files: int = 0
    bytes: int = 0
    rows: int = 0

    def add(self, files: Iterable[dict[str, Any]]) -> None:
        """Count files, as `files_at` lists them."""
        for file in files:
            self.files += 1
            self.bytes += file["size_bytes"] or 0
            self.rows += file.get("num_records") or 0


def register(session: Any, relations: tuple[Relation, ...], reads: Reads) -> None:
    """Make each relation a temporary view of its name."""
    for relation in relations:
        name = identifier(relation.name, "duckdb")
        session.execute(f"create or replace temp view {name} as {_body(session, relation, reads)}")


def over(session: Any, relations: tuple[Relation, ...], reads: Reads, sql: str) -> str:
    """Write a SELECT over relations in one with them: a view's files are opened when it is made, and again when read.

    A query that gives one of their names to a part of its own gets views.
    """
    if any(_names_a_part(relation.name, sql) for relation in relations):
        register(session, relations, reads)
        return sql
    parts = [
        f"{identifier(relation.name, 'duckdb')} as not materialized ({_body(session, relation, reads)})"
        for relation in relations
    ]
    return with_parts(sql, parts)


def with_parts(sql: str, parts: list[str]) -> str:
    """Put named parts before those that a SELECT has.

    >>> with_parts("with b as (select * from a) select * from b", ["a as (select 1)"])
    'with a as (select 1), b as (select * from a) select * from b'
    >>> with_parts("select * from a", ["a as (select 1)"])
    'with a as (select 1) select * from a'
    """
    if not parts:
        return sql
    begun = WITH.match(sql)
    if begun is None:
        return f"with {', '.join(parts)} {sql}"
    return f"with {begun[1] or ''}{', '.join(parts)}, {sql[begun.end() :]}"


def _names_a_part(name: str, sql: str) -> bool:
    named = rf'(?<![\w"])"?{re.escape(name)}"?\s*(\([^()]*\)\s*)?as\s+(not\s+materialized\s*|materialized\s*)?\('
    return re.search(named, sql, re.IGNORECASE) is not None


def _body(session: Any, relation: Relation, reads: Reads) -> str:
    return (_changes if relation.row_set == "changes" else _rows)(session, relation, reads)


def names(columns: tuple[StoredColumn, ...]) -> str:
    """Quote the names of columns."""
    return ", ".join(identifier(c.name, "duckdb") for c in columns)


def _rows(session: Any, relation: Relation, reads: Reads) -> str:
    table = delta_table.open_table(relation.path, relation.version)
    files = delta_table.files_at(table, {column for column, _, _ in relation.ranges})
    if relation.ranges:
        files = list(filter(overlapping(relation.ranges), files))
    return scan(session, table, files, relation.columns, reads, relation.name, relation.where)


def overlapping(ranges: Iterable[tuple[str, Any, Any]]) -> Callable[[dict[str, Any]], bool]:
    """Return by a file's partition or statistics whether it can hold a row in one of (column, least, greatest)."""
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
                # Statistics of times are cut to milliseconds: the greatest may be almost one more.
                greatest = greatest + CUT if isinstance(top, datetime | FarTime) else greatest
            if least is None or greatest is None:
                return True
            place = bisect_right(lows, greatest) - 1
            if place >= 0 and least <= highs[place]:
                return True
        return False

    return keep


def _merged(ends: list[tuple[Any, Any]]) -> tuple[list[Any], list[Any]]:
    """Put ranges that overlap together: their lower ends in order, and the upper end of each.

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
    """Write a SELECT over those of a table's files that can hold what is asked for, as `files_at` lists them.

    `where` may read columns that are not among `columns`.
    """
    reads.add(rows)
    if not rows:
        return empty(columns)
    condition = f" where {where}" if where else ""
    root = delta_table.local_path(table)
    files = [f"{root}/{unquote(row['path'])}" for row in rows]
    partition_by, gone = table.metadata().partition_columns, deletion_vectors.deleted(table)
    values = {file: values_of(row, partition_by) for file, row in zip(files, rows, strict=True)} if partition_by else {}
    # The view may read more columns than it gives, and what a file lacks is NULL.
    sources = live(session, files, values, columns, gone, name)
    return " union all ".join(f"select {names(columns)} from {source}{condition}" for source in sources)


def values_of(file: Mapping[str, Any], partition_by: Iterable[str]) -> dict[str, str | None]:
    """Return the partition values of a file, as `files_at` lists it, in the words of Delta's log."""
    return {name: delta_stats.partition_text(file[f"partition.{name}"]) for name in partition_by}


def live(
    session: Any,
    files: list[str],
    values: Values,
    columns: tuple[StoredColumn, ...],
    gone: deletion_vectors.Deleted,
    name: str,
    *,
    places: bool = False,
) -> list[str]:
    """Write what follows FROM for the rows of files that count, as `t`; those with deleted rows are apart.

    `name`: the session holds the deleted rows as `_gone_<name>`. `places`: with the columns that tell where a row lies.
    """
    import pyarrow as pa

    whole = [file for file in files if file not in gone]
    marked = [file for file in files if file in gone]
    found = [f"{parquet(whole, values, columns, places=places)} as t"] if whole or not marked else []
    if marked:
        held = identifier(f"_gone_{name}", "duckdb")
        numbers = [pa.repeat(pa.scalar(place, pa.uint64()), len(gone[file])) for place, file in enumerate(marked)]
        rows = pa.concat_arrays([gone[file] for file in marked])
        session.register(f"_gone_{name}", pa.table({"file": pa.concat_arrays(numbers), "row": rows}))
        on = "g.file = t.file_index and g.row = t.file_row_number"
        found.append(f"{parquet(marked, values, columns, places=True)} as t anti join {held} as g on {on}")
    return found


def listed(files: Iterable[str]) -> str:
    """Write paths as a list of texts."""
    return ", ".join(string(file, "duckdb") for file in files)


def parquet(files: list[str], values: Values, columns: tuple[StoredColumn, ...], *, places: bool = False) -> str:
    """Write read_parquet over files; `values` are those of the log for the columns that files don't hold.

    No column comes from a path: a folder above the table may be named like one, and a value may not be spelled in it.
    `places`: with the columns that tell where a row lies.
    """
    read = f"read_parquet([{', '.join(string(pattern(file), 'duckdb') for file in files)}], hive_partitioning = false)"
    names = list(values[files[0]]) if files and values else []
    if not names:
        return read
    kinds = {c.name: type_name(c.type, "duckdb") for c in columns}
    items = [_told([values[file][name] for file in files], kinds.get(name, "VARCHAR"), name) for name in names]
    where = ["filename", "file_index", "file_row_number"] if places else []
    # Delta's own MERGE writes partition columns into the files of a table with a change feed; the log's values count.
    held = f"columns(lambda c: lower(c) not in ({listed(name.lower() for name in names)}))"
    return f"(select {', '.join([held, *where, *items])} from {read})"


def _told(texts: list[str | None], kind: str, name: str) -> str:
    """Write a column that files don't hold, by the number of a row's file."""
    literals = ["null" if text is None else string(text, "duckdb") for text in texts]
    one = len(set(literals)) == 1
    value = (
        f"cast({literals[0]} as {kind})"
        if one
        else (f"(cast([{', '.join(literals)}] as {kind}[]))[cast(file_index as bigint) + 1]")
    )
    return f"{value} as {identifier(name, 'duckdb')}"


def pattern(path: str) -> str:
    """Write a path as the pattern that fits it alone.

    >>> pattern("/a[b]/c*.parquet")
    '/a[[]b]/c[*].parquet'
    """
    return GLOB.sub(r"[\g<0>]", path)


def empty(columns: tuple[StoredColumn, ...]) -> str:
    """Write a SELECT without rows."""
    items = ", ".join(f"cast(null as {type_name(c.type, 'duckdb')}) as {identifier(c.name, 'duckdb')}" for c in columns)
    return f"select {items} where false"


CHANGED = "case when _change_type in ('insert', 'update_postimage') then 1 else -1 end"


def _changes(session: Any, relation: Relation, reads: Reads) -> str:
    """Write the changes of the commits, from the files that each commit names.

    Not by delta-rs' own reader: it doesn't find change files in folders with escaped names (1.6.6).
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
    """Return the partition values of a log's entries; an empty text is NULL (Delta protocol).

    Some writers leave them out where a file goes: then the entry with which it came has them.
    """
    newest = max(relation.commits, default=0)
    untold = {entry["path"] for entry in entries if entry.get("partitionValues") is None}
    came = log_entries.of_files(relation.path, newest, untold) if untold else {}
    told = [came.get(entry["path"], entry).get("partitionValues") or {} for entry in entries]
    return {path: {name: text or None for name, text in each.items()} for path, each in zip(paths, told, strict=True)}


def _fed(session: Any, relation: Relation, reads: Reads) -> str:
    """Read the change feed through delta-rs, where deletion vectors decide which rows of a file count."""
    pieces = []
    condition = f" where {relation.where}" if relation.where else ""
    for number, table in enumerate(delta_table.change_feed(relation.path, relation.commits, None)):
        held = f"_feed_{relation.name}_{number}"
        session.register(held, table)
        reads.files += 1
        reads.bytes += table.nbytes
        reads.rows += table.num_rows
        items = f'{names(relation.columns)}, cast({CHANGED} as bigint) as "_weight"'
        pieces.append(f"select {items} from {identifier(held, 'duckdb')}{condition}")
    return " union all ".join(pieces)
