"""Each table's checks on the rows that a tick changed. Shell: the engine, Great Expectations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from sqlrun import key_ranges, quarantine_limit
from sqlrun.engines.protocol import Relation
from sqlrun.events import CheckResult, Measure
from sqlrun.expectation_catalogue import CATALOGUE, VOLUME
from sqlrun.expectation_values import columns_of
from sqlrun.expectations import of_model, scope
from sqlrun.incremental.compile import Compiled
from sqlrun.incremental.sql import identifier
from sqlrun.landing import ORIGIN, REASON
from sqlrun.maintain import Progress
from sqlrun.measuring import Changed, measure
from sqlrun.model import Expectation
from sqlrun.plan import QUARANTINED_ROWS, Workspace
from sqlrun.promises import RELATIONSHIPS
from sqlrun.relationships import of

if TYPE_CHECKING:
    import pyarrow as pa


def expectations_of(space: Workspace, model: Compiled) -> tuple[Expectation, ...]:
    """List what is expected of a model: its contract's keys and nulls, then its suite."""
    return of_model(model.query.rendered.model, space.suites.get(model.name))


# So many changed rows are looked at in one piece.
LARGE = 250_000
# Lines that were quarantined, by reason.
Reasons = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Checked:
    """What a model's tick says: how many rows came or changed, what was quarantined and why, checks and measures."""

    rows: int
    reasons: Reasons
    checks: tuple[CheckResult, ...]
    measures: tuple[Measure, ...] = ()


def check(progress: Progress, model: Compiled) -> Checked:
    """Check and measure a model's changed rows."""
    before = progress.plan.tables[model.name].state
    after = progress.states[model.name].version
    commits = progress.commits(model.name, before.version if before else 0, after)
    feed = _feed(progress, model, commits, progress.plan.tables[model.name].where) if commits else None
    related = _related(progress, model, feed)
    if feed is None:
        measured, told = measure(progress, model, Changed((), None, 0))
        return Checked(0, (), (*related, *told), measured)
    expectations = tuple(e for e in expectations_of(progress.space, model) if e.type not in (RELATIONSHIPS, VOLUME))
    # All columns, as samples show whole rows.
    names = ", ".join(identifier(column.name, progress.reader.dialect) for column in model.own.public)
    rows = f"select {names} from feed where _weight > 0"
    changed = progress.reader.query(f"{rows} limit {LARGE + 1}", (feed,))
    quarantined = _quarantined(progress, model, commits)
    count = changed.num_rows
    if count > LARGE:
        (counted,) = progress.reader.query("select count(*) as n from feed where _weight > 0", (feed,)).to_pylist()
        count = int(counted["n"])
    results = _run(progress, model, expectations, changed, commits, rows, count) if count and expectations else ()
    limited = quarantine_limit.judged(progress, model, commits)
    aside = sum(number for _, number in quarantined)
    measured, told = measure(progress, model, Changed(commits, changed if count <= LARGE else None, aside, count))
    return Checked(count, quarantined, (*results, *related, *limited, *told), measured)


Key = tuple[str, ...]


def _run(
    progress: Progress,
    model: Compiled,
    expectations: tuple[Expectation, ...],
    changed: pa.Table,
    commits: tuple[int, ...],
    rows: str,
    count: int,
) -> tuple[CheckResult, ...]:
    """Evaluate expectations on `count` rows that came or changed; `changed` are the first of them, `rows` is all."""
    found: dict[int, CheckResult] = {}
    for key, lot in _by_key(expectations, model.query.rendered.model.grain).items():
        asked = tuple(lot.values())
        if count > LARGE:
            results = _large(progress, model, commits, asked, key, rows, count)
        else:
            results = _small(progress, model, commits, asked, key, changed)
        found |= dict(zip(lot, results, strict=True))
    return tuple(found[index] for index in range(len(expectations)))


def _by_key(expectations: tuple[Expectation, ...], grain: Key) -> dict[Key, dict[int, Expectation]]:
    """Group checks of keys by the columns that they look at: who may repeat a changed row's key differs with them.

    All others go with the grain.
    """
    lots: dict[Key, dict[int, Expectation]] = {}
    for index, expectation in enumerate(expectations):
        key = grain
        if scope(expectation) == "key":
            named = columns_of(expectation, CATALOGUE[expectation.type].columns)
            key = grain if set(named) == set(grain) else named
        lots.setdefault(key, {})[index] = expectation
    return lots


def _small(
    progress: Progress,
    model: Compiled,
    commits: tuple[int, ...],
    expectations: tuple[Expectation, ...],
    key: Key,
    changed: pa.Table,
) -> tuple[CheckResult, ...]:
    """Check a change in one piece."""
    from sqlrun.quality import run_checks

    contract, as_of, seconds = model.query.rendered.model, progress.plan.as_of, progress.check_timeout
    keyed = None
    if any(scope(e) == "key" for e in expectations):
        near = key_ranges.of(changed, key, progress.plan.tables[model.name].spec.partition_by)
        keyed = progress.reader.query(*_keyed(progress, model, commits, expectations, key, near))
    evaluator = model.query.rendered.config.checks
    whole = partial(_whole, progress, model)
    return run_checks(contract, expectations, changed, keyed, whole, as_of, seconds, evaluator)


def _large(
    progress: Progress,
    model: Compiled,
    commits: tuple[int, ...],
    expectations: tuple[Expectation, ...],
    key: Key,
    rows: str,
    count: int,
) -> tuple[CheckResult, ...]:
    """Check a change that is too large to be held in memory."""
    from sqlrun.large_checks import Change, run_large

    feed = _feed(progress, model, commits, progress.plan.tables[model.name].where)
    query, held = _keyed(progress, model, commits, expectations, key)
    change = Change(
        count,
        partial(progress.reader.parts, rows, (feed,), LARGE),
        lambda asked: progress.reader.query(f"with keyed as ({query}) {asked}", held),
        partial(progress.reader.query, query, held),
        partial(_whole, progress, model),
        progress.reader.dialect,
    )
    contract, evaluator = model.query.rendered.model, model.query.rendered.config.checks
    return run_large(contract, expectations, change, progress.plan.as_of, progress.check_timeout, evaluator)


def _whole(progress: Progress, model: Compiled) -> pa.Table:
    table, version = progress.plan.tables[model.name], progress.states[model.name].version
    held = Relation("whole", table.spec.path, table.public, "new", version=version, where=table.where)
    return progress.reader.query("select * from whole", (held,))


def _related(progress: Progress, model: Compiled, feed: Relation | None) -> tuple[CheckResult, ...]:
    """Evaluate relationships, which a table that hasn't changed can break too: the other table may have."""
    if not of(model.query.rendered.model):
        return ()
    from sqlrun.related import in_tick

    return in_tick(progress, model, feed)


def _feed(progress: Progress, model: Compiled, commits: tuple[int, ...], where: str) -> Relation:
    table = progress.plan.tables[model.name]
    return Relation("feed", table.spec.path, table.public, "changes", commits=commits, where=where)


def _quarantined(progress: Progress, model: Compiled, commits: tuple[int, ...]) -> Reasons:
    if model.source is None:
        return ()
    feed = replace(_feed(progress, model, commits, QUARANTINED_ROWS), columns=ORIGIN[:1])
    # A line that was replayed since has left its reason, and counts with the new one where it has one.
    sql = f"select {REASON} as reason, sum(_weight) as n from feed group by {REASON} having sum(_weight) > 0"
    counted = progress.reader.query(sql, (feed,))
    return tuple(sorted((str(row["reason"]), int(row["n"])) for row in counted.to_pylist()))


def _keyed(
    progress: Progress,
    model: Compiled,
    commits: tuple[int, ...],
    expectations: tuple[Expectation, ...],
    key: Key,
    near: key_ranges.Ranges = (),
) -> tuple[str, tuple[Relation, ...]]:
    """Write the query for the rows of the table that share a key with a changed row, from files that can hold one."""
    dialect = progress.reader.dialect
    table = progress.plan.tables[model.name]
    grain = model.query.rendered.model.grain
    word = "left semi join" if dialect == "spark" else "semi join"
    same = "<=>" if dialect == "spark" else "is not distinct from"
    on = " and ".join(f"l.{identifier(k, dialect)} {same} r.{identifier(k, dialect)}" for k in key)
    shown = list(dict.fromkeys((*grain, *key)))
    if any(e.kwargs.get("row_condition") is not None for e in expectations):
        shown = [column.name for column in table.public]  # a condition may name any
    names = ", ".join(f"l.{identifier(k, dialect)}" for k in shown)
    version = progress.states[model.name].version
    whole = Relation("held", table.spec.path, table.public, "new", version=version, where=table.where, ranges=near)
    feed = _feed(progress, model, commits, table.where)
    sql = f"select {names} from held as l {word} (select * from feed where _weight > 0) as r on {on}"
    return sql, (whole, feed)


def blocks(results: tuple[CheckResult, ...]) -> bool:
    """Tell whether a result keeps the tick from being published."""
    return any(result.status in ("fail", "error") for result in results)
