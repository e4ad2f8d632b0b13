"""Limit on quarantined lines in a tick, above which it isn't published: `max_quarantined`. Shell: the engine.

A suite without the setting has a limit too: half of the lines, from `FEW` lines on. Only `max_quarantined: 100%`
allows all lines to be quarantined, because a tick that accepted nothing is no success. If only one line arrived and
the table has rows of earlier ticks, this is a warning: one bad line stops nothing.
"""

from __future__ import annotations

import time
from typing import Any

from sqlrun.check.samples import LONGEST
from sqlrun.engine_api import Relation
from sqlrun.engines.delta import table as delta_table
from sqlrun.events import CheckResult
from sqlrun.expectations.values import identity
from sqlrun.incremental.compile import Compiled
from sqlrun.incremental.landing import query as landing_query
from sqlrun.incremental.landing.query import QUARANTINED_ROWS
from sqlrun.land import quarantine_log, quarantine_query
from sqlrun.land.drift_query import reader_of
from sqlrun.land.quarantine_query import exceeds
from sqlrun.maintain.changed_rows import Change
from sqlrun.maintain.tick_context import TickContext
from sqlrun.outcome import Outcome
from sqlrun.project import CRITICAL, FAIL, WARNING, Expectation, Limit

TYPE = "max_quarantined"
SAMPLES = 20
# Defaults. With fewer lines, one bad line is a large share and doesn't mean that the source has changed.
DEFAULT, FEW = "50%", 100
EVERY = "100%"


def too_much(limit: str | None, quarantined: int, lines: int) -> bool:
    """Return whether a tick quarantines too many lines; `limit` is the suite's, None if it has none.

    >>> too_much(None, 9, 10), too_much(None, 10, 10), too_much(None, 51, 100), too_much(None, 50, 100)
    (False, True, True, False)
    >>> too_much("20", 10, 10), too_much("100%", 10, 10), too_much("20", 21, 90), too_much(None, 0, 0)
    (True, False, True, False)
    """
    if limit == EVERY:
        return False
    if lines and quarantined == lines:
        return True
    return (
        lines >= FEW and exceeds(DEFAULT, quarantined, lines) if limit is None else exceeds(limit, quarantined, lines)
    )


def judged(context: TickContext, model: Compiled, change: Change) -> tuple[CheckResult, ...]:
    """Compare the lines landed since the published tick with the limit; no result if the default isn't exceeded.

    Lines that were discarded or replayed since they landed don't count as quarantined, so a blocked tick can continue
    once they are.
    """
    suite = context.workspace.suites.get(model.name)
    limit = suite.max_quarantined if suite else None
    if model.source is None or (limit is None and not too_much(None, change.quarantined, change.lines)):
        return ()
    started = time.perf_counter()
    path = context.plan.tables[model.name].spec.path
    landed = delta_table.landings(path, change.commits)
    lines, quarantined, samples = _counted(context, model, landed) if landed else (0, 0, [])
    if limit is None and not too_much(None, quarantined, lines):
        return ()
    return (_result(context, model, limit, lines, quarantined, samples, time.perf_counter() - started),)


def _counted(context: TickContext, model: Compiled, landed: tuple[int, ...]) -> tuple[int, int, list[dict[str, Any]]]:
    """Return the number of lines in commits, the number still in quarantine, and a few samples of these."""
    path, version = context.plan.tables[model.name].spec.path, context.states[model.name].version
    feed = Relation("feed", path, landing_query.PROVENANCE, "changes", commits=landed)
    lines = Relation("held", path, landing_query.PROVENANCE, "new", version=version, where=QUARANTINED_ROWS)
    quarantined = (
        f"{landing_query.REASON} is not null and {quarantine_query.id_of('duckdb')} in "
        f"(select id from ({quarantine_query.queue(model.name)}) where state <> 'discarded')"
    )

    def rows(sql: str) -> list[dict[str, Any]]:
        text, book = quarantine_log.about(context.warehouse, context.plan.env, sql)
        found: list[dict[str, Any]] = reader_of(context).query(text, (feed, lines, *book)).to_pylist()
        return found

    (counts,) = rows(f"select count(*) as lines, count(*) filter ({quarantined}) as aside from feed where _weight > 0")
    few = rows(
        f"select {landing_query.REASON} as reason, {landing_query.ORIGIN} as file, {landing_query.RAW} as raw "
        f"from feed where _weight > 0 and {quarantined} order by all limit {SAMPLES}"
    )
    return int(counts["lines"]), int(counts["aside"]), few


def _result(
    context: TickContext,
    model: Compiled,
    limit: Limit | None,
    lines: int,
    quarantined: int,
    few: list[dict[str, Any]],
    seconds: float,
) -> CheckResult:
    contract, source = model.query.rendered.model, model.source
    assert source is not None
    bad = too_much(limit.text if limit else None, quarantined, lines)
    alone = limit is None and lines == 1 and _has_rows(context, model)
    status = Outcome.PASS if not bad else Outcome.WARN if alone else Outcome.FAIL
    columns = () if quarantine_query.private(contract, source) else ("raw",)
    share = f" ({100 * quarantined / lines:.2f}%)" if lines else ""
    verb = "is" if quarantined == 1 else "are"
    message = (
        f"{quarantined:,} of {lines:,} lines that landed after the published tick {verb} in quarantine{share}, but "
        f"{_allowed(limit, 0 < quarantined == lines)}"
    )
    place = limit.place if limit else source.place
    what = Expectation(TYPE, {"max": limit.text if limit else DEFAULT}, CRITICAL, FAIL, "", place)
    again = "Fix the source, or discard or replay lines: sqlrun quarantine list"
    return CheckResult(
        model=model.name,
        type=TYPE,
        columns=(),
        severity=WARNING if alone else CRITICAL,
        status=status,
        evaluated=lines,
        unexpected=quarantined,
        samples=tuple(_sample(row, columns) for row in few) if bad else (),
        seconds=seconds,
        message=message,
        description=f"{message}. {again}" if bad else "",
        place=place,
        check_id=identity(model.name, what),
    )


def _has_rows(context: TickContext, model: Compiled) -> bool:
    table, version = context.plan.tables[model.name], context.states[model.name].version
    relation = Relation("held", table.spec.path, table.public, "new", version=version, where=table.where)
    return bool(context.reader.query("select 1 as n from held limit 1", (relation,)).num_rows)


def _allowed(limit: Limit | None, all_of_them: bool) -> str:
    if all_of_them and (limit is None or limit.text != EVERY):
        return f"only max_quarantined: {EVERY} allows all lines"
    if limit is None:
        return f"the default of max_quarantined allows {DEFAULT} from {FEW} lines on"
    return f"max_quarantined allows {limit.text}"


def _sample(row: dict[str, Any], columns: tuple[str, ...]) -> str:
    text = ", ".join(f"{name}={row[name]}" for name in ("reason", "file", *columns))
    return text if len(text) <= 3 * LONGEST else text[: 3 * LONGEST - 1] + "…"
