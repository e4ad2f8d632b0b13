"""Rows that should be exact copies of each other and aren't: told in the tick in which they come. Shell: the engine.

A source that sends one key and version with different content breaks what `repeats: true` promises. What is made of its
rows is still a function of the set of lines (`incremental/ties.py`), but somebody has to look at the source.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
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


def told(context: TickContext, model: Compiled, change: Change) -> tuple[CheckResult, ...]:
    """Warn of keys of rows that came whose rows differ, here or in what is there; no result where there are none."""
    contract = model.query.rendered.model
    if not contract.repeats or not contract.grain or not change.count:
        return ()
    started = time.perf_counter()
    given: dict[str, pa.Table] = {}
    if change.rows is not None:
        given["changed"] = change.rows.select(list(contract.grain))
    keys = _found(context, model, _twice(contract, whole=change.rows is None), given, change.rows)
    if not keys.num_rows:
        return ()
    found = arrow_rows.plain(_found(context, model, _differing(contract), {"changed": keys}, keys))
    return (_result(contract, change.count, found, time.perf_counter() - started),) if found else ()


def _twice(contract: Model, *, whole: bool) -> str:
    """Write the query for the keys that several rows have: most keys are spared a look at their content."""
    key = names(contract.grain, "duckdb")
    rows = "held" if whole else f"(select {key} from held semi join changed using ({key}))"
    return f"select {key} from {rows} group by {key} having count(*) > 1"


def _differing(contract: Model) -> str:
    key, every = names(contract.grain, "duckdb"), names((c.name for c in contract.columns), "duckdb")
    rows = f"select distinct {every} from held semi join changed using ({key})"
    return f"select {key}, count(*) as contents from ({rows}) group by {key} having count(*) > 1 order by {key}"


def _found(
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
