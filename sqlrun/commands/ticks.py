"""The commands on published ticks, from show to rollback. Shell: the project, the terminal, the ledger."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlrun import pipeline
from sqlrun.commands.selection import chosen
from sqlrun.engines.delta.heads import Heads
from sqlrun.errors import ProjectError, UsageError
from sqlrun.operations import outcome_lines
from sqlrun.pipeline import ledger_of, profile_of
from sqlrun.report import log_lines
from sqlrun.report.console import Console
from sqlrun.runtime import arrow_rows, text_table
from sqlrun.runtime.disk_cache import Cache

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlrun.plan.diff import Edit
    from sqlrun.plan.values import TickPlan, Workspace
    from sqlrun.publish.environment_paths import OtherEnvironments
    from sqlrun.publish.ledger import History


def show_rows(
    root: Path, model: str, name: str | None, env: str | None, where: str, limit: int, output: str, tick: int | None
) -> int:
    """Run `sqlrun show`."""
    from sqlrun.commands import readable
    from sqlrun.parse.where_clause import condition
    from sqlrun.publish.reader import tick_of
    from sqlrun.publish.table_state import complete_to

    ledger = pipeline.published_ledger(root, name, env)
    published = tick_of(ledger, tick)
    found = readable.find(root, ledger.warehouse, published, model)
    rest = f" where {condition(where, {c.name: c.type for c in found.columns})}" if where else ""
    keys = [c.name for c in found.columns if "<" not in c.type]
    rest += " order by " + ", ".join(f'"{key}"' for key in keys) if keys else ""
    rows = arrow_rows.plain(found.rows(rest + (f" limit {limit + 1}" if limit else "")))
    names = tuple(c.name for c in found.columns)
    facts = dict.fromkeys(
        f", complete to {fact}" for one in found.tables for fact in complete_to(published.tables, one)
    )
    _print_rows(rows, names, limit, output, f"of {found.what} at {published}{''.join(facts)}")
    return 0


def show_types(root: Path, model: str, name: str | None, env: str | None, output: str, tick: int | None) -> int:
    """Run `sqlrun show --types`."""
    from sqlrun.commands import readable
    from sqlrun.publish.reader import tick_of

    ledger = pipeline.published_ledger(root, name, env)
    published = tick_of(ledger, tick)
    found = readable.find(root, ledger.warehouse, published, model)
    rows = [{"column": column.name, "type": column.type} for column in found.columns]
    _print_rows(rows, ("column", "type"), 0, output, f"of {found.what} at {published}", "column")
    return 0


def _print_rows(
    rows: list[dict[str, Any]], names: tuple[str, ...], limit: int, output: str, what: str, noun: str = "row"
) -> None:
    more = bool(limit) and len(rows) > limit
    rows = rows[:limit] if limit else rows
    console = Console()
    match output:
        case "json":
            console.raw(log_lines.as_json(rows))
        case "csv":
            console.raw(log_lines.as_csv(list(names), rows))
        case _:
            count = text_table.counted(len(rows), noun)
            console.table(names, [tuple(r.values()) for r in rows], f"{'first ' if more else ''}{count} {what}")


def print_views(root: Path, name: str | None, env: str | None, tick: int | None, dialect: str) -> int:
    """Run `sqlrun views`."""
    from sqlrun.publish import tick_views

    warehouse = pipeline.published_ledger(root, name, env).warehouse
    Console().raw(";\n".join(tick_views.of_tick(warehouse, tick, env or "", dialect)) + ";")
    return 0


def plan_edits(
    root: Path,
    select: tuple[str, ...],
    exclude: tuple[str, ...],
    state: Path | None,
    name: str | None,
    env: str | None,
    refresh: bool,
    as_json: bool,
    now: datetime,
    *,
    statements: bool = False,
    sample: str | None = None,
) -> int:
    """Run `sqlrun plan`; with `statements` it shows how queries changed."""
    from sqlrun.commands import pending_input
    from sqlrun.engines.delta import table as delta_table
    from sqlrun.explain import explain_engine
    from sqlrun.plan import diff as plan_diff
    from sqlrun.plan import sampling
    from sqlrun.publish import environments

    cache = Cache.of(root)
    prepared = pipeline.prepare(root, cache)
    ledger = ledger_of(root, prepared, name, env)
    history, other_environments = ledger.read(), environments.other_environments(ledger)
    tick_sample = sampling.chosen(sampling.minutes_of(sample, env), now, history.published)
    prepared = replace(prepared, workspace=sampling.applied(prepared.workspace, tick_sample))
    names = chosen(prepared, select, exclude, state)
    plan = _next_tick(prepared.workspace, ledger.warehouse, history, now, names, refresh, other_environments)
    published = plan.published
    target = profile_of(root, prepared, name)
    spark_only_models, found = (
        pipeline.spark_only_models_of(prepared, target, cache),
        plan_diff.edits(prepared.workspace, plan),
    )
    engines = explain_engine.of_plan(plan, (e.name for e in found if e.reads), target, spark_only_models)
    found = tuple(replace(edit, engine=engines.get(edit.name, "")) for edit in found)
    states = {n: published.tables[n] for e in found for n in e.reads if n in published.tables} if published else {}
    rows = {n: delta_table.rows_at(f"{ledger.warehouse}/{state.path}", state.version) for n, state in states.items()}
    texts = _query_changes(prepared.workspace, ledger.warehouse, plan, found) if statements else {}
    if as_json:
        Console().raw(json.dumps(plan_diff.as_json(found, published, rows, texts if statements else None), indent=2))
    else:
        compared = plan_diff.compared(history.published, other_environments)
        console = Console()
        console.lines(plan_diff.messages(found, published, rows, compared))
        console.lines([line for name in texts for line in ("", *texts[name])])
        console.lines(["", *sampling.messages(prepared.workspace, ledger.env)] if tick_sample else [])
        console.lines(["", *pending_input.messages(prepared.workspace, plan, target.connections)])
    return 0


def _next_tick(
    workspace: Workspace,
    warehouse: str,
    history: History,
    now: datetime,
    names: tuple[str, ...],
    refresh: bool,
    other_environments: OtherEnvironments,
) -> TickPlan:
    """Return the plan of a tick that a build would begin now."""
    from sqlrun.engines.duckdb.engine import DuckDBEngine
    from sqlrun.land import rule_changes
    from sqlrun.maintain import source_versions
    from sqlrun.plan.plan import tick_plan

    published, number = history.published, history.last_tick + 1
    sources = source_versions.read(workspace, names, published)
    plan = tick_plan(
        workspace, warehouse, published, number, now, names, refresh, other_environments, sources=sources
    )  # fmt: skip
    rebuild_reasons = rule_changes.broken(workspace, plan, DuckDBEngine(), Heads()) | source_versions.lost(plan)
    if not rebuild_reasons:
        return plan
    return tick_plan(
        workspace, warehouse, published, number, now, names, refresh, other_environments, rebuild_reasons, sources
    )


def _query_changes(
    workspace: Workspace, warehouse: str, plan: TickPlan, found: Iterable[Edit]
) -> dict[str, tuple[str, ...]]:
    """Return how the query of each rebuilt table changed, as lines."""
    from sqlrun.plan import query_texts
    from sqlrun.publish import published_queries

    names = [edit.name for edit in found if edit.fate == "rebuilt" and workspace.seed(edit.name) is None]
    return {
        name: tuple(
            query_texts.lines(
                name,
                published_queries.read(warehouse, query_texts.fingerprint_before(plan, name)),
                query_texts.of_model(workspace, workspace.model(name)),
            )
        )
        for name in names
    }


def vacuum_tables(root: Path, name: str | None, env: str | None, keep: int | None, clock: datetime) -> int:
    """Run `sqlrun vacuum`."""
    from sqlrun.operations import maintenance

    prepared = pipeline.prepare(root, Cache.of(root))
    keep = keep or profile_of(root, prepared, name).keep_ticks
    done = maintenance.vacuum(ledger_of(root, prepared, name, env), keep, clock, lambda _: None)
    Console().lines(outcome_lines.vacuumed(done, keep))
    return 0


def list_ticks(root: Path, name: str | None, env: str | None, limit: int) -> int:
    """Run `sqlrun ticks`."""
    from sqlrun.operations import rollback as history

    ledger = pipeline.published_ledger(root, name, env)
    Console().lines(history.list_ticks(ledger, limit))
    return 0


def diff_ticks(
    root: Path,
    model: str,
    name: str | None,
    env: str | None,
    before: int | None,
    after: int | None,
    limit: int,
    output: str,
) -> int:
    """Run `sqlrun diff`."""
    from sqlrun.commands.readable import refusing_views
    from sqlrun.operations import rollback as history
    from sqlrun.publish.reader import find, tick_of

    ledger = pipeline.published_ledger(root, name, env)
    newer = tick_of(ledger, after)
    with refusing_views(root, model):
        find(newer, ledger.warehouse, model)
    first, last = history.compared(ledger, before, after)
    rows = history.difference(ledger, model, first.tick, last.tick)
    names = tuple(rows[0]) if rows else ("change",)
    if not rows and output == "table":
        Console().lines([f"No difference: {model} has the same rows at {first}, and at {last}."])
    else:
        what = f"of {model} came (+) or left (-) between {first}, and {last}"
        _print_rows(rows, names, limit, output, what)
    return 0


def diff_environments(
    root: Path,
    model: str | None,
    name: str | None,
    env: str | None,
    against: str,
    before: int | None,
    after: int | None,
    limit: int,
    output: str,
) -> int:
    """Run `sqlrun diff --against`: compare tables of two environments."""
    from sqlrun.commands.readable import refusing_views
    from sqlrun.operations import compare
    from sqlrun.plan import sampling
    from sqlrun.publish.environment_paths import PRODUCTION
    from sqlrun.publish.reader import tick_of

    console = Console()
    sides = []
    for other, tick in ((against, before), (env, after)):
        ledger = pipeline.published_ledger(root, name, other)
        sides.append(compare.Side(ledger.env or PRODUCTION, ledger.warehouse, tick_of(ledger, tick)))
    old, new = sides
    if old == new:
        raise UsageError(f"{new.name}'s {new.published} is the same on both sides. Name another environment or tick")
    grains = _grains(root, console)
    if model is None:
        found = list(compare.tables(old, new, grains))
    else:
        with refusing_views(root, model):
            found = [compare.table(model, old, new, grains.get(model, ()))]
    if model is not None and output != "table":
        rows = compare.sample(model, old, new, limit) if None not in found[0].rows else []
        _print_rows(rows, tuple(rows[0]) if rows else ("change",), limit, output, "")
        return 0
    if output != "table":
        values = [{**asdict(one), "same": one.is_same, "share": one.share} for one in found]
        console.raw(log_lines.as_json(values) if output == "json" else log_lines.as_csv(list(values[0]), values))
        return 0
    console.lines([f"Compared {new.name}'s {new.published} with {old.name}'s {old.published}."])
    for side in sides:
        if found_sample := sampling.of_tick(side.published):
            console.print(f"{side.name} is a sample: {found_sample}.", "warning")
    console.lines([""])
    console.lines(outcome_lines.comparison(found, old.name, new.name))
    if model is not None and found[0].left + found[0].came and None not in found[0].rows:
        rows = compare.sample(model, old, new, limit + 1 if limit else 0)
        console.lines([""])
        _print_rows(rows, tuple(rows[0]), limit, output, f"only in {new.name} (+) or only in {old.name} (-)")
    return 0


def _grains(root: Path, console: Console) -> dict[str, tuple[str, ...]]:
    """Return the columns that identify a row, by table; none of a project with mistakes, which is reported."""
    try:
        project = pipeline.prepare(root, Cache.of(root)).project
    except ProjectError:
        console.print("The project has mistakes, so its grains aren't known: rows are compared as a whole.", "warning")
        return {}
    found = {seed.name: seed.grain for seed in project.seeds}
    return found | {model.name: model.grain for model in project.models if not model.repeats}


def verify_tables(
    root: Path,
    select: tuple[str, ...],
    exclude: tuple[str, ...],
    name: str | None,
    env: str | None,
    options: dict[str, Any],
) -> int:
    """Run `sqlrun verify`."""
    from sqlrun.maintain import checksums
    from sqlrun.operations.verify import Sample, verify
    from sqlrun.plan import sampling
    from sqlrun.publish.reader import tick_of

    if options["checksums"] and options["sample"]:
        raise UsageError("--checksums covers complete tables; leave out --sample")
    prepared = pipeline.prepare(root, Cache.of(root))
    ledger = ledger_of(root, prepared, name, env)
    published = tick_of(ledger, options["tick"])
    names = chosen(prepared, select, exclude, options["state"])
    console = Console()
    compared, failed, good = 0, 0, "Every table equals its query"
    if options["checksums"]:
        for found in checksums.compare(ledger.warehouse, published, names):
            console.lines(outcome_lines.checksum(found))
            compared += 1
            failed += not found.ok
            good = "Every table has the ledger's checksum"
    else:
        some = Sample(options["sample"], options["seed"]) if options["sample"] else None
        workspace = sampling.as_built(prepared.workspace, published.tables)
        for verdict in verify(workspace, ledger.warehouse, published, names, options["limit"], some):
            console.lines(outcome_lines.verdict(verdict))
            compared += 1
            failed += not verdict.ok
            if verdict.scope:
                # No query has the versions of a history that ended: they are nowhere but in the history itself.
                good = "No table differs from its query, in what was compared of histories,"
    if not compared:
        nothing = f"Nothing was compared at {published}: no selected model is a table that a query computes."
        if select or exclude or options["state"]:
            raise UsageError(nothing)
        console.lines([nothing])
        return 0
    what = "the ledger's checksums" if options["checksums"] else "their queries"
    wrong = (
        f"{text_table.counted(failed, 'table')} {'differs' if failed == 1 else 'differ'} from {what} at {published}."
    )
    console.lines([wrong if failed else f"{good} at {published}."])
    if sample := sampling.of_tick(published):
        console.print(f"{ledger.env} is a sample: {sample}.")
    return 1 if failed else 0


def roll_back(root: Path, name: str | None, env: str | None, to: int, now: datetime) -> int:
    """Run `sqlrun rollback`."""
    from sqlrun.operations import rollback as history

    ledger = pipeline.published_ledger(root, name, env)
    history.roll_back(ledger, to, now, Console())
    return 0
