"""Stored rows that share a key with a table of the session. Shell: DuckDB and Delta files.

DuckDB's Parquet reader decodes whole rows before a join on several columns drops them. Two ways decode less:

- A join on one column reaches the reader. So the column whose values match the fewest rows is compared first.
- A comparison of row numbers reaches it, too. If rows are wide and few of many can match, the keys are read first, then
  the whole rows at the positions that matched.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from sqlrun.engine_api import Relation, StoredColumn
from sqlrun.engines.delta import deletion_vectors, merged_rows
from sqlrun.engines.delta.merge_sql import equal
from sqlrun.engines.duckdb import scan as duckdb_scan
from sqlrun.engines.duckdb.copy import FILE, ROW
from sqlrun.engines.duckdb.scan import listed
from sqlrun.transpile.writer import identifier

# Minimum number of stored rows, and of these for each row with a key, at which keys are read first.
MANY_ROWS = 200_000
FEW_KEYS = 100
# Minimum number of rows of a file that is read alone.
LARGE = 100_000
NESTED = ("array<", "struct<", "map<")
# Minimum number of stored rows, and of these for each row with a key, at which one column is compared first.
SAMPLE_FROM = 1_000_000
FEW_COMPARED = 10
# The column is chosen by a few rows of the largest files, half way through each. At most this share of them may match;
# of a text fewer, because decoding it is most of the cost.
SAMPLED_FILES, SAMPLED_ROWS = 4, 4_096
MOST_SHARE, MOST_OF_TEXT = 0.5, 0.1
_POSITION = f"filename as {FILE}, file_row_number as {ROW}"


@dataclass(frozen=True, slots=True)
class Keys:
    """A table `s` of the session with `count` rows, and the columns by which it is compared with stored rows `t`.

    `null_safe`: columns that match NULL with NULL. `few_rows`: few stored rows are expected to match.
    """

    names: tuple[str, ...]
    null_safe: tuple[str, ...]
    count: int
    table: str = "s"
    few_rows: bool = False

    @property
    def on(self) -> str:
        """Return the comparison of all columns."""
        return " and ".join(equal(self.names, self.null_safe))


@dataclass(frozen=True, slots=True)
class Stored:
    """Files of a table, with their numbers of rows (None: unknown) and the log's values of columns that they lack.

    `deleted`: the deleted rows of files; the session has them by `name`.
    """

    columns: tuple[StoredColumn, ...]
    rows: Mapping[str, int | None]
    values: duckdb_scan.Values
    deleted: deletion_vectors.Deleted
    name: str

    @property
    def count(self) -> int | None:
        """Return the number of rows; None if that of a file is unknown."""
        counts = list(self.rows.values())
        return None if None in counts else sum(count or 0 for count in counts)


def keys_first(keys: Keys, stored: Stored) -> bool:
    """Return whether to read the keys before whole rows."""
    if not any(c.type.startswith(NESTED) and c.name not in keys.names for c in stored.columns):
        return False
    return (stored.count or 0) >= max(MANY_ROWS, 0 if keys.few_rows else FEW_KEYS * keys.count)


def of_relation(session: Any, relation: Relation, reads: duckdb_scan.Reads) -> str:
    """Return a SELECT of a relation with `given_keys`."""
    table, files = duckdb_scan.opened(relation)
    given, where = relation.given_keys, relation.where
    merged = merged_rows.of(table) if given.commits == (relation.version,) else None
    if merged is not None and set(merged.key) == set(given.columns):
        found = duckdb_scan.by_path(table, files).items()
        added = {file for file, row in found if row["path"] not in merged.before}
        stored = _stored(
            table, relation, [row for file, row in found if file in added or file in merged.unchanged], reads
        )
        return _of_merge(session, stored, added, merged.unchanged, where)
    name = identifier(given.table, "duckdb")
    ((count,),) = session.execute(f"select count(*) from {name}").fetchall()
    keys = Keys(given.columns, (), count, name, given.few_rows)
    stored = _stored(table, relation, files, reads)
    return matching(session, keys, stored, duckdb_scan.names(relation.columns), where)


def _stored(table: Any, relation: Relation, files: list[dict[str, Any]], reads: duckdb_scan.Reads) -> Stored:
    reads.add(files)
    partition_by, deleted = table.metadata().partition_columns, deletion_vectors.deleted(table)
    found = duckdb_scan.by_path(table, files)
    rows = {file: duckdb_scan.stored_rows(row, deleted.get(file, ())) for file, row in found.items()}
    values = {file: duckdb_scan.values_of(row, partition_by) for file, row in found.items()}
    return Stored(relation.columns, rows, values, deleted, relation.name)


def _of_merge(
    session: Any, stored: Stored, added: Collection[str], unchanged: Mapping[str, list[int]], where: str
) -> str:
    """Return the query of the rows that a MERGE added, or matched and left unchanged; it may return a few more."""
    import pyarrow as pa

    items = duckdb_scan.names(stored.columns)
    new = [file for file in stored.rows if file in added]
    sources = _live(session, stored, new, stored.name, "", where) if new else []
    pieces = [f"select {items} from {source}" for source in sources]
    left = {file: unchanged[file] for file in stored.rows if file not in added}
    if left:
        places = [pa.array(numbers, pa.int64()) for numbers in left.values()]
        paths = [pa.repeat(pa.scalar(file), len(numbers)) for file, numbers in left.items()]
        name = f"_places_{stored.name}"
        session.register(name, pa.table({"file": pa.concat_arrays(paths), "place": pa.concat_arrays(places)}))
        pieces += _rows_at(session, stored, identifier(name, "duckdb"), list(left), items, where)
    return " union all ".join(pieces) or _nothing(stored, items)


def positioned(session: Any, keys: Keys, stored: Stored) -> str:
    """Return the query of the live rows with a key of `keys`, and their positions; it may return more rows."""
    return matching(session, keys, stored, f"{duckdb_scan.names(stored.columns)}, {_POSITION}", "")


def matching(session: Any, keys: Keys, stored: Stored, items: str, where: str) -> str:
    """Return the query of the live rows with a key of `keys` and a condition; it may return rows with other keys.

    `items`: its expressions. `where`: the condition, "" for none.
    """
    if not stored.rows:
        return _nothing(stored, items)
    if keys_first(keys, stored):
        return _at_positions(session, keys, stored, items, where)
    sources = _live(session, stored, list(stored.rows), stored.name, _first(session, keys, stored), where)
    return " union all ".join(f"select {items} from {source}" for source in sources)


def _live(session: Any, stored: Stored, files: list[str], name: str, join: str, where: str) -> list[str]:
    there = {file: stored.values[file] for file in files} if stored.values else {}
    return duckdb_scan.live(
        session, files, there, stored.columns, stored.deleted, name, places=True, join=join, where=where
    )


def _first(session: Any, keys: Keys, stored: Stored) -> str:
    """Return the join by the column to compare first; "" if none is worth it."""
    column = first_column(session, keys, stored)
    if column is None:
        return ""
    name = identifier(column, "duckdb")
    return f" semi join {keys.table} as s on t.{name} = s.{name}"


def first_column(session: Any, keys: Keys, stored: Stored) -> str | None:
    """Return the column to compare before the others: the one that the fewest of some stored rows match.

    None if there are few rows, if DuckDB's join has one column only, or if no column is worth it.
    """
    types = {column.name: column.type for column in stored.columns}
    outside = next(iter(stored.values.values()), {})
    names = [name for name in keys.names if name not in keys.null_safe and name not in outside]
    if len(keys.names) < 2 or not names or (stored.count or 0) < max(SAMPLE_FROM, FEW_COMPARED * keys.count):
        return None
    shares = _shares(session, keys, stored, names)
    limits = {name: MOST_OF_TEXT if types[name] == "string" else MOST_SHARE for name in names}
    best = min(names, key=lambda name: shares[name] / limits[name])
    return best if shares[best] <= limits[best] else None


def _shares(session: Any, keys: Keys, stored: Stored, names: list[str]) -> dict[str, float]:
    """Return the share of sampled rows that each column matches."""
    columns = [identifier(name, "duckdb") for name in names]
    pieces = []
    for file in sorted(stored.rows, key=lambda each: stored.rows[each] or 0)[-SAMPLED_FILES:]:
        half = (stored.rows[file] or 0) // 2
        source = f"read_parquet([{listed([duckdb_scan.pattern(file)])}], hive_partitioning = false)"
        near = f"file_row_number between {half} and {half + SAMPLED_ROWS - 1}"
        pieces.append(f"select {', '.join(columns)} from {source} where {near}")
    matched = ", ".join(f"sum(({each} in (select {each} from {keys.table}))::int)" for each in columns)
    counted = session.execute(f"select count(*), {matched} from ({' union all '.join(pieces)})").fetchall()
    ((count, *found),) = counted
    return {name: (number or 0) / max(1, count) for name, number in zip(names, found, strict=True)}


def _at_positions(session: Any, keys: Keys, stored: Stored, items: str, where: str) -> str:
    """Return the query of the rows at the positions of matching keys; it may return a few more of small files."""
    places = identifier(f"_places_{stored.name}", "duckdb")
    chosen = ", ".join(f"t.{identifier(name, 'duckdb')}" for name in keys.names)
    sources = _live(session, stored, list(stored.rows), stored.name, "", "")
    every = " union all ".join(f"select {chosen}, {_POSITION} from {source}" for source in sources)
    found = f"select t.{FILE} as file, t.{ROW} as place from ({every}) as t join {keys.table} as s on {keys.on}"
    session.execute(f"create or replace temp table {places} as {found}").fetchall()
    hit = {file for (file,) in session.execute(f"select distinct file from {places}").fetchall()}
    pieces = _rows_at(session, stored, places, [file for file in stored.rows if file in hit], items, where)
    return " union all ".join(pieces) or _nothing(stored, items)


def _rows_at(session: Any, stored: Stored, places: str, files: list[str], items: str, where: str) -> list[str]:
    """Return queries of the rows at positions: `places` has each file and row number.

    Large files are read one by one. A comparison of row numbers alone reaches the Parquet reader, which then decodes
    only these rows. Files that are read together would read each other's row numbers as well.
    """
    small = [file for file in files if (stored.rows[file] or 0) < LARGE]
    groups = [*([file] for file in files if file not in small), *([small] if small else [])]
    pieces = []
    for number, group in enumerate(groups):
        near = f" semi join (select distinct place from {places} where file in ({listed(group)})) as p"
        join = f"{near} on p.place = t.file_row_number"
        sources = _live(session, stored, group, f"{stored.name}_{number}", join, where)
        pieces += [f"select {items} from {source}" for source in sources]
    return pieces


def _nothing(stored: Stored, items: str) -> str:
    position = "null::varchar as filename, null::bigint as file_row_number"
    return f"select {items} from (select *, {position} from ({duckdb_scan.empty(stored.columns)})) as t"
