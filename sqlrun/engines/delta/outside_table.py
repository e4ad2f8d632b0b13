"""A Delta table that other programs write: its identity, its columns, and what can't be read. Shell: Delta files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlrun.engine_api import StoredColumn
from sqlrun.engines.delta import file_rows, outside_paths
from sqlrun.engines.delta import state as delta_state
from sqlrun.engines.delta import table as delta_table
from sqlrun.errors import EngineError
from sqlrun.runtime import arrow_rows
from sqlrun.storage.factory import storage_of

if TYPE_CHECKING:
    from deltalake import DeltaTable

# Features of a table that don't change how its rows are read, or that sqlrun reads.
READ = frozenset({"deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck", "variantType"})
MAPPING = "delta.columnMapping.mode"
HASH = 12
# Letters of a path that leads outside, as a regular expression over paths; `outside_paths` decides.
SUSPICIOUS = r"^/|:|%|\.\."


@dataclass(frozen=True, slots=True)
class Facts:
    """A version of a table: its id, the hash of the version's commit, and its columns."""

    version: int
    table_id: str
    commit: str
    columns: tuple[StoredColumn, ...]


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Why sqlrun doesn't read a table, and what to do."""

    why: str
    hint: str


def facts(path: str) -> Facts | Unreadable:
    """Return the facts about a table's newest version, or why it can't be read.

    Raises: EngineError (SR782) for a file outside of the table's folder.
    """
    version = delta_table.head(path)
    if version is None:
        return Unreadable("isn't a Delta table", "Correct `path:`, or write the table first.")
    try:
        table = delta_table.open_table(path, version)
    except EngineError as error:
        return Unreadable(f"can't be read: {error}", "Repair the table with the program that writes it.")
    if mode := mapping(table):
        hint = "Run `ALTER TABLE ... DROP FEATURE columnMapping` in Spark, or let its writer copy the rows."
        return Unreadable(f"has column mapping by {mode}, which sqlrun doesn't read", hint)
    if unknown := sorted(set(table.protocol().reader_features or ()) - READ):
        names = ", ".join(unknown)
        hint = f"Run `ALTER TABLE ... DROP FEATURE {unknown[0]}` in Spark, or let its writer copy the rows."
        return Unreadable(f"needs a reader with features that sqlrun doesn't have: {names}", hint)
    _require_inside(path, table)
    commit = commit_hash(path, version)
    return Facts(version, str(table.metadata().id), commit, _columns(table.schema().to_json()))


def mapping(table: DeltaTable) -> str:
    """Return how an open table's files name its columns if they have other names than the table, else ""."""
    mode = (table.metadata().configuration or {}).get(MAPPING) or "none"
    return "" if mode == "none" else str(mode)


def later_columns(path: str, since: int, until: int) -> Iterator[tuple[StoredColumn, ...]]:
    """Yield the columns that commits after a version declared, as far as the commits are there."""
    for version in range(since + 1, until + 1):
        if commit_hash(path, version):
            for action in delta_table.actions(path, version):
                if "metaData" in action:
                    yield _columns(action["metaData"]["schemaString"])


def _columns(schema: str) -> tuple[StoredColumn, ...]:
    fields: list[dict[str, Any]] = json.loads(schema)["fields"]
    kinds = delta_table.spark_types(fields)
    return tuple(StoredColumn(f["name"], kind, f["nullable"]) for f, kind in zip(fields, kinds, strict=True))


def _require_inside(path: str, table: DeltaTable) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc

    names = pa.array(pa.chunked_array(pa.table(delta_table.entries(table))["path"]).combine_chunks()).cast(pa.string())
    for name in arrow_rows.values(names.filter(pc.match_substring_regex(names, SUSPICIOUS))):
        if outside_paths.leads_outside(name):
            raise outside_paths.OutsideError(outside_paths.message(path, name))


def require_vectors_inside(path: str, version: int) -> None:
    """Check all deletion vectors of a version. Raises: EngineError (SR782) if one is outside of the table's folder.

    Later versions are checked by their commits.
    """
    if "deletionVectors" in (delta_table.open_table(path, version).protocol().reader_features or ()):
        files = delta_state.at(path, version).files.values()
        outside_paths.require_none(path, ({"add": entry} for entry in files))


def commit_hash(path: str, version: int) -> str:
    """Return the hash of a version's commit, which differs in a rewritten log; "" if it is gone."""
    try:
        data = storage_of(path).read(delta_table.entry_path(path, version))
    except OSError:
        return ""
    return hashlib.sha256(data).hexdigest()[:HASH]


def why_unreadable(path: str, version: int, commit: str) -> str:
    """Return why the version with a commit can't be read; "" if it can."""
    now = commit_hash(path, version)
    if now != commit:
        return "its log was rewritten" if now else "its entry in the log is gone"
    try:
        files = delta_table.files_at(delta_table.open_table(path, version))
    except EngineError as error:
        return str(error)
    lost = file_rows.missing(path, (outside_paths.decoded(file["path"]) for file in files))
    return file_rows.lacks(lost) if lost else ""


def why_lost(path: str, since: int, commit: str, until: int) -> str:
    """Return why a tick can't continue from a version that it has read before; "" if it can.

    Raises: EngineError (SR782) for a file outside of the table's folder.
    """
    now = commit_hash(path, since)
    if since > until or not now:
        return "its entry in the log is gone"
    if now != commit:
        return "its log was rewritten"
    try:
        found = file_rows.between(path, since, until)
        if not found.parts:
            return ""
        delta_table.open_table(path, since)
    except outside_paths.OutsideError:
        raise
    except EngineError as error:
        return str(error)
    lost = file_rows.missing(path, found.gone)
    return file_rows.lacks(lost) if lost else ""


def oldest_readable(path: str, until: int) -> int:
    """Return the oldest version of a table from which all versions up to another one can be read."""
    oldest = until
    for version in _backwards(path, until):
        oldest = version
    return oldest


def _backwards(path: str, until: int) -> Iterator[int]:
    """Yield earlier versions as long as their log opens and the files exist that the next commit removed."""
    for version in range(until - 1, -1, -1):
        try:
            removed = [a["remove"]["path"] for a in delta_table.actions(path, version + 1) if "remove" in a]
            delta_table.opened(path, version)
        except EngineError:
            return
        if not commit_hash(path, version) or file_rows.missing(path, map(outside_paths.decoded, removed)):
            return
        yield version
