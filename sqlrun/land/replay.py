"""Replay quarantined lines by the current rules, in one commit of the landing table. Shell: the engine, the book.

A replay updates existing rows: a valid line gets its values and loses its reason, an invalid one gets its new reason.
So a line is one row of the table however often it is replayed and wherever that is interrupted. Downstream models find
the valid lines among the table's changes, like newly landed rows. The outcome is read from the table and written to the
log afterwards; after an interruption, the next tick finds nothing left to change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlrun.engine_api import Dialect, Merge, Prune, Receipt, Relation, Write, Written
from sqlrun.incremental import hidden_partitions
from sqlrun.incremental.compile import Compiled
from sqlrun.incremental.landing import line_grammar
from sqlrun.incremental.landing import query as landing_query
from sqlrun.incremental.landing.query import QUARANTINED_ROWS
from sqlrun.land import decoding_again, quarantine_log, quarantine_query
from sqlrun.land.decoding_again import Again
from sqlrun.land.drift_query import reader_of
from sqlrun.maintain import engine_selection
from sqlrun.maintain.tick_context import TickContext
from sqlrun.plan.values import TablePlan, stored_columns
from sqlrun.project import Source
from sqlrun.runtime.text_table import counted
from sqlrun.transpile.writer import identifier, string


@dataclass(frozen=True, slots=True)
class Replayed:
    """The result of a replay: the table's new version, the number of commits, and a note."""

    version: int
    commits: int
    note: str = ""


def carry_out(context: TickContext, model: Compiled, version: int, at: datetime) -> Replayed:
    """Run the requested replays of a model; `version` is the landing table's after landing."""
    warehouse, env, table = context.warehouse, context.plan.env, context.plan.tables[model.name]
    if not quarantine_log.has_rows(warehouse, env):
        return Replayed(version, 0)
    book = quarantine_log.relation(warehouse, env)
    requests = reader_of(context).query(quarantine_query.pending(model.name), (book,)).to_pylist()
    if not requests:
        return Replayed(version, 0)
    written = Written(version, Receipt(0.0))
    events = sorted({row["event"] for row in requests if row["path"] == table.path})
    if events:
        assert model.source is not None
        context.assert_lock_held()
        engine = engine_selection.of_landing(context, model).engine
        statement = merge(context, model, _requested(model.source, events, engine.dialect), engine.dialect, at)
        written = engine.write(_write(context, table, book, events, version, statement))
        held = _held(table, written.version)
        for some in decoding_again.lines(reader_of(context), context.source_of(model), held, book, events):
            statement = merge(context, model, _decoded(some, engine.dialect), engine.dialect, at)
            context.assert_lock_held()
            written = engine.write(_write(context, table, book, events, written.version, statement))
    found = _outcomes(context, table, written.version, requests)
    rows = quarantine_log.entries(quarantine_query.DONE, model.name, table.path, found, at, tick=context.plan.number)
    context.assert_lock_held()
    quarantine_log.append(warehouse, env, rows)
    return Replayed(written.version, written.version - version, _note(model.name, found))


def _held(table: TablePlan, version: int) -> Relation:
    return Relation("held", table.spec.path, landing_query.PROVENANCE, "new", version=version, where=QUARANTINED_ROWS)


def _write(
    context: TickContext, table: TablePlan, book: Relation, events: Iterable[str], base: int, statement: Merge
) -> Write:
    metadata = {**context.metadata(), "sqlrun.replay": ",".join(events)}
    app_id = f"{context.plan.app_id(context.workspace.project.name, table.path)}:replay"
    # A build that dies before it pins reuses its number; the table's version only increases.
    return Write(table.spec, base, base + 1, app_id, (_held(table, base), book), statement, metadata, lenient=True)


def merge(context: TickContext, model: Compiled, lines: str, dialect: Dialect, at: datetime) -> Merge:
    """Return the statement over `held` and `book`: each line goes through the landing query again.

    `lines` is the query of the lines: `raw`, the text in the table, `value`, the text to land, `file`, `was`, and
    `fault` of a source that has faults. A line that the model's query filters out returns no row, so its own row is
    deleted.
    """
    assert model.source is not None
    rules = context.workspace.rules.get(model.name, ())
    query = landing_query.query(model.own, model.source, rules, dialect, at, with_text=True)
    file, raw, reason, landed_at = (
        landing_query.ORIGIN,
        landing_query.RAW,
        landing_query.REASON,
        landing_query.LANDED_AT,
    )
    key = (file, raw)
    others = [c.name for c in stored_columns(model.own) if c.name not in key]
    items = ", ".join(f"q.{identifier(name, dialect)} as {identifier(name, dialect)}" for name in others)
    delta = (
        f"with lines as (\n{lines}\n)\n"
        f"select l.raw as {raw}, l.file as {file}, l.was as _was, q.{file} is null as _gone, {items}\n"
        f"from lines as l left join (\n{query}\n) as q on q.{raw} = l.value and q.{file} = l.file"
    )
    values = {name: f"s.{identifier(name, dialect)}" for name in (*others, *key)}
    values[landed_at] = f"case when s.{reason} is null then s.{landed_at} else s._was end"
    made = Merge(
        delta=delta,
        key=key,
        null_safe=(),
        update=tuple((name, values[name]) for name in others),
        insert=tuple(values.items()),
        delete_when=f"s._gone and t.{reason} is not null",
        update_when=f"not s._gone and t.{reason} is not null and (s.{reason} is null or s.{reason} <> t.{reason})",
        insert_when="false",
        prune=Prune(ranges=((file, file),)),
        repeats=True,
    )
    filled = hidden_partitions.filled(made, model.own.columns, model.own.partition_by, dialect)
    assert isinstance(filled, Merge)
    return filled


def _requested(source: Source, events: Iterable[str], dialect: Dialect) -> str:
    """Return the query of the requested lines, for `merge`."""
    raw, file, landed_at = landing_query.RAW, landing_query.ORIGIN, landing_query.LANDED_AT
    listed = ", ".join(string(event, dialect) for event in events)
    return (
        f"select {quarantine_query.id_of(dialect)} as id, min({raw}) as raw, min({raw}) as value, min({file}) as file, "
        f"min({landed_at}) as was{_fault(source, dialect)}\nfrom held group by 1\n"
        f"having id in (select id from book where kind = '{quarantine_query.REPLAY}' and event in ({listed}))"
    )


def _decoded(lines: Iterable[Again], dialect: Dialect) -> str:
    """Return the query of lines that were decoded again, for `merge`: the table has their former text."""
    raw, file, landed_at = landing_query.RAW, landing_query.ORIGIN, landing_query.LANDED_AT
    rows = ",\n".join(line.row(dialect) for line in lines)
    held = (
        f"select {quarantine_query.id_of(dialect)} as id, min({raw}) as raw, min({file}) as file, "
        f"min({landed_at}) as was from held group by 1"
    )
    return (
        f"select h.id, h.raw, d.value, h.file, h.was, d.fault from ({held}) as h "
        f"join (values\n{rows}) as d(id, value, fault) on d.id = h.id"
    )


def _fault(source: Source, dialect: Dialect) -> str:
    """Return the column `fault` of the held lines of a source that has faults, as a further item; otherwise "".

    No table stores it. But the text of a record that can't be read is never in braces (`decoding.records.visible`), and
    of a text that isn't, the landing query itself says only a few things. So any other reason is a fault, and remains:
    the record can't be read from its text alone either.
    """
    if not source.has_faults:
        return ""
    text = line_grammar.stripped(landing_query.RAW, dialect)
    own = ", ".join(string(reason, dialect) for reason in landing_query.OF_TEXTS)
    is_fault = f"{text} not like '{{%}}' and {landing_query.REASON} not in ({own})"
    return f", min(case when {is_fault} then {landing_query.REASON} end) as fault"


def _outcomes(
    context: TickContext, table: TablePlan, version: int, requests: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the outcome of each requested line from the table: a row for each request."""
    held = Relation(
        "held",
        table.spec.path,
        landing_query.PROVENANCE,
        "new",
        version=version,
        where=f"{landing_query.RAW} is not null",
    )
    book = quarantine_log.relation(context.warehouse, context.plan.env)
    events = ", ".join(string(event, "duckdb") for event in sorted({row["event"] for row in requests}))
    sql = (
        f"select {quarantine_query.id_of('duckdb')} as id, max({landing_query.REASON}) as reason from held "
        f"group by 1 having id in (select id from book where event in ({events}))"
    )
    now = {row["id"]: row["reason"] for row in reader_of(context).query(sql, (held, book)).to_pylist()}
    found = []
    for row in requests:
        outcome = quarantine_query.CAME_IN if now.get(row["id"], "") is None else quarantine_query.STILL
        if row["id"] not in now:
            outcome = quarantine_query.LEFT_OUT if row["path"] == table.path else quarantine_query.LANDED_AGAIN
        facts = {"request": row["event"], "outcome": outcome, "because": now.get(row["id"]) or ""}
        found.append({"id": row["id"], "reason": row["reason"], "lines": row["lines"], **facts})
    return found


def _note(name: str, found: list[dict[str, Any]]) -> str:
    """Return the note of a replay: numbers by outcome, and the reasons of lines that are still in quarantine."""
    counts, reasons = Counter[str](), Counter[str]()
    for row in {row["id"]: row for row in found}.values():
        counts[row["outcome"]] += row["lines"]
        if row["outcome"] == quarantine_query.STILL:
            reasons[row["because"]] += row["lines"]
    listed = ", ".join(f"{counts[each]:,} {words}" for each, words in quarantine_query.OUTCOMES.items() if counts[each])
    why = "; ".join(f"{reason} ({count:,})" for reason, count in sorted(reasons.items()))
    lines = counted(sum(counts.values()), "line")
    return f"{name}: replayed {lines} of the quarantine: {listed}" + (f": {why}" if why else "")


def waiting(context: TickContext, model: Compiled) -> int:
    """Return the number of pending lines of a landing table, in a tick that has landed."""
    path, version = context.plan.tables[model.name].spec.path, context.states[model.name].version
    held = Relation("held", path, landing_query.PROVENANCE, "new", version=version, where=QUARANTINED_ROWS)
    sql = f"select coalesce(sum(lines), 0) as n from ({quarantine_query.queue(model.name)}) where state = 'waiting'"
    sql, book = quarantine_log.about(context.warehouse, context.plan.env, sql)
    (row,) = reader_of(context).query(sql, (held, *book)).to_pylist()
    return int(row["n"])
