"""`sqlrun source`: the accounting of landed lines, and the acceptance of losses. Shell: the project, the terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlrun import pipeline
from sqlrun.errors import UsageError
from sqlrun.incremental.compile import Compiled
from sqlrun.land import loss_acceptance, quarantine_log
from sqlrun.load.yaml_reader import did_you_mean
from sqlrun.pipeline import Prepared, ledger_of, profile_of
from sqlrun.plan import sampling
from sqlrun.plan.plan import tick_plan
from sqlrun.publish import environments, warehouse_format
from sqlrun.publish.ledger import Ledger
from sqlrun.report import log_lines
from sqlrun.report.console import Console
from sqlrun.runtime.disk_cache import Cache
from sqlrun.runtime.text_table import counted
from sqlrun.source_api import NUMBERS, LineSums, Loss, SourceReader
from sqlrun.sources import checkpoint, factory
from sqlrun.storage import lock
from sqlrun.system_tables import intake, line_sums


@dataclass(frozen=True, slots=True)
class Lands:
    """A landing model with its source's reader, its checkpoint, its table's path and its application id."""

    model: Compiled
    reader: SourceReader
    checkpoint: str
    table: str
    app: str


def audit_sources(
    root: Path, name: str | None, profile: str | None, env: str | None, ticks: int, by_part: bool, as_json: bool
) -> int:
    """Run `sqlrun source audit`; return 1 if lines are unexplained."""
    prepared = pipeline.prepare(root, Cache.of(root))
    ledger = ledger_of(root, prepared, profile, env)
    warehouse_format.require(ledger.warehouse, ledger.project)
    wanted = {model.name for model in landing_models(prepared, name)}
    since = max(ledger.read().last_tick - ticks + 1, 0) if ticks else 0
    rows = [row for row in intake.read(ledger.warehouse, ledger.env, since=since) if row["model"] in wanted]
    console = Console()
    if as_json:
        console.raw(log_lines.as_json(rows))
    elif not rows:
        console.lines(["No line has landed in these ticks."])
    else:
        keys = ("source", "tick", "part", "since", "until") if by_part else ("source", "tick")
        groups = line_sums.by(rows, keys)
        table = [(*key, *line_sums.of(found).numbers.values()) for key, found in groups.items()]
        sums = line_sums.of(rows)
        console.table((*keys, *NUMBERS), table, sums.arithmetic(), "--json")
        console.lines(_notes(sums))
    return int(any(row["unexplained"] for row in rows))


def _notes(sums: LineSums) -> list[str]:
    """Return a line for each accepted loss, and the numbers of dropped lines by reason."""
    lines = [
        f"Lost in tick {one.tick}: {one.what}. Accepted by {', '.join(filter(None, (one.by, one.at)))}."
        for one in sums.losses
    ]
    return [*lines, *(f"Dropped: {counted(count, 'line')}, {reason}." for reason, count in sums.reasons.items())]


def accept_losses(
    root: Path, name: str, profile: str | None, env: str | None, clock: datetime, yes: bool, as_json: bool
) -> int:
    """Run `sqlrun source accept-loss`; return 1 if there are losses and they weren't confirmed."""
    prepared = pipeline.prepare(root, Cache.of(root))
    ledger = ledger_of(root, prepared, profile, env)
    warehouse_format.require(ledger.warehouse, ledger.project)
    connections = profile_of(root, prepared, profile).connections
    console, done = Console(), list[dict[str, Any]]()
    with lock.hold(ledger.warehouse, clock):
        found = []
        for one in _lands(prepared, ledger, landing_models(prepared, name), connections):
            committed = loss_acceptance.committed_batch(one.table, one.app, one.checkpoint)
            lost = loss_acceptance.losses(one.reader, one.checkpoint, committed)
            found += [(one, committed, lost)] if lost else []
        if not found:
            console.lines([f"{name} has lost nothing that has not landed."])
            return 0
        if not yes:
            for one, _, lost in found:
                console.lines(_listed(one, lost))
            console.lines(["Nothing was recorded. To record the loss and continue, repeat the command with --yes."])
            return 1
        for one, committed, _ in found:
            accepted = loss_acceptance.accept(one.reader, one.checkpoint, committed, quarantine_log.who(), clock)
            done += [{"model": one.model.name, **asdict(each)} for each in accepted]
    if as_json:
        console.raw(json.dumps(done, indent=2))
    else:
        console.lines([f"Recorded as lost: {each['what']}." for each in done])
        console.lines(["The next build lands the rest. `sqlrun source audit` shows the loss."])
    return 0


def _listed(one: Lands, lost: Sequence[Loss]) -> list[str]:
    def size(loss: Loss) -> str:
        return "an unknown number of lines" if loss.lines is None else counted(loss.lines, "offset")

    return [f"{one.model.name}: {loss.what} ({loss.kind}, {size(loss)})." for loss in lost]


def landing_models(prepared: Prepared, name: str | None) -> list[Compiled]:
    """Return the landing models of a source (`group.name`), a landing model, or all.

    Raises: UsageError if there is no such source.
    """
    lands = [model for model in prepared.workspace.tables if model.source is not None]
    if name is None:
        return lands
    found = [m for m in lands if m.source and name in (m.name, f"{m.source.group}.{m.source.name}")]
    if not found:
        names = sorted({f"{m.source.group}.{m.source.name}" for m in lands if m.source})
        raise UsageError(f"no source `{name}`. Sources: {', '.join(names) or 'none'}.{did_you_mean(name, names)}")
    return found


def _lands(prepared: Prepared, ledger: Ledger, models: Sequence[Compiled], connections: Any) -> Iterator[Lands]:
    """Yield the landing models whose tables belong to the ledger's environment."""
    history, others = ledger.read(), environments.other_environments(ledger)
    as_of = history.published.as_of if history.published else datetime.min
    every = tuple(m.name for m in prepared.workspace.tables if m.source is not None)
    workspace = sampling.as_built(prepared.workspace, history.published.tables if history.published else {})
    plan = tick_plan(workspace, ledger.warehouse, history.published, history.last_tick + 1, as_of, every, False, others)
    for model in models:
        table = plan.tables[model.name]
        if table.shared:
            continue
        assert model.source is not None
        reader = factory.reader_of(prepared.project.root, model.source, connections)
        place = f"{ledger.warehouse}/{checkpoint.path_of(table.path)}"
        yield Lands(model, reader, place, table.spec.path, f"{prepared.project.name}.{model.name}")
