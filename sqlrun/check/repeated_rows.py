"""Repeated rows that should be exact copies and aren't: reported in the tick in which they arrive. Shell: the engine.

A source that sends one key and version with different contents breaks what `repeats: true` promises. The result is
still a function of the set of lines (`incremental/ties.py`), but the source needs attention.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlrun.check import key_ranges
from sqlrun.check.samples import SAMPLES, masked
from sqlrun.engine_api import GivenKeys, Relation
from sqlrun.events import CheckResult
from sqlrun.expectations.values import identity
from sqlrun.incremental.compile import Compiled
from sqlrun.land.drift_query import reader_of
from sqlrun.maintain.changed_rows import WEIGHT, Change, feed
from sqlrun.maintain.tick_context import TickContext
from sqlrun.outcome import Outcome
from sqlrun.project import FAIL, WARNING, Expectation, Model
from sqlrun.runtime import arrow_rows
from sqlrun.transpile.writer import names

if TYPE_CHECKING:
    import pyarrow as pa

TYPE = "repeats"


def results(context: TickContext, model: Compiled, change: Change) -> tuple[CheckResult, ...]:
    """Warn of inserted rows whose key has differing rows, new or stored; no result if there are none."""
    contract = model.query.rendered.model
    if not contract.repeats or not contract.grain or not change.count:
        return ()
    started = time.perf_counter()
    rows = change.rows
    found = _of_feed(context, model, change) if rows is None else _of_rows(context, model, change, rows)
    return (_result(contract, change.count, found, time.perf_counter() - started),) if found else ()


def _of_feed(context: TickContext, model: Compiled, change: Change) -> list[dict[str, Any]]:
    """Compare all rows of the inserted keys: there are too many inserted rows for memory."""
    where = context.plan.tables[model.name].where
    key, every = _names(model)
    inserted = f"semi join (select {key} from feed where {WEIGHT} > 0) as inserted using ({key})"
    again = f"select {key} from held {inserted} group by {key} having count(*) > 1"
    found = reader_of(context).query(again, (_stored(context, model), feed(context, model, change.commits, where)))
    if not found.num_rows:
        return []
    sql = _differing(model, f"select {every} from held semi join again using ({key})")
    return arrow_rows.plain(reader_of(context).query(sql, (_near(context, model, found, "again"),), {"again": found}))


def _of_rows(context: TickContext, model: Compiled, change: Change, inserted: pa.Table) -> list[dict[str, Any]]:
    """Compare the inserted rows with each other, and with stored rows of the same key.

    The stored rows are those before the change if it deleted none: few have a key that comes again.
    """
    key, every = _names(model)
    stored = _near(context, model, inserted, "inserted")
    if change.grew:
        stored = replace(stored, version=min(change.commits) - 1)
    contents = (
        f"select {every} from older union all select {every} from inserted semi join (\n"
        f"select {key} from older union all select {key} from inserted group by {key} having count(*) > 1\n"
        f") as again using ({key})"
    )
    older = f"older as materialized (select {every} from held semi join inserted using ({key}))"
    sql = f"with {older}\n{_differing(model, contents)}"
    return arrow_rows.plain(reader_of(context).query(sql, (stored,), {"inserted": inserted}))


def _names(model: Compiled) -> tuple[str, str]:
    """Return the names of the key columns and of all columns."""
    contract = model.query.rendered.model
    return names(contract.grain, "duckdb"), names((column.name for column in contract.columns), "duckdb")


def _differing(model: Compiled, rows: str) -> str:
    """Return the query of the keys, in order, that have more than one content among `rows`."""
    key, every = _names(model)
    contents = f"select distinct {every} from ({rows})"
    return f"select {key}, count(*) as contents from ({contents}) group by {key} having count(*) > 1 order by {key}"


def _stored(context: TickContext, model: Compiled) -> Relation:
    """Return the table's public rows as `held`."""
    table, version = context.plan.tables[model.name], context.states[model.name].version
    return Relation("held", table.spec.path, table.public, "new", version=version, where=table.where)


def _near(context: TickContext, model: Compiled, keys: pa.Table, name: str) -> Relation:
    """Return the table's public rows as `held`, with all that have a key of `keys`, which the query has as `name`."""
    table, key = context.plan.tables[model.name], model.query.rendered.model.grain
    known = () if any(keys.column(each).null_count for each in key) else key
    ranges = key_ranges.of(keys, key, table.spec.partition_by)
    return replace(_stored(context, model), ranges=ranges, given_keys=GivenKeys(name, known, few_rows=True))


def _result(contract: Model, rows: int, found: list[dict[str, Any]], seconds: float) -> CheckResult:
    one = len(found) == 1
    message = (
        f"{len(found):,} {'key has' if one else 'keys have'} different rows, although `repeats: true` promises "
        "copies. sqlrun uses the row with the greatest content"
    )
    place = contract.columns[0].place
    what = Expectation(TYPE, {"columns": list(contract.grain)}, WARNING, FAIL, "", place)
    return CheckResult(
        model=contract.name,
        type=TYPE,
        columns=contract.grain,
        severity=WARNING,
        status=Outcome.WARN,
        evaluated=rows,
        unexpected=len(found),
        samples=tuple(masked(contract, row, "") for row in found[:SAMPLES]),
        seconds=seconds,
        message=message,
        description=f"{message}. Ask the owner of the source for the correct row, with a higher version.",
        place=place,
        check_id=identity(contract.name, what),
    )
