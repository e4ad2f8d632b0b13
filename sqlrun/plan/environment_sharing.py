"""Environments: which tables a tick shares with production, takes over, or has for its own to write. Pure.

A table is written by one environment alone: that whose name ends its path, or production once its newest tick has it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime

from sqlrun.incremental.compile import Compiled
from sqlrun.incremental.stages import Stage
from sqlrun.plan import fingerprint
from sqlrun.plan.values import Promotion, TickPlan, Workspace
from sqlrun.project import is_state_table
from sqlrun.publish.environment_paths import ALONE, OtherEnvironments, has_fingerprint, own, owner
from sqlrun.publish.table_state import Published, TableState


def place(
    meaning: str, known: TableState | None, number: int, rebuild: bool, other_environments: OtherEnvironments = ALONE
) -> tuple[str, TableState | None]:
    """Choose a path: that of a table of one's own while the meaning is the same, a new one for a rebuild."""
    if known is not None and has_fingerprint(known.path, meaning) and not rebuild:
        return known.path, known
    ending = f".{other_environments.env}" if other_environments.env else ""
    path = f"{meaning}-{number}{ending}" if rebuild else f"{meaning}{ending}"
    return (f"{meaning}-{number}{ending}" if path in other_environments.taken else path), None


def shared(workspace: Workspace, other_environments: OtherEnvironments) -> dict[str, TableState]:
    """List the tables that an environment takes from production as they are.

    They have the meaning that the project gives them, and all that they were made from is shared, too.
    """
    found: dict[str, TableState] = {}
    known = other_environments.production.tables if other_environments.production else {}
    for seed in workspace.project.seeds:
        state = known.get(seed.name)
        if state is not None and has_fingerprint(state.path, f"{seed.name}/{workspace.prints[seed.name]}"):
            found |= {seed.name: state} if state.content == fingerprint.of_content(seed) else {}
    for model in workspace.tables:
        states = _states(workspace, model, known)
        if states is not None and _same_rules(workspace, model, states):
            there = {name: state.path for name, state in (found | states).items()}
            if all(_read(states[s.name]) == {name: there.get(name) for name in reads(s)} for s in model.stages):
                found |= states
    return found


def _same_rules(workspace: Workspace, model: Compiled, states: Mapping[str, TableState]) -> bool:
    """Return whether the lines of a landing table were judged as they would be now."""
    return model.source is None or states[model.name].content in ("", workspace.rules_print(model))


def _states(workspace: Workspace, model: Compiled, known: Mapping[str, TableState]) -> dict[str, TableState] | None:
    """Find all tables of a model, of the meaning that it has now."""
    found = {s.name: known[s.name] for s in model.stages if s.name in known}
    if any(
        s.name not in found or not has_fingerprint(found[s.name].path, _meaning(workspace, s)) for s in model.stages
    ):
        return None
    return found


def _meaning(workspace: Workspace, stage: Stage) -> str:
    return f"{stage.name}/{workspace.prints[stage.model]}"


def _read(state: TableState) -> dict[str, str | None]:
    return {name: path for name, (path, _) in state.inputs.items()}


def reads(stage: Stage) -> tuple[str, ...]:
    """List the tables that a stage is made from; a landing model's source is none."""
    return () if stage.method == "land" else stage.inputs


def seen(
    workspace: Workspace,
    published: Published | None,
    other_environments: OtherEnvironments,
    taken: Mapping[str, TableState],
) -> Published | None:
    """Return what the readers of an environment see before its tick, brought up to what production publishes now.

    A model of which the environment has no table of its own is production's, in whatever meaning that has it.
    """
    production = other_environments.production
    if production is None or not other_environments.env:
        return published
    mine = own(published, other_environments)
    before = published.tables if published else {}
    tables = {**before, **production.tables}
    for names in _groups(workspace):
        if names[-1] in mine and names[-1] not in taken:
            tables = {name: state for name, state in tables.items() if name not in names}
            tables |= {name: before[name] for name in names if name in before}
    tables |= taken
    newest = published or production
    return Published(newest.tick, max(newest.as_of, production.as_of), tables)


def _groups(workspace: Workspace) -> Iterator[list[str]]:
    yield from ([seed.name] for seed in workspace.project.seeds)
    yield from ([*(s.name for s in model.stages if s.name != model.name), model.name] for model in workspace.tables)


def promotion(
    workspace: Workspace,
    model: Compiled,
    there: Mapping[str, tuple[str, TableState | None]],
    as_of: datetime,
    other_environments: OtherEnvironments,
) -> Promotion | None:
    """Find a model's tables in an environment, to go on from instead of building them. None: there are none.

    `there` are the tables that it would read from now on: their paths, and their states before the tick.
    """
    refused = None
    for env, tick in other_environments.offers():
        states = _states(workspace, model, tick.tables)
        if states is None or any(owner(state.path) != env for state in states.values()):
            continue
        known = {**there, **{name: (state.path, state) for name, state in states.items()}}
        why = next(
            filter(None, (_unfit(s, states[s.name], known, as_of, other_environments) for s in model.stages)), ""
        )
        if not why:
            return Promotion(env, tick.tick, states)
        refused = refused or Promotion(env, tick.tick, None, why)
    return refused


def promoted_seed(name: str, meaning: str, as_of: datetime, other_environments: OtherEnvironments) -> Promotion | None:
    """Find a seed's table in an environment; rows that differ are written as they always are."""
    for env, tick in other_environments.offers():
        state = tick.tables.get(name)
        if state is None or not has_fingerprint(state.path, meaning) or owner(state.path) != env:
            continue
        if state.as_of <= as_of and other_environments.is_ancestor(state.path, state.version, state.version):
            return Promotion(env, tick.tick, {name: state})
    return None


def _unfit(
    stage: Stage,
    state: TableState,
    there: Mapping[str, tuple[str, TableState | None]],
    as_of: datetime,
    other_environments: OtherEnvironments,
) -> str:
    """Return why a tick can't go on from a table; nothing where it can."""
    if state.as_of > as_of:
        return f"its table there is of {state.as_of:%Y-%m-%d %H:%M}, later than this tick"
    if not other_environments.is_ancestor(state.path, state.version, state.version):
        return "its table there is gone"
    for name, (path, version) in state.inputs.items():
        place, known = there.get(name, ("", None))
        if place != path or known is None:
            return f"it was built there from another table of {name}"
        if not other_environments.is_ancestor(path, version, known.version):
            return f"{name} was rolled back to before what it read there"
    return "" if set(state.inputs) >= set(reads(stage)) else "it was built there from other tables"


def is_lost(
    stage: Stage, known: TableState | None, taken: Mapping[str, TableState], other_environments: OtherEnvironments
) -> str:
    """Return the name of a shared table which has gone back to before what a table of one's own has read of it."""
    if known is None:
        return ""
    for name in stage.inputs:
        path, version = known.inputs.get(name, ("", 0))
        state = taken.get(name)
        if (
            state is not None
            and state.path == path
            and not other_environments.is_ancestor(path, version, state.version)
        ):
            return name
    return ""


def counted(tables: Iterable[str], mine: Collection[str]) -> tuple[int, int]:
    """Count tables of one's own and shared ones, hidden ones left out."""
    shown = [name for name in tables if not is_state_table(name)]
    return sum(name in mine for name in shown), sum(name not in mine for name in shown)


def messages(plan: TickPlan) -> Iterator[str]:
    """Return which tables a tick shares, takes over, or builds anew although they are elsewhere."""
    if plan.env:
        shared = sum(table.shared for name, table in plan.tables.items() if not is_state_table(name))
        yield f"Environment {plan.env}: {shared} {'table' if shared == 1 else 'tables'} shared with production"
    for name, offered in plan.promoted.items():
        yield f"{name}: promoted from {offered.env}, tick {offered.tick}"
    for name, why in plan.notes.items():
        yield f"{name}: rebuilt, {why}"
