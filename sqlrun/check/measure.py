"""Measures of each table in a tick, compared with their history; freshness of its events. Shell: the engine.

Measures are reported and stored, and never block publishing. Declared freshness is a check like any other: if it can't
be evaluated, that is an error.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from sqlrun.check import freshness, volume
from sqlrun.engine_api import Relation
from sqlrun.engines.delta import table as delta_table
from sqlrun.errors import EngineError, Place, first_line
from sqlrun.events import CheckResult, Measure
from sqlrun.expectations.values import identity
from sqlrun.incremental.compile import Compiled
from sqlrun.maintain.changed_rows import Change
from sqlrun.maintain.tick_context import TickContext
from sqlrun.outcome import Outcome
from sqlrun.project import CRITICAL, WARN, WARNING, Expectation, Model
from sqlrun.runtime import arrow_rows, far_times
from sqlrun.runtime.arrow_rows import scalar
from sqlrun.system_tables import anomalies, measures
from sqlrun.system_tables.anomalies import Band
from sqlrun.transpile.writer import identifier, timestamp

if TYPE_CHECKING:
    import pyarrow as pa

# Maximum number of columns of a model whose share of NULLs is measured: the first ones of its contract.
MOST_COLUMNS = 20
# Without declared freshness, files whose events are all older than this are opened only if no other file has an event.
LATELY = timedelta(days=1)
# Maximum number of future event times cached per table.
MOST_LATER = 10_000
MICRO = timedelta(microseconds=1)
FIRST, LAST = (end.replace(tzinfo=timezone.utc) for end in (datetime.min, datetime.max))
Found = tuple[tuple[Measure, ...], tuple[CheckResult, ...]]


def measure(context: TickContext, model: Compiled, changed: Change) -> Found:
    """Measure a model's tick and compare it with the history; also evaluate declared freshness and volume."""
    fresh, stale = _freshness(context, model, changed)
    stale = [*stale, *volume.judged(context, model, changed.count, _passed(context, model))]
    try:
        found = [*_measures(context, model, changed), *fresh]
    except Exception as error:  # Arrow's errors are of many classes; none of them fails the tick
        return tuple(fresh), (*stale, _not_measured(model, f"not measured: {first_line(error)}"))
    compared, results = _compared(context, model, found, changed)
    return compared, (*stale, *results)


def _measures(context: TickContext, model: Compiled, changed: Change) -> Iterator[Measure]:
    name, rows = model.name, changed.rows
    interval = _interval(context, model)
    if model.source is not None:
        source = f"{model.source.group}.{model.source.name}"
        landed = {"rows": float(changed.count), "quarantined": float(changed.quarantined)}
        landed |= {"files": float(changed.files), "rescued": float(changed.rescued)}
        landed |= _lateness(context, model, rows)
        for what, value in landed.items():
            yield Measure(name, what, value, source, interval)
    if rows is not None and rows.num_rows:
        columns = [c.name for c in model.query.rendered.model.columns if c.nullable and c.name in rows.column_names]
        for column in columns[:MOST_COLUMNS]:
            share = rows.column(column).null_count / rows.num_rows
            yield Measure(name, f"null_share:{column}", share, None, interval)


def _interval(context: TickContext, model: Compiled) -> float | None:
    """Return the seconds since the model's last tick; None if there was none, or no time passed."""
    return _passed(context, model) or None


def _passed(context: TickContext, model: Compiled) -> float | None:
    """Return the seconds since the model's last tick, 0 if no time passed; None in its first tick."""
    state = context.plan.tables[model.name].state
    return (context.plan.as_of - state.as_of).total_seconds() if state else None


def _lateness(context: TickContext, model: Compiled, rows: pa.Table | None) -> dict[str, float]:
    """Return the delays between events and their arrival; an event from the future has a negative delay."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = model.query.rendered.model.event_time
    if not column or rows is None or rows.num_rows == rows.column(column).null_count:
        return {}
    micros = pa.timestamp("us", tz="UTC")
    happened = rows.column(column).cast(micros).cast(pa.int64())
    now = scalar(context.plan.as_of).cast(pa.int64())
    median, p95 = pc.quantile(pc.subtract(now, happened), q=[0.5, 0.95]).to_pylist()
    return {"lateness_median_seconds": median / 1e6, "lateness_p95_seconds": p95 / 1e6}


# ---------------------------------------------------------------------------------------- history


def _compared(context: TickContext, model: Compiled, found: list[Measure], changed: Change) -> Found:
    """Compare measures with their history, and return a check for each measure with an expected range."""
    if not model.query.rendered.config.anomalies:
        return tuple(found), ()
    measures, results = [], []
    for each in found:
        started = time.perf_counter()
        try:
            measure, band = _with_band(context, each, changed.count)
        except EngineError as error:
            results.append(_not_measured(model, f"not compared with earlier ticks: {error}"))
            measure, band = each, None
        measures.append(measure)
        if band is not None:
            results.append(_check(model, measure, band, changed.count, time.perf_counter() - started))
    return tuple(measures), tuple(results)


def _with_band(context: TickContext, each: Measure, count: int) -> tuple[Measure, Band | None]:
    if anomalies.kind_of(each.measure) is None:
        return each, None
    at = measures.middle(context.plan.as_of, each.interval_seconds)
    measure, band = anomalies.judged(each, at, context.history.same_hour(each, at), count)
    if band is None:
        measure, band = anomalies.judged(each, at, context.history.recent(each, at), count)
    return measure, band


def _check(model: Compiled, measure: Measure, band: Band, count: int, seconds: float) -> CheckResult:
    kind = anomalies.kind_of(measure.measure)
    assert kind is not None
    contract = model.query.rendered.model
    column = contract.column(measure.measure.partition(":")[2])
    place = model.source.place if model.source else Place(contract.contract_file)
    columns = () if column is None else (column.name,)
    message = anomalies.message(measure, band) if measure.unusual else ""
    status = Outcome.WARN if measure.unusual else Outcome.PASS
    return _result(
        model, kind.check, columns, status, place if column is None else column.place, message, count, seconds
    )


def _not_measured(model: Compiled, message: str) -> CheckResult:
    """Warn that a measure could not be computed; this never blocks publishing."""
    return _result(model, "measures", (), Outcome.UNMEASURED, Place(model.query.rendered.model.contract_file), message)


def _result(
    model: Compiled,
    kind: str,
    columns: tuple[str, ...],
    status: Outcome,
    place: Place,
    message: str = "",
    evaluated: int = 0,
    seconds: float = 0.0,
    severity: str = WARNING,
) -> CheckResult:
    declared = Expectation(kind, {"columns": list(columns)}, severity, WARN, "", place)
    return CheckResult(
        model=model.name,
        type=kind,
        columns=columns,
        severity=severity,
        status=status,
        evaluated=evaluated,
        unexpected=0,
        samples=(),
        seconds=seconds,
        message=message,
        description="",
        place=place,
        check_id=identity(model.name, declared),
    )


# ---------------------------------------------------------------------------------------- freshness


def _freshness(context: TickContext, model: Compiled, change: Change) -> tuple[list[Measure], list[CheckResult]]:
    """Find the newest event that is not in the future, and evaluate its age if the contract declares freshness."""
    contract = model.query.rendered.model
    if not contract.event_time:
        return [], []
    started = time.perf_counter()
    try:
        newest, message = _newest(context, model, contract, change), ""
    except EngineError as error:
        newest, message = None, str(error)
    age = None if newest is None else (context.plan.as_of - newest).total_seconds()
    source = f"{model.source.group}.{model.source.name}" if model.source else None
    found = [Measure(model.name, "freshness_seconds", age, source, _interval(context, model))]
    declared = contract.freshness
    if declared is None:
        return found, [] if not message else [_not_measured(model, f"freshness is not measured: {message}")]
    status = Outcome.ERROR if message else freshness.outcome(age, declared)
    severity = WARNING if status is Outcome.WARN or declared.error_after is None else CRITICAL
    message = message or freshness.message(newest, age, declared)
    seconds = time.perf_counter() - started
    columns = (contract.event_time,)
    return found, [_result(model, "freshness", columns, status, declared.place, message, 1, seconds, severity)]


@dataclass(frozen=True, slots=True)
class _Newest:
    """Cached event times of a table's version: the newest event up to a time, and later events.

    `following`: the times of all later events up to `until`, in order.
    """

    entry: delta_table.Entry | None
    as_of: datetime
    newest: datetime | None
    following: tuple[datetime, ...] = ()
    until: datetime = LAST

    def holds(self, entry: delta_table.Entry | None, as_of: datetime) -> bool:
        """Return whether this is valid for a version at a later time, when future events become past ones."""
        return entry is not None and entry == self.entry and self.as_of <= as_of <= self.until

    def grown(self, newest: datetime | None, later: Iterable[datetime], as_of: datetime) -> _Newest:
        """Add a tick's events, up to its time and after it."""
        past = [each for each in (self.newest, newest) if each] + [each for each in self.following if each <= as_of]
        rest = {each for each in (*self.following, *later) if as_of < each <= self.until}
        return _soonest(_Newest(None, as_of, max(past, default=None), tuple(sorted(rest)), self.until))


def _soonest(found: _Newest) -> _Newest:
    """Return the facts with a limited number of future events, the earliest ones."""
    if len(found.following) <= MOST_LATER:
        return found
    following = found.following[:MOST_LATER]
    return replace(found, following=following, until=following[-1])


# By the tables' paths: in an append-only table, the next tick needn't read earlier rows again.
_known: dict[str, _Newest] = {}


def _newest(context: TickContext, model: Compiled, contract: Model, change: Change) -> datetime | None:
    """Return the newest event up to the tick's time; files of older events are opened only if there is none.

    Few files, if any, have events newer than the newest of this tick's inserted and updated rows.
    """
    path, as_of, column = context.plan.tables[model.name].spec.path, context.plan.as_of, contract.event_time
    newest, later = _ends(change.rows, column, as_of)
    known = _known.get(path)
    if known is not None and known.holds(_grown_from(context, model, change), as_of):
        found = known.grown(newest, later, as_of)
    else:
        found = _search_newest(context, model, column, newest)
    entry = delta_table.entry_of(path, context.states[model.name].version)
    _known[path] = replace(found, entry=entry)
    return found.newest


def _grown_from(context: TickContext, model: Compiled, change: Change) -> delta_table.Entry | None:
    """Return the version to which this tick has only added its rows; None if that is unknown."""
    table, now = context.plan.tables[model.name], context.states[model.name]
    if not change.commits:
        return delta_table.entry_of(table.spec.path, now.version)
    if table.state is None or not change.grew or change.rows is None:
        return None
    return delta_table.entry_of(table.spec.path, table.state.version)


def _search_newest(context: TickContext, model: Compiled, event_time: str, newest_change: datetime | None) -> _Newest:
    """Read the newest event up to the tick's time, and later events, from the table.

    For a landing table, which is append-only, all later events; else only the first, because the next tick reads again.
    """
    table, dialect, as_of = context.plan.tables[model.name], context.reader.dialect, context.plan.as_of
    column, now = identifier(event_time, dialect), timestamp(as_of, dialect)
    relation = Relation(
        "held",
        table.spec.path,
        tuple(c for c in table.public if c.name == event_time),
        "new",
        version=context.states[model.name].version,
        where=table.where,
    )
    sql = (
        f"select max(case when {column} <= {now} then {column} end) as newest, "
        f"min(case when {column} > {now} and {column} <= {timestamp(LAST, dialect)} then {column} end) as following "
        f"from held"
    )
    row: dict[str, datetime | None] = {"newest": None, "following": None}
    for since in (newest_change, as_of - LATELY, None) if newest_change else (as_of - LATELY, None):
        ranges = () if since is None else ((event_time, since, LAST),)
        # With this condition the engine also skips row groups that have only older events.
        bound = "" if since is None else f" where {column} >= {timestamp(since, dialect)}"
        (row,) = arrow_rows.plain(context.reader.query(sql + bound, (replace(relation, ranges=ranges),)))
        row["newest"] = _since_year_one(row["newest"])
        # An inserted row may have been deleted again in the same tick.
        if row["newest"] is not None and (since is None or row["newest"] >= since):
            break
    newest, first = row["newest"], row["following"]
    if first is None:
        return _Newest(None, as_of, newest)
    if model.source is None:
        return _Newest(None, as_of, newest, (first,), first)
    later = f"{column} > {now} and {column} <= {timestamp(LAST, dialect)}"
    every = f"select distinct {column} as at from held where {later} order by 1 limit {MOST_LATER + 1}"
    rows = arrow_rows.plain(context.reader.query(every, (replace(relation, ranges=((event_time, as_of, LAST),)),)))
    return _soonest(_Newest(None, as_of, newest, tuple(each["at"] for each in rows)))


def _ends(rows: pa.Table | None, column: str, as_of: datetime) -> tuple[datetime | None, tuple[datetime, ...]]:
    """Return the newest event of some rows up to the tick's time, and the later ones."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if rows is None:
        return None, ()
    happened = rows.column(column).cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
    now = scalar((as_of - far_times.EPOCH) // MICRO)
    newest = pc.max(happened.filter(pc.less_equal(happened, now))).as_py()
    after = pc.and_(pc.greater(happened, now), pc.less_equal(happened, scalar((LAST - far_times.EPOCH) // MICRO)))
    later = pc.unique(happened.filter(after)).to_pylist()
    return None if newest is None else _moment(newest), tuple(_moment(each) for each in later)


def _moment(micros: int) -> datetime:
    return _since_year_one(far_times.moment(micros)) or FIRST


def _since_year_one(moment: Any) -> datetime | None:
    """Return a time, or Python's earliest time for an earlier one: nothing is older."""
    return FIRST if isinstance(moment, far_times.FarTime) else moment
