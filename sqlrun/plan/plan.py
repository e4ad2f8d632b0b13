"""Plan a tick from the compiled project and the ledger: tables, paths, inputs, order. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType

from sqlrun.engine_api import StoredColumn, TableSpec
from sqlrun.errors import UsageError
from sqlrun.expectations import validate
from sqlrun.incremental import hidden_partitions
from sqlrun.incremental.compile import Compiled
from sqlrun.incremental.landing.query import Rule
from sqlrun.incremental.stages import Stage
from sqlrun.plan import deletion_vectors, environment_sharing, fingerprint
from sqlrun.plan.values import (
    PUBLIC_ROWS,
    Promotion,
    SourceTable,
    TablePlan,
    TickPlan,
    Workspace,
    reason_of,
    stored_columns,
)
from sqlrun.project import Project, Seed, model_of
from sqlrun.publish import environment_paths
from sqlrun.publish.environment_paths import ALONE, OtherEnvironments, fingerprint_of
from sqlrun.publish.table_state import Published, TableState, table_of

NOTHING: Mapping[str, str] = MappingProxyType({})
NO_SOURCES: Mapping[str, SourceTable] = MappingProxyType({})


def workspace(project: Project, models: tuple[Compiled, ...], rules: Mapping[str, tuple[Rule, ...]]) -> Workspace:
    """Return the workspace of a project with the fingerprint of every seed and model, inputs first."""
    prints = {seed.name: fingerprint.of_seed(seed) for seed in project.seeds}
    prints |= {source.table: fingerprint.of_source(source) for source in project.sources if not source.lands}
    for model in models:
        reads = [*model.query.rendered.refs, *model.source_tables]
        inputs = {name: prints[name] for name in reads}
        prints[model.name] = fingerprint.of_model(model, inputs)
    suites = {suite.model: suite for suite in project.suites}
    return Workspace(project, models, rules, suites, prints)


def rules_of(project: Project, model: Compiled) -> tuple[Rule, ...]:
    """Return the quarantine expectations of a landing model as predicates."""
    if model.source is None:
        return ()
    suite = next((s for s in project.suites if s.model == model.name), None)
    if suite is None:
        return ()
    contract = model.query.rendered.model
    quarantine, _ = validate.split(suite.expectations)
    rules = []
    for expectation in quarantine:
        predicate = validate.passes(expectation, contract.columns)
        assert predicate is not None, "problems() refuses a quarantine without a predicate"
        rules.append(Rule(reason_of(expectation), predicate))
    return tuple(rules)


def tick_plan(
    workspace: Workspace,
    warehouse: str,
    published: Published | None,
    number: int,
    as_of: datetime,
    selected: Iterable[str],
    refresh: bool,
    other_environments: OtherEnvironments = ALONE,
    rebuild_reasons: Mapping[str, str] = NOTHING,
    sources: Mapping[str, SourceTable] = NO_SOURCES,
) -> TickPlan:
    """Return the plan of a tick over the selected models and seeds; a table with a rebuilt input is rebuilt, too.

    `rebuild_reasons`: models that must be built, or land, again from the beginning, with the reason. `sources`: the
    tables that others write, by their names in compiled SQL.
    """
    chosen = set(selected)
    read = {name: table.path for name, table in sources.items()}
    shared = environment_sharing.shared(workspace, other_environments, read)
    seen = environment_sharing.seen(workspace, published, other_environments, shared)
    require_inputs(workspace, chosen, seen)
    models = tuple(m for m in workspace.tables if m.name in chosen and m.name not in shared)
    needed = {table for m in models for s in m.stages for table in s.inputs}
    seeds = tuple(s.name for s in workspace.project.seeds if s.name in chosen | needed and s.name not in shared)
    places = _Places(
        workspace=workspace,
        warehouse=warehouse,
        number=number,
        as_of=as_of,
        chosen=chosen,
        refresh=refresh,
        other_environments=other_environments,
        own=environment_paths.own(published, other_environments),
        shared=shared,
    )
    places.before = published.tables if published else {}
    places.seen = seen.tables if seen else {}
    places.rebuild_reasons = rebuild_reasons
    for table in sorted(sources.keys() & needed):
        places.put_source(table, sources[table])
    for seed in workspace.project.seeds:
        if seed.name in seeds or seed.name in shared:
            places.put_seed(seed)
    for model in workspace.tables:
        places.put_model(model, needed)
    _require_unedited(models, chosen, places.tables)
    return TickPlan(
        number=number,
        as_of=as_of,
        seeds=seeds,
        models=models,
        tables=places.tables,
        published=seen,
        env=other_environments.env,
        refresh=refresh,
        promoted=places.promoted,
        notes=places.notes,
    )


@dataclass(slots=True)
class _Places:
    """The paths of a tick's tables, chosen in graph order."""

    workspace: Workspace
    warehouse: str
    number: int
    as_of: datetime
    chosen: set[str]
    refresh: bool
    other_environments: OtherEnvironments
    own: Mapping[str, TableState]
    shared: Mapping[str, TableState]
    tables: dict[str, TablePlan] = field(default_factory=dict)
    promoted: dict[str, Promotion] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    before: Mapping[str, TableState] = field(default_factory=dict)
    seen: Mapping[str, TableState] = field(default_factory=dict)
    rebuild_reasons: Mapping[str, str] = field(default_factory=dict)

    def put_seed(self, seed: Seed) -> None:
        """Choose a seed's table."""
        name, known = seed.name, self.shared.get(seed.name) or self.own.get(seed.name)
        state: TableState | None = known
        meaning, again = f"{name}/{self.workspace.prints[name]}", self.refresh and name in self.chosen
        if name in self.shared:
            path = self.shared[name].path
        else:
            path, state = environment_sharing.place(meaning, known, self.number, again, self.other_environments)
        if state is None and not again:
            offered = environment_sharing.promoted_seed(name, meaning, self.as_of, self.other_environments)
            if offered is not None and offered.states is not None:
                self.promoted[name], state = offered, offered.states[name]
                path = state.path
        columns = tuple(StoredColumn(c.name, c.type, c.nullable) for c in seed.columns)
        spec = TableSpec(name, f"{self.warehouse}/{path}", columns, vectors=False)
        self.tables[name] = TablePlan(spec, path, columns, state, shared=name in self.shared)

    def put_source(self, name: str, read: SourceTable) -> None:
        """Add a table that others write, at the version that the tick reads."""
        source = self.workspace.source(name)
        assert source is not None
        columns = tuple(StoredColumn(c.name, c.type, c.nullable) for c in source.columns)
        spec = TableSpec(name, read.folder, columns)
        state = TableState(read.path, read.version, self.as_of)
        self.tables[name] = TablePlan(spec, read.path, columns, state, shared=True)

    def put_model(self, model: Compiled, needed: set[str]) -> None:
        """Choose a model's tables, own and hidden; none if nothing needs them."""
        taken: Mapping[str, TableState] = self.shared
        self.notes |= {model.name: self.rebuild_reasons[model.name]} if model.name in self.rebuild_reasons else {}
        if model.name not in self.shared:
            again = self.refresh or model.name in self.rebuild_reasons
            taken = self._promoted(model) if model.name in self.chosen and not again else {}
            before, meaning = self.before.get(model.name), self.workspace.prints[model.name]
            if before is not None and model.name not in self.own and fingerprint_of(before.path) == meaning:
                self.notes[model.name] = "production no longer maintains it this way"
        for stage in model.stages:
            if stage.name in taken:
                self._put(model, stage, taken[stage.name].path, taken[stage.name])
            elif model.name in self.chosen or stage.name in needed:
                again = self.refresh or model.name in self.rebuild_reasons or self._moved(stage)
                again = again and model.name in self.chosen
                # A hidden table has its own folder: a VACUUM of another table would delete files inside that table's
                # folder.
                home = f"{stage.name}/{self.workspace.prints[stage.model]}"
                place = environment_sharing.place(
                    home, self.own.get(stage.name), self.number, again, self.other_environments
                )
                self._put(model, stage, *place)

    def _put(self, model: Compiled, stage: Stage, path: str, state: TableState | None) -> None:
        columns, partition_by = hidden_partitions.stored(stored_columns(stage), stage.partition_by)
        vectors = deletion_vectors.has_vectors(model, stage)
        spec = TableSpec(stage.name, f"{self.warehouse}/{path}", columns, partition_by, vectors)
        where = PUBLIC_ROWS if stage.method == "land" else ""
        earlier = self.seen.get(stage.name) if stage.history is not None and state is None else None
        is_shared = stage.name in self.shared
        self.tables[stage.name] = TablePlan(spec, path, stage.public, state, where, is_shared, earlier)

    def _promoted(self, model: Compiled) -> Mapping[str, TableState]:
        """Return the tables to take over for a model that has none of its current meaning.

        An environment's history lacks the versions of production's ticks, so production doesn't take it over.
        """
        if model.own.history is not None:
            return {}
        own = (self.own.get(stage.name) for stage in model.stages)
        meaning = self.workspace.prints[model.name]
        if all(state is not None and fingerprint_of(state.path) == meaning for state in own):
            return {}
        there = {name: (table.path, table.state) for name, table in self.tables.items()}
        offered = environment_sharing.promotion(self.workspace, model, there, self.as_of, self.other_environments)
        if offered is not None and offered.states is None:
            self.notes[model.name] = f"not promoted from {offered.env}: {offered.why}"
        if offered is None or offered.states is None:
            return {}
        self.promoted[model.name] = offered
        return offered.states

    def _moved(self, stage: Stage) -> bool:
        """Return whether an input was moved, or rolled back, since the stage last read it."""
        known = self.own.get(stage.name)
        if known is None:
            return False
        for table in (name for name in stage.inputs if name in self.tables and name in known.inputs):
            moved = table_of(known.inputs[table][0]) != table_of(self.tables[table].path)
            if moved and self.tables[table].is_source:
                source = self.workspace.source(table)
                assert source is not None
                self.notes[stage.model] = f"the table of its source {source.group}.{source.name} was created again"
            if moved or self.tables[table].state is None:
                return True
        lost = environment_sharing.is_lost(stage, known, self.shared, self.other_environments)
        if lost and fingerprint_of(known.path) == self.workspace.prints[stage.model]:
            self.notes[stage.model] = f"{lost} was rolled back to before what it read there"
        return bool(lost)


def require_inputs(workspace: Workspace, chosen: set[str], published: Published | None) -> None:
    """Raise `UsageError` for a selection whose inputs were never built."""
    built = set(published.tables) if published else set()
    for model in (m for m in workspace.tables if m.name in chosen and m.source is None):
        own = {s.name for s in model.stages}
        for table in sorted({t for s in model.stages for t in s.inputs} - own - built - chosen):
            if workspace.seed(table) is None and workspace.source(table) is None:
                raise UsageError(
                    f"{model.name} reads {table}, which was never built. "
                    f"Build it too: sqlrun build --select +{model.name}"
                )


def _require_unedited(models: Iterable[Compiled], chosen: set[str], tables: Mapping[str, TablePlan]) -> None:
    """Raise `UsageError` for a selection that reads an edited model without selecting it: its table is outdated."""
    for model in models:
        for name in sorted({table for stage in model.stages for table in stage.inputs} & tables.keys()):
            owner = model_of(name)
            if owner not in {model.name, *chosen} and tables[name].state is None:
                raise UsageError(
                    f"{model.name} reads {owner}, which was edited after its last build, or depends on such a model. "
                    f"Build it too: sqlrun build --select +{model.name}"
                )
