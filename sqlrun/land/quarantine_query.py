"""The queue of quarantined lines: their ids, their state in the log, and its queries. Pure.

The lines are in the landing table, marked by their reason; the log beside the ledger has the requests. A line leaves
the queue only by a row of the log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from sqlrun.engine_api import Dialect, StoredColumn
from sqlrun.expectations.validate import from_contract, split
from sqlrun.expectations.values import identity
from sqlrun.incremental.landing import query as landing_query
from sqlrun.plan.values import reason_of
from sqlrun.project import Model, Source, Suite
from sqlrun.transpile.writer import string

# Kinds of the log's rows: a line was discarded; its replay was requested; the replay was run; its source was landed
# from scratch and the line is valid there.
DISCARD, REPLAY, DONE, LANDED = "discard", "replay", "done", "landed"
# Outcomes of a replayed line: it is a row of the model, is still in quarantine, or is filtered out by the query. The
# log stores these words, so they stay as they are; `OUTCOMES` has the words that people read.
CAME_IN, STILL, LEFT_OUT = "came in", "set aside still", "left out by the query"
# The source was landed from scratch, and the line is valid there.
LANDED_AGAIN = "landed anew"
OUTCOMES = {
    CAME_IN: "came in",
    LANDED_AGAIN: "landed again",
    LEFT_OUT: "left out by the query",
    STILL: "still quarantined",
}
BOOK = (
    StoredColumn("event", "string", False),  # one command or one landing; its rows share it
    StoredColumn("kind", "string", False),
    StoredColumn("model", "string", False),
    StoredColumn("path", "string", False),  # the landing table, relative to the warehouse
    StoredColumn("id", "string", False),
    StoredColumn("reason", "string", False),  # the reason for the quarantine at that time
    StoredColumn("lines", "bigint", False),  # number of equal lines of the same file
    StoredColumn("written_at", "timestamp", False),
    StoredColumn("who", "string", False),
    StoredColumn("because", "string", False),
    StoredColumn("request", "string", False),  # of a replay that was run: the event that requested it
    StoredColumn("outcome", "string", False),
    StoredColumn("tick", "bigint"),
)
ID_LENGTH = 16


@dataclass(frozen=True, slots=True)
class Counted:
    """Numbers of lines of one model and reason: pending (`asked`: with a requested replay), and departed ones."""

    model: str
    reason: str
    check_id: str
    waiting: int
    asked: int
    replayed: int
    discarded: int
    first_landed: object
    last_landed: object
    first_tick: int | None = None
    last_tick: int | None = None


def text(value: str) -> str:
    """Return a text as a literal of DuckDB's SQL."""
    return string(value, "duckdb")


def id_of(dialect: Dialect) -> str:
    """Return SQL for a line's id: the same for equal texts of one file, regardless of time and engine of landing."""
    newline = "chr(10)" if dialect == "duckdb" else "char(10)"
    return f"substr(md5(concat({landing_query.ORIGIN}, {newline}, {landing_query.RAW})), 1, {ID_LENGTH})"


def held(dialect: Dialect = "duckdb") -> str:
    """Return the query of the quarantined lines, over `held`; `lines` counts equal ones of one file."""
    reason, raw, file, at = landing_query.REASON, landing_query.RAW, landing_query.ORIGIN, landing_query.LANDED_AT
    return (
        f"select {id_of(dialect)} as id, min({reason}) as reason, min({raw}) as raw, min({file}) as file, "
        f"min({at}) as landed_at, count(*) as lines from held where {reason} is not null group by 1"
    )


def states(model: str) -> str:
    """Return the query of each id's state in the log for a model: discarded, or replay requested.

    A line that is still in quarantine after its replay is pending as before.
    """
    name = text(model)
    return (
        f"select id, bool_or(kind = '{DISCARD}') as discarded, "
        f"count(*) filter (kind = '{REPLAY}') > count(*) filter (kind = '{DONE}') as asked "
        f"from book where model = {name} group by id"
    )


def queue(model: str) -> str:
    """Return the query of a model's queue, a row for each id with its state, over `held` and `book`."""
    return (
        "select h.*, case when coalesce(s.discarded, false) then 'discarded' "
        "when coalesce(s.asked, false) then 'replay asked' else 'waiting' end as state "
        f"from ({held()}) as h left join ({states(model)}) as s using (id)"
    )


def pending(model: str) -> str:
    """Return the query of a model's requested replays that weren't run yet, a row for each line."""
    name = text(model)
    return (
        "select b.event, b.id, b.path, b.reason, b.lines from book as b "
        f"where b.model = {name} and b.kind = '{REPLAY}' and not exists (select 1 from book as d "
        f"where d.model = {name} and d.id = b.id and (d.kind = '{DISCARD}' or d.kind = '{DONE}' "
        "and d.request = b.event)) order by b.id, b.event"
    )


def counts(model: str) -> str:
    """Return the query of the numbers of a model's lines by reason, over `held` and `book`."""
    name = text(model)
    gone = (
        "select id, any_value(reason order by written_at desc) as reason, "
        "any_value(lines order by written_at desc) as lines, "
        f"bool_or(kind = '{DISCARD}') as discarded, bool_or(outcome in ('{CAME_IN}', '{LANDED_AGAIN}')) as replayed "
        f"from book where model = {name} group by id"
    )
    left = (
        "select reason, coalesce(sum(lines) filter (replayed and not discarded), 0) as replayed, "
        f"coalesce(sum(lines) filter (discarded), 0) as discarded from ({gone}) group by reason "
        "having replayed + discarded > 0"
    )
    there = (
        "select reason, sum(lines) as waiting, coalesce(sum(lines) filter (state = 'replay asked'), 0) as asked, "
        f"min(landed_at) as first_landed, max(landed_at) as last_landed from ({queue(model)}) "
        "where state <> 'discarded' group by reason"
    )
    return (
        "select coalesce(t.reason, l.reason) as reason, coalesce(waiting, 0)::bigint as waiting, "
        "coalesce(asked, 0)::bigint as asked, coalesce(replayed, 0)::bigint as replayed, "
        "coalesce(discarded, 0)::bigint as discarded, first_landed, last_landed "
        f"from ({there}) as t full join ({left}) as l on t.reason = l.reason order by waiting desc, reason"
    )


def exceeds(limit: str, quarantined: int, lines: int) -> bool:
    """Return whether more lines were quarantined than a limit allows, computed exactly.

    >>> exceeds("1%", 1, 100), exceeds("1%", 2, 199), exceeds("0%", 1, 1), exceeds("3", 3, 3), exceeds("1%", 0, 0)
    (False, True, True, False, False)
    """
    if limit.endswith("%"):
        return Fraction(quarantined * 100) > Fraction(limit[:-1]) * lines
    return quarantined > int(limit)


def check_ids(model: Model, suite: Suite | None) -> Mapping[str, str]:
    """Return the ids of the checks by the reason that they give; a line that can't be parsed has no check."""
    found = {
        f"{expectation.kwargs['column']}: no value": identity(model.name, expectation)
        for expectation in from_contract(model)
        if expectation.type == "expect_column_values_to_not_be_null"
    }
    rules, _ = split(suite.expectations if suite else ())
    return {**found, **{reason_of(rule): identity(model.name, rule) for rule in rules}}


def private(model: Model, source: Source) -> frozenset[str]:
    """Return the names of the columns tagged pii, of a model and of the source that it lands."""
    return frozenset(c.name for c in (*model.columns, *source.columns) if c.is_private)
