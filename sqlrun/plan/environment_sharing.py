"""Environments: which tables a tick shares with production, takes over, or has for its own to write. Pure.

A table is written by one environment alone: that whose name ends its path, or production once its newest tick has it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from sqlrun.errors import UsageError
from sqlrun.plan import fingerprint
from sqlrun.publish.table_state import Published, TableState, parse_time

if TYPE_CHECKING:
    from sqlrun.incremental.compile import Compiled
    from sqlrun.incremental.stages import Stage
    from sqlrun.plan.plan import TickPlan, Workspace

PRODUCTION = "prod"
NAME = re.compile(r"[a-z0-9_-]{1,40}")
# A generation is parted by `-`, an environment by `.`, which no name of one has.
PLACE = re.compile(r"(?P<meaning>[^/]+/[0-9a-f]{12})(?:-\d+)?(?:\.(?P<env>[a-z0-9_-]{1,40}))?")


def environment(text: str | None) -> str:
    """Read an environment's name; production is the empty one.

    >>> environment("prod"), environment("dev")
    ('', 'dev')
    """
    if not text or text == PRODUCTION:
        return ""
    if not NAME.fullmatch(text):
        raise UsageError(
            f"`{text}` is not a name of an environment: lowercase letters, digits, - and _, at most 40 of them"
        )
    return text


def books(env: str) -> str:
    """Tell where an environment's ledger, receipts and checks are, from the warehouse.

    >>> books(""), books("dev")
    ('_sqlrun', '_sqlrun/environments/dev')
    """
    return f"_sqlrun/environments/{env}" if env else "_sqlrun"


def print_of(path: str) -> str:
    """Take the hash of a table's meaning from its path; "" where it has none.

    >>> print_of("orders/0a1b2c3d4e5f-12.dev")
    '0a1b2c3d4e5f'
    """
    found = PLACE.fullmatch(path)
    return found["meaning"].partition("/")[2] if found else ""


def means(path: str, meaning: str) -> bool:
    """Tell whether a table holds a meaning, `model/hash`, whoever built it and when."""
    found = PLACE.fullmatch(path)
    return found is not None and found["meaning"] == meaning


def owner(path: str) -> str:
    """Name the environment that built a table.

    >>> owner("orders/0a1b2c3d4e5f-12.dev"), owner("orders/0a1b2c3d4e5f")
    ('dev', '')
    """
    found = PLACE.fullmatch(path)
    return (found["env"] or "") if found else ""


def always(path: str, after: int, until: int) -> bool:
    """Say that one version of a table was made from another; for a warehouse where nobody else is."""
    del path, after, until
    return True


@dataclass(frozen=True, slots=True)
class Around:
    """What the plan of a tick knows of the warehouse's other environments.

    In an environment `production` is production's newest tick. In production `offers` gives the environments' newest
    ticks, the first one to be asked first; it is called where a model has to be built. `reaches` tells whether a
    later version of a table was made from an earlier one.
    """

    env: str = ""
    production: Published | None = None
    offers: Callable[[], Sequence[tuple[str, Published]]] = tuple
    reaches: Callable[[str, int, int], bool] = always

    @property
    def taken(self) -> Collection[str]:
        """List the paths of tables that are production's, seen from an environment."""
        return {state.path for state in self.production.tables.values()} if self.production else set()


ALONE = Around()


def place(
    meaning: str, known: TableState | None, number: int, rebuild: bool, around: Around = ALONE
) -> tuple[str, TableState | None]:
    """Choose a path: that of a table of one's own while the meaning is the same, a new one for a rebuild."""
    if known is not None and means(known.path, meaning) and not rebuild:
        return known.path, known
    ending = f".{around.env}" if around.env else ""
    path = f"{meaning}-{number}{ending}" if rebuild else f"{meaning}{ending}"
    return (f"{meaning}-{number}{ending}" if path in around.taken else path), None


def own(published: Published | None, around: Around) -> dict[str, TableState]:
    """List the published tables that a tick may write to."""
    if published is None:
        return {}
    if not around.env:
        return dict(published.tables)
    taken = around.taken
    return {n: s for n, s in published.tables.items() if owner(s.path) == around.env and s.path not in taken}


def shared(space: Workspace, around: Around) -> dict[str, TableState]:
    """List the tables that an environment takes from production as they are.

    They have the meaning that the project gives them, and all that they were made from is shared, too.
    """
    found: dict[str, TableState] = {}
    known = around.production.tables if around.production else {}
    for seed in space.project.seeds:
        state = known.get(seed.name)
        if state is not None and means(state.path, f"{seed.name}/{space.prints[seed.name]}"):
            found |= {seed.name: state} if state.content == fingerprint.of_content(seed) else {}
    for model in space.tables:
        states = _states(space, model, known)
        if states is not None and _same_rules(space, model, states):
            there = {name: state.path for name, state in (found | states).items()}
            if all(_read(states[s.name]) == {name: there.get(name) for name in reads(s)} for s in model.stages):
                found |= states
    return found


def _same_rules(space: Workspace, model: Compiled, states: Mapping[str, TableState]) -> bool:
    """Tell whether the lines of a landing table were judged as they would be now."""
    return model.source is None or states[model.name].content in ("", space.rules_print(model))


def _states(space: Workspace, model: Compiled, known: Mapping[str, TableState]) -> dict[str, TableState] | None:
    """Find all tables of a model, of the meaning that it has now."""
    found = {s.name: known[s.name] for s in model.stages if s.name in known}
    if any(s.name not in found or not means(found[s.name].path, _meaning(space, s)) for s in model.stages):
        return None
    return found


def _meaning(space: Workspace, stage: Stage) -> str:
    return f"{stage.name}/{space.prints[stage.model]}"


def _read(state: TableState) -> dict[str, str | None]:
    return {name: path for name, (path, _) in state.inputs.items()}


def reads(stage: Stage) -> tuple[str, ...]:
    """List the tables that a stage is made from; a landing model's source is none."""
    return () if stage.method == "land" else stage.inputs


def seen(
    space: Workspace, published: Published | None, around: Around, taken: Mapping[str, TableState]
) -> Published | None:
    """Give what the readers of an environment see before its tick, brought up to what production publishes now.

    A model of which the environment has no table of its own is production's, in whatever meaning that has it.
    """
    production = around.production
    if production is None or not around.env:
        return published
    mine = own(published, around)
    before = published.tables if published else {}
    tables = {**before, **production.tables}
    for names in _groups(space):
        if names[-1] in mine and names[-1] not in taken:
            tables = {name: state for name, state in tables.items() if name not in names}
            tables |= {name: before[name] for name in names if name in before}
    tables |= taken
    newest = published or production
    return Published(newest.tick, max(newest.as_of, production.as_of), tables)


def _groups(space: Workspace) -> Iterator[list[str]]:
    yield from ([seed.name] for seed in space.project.seeds)
    yield from ([*(s.name for s in model.stages if s.name != model.name), model.name] for model in space.tables)


@dataclass(frozen=True, slots=True)
class Promotion:
    """Tables of a model that production takes over from an environment. None: it can't, and `why`."""

    env: str
    tick: int
    states: Mapping[str, TableState] | None
    why: str = ""


def promotion(
    space: Workspace,
    model: Compiled,
    there: Mapping[str, tuple[str, TableState | None]],
    as_of: datetime,
    around: Around,
) -> Promotion | None:
    """Find a model's tables in an environment, to go on from instead of building them. None: there are none.

    `there` are the tables that it would read from now on: their paths, and their states before the tick.
    """
    refused = None
    for env, tick in around.offers():
        states = _states(space, model, tick.tables)
        if states is None or any(owner(state.path) != env for state in states.values()):
            continue
        known = {**there, **{name: (state.path, state) for name, state in states.items()}}
        why = next(filter(None, (_unfit(s, states[s.name], known, as_of, around) for s in model.stages)), "")
        if not why:
            return Promotion(env, tick.tick, states)
        refused = refused or Promotion(env, tick.tick, None, why)
    return refused


def promoted_seed(name: str, meaning: str, as_of: datetime, around: Around) -> Promotion | None:
    """Find a seed's table in an environment; rows that differ are written as they always are."""
    for env, tick in around.offers():
        state = tick.tables.get(name)
        if state is None or not means(state.path, meaning) or owner(state.path) != env:
            continue
        if parse_time(state.as_of) <= as_of and around.reaches(state.path, state.version, state.version):
            return Promotion(env, tick.tick, {name: state})
    return None


def _unfit(
    stage: Stage,
    state: TableState,
    there: Mapping[str, tuple[str, TableState | None]],
    as_of: datetime,
    around: Around,
) -> str:
    """Say why a tick can't go on from a table; nothing where it can."""
    if parse_time(state.as_of) > as_of:
        return f"its table there is of {parse_time(state.as_of):%Y-%m-%d %H:%M}, later than this tick"
    if not around.reaches(state.path, state.version, state.version):
        return "its table there is gone"
    for name, (path, version) in state.inputs.items():
        place, known = there.get(name, ("", None))
        if place != path or known is None:
            return f"it was made there from another table of {name}"
        if not around.reaches(path, version, known.version):
            return f"{name} has gone back to before what it read there"
    return "" if set(state.inputs) >= set(reads(stage)) else "it was made there from other tables"


def is_lost(stage: Stage, known: TableState | None, taken: Mapping[str, TableState], around: Around) -> str:
    """Name a shared table which has gone back to before what a table of one's own has read of it."""
    if known is None:
        return ""
    for name in stage.inputs:
        path, version = known.inputs.get(name, ("", 0))
        state = taken.get(name)
        if state is not None and state.path == path and not around.reaches(path, version, state.version):
            return name
    return ""


def absolute(reaches: Callable[[str, int, int], bool], warehouse: str) -> Callable[[str, int, int], bool]:
    """Have paths looked up below a warehouse."""
    return lambda path, after, until: reaches(f"{warehouse}/{path}", after, until)


def counted(tables: Iterable[str], mine: Collection[str]) -> tuple[int, int]:
    """Count tables of one's own and shared ones, hidden ones left out."""
    shown = [name for name in tables if "__state_" not in name]
    return sum(name in mine for name in shown), sum(name not in mine for name in shown)


def told(plan: TickPlan) -> Iterator[str]:
    """Say which tables a tick shares, takes over, or builds anew although they are elsewhere."""
    if plan.env:
        shared = sum(table.shared for name, table in plan.tables.items() if "__state_" not in name)
        yield f"Environment {plan.env}: {shared} {'table' if shared == 1 else 'tables'} shared with production"
    for name, offered in plan.promoted.items():
        yield f"{name}: promoted from {offered.env}, tick {offered.tick}"
    for name, why in plan.notes.items():
        yield f"{name}: built anew, {why}"
