"""The queues of a project's landing tables: their paths and lines. Shell: the ledger, Delta files, DuckDB."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlrun.engine_api import Relation
from sqlrun.engines.delta import table as delta_table
from sqlrun.errors import UsageError
from sqlrun.incremental.compile import Compiled
from sqlrun.incremental.landing import query as landing_query
from sqlrun.land import quarantine_log, quarantine_query
from sqlrun.pipeline import Prepared
from sqlrun.plan import sampling
from sqlrun.plan.plan import tick_plan
from sqlrun.publish import environments
from sqlrun.publish.ledger import Entry, Ledger
from sqlrun.publish.reader import query
from sqlrun.publish.table_state import TableState
from sqlrun.runtime import arrow_rows
from sqlrun.transpile.writer import identifier, string


@dataclass(frozen=True, slots=True)
class Queue:
    """The quarantine of one landing model.

    `path` is relative to the warehouse. `edited`: the table was built before the model was edited.
    """

    model: Compiled
    path: str
    held: Relation
    edited: bool


def queues(prepared: Prepared, ledger: Ledger, names: Iterable[str]) -> list[Queue]:
    """Return the queues of the named models' landing tables in their newest version, published or not.

    An environment has no queues for tables that it shares with production.

    Raises: UsageError if none of the named models lands a source.
    """
    history, other_environments = ledger.read(), environments.other_environments(ledger)
    workspace = sampling.as_built(prepared.workspace, history.published.tables if history.published else {})
    wanted = set(names)
    lands = [m for m in workspace.tables if m.source is not None and m.name in wanted]
    if not lands:
        raise UsageError(f"no selected model reads a source. Models that do: {_listed(prepared)}")
    as_of = history.published.as_of if history.published else datetime.min
    every = tuple(m.name for m in workspace.tables if m.source is not None)
    plan = tick_plan(
        workspace, ledger.warehouse, history.published, history.last_tick + 1, as_of, every, False, other_environments
    )  # fmt: skip
    found = []
    for model in lands:
        table = plan.tables[model.name]
        if table.shared:
            continue
        published = history.published.tables.get(model.name) if history.published else None
        path, columns, edited = table.path, table.public, False
        if not delta_table.head(table.spec.path) and _is_own(published, plan.env, other_environments.taken):
            assert published is not None
            path, edited = published.path, True
            columns = delta_table.columns_at(f"{ledger.warehouse}/{path}", published.version)
        head = delta_table.head(f"{ledger.warehouse}/{path}")
        if head is not None:
            known = {column.name for column in landing_query.HIDDEN}
            own = tuple(c for c in columns if c.name not in known)
            held = Relation(
                "held", f"{ledger.warehouse}/{path}", (*landing_query.PROVENANCE, *own), "new", version=head
            )
            found.append(Queue(model, path, held, edited))
    return found


def _is_own(published: TableState | None, env: str, taken: Iterable[str]) -> bool:
    return published is not None and (not env or published.path not in taken)


def _listed(prepared: Prepared) -> str:
    return ", ".join(m.name for m in prepared.workspace.tables if m.source is not None) or "none"


def counted(prepared: Prepared, ledger: Ledger, found: Iterable[Queue]) -> Iterator[quarantine_query.Counted]:
    """Yield the number of lines of each queue, by reason."""
    entries = ledger.entries()
    for each in found:
        name = each.model.name
        ids = quarantine_query.check_ids(each.model.query.rendered.model, prepared.workspace.suites.get(name))
        sql, book = quarantine_log.about(ledger.warehouse, ledger.env, quarantine_query.counts(name))
        for row in arrow_rows.plain(query(sql, [each.held, *book])):
            ticks = (tick_at(entries, row["first_landed"]), tick_at(entries, row["last_landed"]))
            yield quarantine_query.Counted(
                name,
                row["reason"],
                ids.get(row["reason"], ""),
                row["waiting"],
                row["asked"],
                row["replayed"],
                row["discarded"],
                row["first_landed"],
                row["last_landed"],
                *ticks,
            )


def tick_at(entries: list[Entry], landed_at: datetime | None) -> int | None:
    """Return the tick that landed a line: the first one pinned after it; None if there is none or it isn't retained.

    A tick that lands nothing new still pins. A tick that fails during landing leaves its lines to the next one.
    """
    if landed_at is None:
        return None
    since = [e for e in entries if e.pinned_at is not None and e.pinned_at >= landed_at]
    if not since or (since[-1] is entries[-1] and since[-1].tick > 1):
        return None
    return since[-1].tick


def lines(
    queue: Queue, ledger: Ledger, reason: str = "", ids: tuple[str, ...] = (), limit: int = 0, *, gone: bool = False
) -> list[dict[str, Any]]:
    """Return lines of a queue with their state, newest first; `gone` adds discarded ones, `limit` 0 returns all."""
    tests = [] if gone else ["state <> 'discarded'"]
    tests += [f"reason = {string(reason, 'duckdb')}"] if reason else []
    tests += [f"id in ({', '.join(string(i, 'duckdb') for i in ids)})"] if ids else []
    sql = f"select * from ({quarantine_query.queue(queue.model.name)})"
    sql += f" where {' and '.join(tests)}" if tests else ""
    sql += " order by landed_at desc, file, id" + (f" limit {limit}" if limit else "")
    sql, book = quarantine_log.about(ledger.warehouse, ledger.env, sql)
    rows: list[dict[str, Any]] = arrow_rows.plain(query(sql, [queue.held, *book]))
    return rows


def values(queue: Queue, ids: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the values that could be read from lines, by the line's id."""
    hidden = {column.name for column in landing_query.HIDDEN}
    names = [c.name for c in queue.held.columns if c.name not in hidden]
    items = ", ".join(f"any_value({identifier(name, 'duckdb')}) as {identifier(name, 'duckdb')}" for name in names)
    wanted = ", ".join(string(each, "duckdb") for each in ids)
    if not wanted or not names:
        return {}
    line = quarantine_query.id_of("duckdb")
    where = f"{landing_query.REASON} is not null and {line} in ({wanted})"
    sql = f"select {line} as _id, {items} from held where {where} group by 1"
    rows: list[dict[str, Any]] = arrow_rows.plain(query(sql, [queue.held]))
    return {row["_id"]: {name: row[name] for name in names} for row in rows}
