"""MERGE by DuckDB: changed rows are computed once and read once. Shell: DuckDB, Delta files.

Replaced rows are marked as deleted in their file, or the file is rewritten: `file_layout` decides.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sqlrun.engine_api import Merge, Write
from sqlrun.engines.delta import (
    commit as delta_commit,
)
from sqlrun.engines.delta import (
    deletion_vectors,
    file_layout,
    log_entries,
    merged_rows,
)
from sqlrun.engines.delta import (
    stats as delta_stats,
)
from sqlrun.engines.delta.commit import Change, File, Gone, Marked
from sqlrun.engines.delta.file_layout import Standing
from sqlrun.engines.delta.merge_sql import operation, same
from sqlrun.engines.delta.merged_rows import MergedRows
from sqlrun.engines.duckdb import matching_rows
from sqlrun.engines.duckdb import scan as duckdb_scan
from sqlrun.engines.duckdb.copy import FILE, MOST_AT_ONCE, OP, ROW, at_once, changes, copied, old, rows
from sqlrun.engines.duckdb.matching_rows import Keys
from sqlrun.engines.duckdb.row_order import row_order
from sqlrun.engines.duckdb.scan import listed
from sqlrun.errors import EngineError
from sqlrun.storage.factory import storage_of
from sqlrun.storage.stages import Stage, staged
from sqlrun.transpile.writer import identifier, string, type_name

if TYPE_CHECKING:
    from pyroaring import BitMap64

# Maximum number of partitions written by one statement each. With more, delta-rs writes all at once; it holds merged
# rows in memory, so only merges with few rows for each partition go there.
MOST_PARTITIONS = 24
FEW_ROWS = 10_000
# Maximum number of rows of a delta whose unchanged rows are kept in memory with the others, for the checks of the key.
MOST_JOINED = 500_000
Partition = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a merge: number of changed rows by kind, rewritten files, files with marked rows, and partitions.

    `hits`: number of changed rows by file; `places`: their positions, if there are few, else empty. `partitions`: those
    that get rows, each with its condition; `incoming`: the number of these rows. `live`: the number of rows of each
    partition after the merge, in the files that were looked at. `fits`: there are few partitions, all with values that
    can be written, so that `carry_out` can write the merge.
    """

    counts: Mapping[str, int]
    hits: Mapping[str, int]
    places: Mapping[str, list[int]]
    partitions: Mapping[Partition, str]
    incoming: Mapping[Partition, int]
    live: Mapping[Partition, int]
    fits: bool
    rewritten: tuple[TargetFile, ...] = ()
    marked: tuple[TargetFile, ...] = ()


@dataclass(frozen=True, slots=True)
class TargetFile:
    """A file of the target: its location, its name in the log, its partition, size, rows and deleted rows.

    `entry`: its log entry, once looked up.
    """

    file: str
    path: str
    values: Mapping[str, str | None]
    size: int
    rows: int | None
    gone: int = 0
    entry: Mapping[str, Any] | None = None

    @property
    def partition(self) -> Partition:
        """Return the partition's values without their names."""
        return tuple(self.values.values())

    @property
    def vector(self) -> Mapping[str, Any] | None:
        """Return its deletion vector."""
        return self.entry.get("deletionVector") if self.entry else None


def prepare(
    session: Any, table: Any, write: Write, statement: Merge, files: list[dict[str, Any]], changed: int
) -> Plan | None:
    """Compute the changes of a MERGE with the delta `s` into the table `_hits`; nothing is written to the target yet.

    `files`: the target's files that may contain a matched row. `changed`: the number of rows of `s`. None if delta-rs
    has to write the table.
    """
    if not delta_commit.ours(table, write):
        return None
    deleted = deletion_vectors.deleted(table)
    try:
        targets = {file.file: file for file in _target_files(table, write, files, deleted)}
    except ValueError:
        return None
    counts = {file.file: file.rows for file in targets.values()}
    values = {file.file: file.values for file in targets.values()}
    stored = matching_rows.Stored(write.table.columns, counts, values, deleted, "_target")
    target = matching_rows.positioned(session, Keys(statement.key, statement.null_safe, changed), stored)
    joined, where = _joined(write, statement, target), f"where {OP} is not null"
    if changed > MOST_JOINED:
        joined = f"select * from ({joined}) {where}"
    made = session.execute(f"create or replace temp table _joined as {joined}").fetchall()
    session.execute(f"create or replace temp view _hits as select * from _joined {where}")
    return _found(session, table, write, targets, MOST_PARTITIONS, few=made[0][0] <= MOST_AT_ONCE)


def planned(session: Any, table: Any, write: Write, files: list[dict[str, Any]], most: int) -> Plan | None:
    """Plan a MERGE whose changed rows another engine has computed into the table `_hits`.

    `most`: maximum number of partitions written one by one. None if a partition's value can't be written.
    """
    try:
        targets = {file.file: file for file in _target_files(table, write, files, deletion_vectors.deleted(table))}
    except ValueError:
        return None
    return _found(session, table, write, targets, most, few=False)


def carry_out(session: Any, table: Any, write: Write, statement: Merge, plan: Plan) -> int:
    """Write and commit the files of a plan; return the number of changed rows.

    Raises: EngineError if two rows of the delta, or two of the target, have the same key.
    """
    started = time.perf_counter()
    if not plan.counts:
        return 0
    delta_stats.require_days(write.table, plan.partitions)
    _require_single(session, write, statement, plan)
    deleted = deletion_vectors.deleted(table)
    dead = _dead(session, plan, deleted)
    with _written() as done, staged(write.table.path) as stage:
        vectors = deletion_vectors.written(write.table.path, dead.values(), done, stage)
        marked = [Marked(file.entry or {}, vector) for file, vector in zip(plan.marked, vectors, strict=True)]
        added, feed = _files(session, write, plan, deleted, done, stage)
        _require_all(write, plan, sum(file.rows for file in added))
        stage.wait()
        write.may_commit()
    delta_commit.commit(table, write, _commit_content(statement, plan, added, feed, marked, started))
    left = {file.file for file in plan.rewritten}
    stay = {file: rows for file, rows in deleted.items() if file not in left}
    found = {file: deletion_vectors.ordered(rows) for file, rows in dead.items()}
    deletion_vectors.keep(table, stay | found, write.base + 1)
    return sum(plan.counts.values())


def keep_merged_rows(
    session: Any, table: Any, write: Write, statement: Merge, changed: int, before: Iterable[str]
) -> None:
    """Keep what a merge that was planned by `prepare` and carried out found out about its keys.

    `changed`: the number of rows of the delta. `before`: the log's paths of all files before it. Nothing is kept if a
    key has another type in the delta than in the table: the rows were compared before they were cast.
    """
    if changed > MOST_JOINED or statement.repeats or not _same_types(session, write, statement):
        return
    where = f"where {OP} is null and {FILE} is not null"
    unchanged = dict(session.execute(f"select {FILE}, list({ROW}) from _joined {where} group by all").fetchall())
    merged_rows.keep(table, write.base + 1, MergedRows(statement.key, frozenset(before), unchanged))


def _same_types(session: Any, write: Write, statement: Merge) -> bool:
    kinds = {column.name: type_name(column.type, "duckdb") for column in write.table.columns}
    same_type = (
        f"typeof(min({identifier(key, 'duckdb')})) = typeof(cast(null as {kinds[key]}))" for key in statement.key
    )
    ((found,),) = session.execute(f"select {' and '.join(same_type)} from (select * from s limit 1)").fetchall()
    return bool(found)


def _target_files(
    table: Any, write: Write, files: list[dict[str, Any]], deleted: deletion_vectors.Deleted
) -> Iterator[TargetFile]:
    """Return files with their partitions. Raises: ValueError if a partition's value can't be written."""
    for file, row in duckdb_scan.by_path(table, files).items():
        values = duckdb_scan.values_of(row, write.table.partition_by)
        dead = deleted.get(file, ())
        rows = duckdb_scan.stored_rows(row, dead)
        yield TargetFile(file, row["path"], values, row["size_bytes"], rows, len(dead))


def _joined(write: Write, statement: Merge, target: str) -> str:
    """Return the query of the delta's rows with the target's: new values, operation, position, and old values.

    A row that changes nothing has no operation.
    """
    updates, inserts = dict(statement.update), dict(statement.insert)
    items = []
    for column in write.table.columns:
        name = identifier(column.name, "duckdb")
        unchanged = f"t.{name}" if column.name not in statement.key else f"s.{name}"
        inserted, updated = inserts.get(column.name, "null"), updates.get(column.name, unchanged)
        new = inserted if inserted == updated else f"case when t.{FILE} is null then {inserted} else {updated} end"
        items.append(f"cast({new} as {type_name(column.type, 'duckdb')}) as {name}")
    items += [f"t.{identifier(c.name, 'duckdb')} as {old(c.name)}" for c in write.table.columns]
    op = operation(statement, f"t.{FILE} is null")
    on = " and ".join(same(statement))
    joined = f"from s left join ({target}) as t on {on}"
    once = "distinct " if statement.repeats else ""
    places = f"{op} as {OP}, t.{FILE}, t.{ROW}"
    return f"select {once}* from (select {', '.join(items)}, {places} {joined})"


def applied(write: Write, statement: Merge) -> str:
    """Return the query of changed rows with their operation in `_op`, for delta-rs' merge."""
    once = "distinct " if statement.repeats else ""
    return f"select {once}{duckdb_scan.names(write.table.columns)}, {OP} as _op from _hits"


def _found(session: Any, table: Any, write: Write, targets: Mapping[str, TargetFile], most: int, *, few: bool) -> Plan:
    """Count the changed rows and plan the files; `few`: also record each row's position."""
    names = [identifier(name, "duckdb") for name in write.table.partition_by]
    grouped = ", ".join([OP, FILE, *names])
    counts: dict[str, int] = {}
    hits: dict[str, int] = {}
    places: dict[str, list[int]] = {}
    news: dict[Partition, int] = {}
    fits = True
    listing = f"list({ROW}) filter ({FILE} is not null)" if few else "null"
    sql = f"select {grouped}, count(*), {listing} from _hits group by all"
    for op, file, *values, count, numbers in session.execute(sql).fetchall():
        counts[op] = counts.get(op, 0) + count
        if file is not None:
            hits[file] = hits.get(file, 0) + count
            if few:
                places.setdefault(file, []).extend(numbers)
        if op != "d":
            try:
                texts = tuple(map(delta_stats.partition_text, values))
            except ValueError:
                fits = False
                continue
            news[texts] = news.get(texts, 0) + count
    partitions = {
        texts: " and ".join(_partition_condition(write, n, t) for n, t in zip(names, texts, strict=True)) or "true"
        for texts in news
    }
    rewritten, marked, known = _layout(table, write, targets, hits, news)
    copies = sum(counts.values()) + sum(file.rows or 0 for file in rewritten)
    most = max(most, copies // FEW_ROWS)
    affected = {*partitions, *(targets[file].partition for file in hits), *(file.partition for file in rewritten)}
    live = Counter(news)
    for file in targets.values():
        live[file.partition] += (file.rows or 0) - file.gone - hits.get(file.file, 0)
    return Plan(
        counts, hits, places, partitions, news, live, fits and known and len(affected) <= most, rewritten, marked
    )


def _layout(
    table: Any, write: Write, targets: Mapping[str, TargetFile], hits: Mapping[str, int], news: Mapping[Partition, int]
) -> tuple[tuple[TargetFile, ...], tuple[TargetFile, ...], bool]:
    """Return the rewritten files, those with marked rows, and whether the log has all that marking needs."""
    rewritten = set(hits)
    if delta_commit.marks(table):
        # A file whose number of rows is unknown can't be marked.
        rewritten = {file for file in hits if targets[file].rows is None}
        for partition in {*news, *(targets[file].partition for file in hits)}:
            inside = [file for file in targets.values() if file.partition == partition and file.rows is not None]
            standings = [Standing(f.file, f.rows or 0, f.gone, hits.get(f.file, 0)) for f in inside]
            rewritten |= file_layout.rewritten(standings, news.get(partition, 0))
    marked = set(hits) - rewritten
    needed = {targets[file].path for file in marked | {file for file in rewritten if targets[file].gone}}
    entries = log_entries.of_files(write.table.path, write.base, needed)
    known = {file: replace(targets[file], entry=entries.get(targets[file].path)) for file in (*rewritten, *marked)}
    blank = {file for file in marked if not (known[file].entry or {}).get("stats")}
    return (
        tuple(known[file] for file in targets if file in rewritten or file in blank),
        tuple(known[file] for file in targets if file in marked - blank),
        needed == entries.keys(),
    )


def _partition_condition(write: Write, name: str, text: str | None) -> str:
    """Return the condition that a partition column has a value."""
    if text is None:
        return f"{name} is null"
    kinds = {identifier(c.name, "duckdb"): c.type for c in write.table.columns}
    zone = "+00" if kinds[name] == "timestamp" else ""
    return f"{name} = cast({string(text + zone, 'duckdb')} as {type_name(kinds[name], 'duckdb')})"


def _require_single(session: Any, write: Write, statement: Merge, plan: Plan) -> None:
    """Reject two changes of one row: the result would be nondeterministic."""
    matched = sum(plan.hits.values())
    if not matched:
        return
    keys = [FILE, ROW] if statement.repeats else [identifier(key, "duckdb") for key in statement.key]
    each = f"select count(*) from (select distinct {', '.join(keys)} from _hits where {FILE} is not null)"
    if session.execute(each).fetchall()[0][0] != matched:
        raise EngineError(
            f"several source rows match the same row of {write.table.name} by {', '.join(statement.key)}: "
            "a grain that is not unique",
            model=write.table.name,
        )


def _dead(session: Any, plan: Plan, deleted: deletion_vectors.Deleted) -> dict[str, BitMap64]:
    """Return the deleted rows of each marked file, in their order: its previous ones and this merge's changed rows."""
    import pyarrow as pa

    if not plan.marked:
        return {}
    places: Mapping[str, pa.Array] = {file: pa.array(numbers, pa.int64()) for file, numbers in plan.places.items()}
    if not places:
        where = f"where {FILE} in ({listed(file.file for file in plan.marked)})"
        found = session.sql(f"select {FILE}, list({ROW}) from _hits {where} group by all").to_arrow_table()
        places = {file.as_py(): numbers.values for file, numbers in zip(*found.columns, strict=True)}
    arrays = {file.file: (deleted.get(file.file), places[file.file]) for file in plan.marked}
    return {file: deletion_vectors.union(each for each in some if each is not None) for file, some in arrays.items()}


@contextmanager
def _written() -> Iterator[list[str]]:
    """Collect the written files; on an error delete them."""
    done: list[str] = []
    try:
        yield done
    except BaseException:
        for file in done:
            storage_of(file).delete(file)
        raise


def _files(
    session: Any, write: Write, plan: Plan, deleted: deletion_vectors.Deleted, done: list[str], stage: Stage
) -> tuple[list[File], list[File]]:
    """Write the files: remaining rows with inserted rows, then the changes, while the former are uploaded.

    If possible, one statement writes the rows of several partitions and one writes all changes; otherwise each
    partition has its own statements.
    """
    leaving = (*plan.rewritten, *plan.marked)
    affected = list(dict.fromkeys([*plan.partitions, *(file.partition for file in leaving)]))
    together = at_once(write, affected, sum(plan.counts.values()))
    added = _rows_written(session, write, plan, deleted, done, stage, together=together)
    feed: list[File] = []
    if leaving and together:
        sql = changes(write, list(plan.hits), "true", whole=True)
        feed = copied(session, write, sql, "_change_data", None, done, stage)
    elif leaving:
        for partition in affected:
            hit = [file.file for file in leaving if file.partition == partition and file.file in plan.hits]
            sql = changes(write, hit, plan.partitions.get(partition, "false"))
            feed += copied(session, write, sql, "_change_data", _values(write, partition), done, stage)
    return added, feed


def _rows_written(
    session: Any,
    write: Write,
    plan: Plan,
    deleted: deletion_vectors.Deleted,
    done: list[str],
    stage: Stage,
    *,
    together: bool,
) -> list[File]:
    """Write the inserted rows, with the remaining rows of rewritten files."""
    added: list[File] = []
    remade = dict.fromkeys(file.partition for file in plan.rewritten)
    alone = {**plan.partitions, **remade}
    if together:
        stay = _staying(plan)
        few = stay is not None and stay + sum(plan.counts.values()) <= MOST_AT_ONCE
        alone = {} if few else remade
    for partition in alone:
        files = [file for file in plan.rewritten if file.partition == partition]
        rewritten, counts = {file.file: file.values for file in files}, {file.file: file.rows for file in files}
        staying, incoming = _staying(plan, partition) or 0, plan.incoming.get(partition, 0)
        order = row_order(session, write, counts, staying, incoming, plan.live[partition])
        sql = rows(session, write, rewritten, deleted, plan.hits, plan.partitions.get(partition, "false"), order=order)
        each = file_layout.rows_of_each(staying + incoming, plan.live[partition])
        added += copied(session, write, sql, "", _values(write, partition), done, stage, each)
    rest = [f"({where})" for partition, where in plan.partitions.items() if partition not in alone]
    rewritten = {file.file: file.values for file in plan.rewritten if file.partition not in alone}
    if together and (rest or rewritten):
        sql = rows(session, write, rewritten, deleted, plan.hits, f"({' or '.join(rest) or 'false'})", whole=True)
        added += copied(session, write, sql, "", None, done, stage)
    return added


def _values(write: Write, partition: Partition) -> dict[str, str | None]:
    return dict(zip(write.table.partition_by, partition, strict=True))


def _staying(plan: Plan, partition: Partition | None = None) -> int | None:
    """Return the number of remaining rows in rewritten files, of one partition or of all.

    None if the number of rows of a file is unknown.
    """
    files = [file for file in plan.rewritten if partition is None or file.partition == partition]
    if any(file.rows is None for file in files):
        return None
    return sum((file.rows or 0) - file.gone - plan.hits.get(file.file, 0) for file in files)


def _require_all(write: Write, plan: Plan, rows: int) -> None:
    """Check that no row of a rewritten file was lost or duplicated."""
    stay = _staying(plan)
    if stay is None:
        return
    left = stay + plan.counts.get("i", 0) + plan.counts.get("u", 0)
    if rows != left:
        raise EngineError(
            f"{write.table.name}: {rows:,} rows were written where {left:,} were to be; nothing is committed",
            model=write.table.name,
        )


def _commit_content(
    statement: Merge,
    plan: Plan,
    added: Iterable[File],
    feed: Iterable[File],
    marked: Iterable[Marked],
    started: float,
) -> Change:
    """Return the contents of the commit, with delta-rs' names for its metrics."""
    counts, added = plan.counts, tuple(added)
    rows = sum(file.rows for file in added)
    spent = {"execution_time_ms": int((time.perf_counter() - started) * 1000)}
    if not plan.rewritten and not plan.marked:
        brief = {"num_added_files": len(added), "num_removed_files": 0, "num_added_rows": rows}
        return Change("WRITE", {"mode": "Append"}, brief | spent, added)
    metrics = {
        "num_source_rows": sum(counts.values()),
        "num_target_rows_inserted": counts.get("i", 0),
        "num_target_rows_updated": counts.get("u", 0),
        "num_target_rows_deleted": counts.get("d", 0),
        "num_target_rows_copied": rows - counts.get("i", 0) - counts.get("u", 0),
        "num_output_rows": rows,
        "num_target_files_added": len(added),
        "num_target_files_removed": len(plan.rewritten),
        "num_target_deletion_vectors_updated": len(plan.marked),
    }
    parameters = {"mergePredicate": " AND ".join(same(statement))}
    removed = tuple(Gone(file.path, file.values, file.size, file.vector) for file in plan.rewritten)
    return Change("MERGE", parameters, metrics | spent, added, removed, tuple(marked), tuple(feed))
