"""Repeated rows that should be exact copies and aren't: reported in the tick in which they arrive. Shell: the engine.

A source that sends one key and version with different contents breaks what `repeats: true` promises. The result is
still a function of the set of lines (`incremental/ties.py`), but the source needs attention.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from sqlrun.check import key_ranges
from sqlrun.check.samples import SAMPLES, masked
from sqlrun.engine_api import Relation
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
    found = _of_feed(context, model, change) if change.rows is None else _of_rows(context, model, change.rows)
    return (_result(contract, change.count, found, time.perf_counter() - started),) if found else ()


def _of_feed(context: TickContext, model: Compiled, change: Change) -> list[dict[str, Any]]:
    """Compare all rows of the inserted keys: there are too many inserted rows for memory."""
    table = context.plan.tables[model.name]
    key = names(model.query.rendered.model.grain, "duckdb")
    sql = (
        f"select {key} from held semi join (select {key} from feed where {WEIGHT} > 0) as changed using ({key})\n"
        f"group by {key} having count(*) > 1"
    )
    relations = (_stored_rows(context, model, None), feed(context, model, change.commits, table.where))
    return _differing(context, model, reader_of(context).query(sql, relations), {})


def _of_rows(context: TickContext, model: Compiled, rows: pa.Table) -> list[dict[str, Any]]:
    """Compare the inserted rows with each other, and with stored rows of the same key.

    Copies mostly arrive together. So stored rows are counted by their keys only, and few are read completely.
    """
    import pyarrow.compute as pc

    grain = list(model.query.rendered.model.grain)
    key, inserted = names(grain, "duckdb"), rows.select(grain)
    sql = (
        f"with came as (select {key}, count(*) as n from changed group by {key}),\n"
        f"stored as (select {key}, count(*) as n from held semi join changed using ({key}) group by {key})\n"
        f"select {key}, stored.n > came.n as is_older from came join stored using ({key}) where stored.n > 1"
    )
    found = reader_of(context).query(
        sql, (_stored_rows(context, model, inserted, "changed", grain),), {"changed": inserted}
    )
    keys, is_older = found.select(range(len(grain))), found.column(len(grain))
    newer = keys.filter(pc.invert(is_older))
    return _differing(context, model, keys.filter(is_older), {"came": rows, "newer": newer} if newer.num_rows else {})


def _differing(
    context: TickContext, model: Compiled, older: pa.Table, tables: Mapping[str, pa.Table]
) -> list[dict[str, Any]]:
    """Return, in order, the keys whose rows have more than one content.

    Rows with the keys `older` are read from the table; rows with the keys `newer` are `came`, if given.
    """
    contract = model.query.rendered.model
    key, every = names(contract.grain, "duckdb"), names((c.name for c in contract.columns), "duckdb")
    pieces = [("came", "newer")] if tables else []
    relations: tuple[Relation, ...] = ()
    if older.num_rows:
        pieces, tables = [*pieces, ("held", "older")], {**tables, "older": older}
        relations = (_stored_rows(context, model, older, "older"),)
    if not pieces:
        return []
    contents = (f"select distinct {every} from {rows} semi join {keys} using ({key})" for rows, keys in pieces)
    sql = f"select {key}, count(*) as contents from ({' union all '.join(contents)})"
    sql += f" group by {key} having count(*) > 1 order by {key}"
    return arrow_rows.plain(reader_of(context).query(sql, relations, tables))


def _stored_rows(
    context: TickContext, model: Compiled, near: pa.Table | None, given: str = "", columns: Collection[str] = ()
) -> Relation:
    """Return the table's public rows, without files that have no key of `near`, which the query is given as `given`.

    `columns`: the ones that the query reads; all if empty.
    """
    table, version = context.plan.tables[model.name], context.states[model.name].version
    key = model.query.rendered.model.grain
    ranges = key_ranges.of(near, key, table.spec.partition_by) if near is not None else ()
    sure = key if near is not None and not any(near.column(name).null_count for name in key) else ()
    return Relation(
        "held",
        table.spec.path,
        tuple(column for column in table.public if not columns or column.name in columns),
        "new",
        version=version,
        where=table.where,
        ranges=ranges,
        given_keys=(given, sure),
    )


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
