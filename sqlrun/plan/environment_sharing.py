"""Environments: the tables that a tick shares with production, takes over, or writes itself. Pure.

Only one environment writes a table: the one whose name ends its path, or production once its latest tick has the table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime

from sqlrun.errors import UsageError
from sqlrun.incremental.compile import Compiled
from sqlrun.incremental.stages import Stage
from sqlrun.plan import fingerprint
from sqlrun.plan.values import Promotion, TickPlan, Workspace
from sqlrun.project import is_state_table
from sqlrun.publish.environment_paths import (
    ALONE,
    PRODUCTION,
    OtherEnvironments,
    environment,
    has_fingerprint,
    own,
    owner,
)
from sqlrun.publish.table_state import Published, TableState, is_source, table_of


def place(
    meaning: str, known: TableState | None, number: int, rebuild: bool, other_environments: OtherEnvironments = ALONE
) -> tuple[str, TableState | None]:
    """Return a table's path and state: the known table while its meaning is unchanged, else a new path and None."""
    if known is not None and has_fingerprint(known.path, meaning) and not rebuild:
        return known.path, known
    ending = f".{other_environments.env}" if other_environments.env else ""
    path = f"{meaning}-{number}{ending}" if rebuild else f"{meaning}{ending}"
    return (f"{meaning}-{number}{ending}" if path in other_environments.taken else path), None


def shared(
    workspace: Workspace, other_environments: OtherEnvironments, sources: Mapping[str, str]
) -> dict[str, TableState]:
    """Return the tables that an environment reads from production unchanged.

    They have the meaning that the project gives them, and all of their inputs are shared, too, or are `sources`: the
    paths of tables that others write.
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
            there |= {name: table_of(path) for name, path in sources.items()}
            if all(_read(states[s.name]) == {name: there.get(name) for name in reads(s)} for s in model.stages):
                found |= states
    return found


def _same_rules(workspace: Workspace, model: Compiled, states: Mapping[str, TableState]) -> bool:
    """Return whether a landing table's lines were validated by the current rules."""
    return model.source is None or states[model.name].content in ("", workspace.rules_print(model))


def _states(workspace: Workspace, model: Compiled, known: Mapping[str, TableState]) -> dict[str, TableState] | None:
    """Return the states of all tables of a model with its current meaning; None if one is missing."""
    found = {s.name: known[s.name] for s in model.stages if s.name in known}
    if any(
        s.name not in found or not has_fingerprint(found[s.name].path, _meaning(workspace, s)) for s in model.stages
    ):
        return None
    return found


def _meaning(workspace: Workspace, stage: Stage) -> str:
    return f"{stage.name}/{workspace.prints[stage.model]}"


def _read(state: TableState) -> dict[str, str | None]:
    return {name: table_of(path) for name, (path, _) in state.inputs.items()}


def reads(stage: Stage) -> tuple[str, ...]:
    """Return the tables that a stage reads; the source of a landing model isn't a table."""
    return () if stage.method == "land" else stage.inputs


def seen(
    workspace: Workspace,
    published: Published | None,
    other_environments: OtherEnvironments,
    taken: Mapping[str, TableState],
) -> Published | None:
    """Return what an environment's readers see before its tick, updated to what production publishes now.

    Models of which the environment has no own table are production's, whatever their meaning.
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
    """Return a model's tables in an environment, to continue from instead of building them; None if there are none.

    `there` maps the tables that the model would read to their paths and their states before the tick.
    """
    refused = None
    for env, tick in other_environments.offers():
        states = _states(workspace, model, tick.tables)
        if states is None or any(owner(state.path) != env or state.sample for state in states.values()):
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
    """Return a seed's table in an environment, None if there is none; rows that differ are written as usual."""
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
    """Return why a tick can't continue from a table; "" if it can."""
    if state.as_of > as_of:
        return f"its table there is of {state.as_of:%Y-%m-%d %H:%M}, later than this tick"
    if not other_environments.is_ancestor(state.path, state.version, state.version):
        return "its table there is gone"
    for name, (path, version) in state.inputs.items():
        place, known = there.get(name, ("", None))
        if table_of(place) != table_of(path) or known is None:
            return f"it was built there from another table of {name}"
        if not other_environments.is_ancestor(path, version, known.version):
            return f"{name} was rolled back to before what it read there"
    return "" if set(state.inputs) >= set(reads(stage)) else "it was built there from other tables"


def is_lost(
    stage: Stage, known: TableState | None, taken: Mapping[str, TableState], other_environments: OtherEnvironments
) -> str:
    """Return the name of a shared table that was rolled back to before what an own table has read; "" if none."""
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
    """Return the numbers of own tables and of shared tables, without hidden ones."""
    visible = [name for name in tables if not is_state_table(name)]
    return sum(name in mine for name in visible), sum(name not in mine for name in visible)


def require_deferral(env: str | None) -> None:
    """Raise `UsageError` (SR821) unless a build with `--defer` has an environment."""
    if not environment(env):
        raise UsageError(
            f"SR821 --defer reads what isn't selected from {PRODUCTION}, and this build is {PRODUCTION}'s. Name an "
            "environment: --env ci --defer, or SQLRUN_ENV=ci"
        )


def deferred(plan: TickPlan, other_environments: OtherEnvironments) -> Iterator[str]:
    """Yield from where the models to build read tables that the tick doesn't build.

    Raises: UsageError if production has published no tick.
    """
    production = other_environments.production
    if production is None:
        raise UsageError(
            f"--defer reads tables of {PRODUCTION}, which has published no tick in this warehouse. Build it first: "
            "sqlrun build. Or leave out --defer, and build all models in the environment"
        )
    built = {stage.name for model in plan.models for stage in model.stages} | {*plan.seeds}
    read = {name for model in plan.models for stage in model.stages for name in reads(stage)}
    left = sorted(name for name in read - built if name in plan.tables and not plan.tables[name].is_source)
    for whose, is_shared in ((f"{PRODUCTION}'s tick {production.tick}", True), (plan.env, False)):
        names = [name for name in left if plan.tables[name].shared == is_shared]
        if names:
            yield f"Read from {whose}: {', '.join(names)}"
    if not plan.models:
        yield f"Nothing to build: the selected tables are those of {PRODUCTION}'s tick {production.tick}"
    elif not left:
        yield f"Nothing is read from {PRODUCTION}: the build has all inputs of its models"


def messages(plan: TickPlan) -> Iterator[str]:
    """Yield messages about shared tables, promoted ones, and tables that are rebuilt although a table exists."""
    if plan.env:
        shared = sum(
            table.shared and not is_source(table.path)
            for name, table in plan.tables.items()
            if not is_state_table(name)
        )
        yield f"Environment {plan.env}: {shared} {'table' if shared == 1 else 'tables'} shared with production"
    for name, offered in plan.promoted.items():
        yield f"{name}: promoted from {offered.env}, tick {offered.tick}"
    for name, why in plan.notes.items():
        yield f"{name}: rebuilt, {why}"
