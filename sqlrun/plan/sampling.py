"""The sample of an environment: its landing tables have the newest events of their sources alone. Pure.

A sample is part of what a landing table means, so it is part of its fingerprint and of those of all tables above it: a
table of a sample has a path of its own, and neither production nor a build without the sample finds it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from sqlrun.errors import UsageError
from sqlrun.incremental.compile import Compiled
from sqlrun.plan import fingerprint
from sqlrun.plan.values import Workspace
from sqlrun.project import RecentEvents
from sqlrun.publish.environment_paths import PRODUCTION, environment
from sqlrun.publish.table_state import Published, TableSample, TableState

UNITS = {"m": 1, "h": 60, "d": 1440}


def minutes_of(text: str | None, env: str | None) -> int:
    """Return the minutes of `--sample`, such as 90m, 3h or 2d; 0 without the option.

    Raises: UsageError for another text, and without an environment (SR820).
    """
    if text is None:
        return 0
    found = re.fullmatch(r"([1-9][0-9]{0,5})([mhd])", text.strip())
    if found is None:
        raise UsageError(f"`{text}` isn't a length of time. Write --sample 90m, 3h or 2d")
    if not environment(env):
        raise UsageError(
            f"SR820 --sample {text} leaves out events, which {PRODUCTION} never does. "
            f"Name an environment: --env dev --sample {text}, or SQLRUN_ENV=dev"
        )
    return int(found[1]) * UNITS[found[2]]


def chosen(minutes: int, as_of: datetime, published: Published | None) -> TableSample | None:
    """Return the sample of a tick; None without one.

    It begins where that of the environment's published tick begins, so that ticks add what is new. When it would be
    longer than two samples, it begins one sample before the tick.
    """
    if not minutes:
        return None
    length = timedelta(minutes=minutes)
    before = of_tick(published)
    if before is not None and before.minutes == minutes and length <= as_of - before.since <= 2 * length:
        return before
    return TableSample(minutes, as_of - length)


def of_tick(published: Published | None) -> TableSample | None:
    """Return the sample of a tick's tables, the newest one if there are several; None if no table is of a sample."""
    found = [(state.as_of, state.sample) for state in (published.tables if published else {}).values() if state.sample]
    return max(found, key=lambda each: each[0])[1] if found else None


def applied(workspace: Workspace, sample: TableSample | None) -> Workspace:
    """Return the workspace whose landing models have the events of a sample alone."""
    if sample is None:
        return workspace
    models = tuple(_limited(model, sample) for model in workspace.models)
    prints: dict[str, str] = dict(workspace.prints)
    sampled: dict[str, TableSample] = {}
    for model, before in zip(models, workspace.models, strict=True):
        reads = (*model.query.rendered.refs, *model.source_tables)
        if model is not before or any(name in sampled for name in reads):
            prints[model.name] = fingerprint.of_model(model, {name: prints[name] for name in reads})
            sampled[model.name] = sample
    return replace(workspace, models=models, prints=prints, sample=sample, sampled=sampled)


def _limited(model: Compiled, sample: TableSample) -> Compiled:
    column = model.query.rendered.model.event_time
    if model.source is None or column not in {each.name for each in model.own.columns}:
        return model
    return Compiled(
        model.query, model.stages, replace(model.source, recent=RecentEvents(column, sample.since.isoformat()))
    )


def as_built(workspace: Workspace, tables: Mapping[str, TableState]) -> Workspace:
    """Return the workspace as the published tables were built: those of a sample with it, all others without."""
    samples = {state.sample for state in tables.values() if state.sample}
    found = workspace
    for sample in sorted(samples, key=lambda each: (each.since, each.minutes)):
        of_sample = applied(workspace, sample)
        names = {name for name, state in tables.items() if state.sample == sample and name in of_sample.sampled}
        models = tuple(of_sample.model(model.name) if model.name in names else model for model in found.models)
        prints = {**found.prints, **{name: of_sample.prints[name] for name in names}}
        sampled = {**found.sampled, **dict.fromkeys(names, sample)}
        found = replace(found, models=models, prints=prints, sample=sample, sampled=sampled)
    return found


def messages(workspace: Workspace, env: str) -> Iterator[str]:
    """Yield what the sample of a tick leaves out, and which sources have no time to choose by."""
    if workspace.sample is None:
        return
    yield f"Environment {env} is a sample: {workspace.sample}"
    for model in workspace.tables:
        if model.source is not None and model.source.recent is None:
            name = f"{model.source.group}.{model.source.name}"
            yield f"{name}: read in full, because {model.name} has no `event_time`"
    for source in workspace.project.sources:
        if not source.lands:
            yield f"{source.group}.{source.name}: read in full, because a Delta table isn't landed"
    if not workspace.sampled:
        yield "The sample leaves out nothing: no model that lands a source has an `event_time`"
