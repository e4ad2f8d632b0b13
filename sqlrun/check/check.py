"""Each table's checks on the rows that a tick changed. Shell: the engine, Great Expectations."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from sqlrun.check import key_ranges, quarantine_limit, repeated_rows
from sqlrun.check.measure import measure
from sqlrun.engine_api import Relation
from sqlrun.events import CheckResult, Measure
from sqlrun.expectations.catalogue import CATALOGUE, VOLUME
from sqlrun.expectations.relationships import of
from sqlrun.expectations.validate import of_model, scope
from sqlrun.expectations.values import columns_of
from sqlrun.incremental.compile import Compiled
from sqlrun.load.constraints import RELATIONSHIPS
from sqlrun.maintain import changed_rows
from sqlrun.maintain.changed_rows import Change, Reasons, feed
from sqlrun.maintain.checksums import Checksum
from sqlrun.maintain.maintain import Progress
from sqlrun.plan.plan import Workspace
from sqlrun.project import Expectation
from sqlrun.transpile.writer import identifier

if TYPE_CHECKING:
    import pyarrow as pa


def expectations_of(space: Workspace, model: Compiled) -> tuple[Expectation, ...]:
    """List what is expected of a model: its contract's keys and nulls, then its suite."""
    return of_model(model.query.rendered.model, space.suites.get(model.name))


@dataclass(frozen=True, slots=True)
class Checked:
    """What a model's tick says: how many rows came or changed, what was quarantined and why, checks and measures.

    `added` is what the checksum of the model's own table gains, where it was added up on the way.
    """

    rows: int
    reasons: Reasons
    checks: tuple[CheckResult, ...]
    measures: tuple[Measure, ...] = ()
    added: Checksum | None = None


def check(progress: Progress, model: Compiled) -> Checked:
    """Check and measure a model's changed rows."""
    before = progress.plan.tables[model.name].state
    after = progress.states[model.name].version
    commits = progress.commits(model.name, before.version if before else 0, after)
    shown = feed(progress, model, commits, progress.plan.tables[model.name].where) if commits else None
    related = _related(progress, model, shown)
    if not commits:
        measured, told = measure(progress, model, Change())
        return Checked(0, (), (*related, *told), measured)
    expectations = tuple(e for e in expectations_of(progress.space, model) if e.type not in (RELATIONSHIPS, VOLUME))
    change = changed_rows.read(progress, model, commits)
    results = _run(progress, model, expectations, change) if change.count and expectations else ()
    limited = (*repeated_rows.told(progress, model, change), *quarantine_limit.judged(progress, model, change))
    measured, told = measure(progress, model, change)
    return Checked(change.count, change.aside, (*results, *related, *limited, *told), measured, change.added)


Key = tuple[str, ...]


def _run(
    progress: Progress, model: Compiled, expectations: tuple[Expectation, ...], change: Change
) -> tuple[CheckResult, ...]:
    """Evaluate expectations on the rows that came or changed."""
    found: dict[int, CheckResult] = {}
    for key, lot in _by_key(expectations, model.query.rendered.model.grain).items():
        asked = tuple(lot.values())
        if change.rows is None:
            results = _large(progress, model, asked, key, change)
        else:
            results = _small(progress, model, asked, key, change.rows)
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
    expectations: tuple[Expectation, ...],
    key: Key,
    changed: pa.Table,
) -> tuple[CheckResult, ...]:
    """Check a change in one piece."""
    from sqlrun.check.evaluate import run_checks

    contract, as_of, seconds = model.query.rendered.model, progress.plan.as_of, progress.check_timeout
    keyed = None
    if any(scope(e) == "key" for e in expectations):
        near = key_ranges.of(changed, key, model.own.partition_by)
        query, held = _keyed(progress, model, expectations, key, near)
        keyed = progress.reader.query(query, (held,), {"changed": changed.select(list(key))})
    evaluator = model.query.rendered.config.checks
    whole = partial(_whole, progress, model)
    return run_checks(contract, expectations, changed, keyed, whole, as_of, seconds, evaluator)


def _large(
    progress: Progress, model: Compiled, expectations: tuple[Expectation, ...], key: Key, change: Change
) -> tuple[CheckResult, ...]:
    """Check a change that is too large to be held in memory."""
    from sqlrun.check.chunked import Change as Large
    from sqlrun.check.chunked import run_large

    rows = changed_rows.query(progress, model)
    changes = feed(progress, model, change.commits, progress.plan.tables[model.name].where)
    keyed, held = _keyed(progress, model, expectations, key)
    query = f"with changed as ({rows}) {keyed}"
    large = Large(
        change.count,
        partial(progress.reader.parts, rows, (changes,), changed_rows.LARGE),
        lambda asked: progress.reader.query(f"with keyed as ({query}) {asked}", (held, changes)),
        partial(progress.reader.query, query, (held, changes)),
        partial(_whole, progress, model),
        progress.reader.dialect,
    )
    contract, evaluator = model.query.rendered.model, model.query.rendered.config.checks
    return run_large(contract, expectations, large, progress.plan.as_of, progress.check_timeout, evaluator)


def _whole(progress: Progress, model: Compiled) -> pa.Table:
    table, version = progress.plan.tables[model.name], progress.states[model.name].version
    held = Relation("whole", table.spec.path, table.public, "new", version=version, where=table.where)
    return progress.reader.query("select * from whole", (held,))


def _related(progress: Progress, model: Compiled, changes: Relation | None) -> tuple[CheckResult, ...]:
    """Evaluate relationships, which a table that hasn't changed can break too: the other table may have."""
    if not of(model.query.rendered.model):
        return ()
    from sqlrun.check.relationships import in_tick

    return in_tick(progress, model, changes)


def _keyed(
    progress: Progress,
    model: Compiled,
    expectations: tuple[Expectation, ...],
    key: Key,
    near: key_ranges.Ranges = (),
) -> tuple[str, Relation]:
    """Write the query for the rows of the table that share a key with a row of `changed`.

    They are read from files that can hold one.
    """
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
    return f"select {names} from held as l {word} changed as r on {on}", whole
