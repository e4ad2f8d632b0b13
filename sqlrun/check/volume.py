"""Volume of landed rows in a tick, against the same hour of past weeks. Shell: the stored measures.

The history is the rate of rows by time over all published ticks of that hour, so ticks of any length are comparable. No
row of a table is read for it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import cast

from sqlrun.errors import EngineError
from sqlrun.events import CheckResult, Measure
from sqlrun.expectations.catalogue import VOLUME
from sqlrun.expectations.values import number
from sqlrun.incremental.compile import Compiled
from sqlrun.maintain.tick_context import TickContext
from sqlrun.outcome import Outcome
from sqlrun.project import Expectation
from sqlrun.system_tables import measures
from sqlrun.system_tables.anomalies import DAYS, Past

NOT_YET = "not evaluated"


@dataclass(frozen=True, slots=True)
class Usual:
    """The number of rows of a tick of this length in past weeks, and a description of these ticks."""

    rows: float
    like: str


def judged(context: TickContext, model: Compiled, count: int, interval: float | None) -> tuple[CheckResult, ...]:
    """Evaluate each volume check of a suite: `count` rows landed in `interval` seconds, None in the first tick."""
    suite = context.workspace.suites.get(model.name)
    declared = [one for one in suite.expectations if one.type == VOLUME] if suite else []
    return tuple(_evaluate(context, model, one, count, interval) for one in declared)


def _evaluate(
    context: TickContext, model: Compiled, declared: Expectation, count: int, interval: float | None
) -> CheckResult:
    from sqlrun.check.evaluate import not_evaluated, result_of

    started, contract = time.perf_counter(), model.query.rendered.model
    at = measures.middle(context.plan.as_of, interval or None)
    try:
        past = context.history.same_hour_or_error(Measure(model.name, "rows", float(count), None, interval or None), at)
    except EngineError as error:
        return not_evaluated(contract, declared, f"the history can't be read: {error}")
    found = usual(past, at, interval, int(number(declared.kwargs.get("weeks"), 1.0)))
    if isinstance(found, str):
        # Neither pass nor failure: a note, whatever its severity.
        return replace(not_evaluated(contract, declared, f"{NOT_YET}: {found}"), status=Outcome.UNJUDGED)
    message = breach(count, found, *(_ratio(declared, end) for end in ("min_ratio", "max_ratio")))
    return result_of(contract, declared, not message, count, 0, (), message, time.perf_counter() - started)


def _ratio(declared: Expectation, end: str) -> float | None:
    return cast("float | None", declared.kwargs.get(end))


def usual(past: Iterable[Past], at: datetime, interval: float | None, weeks: int = 1) -> Usual | str:
    """Return the usual number of rows in `interval` seconds around `at`, or the reason why it is unknown.

    `past`: ticks of the same hour of the day; only the same day of the week in the last `weeks` weeks counts.

    >>> week = timedelta(weeks=1)
    >>> usual([Past(datetime(2026, 3, 8, 11, 30), 40.0, 300.0)], datetime(2026, 3, 15, 11, 30), 600.0)
    Usual(rows=80.0, like='Sunday 11:00 to 12:00 UTC, 1 week ago')
    >>> usual([], datetime(2026, 3, 15, 11, 30), 600.0)
    'no history yet (Sunday 11:00 to 12:00 UTC, 1 week ago)'
    """
    start = at.replace(minute=0)
    ago = "1 week ago" if weeks == 1 else f"1 to {weeks} weeks ago"
    day = DAYS[at.weekday()].removesuffix("s")
    like = f"{day} {start:%H:%M} to {start + timedelta(hours=1):%H:%M} UTC, {ago}"
    if interval is None:
        return "this is the first tick of the table, and its lines may be from any time"
    if not interval:
        return "no time has passed since the previous tick"
    days = {at.date() - timedelta(weeks=n) for n in range(1, weeks + 1)}
    matching = [each for each in past if each.middle.date() in days and each.middle.hour == at.hour]
    seconds = sum(each.interval_seconds or 0.0 for each in matching)
    rows = sum(each.value for each in matching if each.interval_seconds)
    if not seconds:
        return f"no history yet ({like})"
    if not rows:
        return f"no rows landed in that period ({like})"
    return Usual(rows * interval / seconds, like)


def breach(count: int, found: Usual, least: float | None, most: float | None) -> str:
    """Return how a count violates the allowed shares; "" if it doesn't.

    >>> breach(200, Usual(400.0, "Sunday"), 0.6, None)
    '200 rows, 0.50 of the usual 400, but at least 0.6 is expected (Sunday)'
    >>> breach(240, Usual(400.0, "Sunday"), 0.6, 1.5)
    ''
    """
    share = count / found.rows
    message = f"{count:,} rows, {share:,.2f} of the usual {found.rows:,.0f}"
    if least is not None and share < least:
        return f"{message}, but at least {least:g} is expected ({found.like})"
    if most is not None and share > most:
        return f"{message}, but at most {most:g} is expected ({found.like})"
    return ""
