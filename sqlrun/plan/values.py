"""Values of a plan: the compiled project, its tables, the tick. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from sqlrun.engine_api import StoredColumn, TableSpec
from sqlrun.incremental.compile import Compiled
from sqlrun.incremental.landing import query as landing_query
from sqlrun.incremental.landing.query import Rule
from sqlrun.incremental.stages import Stage
from sqlrun.plan import fingerprint
from sqlrun.project import Expectation, Project, Seed, Source, Suite
from sqlrun.publish.table_state import Published, TableSample, TableState, is_source

PUBLIC_ROWS = f"{landing_query.REASON} is null"


@dataclass(frozen=True, slots=True)
class Workspace:
    """What is known before an engine starts: the compiled project and the fingerprint of each table.

    `sample` is that of an environment, whose landing models then have limited sources; `sampled` maps these models and
    all above them to it.
    """

    project: Project
    models: tuple[Compiled, ...]  # in graph order, views included
    rules: Mapping[str, tuple[Rule, ...]]
    suites: Mapping[str, Suite]
    prints: Mapping[str, str]
    sample: TableSample | None = None
    sampled: Mapping[str, TableSample] = field(default_factory=dict)

    def model(self, name: str) -> Compiled:
        """Return a model by name."""
        return next(m for m in self.models if m.name == name)

    def rules_print(self, model: Compiled) -> str:
        """Return the hash of the rules that validate a landing model's lines."""
        return fingerprint.of_rules(model, self.rules.get(model.name, ()))

    @property
    def tables(self) -> tuple[Compiled, ...]:
        """Return the models that are stored as tables."""
        return tuple(m for m in self.models if not m.is_view)

    @property
    def views(self) -> tuple[str, ...]:
        """Return the names of the models that are inlined into their readers."""
        return tuple(m.name for m in self.models if m.is_view)

    def stage(self, name: str) -> Stage | None:
        """Return a table's stage by name, hidden tables included; None for a seed."""
        return next((s for m in self.models for s in m.stages if s.name == name), None)

    def has(self, table: str) -> bool:
        """Return whether a table belongs to the project, hidden tables included."""
        return self.stage(table) is not None or self.seed(table) is not None

    def source(self, table: str) -> Source | None:
        """Return a source that models read as a table, by its name in compiled SQL; None if there is none."""
        return next((s for s in self.project.sources if s.table == table and not s.lands), None)

    def transaction_group(self, source: Source) -> tuple[Compiled, ...]:
        """Return the models whose sources take whole transactions together with this one, its own included."""
        return tuple(m for m in self.models if m.source is not None and m.source.transactions == source.transactions)

    def seed(self, name: str) -> Seed | None:
        """Return a seed by name; None if there is none."""
        return next((s for s in self.project.seeds if s.name == name), None)


@dataclass(frozen=True, slots=True)
class SourceTable:
    """A table that others write, as a tick reads it: the folder, the version, and its `source_path`."""

    folder: str
    version: int
    path: str


@dataclass(frozen=True, slots=True)
class TablePlan:
    """One table in this tick: its place, its public columns, and its current state (None: to be built).

    `path` is relative to the warehouse, or a `source_path`. `where` separates the public rows of a landing table from
    quarantined ones. A shared table is production's: a tick of an environment reads it and never writes it. `earlier`
    is the published table that the new table of a history takes over its rows from.
    """

    spec: TableSpec
    path: str
    public: tuple[StoredColumn, ...]
    state: TableState | None
    where: str = ""
    shared: bool = False
    earlier: TableState | None = None

    @property
    def lands(self) -> bool:
        """Return whether it is a landing table, selected or only read."""
        return bool(self.where)

    @property
    def is_source(self) -> bool:
        """Return whether others write the table; then `state` is the version that the tick reads."""
        return is_source(self.path)


@dataclass(frozen=True, slots=True)
class Promotion:
    """A model's tables that production takes over from an environment. `states` is None if it can't; `why` says why."""

    env: str
    tick: int
    states: Mapping[str, TableState] | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class TickPlan:
    """What a tick will do: seeds and stages in graph order, with their tables.

    `published` is what readers see before it. `promoted` are the models and seeds that production takes over from an
    environment. `notes` say why others are rebuilt although a table of their meaning exists.
    """

    number: int
    as_of: datetime
    seeds: tuple[str, ...]
    models: tuple[Compiled, ...]
    tables: Mapping[str, TablePlan]  # of everything that is selected, read or shared
    published: Published | None
    env: str = ""
    refresh: bool = False
    promoted: Mapping[str, Promotion] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)

    def app_id(self, project: str, path: str) -> str:
        """Return the writer of a table in Delta's transaction ids; each environment counts its own ticks."""
        return f"{project}@{self.env}.{path}" if self.env else f"{project}.{path}"


def reason_of(expectation: Expectation) -> str:
    """Return the reason for quarantining a row that violates an expectation."""
    column = expectation.kwargs.get("column") if isinstance(expectation.kwargs, dict) else None
    subject = f"{column}: " if column else ""
    return f"{subject}{expectation.description or expectation.type}"


def stored_columns(stage: Stage) -> tuple[StoredColumn, ...]:
    """Return all columns of a stage's table, hidden ones included."""
    return landing_query.columns_of(stage) if stage.method == "land" else stage.columns


def state_after(
    plan: TablePlan, version: int, as_of: datetime, inputs: Mapping[str, tuple[str, int]], content: str = ""
) -> TableState:
    """Return the state of a table after the tick."""
    columns = tuple((c.name, c.type) for c in plan.public)
    return TableState(plan.path, version, as_of, dict(inputs), content, columns, plan.where)
