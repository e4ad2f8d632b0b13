"""Relations of a statement as DuckDB views over the tables' Parquet files. Shell: DuckDB and Delta files."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from sqlrun.engines import delta_files
from sqlrun.engines.protocol import Relation, StoredColumn
from sqlrun.incremental.sql import identifier, string, type_name


@dataclass
class Reads:
    """What a statement opens: files, their bytes and rows. An upper bound: DuckDB skips row groups by their statistics."""

    files: int = 0
    bytes: int = 0
    rows: int = 0


def register(session: Any, relations: tuple[Relation, ...], reads: Reads) -> None:
    """Make each relation a temporary view of its name."""
    for relation in relations:
        body = _changes(session, relation, reads) if relation.flavour == "changes" else _rows(session, relation, reads)
        session.execute(f"create or replace temp view {identifier(relation.name, 'duckdb')} as {body}")


def names(columns: tuple[StoredColumn, ...]) -> str:
    """Quote the names of columns."""
    return ", ".join(identifier(c.name, "duckdb") for c in columns)


def _rows(session: Any, relation: Relation, reads: Reads) -> str:
    table = delta_files.open_table(relation.path, relation.version)
    return scan(session, table, relation.columns, reads, relation.name, relation.where, None)


def scan(
    session: Any, table: Any, columns: tuple[StoredColumn, ...], reads: Reads, name: str, where: str, keep: Any
) -> str:
    """Write a SELECT over a table's files; `keep` tells by statistics which files can hold what is asked for.

    `where` may read columns that are not among `columns`.
    """
    import pyarrow as pa

    adds = pa.table(table.get_add_actions(flatten=True))
    rows = adds.to_pylist()
    if keep is not None:
        rows = [row for row in rows if keep(row)]
    reads.files += len(rows)
    reads.bytes += sum(row["size_bytes"] or 0 for row in rows)
    reads.rows += sum(row.get("num_records") or 0 for row in rows)
    if not rows:
        return empty(columns)
    condition = f" where {where}" if where else ""
    if _has_deletion_vectors(table):
        held = f"_scan_{name}"
        session.register(held, pa.table(table.scan().read_all()))
        return f"select {names(columns)} from {identifier(held, 'duckdb')}{condition}"
    root = local_path(table)
    files = [f"{root}/{unquote(row['path'])}" for row in rows]
    return f"select {names(columns)} from {parquet(files, table.metadata().partition_columns, columns)}{condition}"


def local_path(table: Any) -> str:
    """Tell a table's folder."""
    return str(unquote(table.table_uri.removeprefix("file://"))).rstrip("/")


def parquet(files: list[str], partition_by: list[str], columns: tuple[StoredColumn, ...]) -> str:
    """Write read_parquet over files; partition columns come from the folders' names."""
    listed = ", ".join(string(file, "duckdb") for file in files)
    if not partition_by:
        return f"read_parquet([{listed}], hive_partitioning = false)"
    kinds = {c.name: type_name(c.type, "duckdb") for c in columns}
    hive = ", ".join(f"{string(p, 'duckdb')}: {kinds.get(p, 'VARCHAR')}" for p in partition_by)
    return f"read_parquet([{listed}], hive_partitioning = true, hive_types = {{{hive}}})"


def empty(columns: tuple[StoredColumn, ...]) -> str:
    """Write a SELECT without rows."""
    items = ", ".join(f"cast(null as {type_name(c.type, 'duckdb')}) as {identifier(c.name, 'duckdb')}" for c in columns)
    return f"select {items} where false"


def _has_deletion_vectors(table: Any) -> bool:
    features = table.protocol().reader_features or []
    if "deletionVectors" not in features:
        return False
    return any(batch.num_rows for batch in table.deletion_vectors())


CHANGED = "case when _change_type in ('insert', 'update_postimage') then 1 else -1 end"


def _changes(session: Any, relation: Relation, reads: Reads) -> str:
    """Write the changes of the commits, from the files that each commit names (Delta protocol, "Change Data Files").

    A commit's change files, where it has any, are its whole change; else its added files came and its removed ones
    left. Not by delta-rs' own reader: it doesn't find change files in folders with escaped names (1.6.6).
    """
    files: dict[str, list[dict[str, Any]]] = {CHANGED: [], "1": [], "-1": []}
    for version in relation.commits:
        for weight, found in _files_of(delta_files.actions(relation.path, version)).items():
            files[weight].extend(found)
    if any("deletionVector" in file for found in files.values() for file in found):
        return _fed(session, relation, reads)
    partition_by = list(delta_files.open_table(relation.path).metadata().partition_columns)
    condition = f" where {relation.where}" if relation.where else ""
    pieces = []
    for weight, found in files.items():
        if found:
            reads.files += len(found)
            reads.bytes += sum(file.get("size") or 0 for file in found)
            reads.rows += sum(json.loads(file.get("stats") or "{}").get("numRecords", 0) for file in found)
            source = parquet([f"{relation.path}/{unquote(f['path'])}" for f in found], partition_by, relation.columns)
            items = f'{names(relation.columns)}, cast({weight} as bigint) as "_weight"'
            pieces.append(f"select {items} from {source}{condition}")
    return " union all ".join(pieces) or empty((*relation.columns, StoredColumn("_weight", "bigint")))


def _files_of(actions: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    changed = [action["cdc"] for action in actions if "cdc" in action]
    if changed:
        return {CHANGED: changed}
    added = [a["add"] for a in actions if "add" in a and a["add"].get("dataChange")]
    removed = [a["remove"] for a in actions if "remove" in a and a["remove"].get("dataChange")]
    return {"1": added, "-1": removed}


def _fed(session: Any, relation: Relation, reads: Reads) -> str:
    """Read the change feed through delta-rs, where deletion vectors decide which rows of a file count."""
    pieces = []
    condition = f" where {relation.where}" if relation.where else ""
    for number, table in enumerate(delta_files.change_feed(relation.path, relation.commits, None)):
        held = f"_feed_{relation.name}_{number}"
        session.register(held, table)
        reads.files += 1
        reads.bytes += table.nbytes
        reads.rows += table.num_rows
        items = f'{names(relation.columns)}, cast({CHANGED} as bigint) as "_weight"'
        pieces.append(f"select {items} from {identifier(held, 'duckdb')}{condition}")
    return " union all ".join(pieces)
