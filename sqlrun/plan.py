"""The compiled project and the ledger to what a tick will do: tables, paths, inputs, order. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlrun import expectations, fingerprint, landing
from sqlrun.engines.protocol import StoredColumn, TableSpec
from sqlrun.errors import UsageError
from sqlrun.incremental.compile import Compiled
from sqlrun.incremental.stages import Stage
from sqlrun.landing import Rule
from sqlrun.model import Project, Seed, Suite
from sqlrun.ticks import Published, TableState

PUBLIC_ROWS = f"{landing.REASON} is null"
QUARANTINED_ROWS = f"{landing.REASON} is not null"


@dataclass(frozen=True, slots=True)
class Workspace:
    """Everything that is known before an engine starts: the project, compiled, and what each table is called."""

    project: Project
    models: tuple[Compiled, ...]  # in graph order, views included
    rules: Mapping[str, tuple[Rule, ...]]
    suites: Mapping[str, Suite]
    prints: Mapping[str, str]

    def model(self, name: str) -> Compiled:
        """Find a model by name."""
        return next(m for m in self.models if m.name == name)

    @property
    def tables(self) -> tuple[Compiled, ...]:
        """List the models that are kept as tables."""
        return tuple(m for m in self.models if not m.is_view)

    @property
    def views(self) -> tuple[str, ...]:
        """Name the models that are written into their readers."""
        return tuple(m.name for m in self.models if m.is_view)

    def stage(self, name: str) -> Stage | None:
        """Find a table's stage by name, hidden ones included; None for a seed."""
        return next((s for m in self.models for s in m.stages if s.name == name), None)

    def has(self, table: str) -> bool:
        """Tell whether a table is one of the project's, hidden ones included."""
        return self.stage(table) is not None or self.seed(table) is not None

    def seed(self, name: str) -> Seed | None:
        """Find a seed by name."""
        return next((s for s in self.project.seeds if s.name == name), None)


def workspace(project: Project, models: tuple[Compiled, ...], rules: Mapping[str, tuple[Rule, ...]]) -> Workspace:
    """Hash every seed and model, inputs first."""
    prints = {seed.name: fingerprint.of_seed(seed) for seed in project.seeds}
    for model in models:
        reads = [*model.query.rendered.refs]
        inputs = {name: prints[name] for name in reads}
        prints[model.name] = fingerprint.of_model(model, inputs, rules.get(model.name, ()))
    suites = {suite.model: suite for suite in project.suites}
    return Workspace(project, models, rules, suites, prints)


def rules_of(nouns: Project, model: Compiled) -> tuple[Rule, ...]:
    """Turn the quarantine expectations of a landing model into predicates."""
    if model.source is None:
        return ()
    suite = next((s for s in nouns.suites if s.model == model.name), None)
    if suite is None:
        return ()
    contract = model.query.rendered.model
    quarantine, _ = expectations.split(suite.expectations)
    rules = []
    for expectation in quarantine:
        predicate = expectations.passes(expectation, contract.columns)
        assert predicate is not None, "problems() refuses a quarantine without a predicate"
        rules.append(Rule(_reason(expectation.type, expectation.kwargs, expectation.description), predicate))
    return tuple(rules)


def _reason(kind: str, kwargs: object, description: str) -> str:
    column = kwargs.get("column") if isinstance(kwargs, dict) else None
    subject = f"{column}: " if column else ""
    return f"{subject}{description or kind}"


def stored_columns(stage: Stage) -> tuple[StoredColumn, ...]:
    """List all columns of a stage's table, hidden ones included."""
    return landing.columns_of(stage) if stage.method == "land" else stage.columns


@dataclass(frozen=True, slots=True)
class TablePlan:
    """One table in this tick: where it lies, what readers see of it, what it holds now (None: it is to be built).

    `path` is relative to the warehouse; `where` parts the public rows of a landing table from quarantined ones.
    """

    spec: TableSpec
    path: str
    public: tuple[StoredColumn, ...]
    state: TableState | None
    where: str = ""

    @property
    def lands(self) -> bool:
        """Tell whether it is a landing table, selected or only read."""
        return bool(self.where)


@dataclass(frozen=True, slots=True)
class TickPlan:
    """What a tick will do: seeds and stages in graph order, with their tables."""

    number: int
    as_of: datetime
    seeds: tuple[str, ...]
    models: tuple[Compiled, ...]
    tables: Mapping[str, TablePlan]  # of everything that is selected or read
    published: Published | None


def tick_plan(
    space: Workspace,
    warehouse: str,
    published: Published | None,
    number: int,
    as_of: datetime,
    selected: Iterable[str],
    refresh: bool,
) -> TickPlan:
    """Plan a tick over the selected models and seeds; a table whose input was rebuilt is rebuilt too."""
    chosen = set(selected)
    require_inputs(space, chosen, published)
    models = tuple(m for m in space.tables if m.name in chosen)
    needed = {table for m in models for s in m.stages for table in s.inputs}
    seeds = tuple(s.name for s in space.project.seeds if s.name in chosen | needed)
    tables: dict[str, TablePlan] = {}
    for name in seeds:
        tables[name] = _seed_table(space, warehouse, name, published, number, refresh and name in chosen)
    for model in space.tables:
        for stage in model.stages:
            moved = any(_moved(stage, table, tables, published) for table in stage.inputs if table in tables)
            rebuild = model.name in chosen and (refresh or moved)
            if model.name in chosen or stage.name in needed:
                tables[stage.name] = _stage_table(space, warehouse, stage, published, number, rebuild)
    _require_unedited(models, chosen, tables)
    return TickPlan(number, as_of, seeds, models, tables, published)


def _moved(stage: Stage, table: str, tables: Mapping[str, TablePlan], published: Published | None) -> bool:
    """Tell whether an input lies elsewhere than when the stage last read it."""
    known = published.tables.get(stage.name) if published else None
    return known is not None and table in known.inputs and known.inputs[table][0] != tables[table].path


def _stage_table(
    space: Workspace, warehouse: str, stage: Stage, published: Published | None, number: int, rebuild: bool
) -> TablePlan:
    # A hidden table has a folder of its own: what lies inside another table's folder is lost to a VACUUM of that one.
    path, state = _place(stage.name, f"{stage.name}/{space.prints[stage.model]}", published, number, rebuild)
    spec = TableSpec(stage.name, f"{warehouse}/{path}", stored_columns(stage), stage.partition_by)
    where = PUBLIC_ROWS if stage.method == "land" else ""
    return TablePlan(spec, path, stage.public, state, where)


def _seed_table(
    space: Workspace, warehouse: str, name: str, published: Published | None, number: int, rebuild: bool
) -> TablePlan:
    seed = space.seed(name)
    assert seed is not None
    path, state = _place(name, f"{name}/{space.prints[name]}", published, number, rebuild)
    columns = tuple(StoredColumn(c.name, c.type, c.nullable) for c in seed.columns)
    return TablePlan(TableSpec(name, f"{warehouse}/{path}", columns), path, columns, state)


def _place(
    name: str, meaning: str, published: Published | None, number: int, rebuild: bool
) -> tuple[str, TableState | None]:
    """Choose a path: the published one while the meaning is the same, a new one for a rebuild."""
    known = published.tables.get(name) if published else None
    same = known is not None and re.fullmatch(re.escape(meaning) + r"(-\d+)?", known.path)
    if known is not None and same and not rebuild:
        return known.path, known
    generation = f"-{number}" if rebuild else ""
    return f"{meaning}{generation}", None


def require_inputs(space: Workspace, chosen: set[str], published: Published | None) -> None:
    """Refuse a selection whose inputs were never built."""
    built = set(published.tables) if published else set()
    for model in (m for m in space.tables if m.name in chosen and m.source is None):
        own = {s.name for s in model.stages}
        for table in sorted({t for s in model.stages for t in s.inputs} - own - built - chosen):
            if space.seed(table) is None:
                raise UsageError(
                    f"{model.name} reads {table}, which has never been built. "
                    f"Build it too: sqlrun build --select +{model.name}"
                )


def _require_unedited(models: Iterable[Compiled], chosen: set[str], tables: Mapping[str, TablePlan]) -> None:
    """Refuse a selection that leaves out an edited model which it reads: what was built says something else."""
    for model in models:
        for name in sorted({table for stage in model.stages for table in stage.inputs} & tables.keys()):
            owner = name.partition("__state_")[0]
            if owner not in {model.name, *chosen} and tables[name].state is None:
                raise UsageError(
                    f"{model.name} reads {owner}, which was edited since it was built, or reads what was. "
                    f"Build it too: sqlrun build --select +{model.name}"
                )


def state_after(
    plan: TablePlan, version: int, as_of: datetime, inputs: Mapping[str, tuple[str, int]], content: str = ""
) -> TableState:
    """Describe a table after the tick."""
    columns = tuple((c.name, c.type) for c in plan.public)
    return TableState(plan.path, version, as_of.isoformat(), dict(inputs), content, columns, plan.where)


def own_tables(tables: Mapping[str, TableState]) -> dict[str, TableState]:
    """Leave out the hidden tables that hold models' inner results."""
    return {name: state for name, state in tables.items() if "__state_" not in name}
