"""Each table's checks on the rows that a tick changed: plan, rows, outcomes. Shell: the engine, Great Expectations."""

from __future__ import annotations

from sqlrun.check import quarantine_limit, repeated_rows, rows
from sqlrun.check.check_plan import Lot, Terms, plan
from sqlrun.events import CheckResult
from sqlrun.expectations.relationships import of
from sqlrun.expectations.validate import of_model
from sqlrun.incremental.compile import Compiled
from sqlrun.maintain.changed_rows import Change, feed
from sqlrun.maintain.tick_context import TickContext
from sqlrun.plan.values import Workspace
from sqlrun.project import Expectation


def expectations_of(workspace: Workspace, model: Compiled) -> tuple[Expectation, ...]:
    """Return the expectations of a model: its contract's keys and nulls, then its suite."""
    return of_model(model.query.rendered.model, workspace.suites.get(model.name))


def check(context: TickContext, model: Compiled, change: Change) -> tuple[CheckResult, ...]:
    """Check a tick's changed rows of a model; `measure` evaluates measures in parallel."""
    related = _related(context, model, change)
    if not change.commits:
        return related
    declared = expectations_of(context.workspace, model)
    results = _declared(context, model, declared, change) if change.count else ()
    repeated = repeated_rows.results(context, model, change)
    return (*results, *related, *repeated, *quarantine_limit.judged(context, model, change))


def _declared(
    context: TickContext, model: Compiled, expectations: tuple[Expectation, ...], change: Change
) -> tuple[CheckResult, ...]:
    """Evaluate expectations on the inserted and updated rows, lot by lot."""
    planned = plan(model.query.rendered.model, expectations, held=change.rows is not None)
    found: dict[int, CheckResult] = {}
    for lot in planned.lots:
        found |= _outcomes(context, model, lot, change)
    return planned.in_order(found)


def _outcomes(context: TickContext, model: Compiled, lot: Lot, change: Change) -> dict[int, CheckResult]:
    """Read the rows of a lot, and evaluate it."""
    from sqlrun.check.chunked import run_large
    from sqlrun.check.evaluate import run_checks

    contract = model.query.rendered.model
    terms = Terms(context.plan.as_of, context.check_timeout, model.query.rendered.config.checks)
    if change.rows is None:
        return run_large(contract, lot.ways, rows.large(context, model, lot, change), terms)
    results = run_checks(contract, lot.expectations, rows.held(context, model, lot, change.rows, change.commits), terms)
    return dict(zip(lot.held, results, strict=True))


def _related(context: TickContext, model: Compiled, change: Change) -> tuple[CheckResult, ...]:
    """Evaluate relationships; a change of the other table can break them even if this table is unchanged."""
    if not of(model.query.rendered.model):
        return ()
    from sqlrun.check.relationships import in_tick

    where = context.plan.tables[model.name].where
    return in_tick(context, model, feed(context, model, change.commits, where) if change.commits else None)
