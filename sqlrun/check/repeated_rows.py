"""Rows that should be exact copies of each other and aren't: told in the tick in which they come. Shell: the engine.

A source that sends one key and version with different content breaks what `repeats: true` promises. What is made of its
rows is still a function of the set of lines (`incremental/ties.py`), but somebody has to look at the source.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from sqlrun.check import key_ranges
from sqlrun.check.samples import SAMPLES, masked
from sqlrun.engine_api import Relation
from sqlrun.events import CheckResult
from sqlrun.expectations.values import identity
from sqlrun.incremental.compile import Compiled
from sqlrun.land.drift_query import reader_of
from sqlrun.maintain.changed_rows import Change
from sqlrun.maintain.maintain import TickContext
from sqlrun.outcome import Outcome
from sqlrun.project import FAIL, WARNING, Expectation, Model
from sqlrun.runtime import arrow_rows
from sqlrun.transpile.writer import names

if TYPE_CHECKING:
    import pyarrow as pa

TYPE = "repeats"
NOTHING: Mapping[str, pa.Table] = MappingProxyType({})


def told(context: TickContext, model: Compiled, change: Change) -> tuple[CheckResult, ...]:
    """Warn of keys of rows that came whose rows differ, here or in what is there; no result where there are none."""
    contract = model.query.rendered.model
    if not contract.repeats or not contract.grain or not change.count:
        return ()
    started = time.perf_counter()
    found = _of_all(context, model) if change.rows is None else _of_rows(context, model, change.rows)
    return (_result(contract, change.count, found, time.perf_counter() - started),) if found else ()


def _of_all(context: TickContext, model: Compiled) -> list[dict[str, Any]]:
    """Compare all rows of the table: too many came to be held."""
    contract = model.query.rendered.model
    key = names(contract.grain, "duckdb")
    keys = _held(context, model, f"select {key} from held group by {key} having count(*) > 1", {}, None)
    return _differing(context, model, keys, "held") if keys.num_rows else []


def _of_rows(context: TickContext, model: Compiled, rows: pa.Table) -> list[dict[str, Any]]:
    """Compare the rows that came with each other, and with stored rows where those have the same key.

    Copies mostly come together. So stored rows are counted by their keys alone, and few are read whole.
    """
    contract = model.query.rendered.model
    key = names(contract.grain, "duckdb")
    came = rows.select(list(contract.grain))
    counted = (
        f"with came as (select {key}, count(*) as n from changed group by {key}),\n"
        f"stored as (select {key}, count(*) as n from held semi join changed using ({key}) group by {key})\n"
        f"select {key}, came.n as came, stored.n as stored from came join stored using ({key}) where stored.n > 1"
    )
    repeated = _held(context, model, counted, {"changed": came}, came)
    if not repeated.num_rows:
        return []
    import pyarrow.compute as pc

    is_older = pc.greater(repeated.column("stored"), repeated.column("came"))
    keys = repeated.select(list(contract.grain))
    older, newer = keys.filter(is_older), keys.filter(pc.invert(is_older))
    found = _differing(context, model, older, "held") if older.num_rows else []
    if newer.num_rows:
        found += _differing(context, model, newer, "came", {"came": rows})
    return sorted(found, key=lambda row: tuple(str(row[name]) for name in contract.grain))


def _differing(
    context: TickContext, model: Compiled, keys: pa.Table, rows: str, given: Mapping[str, pa.Table] = NOTHING
) -> list[dict[str, Any]]:
    """Return those of some keys that have more than one content among `rows`."""
    contract = model.query.rendered.model
    key, every = names(contract.grain, "duckdb"), names((c.name for c in contract.columns), "duckdb")
    contents = f"select distinct {every} from {rows} semi join changed using ({key})"
    sql = f"select {key}, count(*) as contents from ({contents}) group by {key} having count(*) > 1 order by {key}"
    given = {**given, "changed": keys}
    if rows == "held":
        return arrow_rows.plain(_held(context, model, sql, given, keys))
    return arrow_rows.plain(reader_of(context).query(sql, (), given))


def _held(
    context: TickContext, model: Compiled, query: str, given: Mapping[str, pa.Table], near: pa.Table | None
) -> pa.Table:
    table, version = context.plan.tables[model.name], context.states[model.name].version
    key = model.query.rendered.model.grain
    ranges = key_ranges.of(near, key, table.spec.partition_by) if near is not None else ()
    held = Relation("held", table.spec.path, table.public, "new", version=version, where=table.where, ranges=ranges)
    return reader_of(context).query(query, (held,), given)


def _result(contract: Model, rows: int, found: list[dict[str, Any]], seconds: float) -> CheckResult:
    one = len(found) == 1
    said = (
        f"{len(found):,} {'key has' if one else 'keys have'} rows that differ, although `repeats: true` promises "
        "copies; the greatest content counts"
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
        message=said,
        description=f"{said}. Ask who writes the source which of them is right, and for a higher version.",
        place=place,
        check_id=identity(contract.name, what),
    )
