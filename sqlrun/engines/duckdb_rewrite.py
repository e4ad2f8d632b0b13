"""A MERGE whose files DuckDB writes: what changes is found once, and only once read. Shell: DuckDB, Delta files."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from sqlrun.engines import delta_commit, delta_stats, duckdb_files
from sqlrun.engines.delta_commit import Change, File
from sqlrun.engines.protocol import Merge, Write
from sqlrun.errors import EngineError
from sqlrun.incremental.sql import identifier, string, type_name

# A statement for each partition's rows and one for its changes: from so many on, delta-rs writes all at once. It holds
# what it merges in memory, so that only few rows for each partition go there.
MOST_PARTITIONS = 24
FEW_ROWS = 10_000
# Two threads share a file by its row groups, and readers skip what is outside of a range of them.
LAYOUT = "format parquet, compression snappy, row_group_size 40960, file_size_bytes 134217728, return_stats"
OP, FILE, ROW = '"_sqlrun.op"', '"_sqlrun.file"', '"_sqlrun.row"'

Partition = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a merge does: rows by kind, the files that it rewrites, and the partitions that rows come to.

    `fits`: few partitions, each of a value that can be written, so that `carry_out` may write it.
    """

    counts: Mapping[str, int]
    touched: tuple[Held, ...]
    matched: int
    partitions: Mapping[Partition, str]
    fits: bool


@dataclass(frozen=True, slots=True)
class Held:
    """A file of the target: where it lies, how the log names it, its partition, its size and rows."""

    file: str
    path: str
    values: Mapping[str, str | None]
    size: int
    rows: int | None

    @property
    def partition(self) -> Partition:
        """Give the partition's values alone."""
        return tuple(self.values.values())


def prepare(session: Any, table: Any, write: Write, statement: Merge, files: list[dict[str, Any]]) -> Plan | None:
    """Find what a MERGE changes whose delta is the table `s`, as the table `_hits`; nothing is written yet.

    `files` are those that may hold a matched row. None, where the table is left to delta-rs.
    """
    if not delta_commit.ours(table, write):
        return None
    try:
        held = {file.file: file for file in _held(write, files)}
    except ValueError:
        return None
    session.execute(f"create or replace temp table _hits as {_hits(write, statement, list(held))}")
    return _found(session, write, held)


def carry_out(session: Any, table: Any, write: Write, statement: Merge, plan: Plan) -> int:
    """Write the files of a plan and commit them; give the number of rows that changed.

    Raises: EngineError if two rows of the delta, or two of the target, have one key.
    """
    started = time.perf_counter()
    if not plan.counts:
        return 0
    _require_single(session, write, statement, plan)
    with _written() as done:
        change = _change(session, write, statement, plan, done, started)
    delta_commit.commit(table, write, change)
    return sum(plan.counts.values())


def _held(write: Write, files: list[dict[str, Any]]) -> Iterator[Held]:
    """List files with their partitions; ValueError where a partition's value can't be written."""
    for row in files:
        values = {name: delta_stats.partition_text(row[f"partition.{name}"]) for name in write.table.partition_by}
        file = f"{write.table.path.rstrip('/')}/{unquote(row['path'])}"
        yield Held(file, row["path"], values, row["size_bytes"], row.get("num_records"))


def _hits(write: Write, statement: Merge, files: list[str]) -> str:
    """Write each row that changes: its new values, what to do, where it lies, and the values that it has there."""
    updates, inserts = dict(statement.update), dict(statement.insert)
    items = []
    for column in write.table.columns:
        name = identifier(column.name, "duckdb")
        kept = f"t.{name}" if column.name not in statement.key else f"s.{name}"
        came, stays = inserts.get(column.name, "null"), updates.get(column.name, kept)
        new = came if came == stays else f"case when t.{FILE} is null then {came} else {stays} end"
        items.append(f"cast({new} as {type_name(column.type, 'duckdb')}) as {name}")
    items += [f"t.{identifier(c.name, 'duckdb')} as {_old(c.name)}" for c in write.table.columns]
    op = (
        f"case when t.{FILE} is null then case when {statement.insert_when or 'true'} then 'i' end "
        f"when {statement.delete_when or 'false'} then 'd' "
        f"when {statement.update_when or 'true'} then 'u' end"
    )
    on = " and ".join(equal(key, key in statement.null_safe) for key in statement.key)
    joined = f"from s left join ({_target(write, files)}) as t on {on}"
    once = "distinct " if statement.repeats else ""
    places = f"{op} as {OP}, t.{FILE}, t.{ROW}"
    return f"select {once}* from (select {', '.join(items)}, {places} {joined}) where {OP} is not null"


def applied(write: Write, statement: Merge) -> str:
    """Write the rows that change, with what to do in `_op`, for delta-rs to merge."""
    once = "distinct " if statement.repeats else ""
    return f"select {once}{duckdb_files.names(write.table.columns)}, {OP} as _op from _hits"


def equal(key: str, null_safe: bool) -> str:
    """Compare a key of the target and of the delta."""
    name = identifier(key, "duckdb")
    # DataFusion binds IS NOT DISTINCT FROM looser than AND: without its parentheses two of them don't parse.
    return f"(t.{name} is not distinct from s.{name})" if null_safe else f"t.{name} = s.{name}"


def _old(name: str) -> str:
    return identifier(f"_sqlrun.old.{name}", "duckdb")


def _target(write: Write, files: list[str]) -> str:
    columns = write.table.columns
    if not files:
        return f"select *, null::varchar as {FILE}, null::bigint as {ROW} from ({duckdb_files.empty(columns)})"
    source = duckdb_files.parquet(files, list(write.table.partition_by), columns)
    return f"select {duckdb_files.names(columns)}, filename as {FILE}, file_row_number as {ROW} from {source}"


def _found(session: Any, write: Write, held: Mapping[str, Held]) -> Plan:
    """Count what changes."""
    names = [identifier(name, "duckdb") for name in write.table.partition_by]
    listed = ", ".join([OP, FILE, *names])
    counts: dict[str, int] = {}
    matched: dict[str, int] = {}
    partitions: dict[Partition, str] = {}
    fits = True
    for op, file, *values, count in session.execute(f"select {listed}, count(*) from _hits group by all").fetchall():
        counts[op] = counts.get(op, 0) + count
        if file is not None:
            matched[file] = matched.get(file, 0) + count
        if op != "d":
            try:
                texts = tuple(map(delta_stats.partition_text, values))
            except ValueError:
                fits = False
                continue
            partitions[texts] = " and ".join(_is(write, n, t) for n, t in zip(names, texts, strict=True)) or "true"
    touched = tuple(held[file] for file in matched)
    rows = sum(counts.values()) + sum(file.rows or 0 for file in touched)
    most = max(MOST_PARTITIONS, rows // FEW_ROWS)
    fits = fits and len({*partitions, *(file.partition for file in touched)}) <= most
    return Plan(counts, touched, sum(matched.values()), partitions, fits)


def _is(write: Write, name: str, text: str | None) -> str:
    """Write that a partition column has a value."""
    if text is None:
        return f"{name} is null"
    kinds = {identifier(c.name, "duckdb"): c.type for c in write.table.columns}
    zone = "+00" if kinds[name] == "timestamp" else ""
    return f"{name} = cast({string(text + zone, 'duckdb')} as {type_name(kinds[name], 'duckdb')})"


def _require_single(session: Any, write: Write, statement: Merge, plan: Plan) -> None:
    """Refuse two changes of one row: which of them stays would be chance."""
    if not plan.matched:
        return
    keys = [FILE, ROW] if statement.repeats else [identifier(key, "duckdb") for key in statement.key]
    each = f"select count(*) from (select distinct {', '.join(keys)} from _hits where {FILE} is not null)"
    if session.execute(each).fetchall()[0][0] != plan.matched:
        raise EngineError(
            f"rows of {write.table.name} match several source rows by {', '.join(statement.key)}: "
            "a grain that is not unique",
            model=write.table.name,
        )


@contextmanager
def _written() -> Iterator[list[str]]:
    """Collect the files that are written; where the rest fails they go again."""
    done: list[str] = []
    try:
        yield done
    except BaseException:
        for file in done:
            Path(file).unlink(missing_ok=True)
        raise


def _change(session: Any, write: Write, statement: Merge, plan: Plan, done: list[str], started: float) -> Change:
    """Write the files, partition by partition: rows that stay with rows that come, then what has changed."""
    touched = plan.touched
    added: list[File] = []
    feed: list[File] = []
    for partition in dict.fromkeys([*plan.partitions, *(file.partition for file in touched)]):
        values = dict(zip(write.table.partition_by, partition, strict=True))
        files = [file.file for file in touched if file.partition == partition]
        new = plan.partitions.get(partition, "false")
        added += _copied(session, write, _rows(write, files, new), "", values, done)
        if touched:
            feed += _copied(session, write, _changes(write, files, new), "_change_data", values, done)
    _require_all(write, plan, sum(file.rows for file in added))
    return _told(statement, plan, added, feed, started)


def _require_all(write: Write, plan: Plan, rows: int) -> None:
    """Make sure that no row of a rewritten file got lost, and none came twice."""
    if any(file.rows is None for file in plan.touched):
        return
    counts = plan.counts
    left = sum(file.rows or 0 for file in plan.touched) + counts.get("i", 0) - counts.get("d", 0)
    if rows != left:
        raise EngineError(
            f"{write.table.name}: {rows:,} rows were written where {left:,} were to be; nothing is committed",
            model=write.table.name,
        )


def _rows(write: Write, files: list[str], new: str) -> str:
    """Write the rows of a partition's new files."""
    columns = _stored(write)
    names = ", ".join(identifier(c.name, "duckdb") for c in columns)
    came = f"select {names} from _hits where {OP} <> 'd' and {new}"
    if not files:
        return came
    listed = ", ".join(string(file, "duckdb") for file in files)
    source = f"read_parquet([{listed}], hive_partitioning = false)"
    items = ", ".join(_typed(identifier(c.name, "duckdb"), c) for c in columns)
    gone = f"select {FILE}, {ROW} from _hits where {FILE} in ({listed})"
    where = f"h.{FILE} = t.filename and h.{ROW} = t.file_row_number"
    if len(files) == 1:
        where = f"h.{ROW} = t.file_row_number"
    return f"select {items} from {source} as t anti join ({gone}) as h on {where} union all {came}"


def _changes(write: Write, files: list[str], new: str) -> str:
    """Write a partition's change rows."""
    columns = _stored(write)
    names = ", ".join(identifier(c.name, "duckdb") for c in columns)
    olds = ", ".join(f"{_typed(_old(c.name), c)}" for c in columns)
    came = (
        f"select {names}, case {OP} when 'i' then 'insert' else 'update_postimage' end as _change_type "
        f"from _hits where {OP} <> 'd' and {new}"
    )
    if not files:
        return came
    listed = ", ".join(string(file, "duckdb") for file in files)
    return (
        f"{came} union all select {olds}, case {OP} when 'd' then 'delete' else 'update_preimage' end "
        f"from _hits where {FILE} in ({listed})"
    )


def _stored(write: Write) -> list[Any]:
    """List the columns that files hold: those of partitions are told by the log."""
    return [c for c in write.table.columns if c.name not in write.table.partition_by]


def _typed(name: str, column: Any) -> str:
    return f"cast({name} as {type_name(column.type, 'duckdb')}) as {identifier(column.name, 'duckdb')}"


def _copied(
    session: Any, write: Write, sql: str, below: str, values: Mapping[str, str | None], done: list[str]
) -> list[File]:
    """Write rows to a partition's folder; a file without rows is none."""
    root = Path(write.table.path)
    folder = root / below / delta_stats.folder(values)
    folder.mkdir(parents=True, exist_ok=True)
    target = string(str(folder), "duckdb")
    name = "cdc" if below else "part"
    settings = f"{LAYOUT}, overwrite_or_ignore, filename_pattern '{name}-{{uuid}}'"
    files = []
    for file, rows, size, _, found, *_ in session.execute(f"copy ({sql}) to {target} ({settings})").fetchall():
        done.append(file)
        if not rows:
            Path(file).unlink()
            continue
        told = "" if below else delta_stats.stats(rows, found, write.table.columns)
        files.append(File(Path(file).relative_to(root).as_posix(), values, size, rows, told))
    return files


def _told(statement: Merge, plan: Plan, added: list[File], feed: list[File], started: float) -> Change:
    """Say what a commit did, in the words that delta-rs has for it."""
    counts, rows = plan.counts, sum(file.rows for file in added)
    spent = {"execution_time_ms": int((time.perf_counter() - started) * 1000)}
    if not plan.touched:
        brief = {"num_added_files": len(added), "num_removed_files": 0, "num_added_rows": rows}
        return Change("WRITE", {"mode": "Append"}, brief | spent, tuple(added))
    metrics = {
        "num_source_rows": sum(counts.values()),
        "num_target_rows_inserted": counts.get("i", 0),
        "num_target_rows_updated": counts.get("u", 0),
        "num_target_rows_deleted": counts.get("d", 0),
        "num_target_rows_copied": rows - counts.get("i", 0) - counts.get("u", 0),
        "num_output_rows": rows,
        "num_target_files_added": len(added),
        "num_target_files_removed": len(plan.touched),
    }
    parameters = {"mergePredicate": " AND ".join(equal(key, key in statement.null_safe) for key in statement.key)}
    removed = tuple((file.path, file.values, file.size) for file in plan.touched)
    return Change("MERGE", parameters, metrics | spent, tuple(added), removed, tuple(feed))
