"""SQL statements that define a published tick's tables as DuckDB views. Shell: the ledger, Delta files.

DuckDB's extension for Delta may be missing, so by default a view reads the Parquet files of its table's version,
without the deleted rows, as sqlrun itself does.
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import unquote

from sqlrun.engine_api import Relation
from sqlrun.engines.delta import deletion_vectors
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.duckdb import scan
from sqlrun.publish import reader, warehouse_format
from sqlrun.publish.environment_paths import schema
from sqlrun.publish.ledger import Ledger
from sqlrun.publish.table_state import own_tables
from sqlrun.storage.urls import path_of
from sqlrun.transpile.writer import identifier, string


def of_tick(warehouse: str, tick: int | None, env: str, *, by_extension: bool = False) -> list[str]:
    """Return the statements for a published tick, the latest by default.

    `warehouse` is absolute. `by_extension`: the views call `delta_scan` of DuckDB's extension for Delta, version 1.5 or
    later.
    Raises: UsageError if the warehouse has no published tick, or not the given one.
    """
    ledger = Ledger(warehouse, "", env)
    published = reader.tick_of(ledger, tick)
    place = identifier(schema(warehouse_format.owner(warehouse), ledger.env), "duckdb")
    write = _by_extension if by_extension else _by_files
    found = [f"create schema if not exists {place}"]
    for name, state in sorted(own_tables(published.tables).items()):
        body = write(reader.relation(warehouse, name, state))
        found.append(f"create or replace view {place}.{identifier(name, 'duckdb')} as\n{body}")
    return found


def _by_extension(relation: Relation) -> str:
    where = f" where {relation.where}" if relation.where else ""
    path = string(relation.path, "duckdb")
    return f"select {scan.names(relation.columns)} from delta_scan({path}, version => {relation.version}){where}"


def _by_files(relation: Relation) -> str:
    """Return a SELECT over the files of a table's version, without deleted rows."""
    table = delta_table.open_table(relation.path, relation.version)
    rows = delta_table.files_at(table)
    if not rows:
        return scan.empty(relation.columns)
    root, partition_by = path_of(table.table_uri), table.metadata().partition_columns
    values = {f"{root}/{unquote(row['path'])}": scan.values_of(row, partition_by) for row in rows}
    deleted = deletion_vectors.deleted(table)
    where = f"\nwhere {relation.where}" if relation.where else ""
    sources = _sources(values, deleted, relation)
    return "\nunion all\n".join(f"select {scan.names(relation.columns)} from {source}{where}" for source in sources)


def _sources(values: scan.Values, deleted: deletion_vectors.Deleted, relation: Relation) -> Iterator[str]:
    """Yield a FROM item for the files without deleted rows, and one for the others."""
    # Without partitions there are no values of the log to read.
    known = values if any(values.values()) else {}
    whole, marked = [f for f in values if f not in deleted], [f for f in values if f in deleted]
    if whole:
        yield f"{scan.parquet(whole, known, relation.columns)} as t"
    if marked:
        read = scan.parquet(marked, known, relation.columns, places=True)
        numbers = [str(place) for place, file in enumerate(marked) for _ in range(len(deleted[file]))]
        rows = [str(row) for file in marked for row in deleted[file].to_pylist()]
        # DuckDB reads a list of 300,000 numbers from a text in 30 ms, and takes 3 s to read as many literals.
        lists = ", ".join(f"unnest('[{','.join(each)}]'::bigint[]) as {name}"
                          for each, name in ((numbers, "file"), (rows, "row")))  # fmt: skip
        yield f"{read} as t\nanti join (select {lists}) as g on g.file = t.file_index and g.row = t.file_row_number"
