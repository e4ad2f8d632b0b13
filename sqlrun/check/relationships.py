"""Relationships: rows whose values must be in another table, in a tick or in whole tables. Shell: the engine.

In a tick two changes can break a relationship: an inserted or updated row, and a key deleted from the other table. The
first are few; for the second the table is read only if a key was deleted.
"""

from __future__ import annotations

import time
from dataclasses import replace

from sqlrun.check.evaluate import counted, not_evaluated
from sqlrun.check.samples import SAMPLES, masked, sampled_columns
from sqlrun.engine_api import Engine, Relation
from sqlrun.engines.delta import table as delta_table
from sqlrun.errors import EngineError
from sqlrun.events import CheckResult
from sqlrun.expectations.relationships import gone, of, orphans, rows_of_gone, target
from sqlrun.incremental.compile import Compiled
from sqlrun.maintain.tick_context import TickContext
from sqlrun.project import Expectation, Model
from sqlrun.publish.reader import relation
from sqlrun.publish.table_state import Published, TableState
from sqlrun.runtime import arrow_rows
from sqlrun.transpile.writer import names


def in_tick(context: TickContext, model: Compiled, changed: Relation | None) -> tuple[CheckResult, ...]:
    """Evaluate a model's relationships on a tick's changes of both sides; `changed` is the model's change feed."""
    contract = model.query.rendered.model
    return tuple(_in_tick(context, model, contract, one, changed) for one in of(contract))


def over_whole(
    reader: Engine, warehouse: str, published: Published, contract: Model, one: Expectation, rows: int
) -> CheckResult:
    """Evaluate a relationship over a whole published table, which has `rows` rows."""
    state, other = published.tables[contract.name], published.tables.get(target(one))
    if other is None:
        return not_evaluated(contract, one, f"tick {published.tick} has no table `{target(one)}`")
    held = relation(warehouse, contract.name, state, "held")
    other_table = relation(warehouse, target(one), other, "target")
    return _result(reader, contract, one, [(orphans(one, "held", reader.dialect), (held, other_table))], rows)


def _in_tick(
    context: TickContext, model: Compiled, contract: Model, one: Expectation, changed: Relation | None
) -> CheckResult:
    reader, to = context.reader, target(one)
    published = context.plan.published
    before = published.tables.get(to) if published else None
    now = context.states.get(to, before)
    if now is None:
        return not_evaluated(contract, one, f"`{to}` has no table yet. Run `sqlrun build` without --select")
    other_table = relation(context.warehouse, to, now, "target")
    queries: list[tuple[str, tuple[Relation, ...]]] = []
    rows = 0
    was = _was(context, to, before, now)
    left = was is not None and reader.query(f"{gone(one, reader.dialect)} limit 1", (was, other_table)).num_rows > 0
    if changed is not None:
        feed = "(select * from feed where _weight > 0)"
        rows = _count(reader, f"select * from {feed} as r", (changed,))
        # Rows whose key was deleted are among the table's rows below.
        text = orphans(one, feed, reader.dialect, but_gone=left)
        queries.append((text, (changed, other_table, was) if left and was is not None else (changed, other_table)))
    if left and was is not None:
        held = relation(context.warehouse, model.name, context.states[model.name], "held")
        queries.append((rows_of_gone(one, "held", reader.dialect), (held, other_table, was)))
    return _result(reader, contract, one, queries, rows)


def _was(context: TickContext, to: str, before: TableState | None, now: TableState) -> Relation | None:
    """Return rows with every key that the other table lost in this tick; None if it can't have lost one."""
    if before is None:
        return None
    whole = relation(context.warehouse, to, before, "was")
    if before.path != now.path:
        return whole
    commits = delta_table.effective_commits(whole.path, before.version, now.version)
    return replace(whole, row_set="changes", commits=commits, version=0) if commits else None


def _result(
    reader: Engine,
    contract: Model,
    one: Expectation,
    queries: list[tuple[str, tuple[Relation, ...]]],
    rows: int,
) -> CheckResult:
    started = time.perf_counter()
    found, samples = 0, list[str]()
    columns = sampled_columns(contract, (str(one.kwargs["column"]),))
    listed = names(columns, reader.dialect)
    try:
        for text, relations in queries:
            count = _count(reader, text, relations)
            found += count
            if count and len(samples) < SAMPLES:
                few = f"select {listed} from ({text}) as q order by {listed} limit {SAMPLES - len(samples)}"
                samples += [
                    masked(contract, row, "", columns) for row in arrow_rows.plain(reader.query(few, relations))
                ]
    except EngineError as error:
        return not_evaluated(contract, one, f"the check failed: {error}")
    return counted(contract, one, max(rows, found), found, tuple(samples), time.perf_counter() - started)


def _count(reader: Engine, text: str, relations: tuple[Relation, ...]) -> int:
    return int(reader.query(f"select count(*) as n from ({text}) as q", relations).to_pylist()[0]["n"])
