"""A version, or the difference of two, of a table that other programs write, as DuckDB's SELECT. Shell: Delta files.

The files of such a table may differ: older files lack columns that were added later, and each writer has its own
storage types. So files are united by the names of their columns, and values are cast to the declared types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from sqlrun.engine_api import Relation, StoredColumn
from sqlrun.engines.delta import deletion_vectors, file_rows
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.delta.file_rows import All, Only, Part, Sign, Without
from sqlrun.engines.duckdb import scan
from sqlrun.engines.duckdb.scan import Reads, Values
from sqlrun.runtime import arrow_rows
from sqlrun.storage.urls import path_of
from sqlrun.transpile.writer import identifier, string, type_name

PLACES = (StoredColumn("file_index", "bigint"), StoredColumn("file_row_number", "bigint"))
CHANGE_TYPE = StoredColumn("_change_type", "string")
WEIGHTS: Mapping[Sign, str] = {"added": "1", "removed": "-1", "feed": scan.CHANGED}


def snapshot(session: Any, relation: Relation, reads: Reads) -> str:
    """Return the SELECT of a relation of the row set `snapshot`."""
    from pyroaring import BitMap64

    table = delta_table.open_table(relation.path, relation.version)
    files = delta_table.files_at(table, {column for column, _, _ in relation.ranges})
    if relation.ranges:
        files = list(filter(scan.overlapping(relation.ranges), files))
    reads.add(files)
    partition_by, root = table.metadata().partition_columns, path_of(table.table_uri)
    deleted = deletion_vectors.deleted(table)
    parts = []
    for file in files:
        name = unquote(file["path"])
        gone = deleted.get(f"{root}/{name}")
        rows = All() if gone is None else Without(BitMap64(arrow_rows.values(gone)))
        parts.append(Part(name, "added", rows, scan.values_of(file, partition_by), 0, 0))
    items = _items(relation.columns)
    pieces = [f"select {items} from {source}" for source in _sources(session, relation, parts, "")]
    return " union all ".join(pieces) or scan.empty(relation.columns)


def difference(session: Any, relation: Relation, reads: Reads) -> str:
    """Return the SELECT of a relation of the row set `difference`."""
    found = file_rows.between(relation.path, relation.since, relation.version)
    weighted = (*relation.columns, StoredColumn("_weight", "bigint"))
    pieces = []
    for sign, weight in WEIGHTS.items():
        parts = [part for part in found.parts if part.sign == sign]
        items = f'{_items(relation.columns)}, cast({weight} as bigint) as "_weight"'
        pieces += [f"select {items} from {source}" for source in _sources(session, relation, parts, sign)]
    reads.files += len({part.file for part in found.parts})
    reads.bytes += sum(part.size for part in found.parts)
    reads.rows += found.count
    if not pieces:
        return scan.empty(weighted)
    # Rows that a writer copied into another file are no change.
    names = scan.names(relation.columns)
    total = 'cast(sum("_weight") as bigint)'
    united = " union all ".join(pieces)
    return f'select {names}, {total} as "_weight" from ({united}) group by {names} having {total} <> 0'


def _items(columns: Sequence[StoredColumn]) -> str:
    names = ((identifier(c.name, "duckdb"), type_name(c.type, "duckdb")) for c in columns)
    return ", ".join(f"cast(t.{name} as {kind}) as {name}" for name, kind in names)


def _sources(session: Any, relation: Relation, parts: Sequence[Part], label: str) -> list[str]:
    """Return FROM items `t`, whose rows together are those of parts with one sign."""
    whole = [part for part in parts if isinstance(part.rows, All)]
    found = [f"{_files(relation, whole)} as t"] if whole else []
    for kind, join in ((Without, "anti"), (Only, "semi")):
        some = [part for part in parts if isinstance(part.rows, kind)]
        if some:
            name = f"_{join}_{label}_{relation.name}"
            session.register(name, _numbers(some))
            on = "g.file = t.file_index and g.row = t.file_row_number"
            found.append(f"{_files(relation, some)} as t {join} join {identifier(name, 'duckdb')} as g on {on}")
    return found


def _numbers(parts: Sequence[Part]) -> Any:
    """Return the numbers of rows of parts, each with the index of its file."""
    import pyarrow as pa

    rows = [list(part.rows.rows) if not isinstance(part.rows, All) else [] for part in parts]
    indexes = [index for index, each in enumerate(rows) for _ in each]
    numbers = [number for each in rows for number in each]
    return pa.table({"file": pa.array(indexes, pa.uint64()), "row": pa.array(numbers, pa.int64())})


def _files(relation: Relation, parts: Sequence[Part]) -> str:
    """Return a SELECT of the files' rows with all declared columns; partition values come from the log."""
    feed = (CHANGE_TYPE,) if parts[0].sign == "feed" else ()
    places = () if isinstance(parts[0].rows, All) else PLACES
    paths = [f"{relation.path}/{part.file}" for part in parts]
    values: Values = {path: part.values for path, part in zip(paths, parts, strict=True)}
    kinds = {column.name.lower(): type_name(column.type, "duckdb") for column in relation.columns}
    listed = ", ".join(string(scan.pattern(path), "duckdb") for path in paths)
    read = f"read_parquet([{listed}], hive_partitioning = false, union_by_name = true)"
    partitions = list(parts[0].values)
    items = [scan.log_column([values[p][n] for p in paths], kinds.get(n.lower(), "VARCHAR"), n) for n in partitions]
    # Delta's own MERGE writes partition columns into the files of a table with a change feed: use the log's values.
    stored = f"columns(lambda c: lower(c) not in ({scan.listed(name.lower() for name in partitions)}))"
    select = ", ".join([stored if partitions else "*", *(place.name for place in places), *items])
    shape = scan.empty((*relation.columns, *feed, *places))
    return f"({shape} union all by name select {select} from {read})"
