"""State of a tick in progress: its plan, its engines and the state of each table so far. Shell: the tables' logs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace

from sqlrun.engine_api import Engine
from sqlrun.engines.delta import file_rows
from sqlrun.engines.delta import table as delta_table
from sqlrun.incremental.compile import Compiled
from sqlrun.plan.values import TickPlan, Workspace
from sqlrun.project import Connection, Source, model_of
from sqlrun.publish import environment_paths
from sqlrun.publish.table_state import TableState, is_source
from sqlrun.source_api import CompleteTo, SourceReader
from sqlrun.sources import checkpoint, factory
from sqlrun.sources.whole_transactions import Group
from sqlrun.system_tables.measure_history import History


@dataclass(slots=True)
class TickContext:
    """The state of a tick: its plan, and the state of every table that it has finished or only reads.

    Threads share it; `states` is written under the lock, each table by one thread. `reader` reads the changed rows to
    check: they are few, and a Spark job for them would cost more than the checks. `bases` has the version of each table
    at the start of the tick: the tick's one write must begin there, or another build has written. `pinned` is the
    version of the ledger at the tick's pin, as soon as there is one; no model is committed before. `groups` are the
    sources that take whole transactions, by connection and transaction topic.
    """

    workspace: Workspace
    engine: Engine
    reader: Engine
    plan: TickPlan
    states: dict[str, TableState]
    warehouse: str
    bases: Mapping[str, int]
    assert_lock_held: Callable[[], None]
    accept_lost: bool  # land even if files of the source are gone
    check_timeout: int
    connections: Mapping[str, Connection]
    accept_unexplained: bool  # publish even if lines of a source are unaccounted for
    own_commits: bool = True  # sqlrun may write the commits of system tables itself
    pinned: Future[int] = field(default_factory=Future)
    lock: threading.Lock = field(default_factory=threading.Lock)
    groups: dict[tuple[str, str], Group] = field(default_factory=dict)
    history: History = field(init=False)

    def __post_init__(self) -> None:
        """Open the history of the tick's measures; it is read lazily."""
        self.history = History(self.warehouse, self.plan.env, self.plan.as_of)

    def finish(self, name: str, state: TableState) -> None:
        """Record a table's state at this tick, with the sample that its model has."""
        with self.lock:
            self.states[name] = replace(state, sample=self.workspace.sampled.get(model_of(name)))

    def source_of(self, model: Compiled) -> SourceReader:
        """Return the reader of a landing model's source. Raises: EngineError if the profile lacks its connection."""
        assert model.source is not None
        reader = factory.reader_of(self.workspace.project.root, model.source, self.connections)
        folder = f"{self.warehouse}/{checkpoint.path_of(self.plan.tables[model.name].path)}"
        reader = factory.of_one_table(reader, folder)
        group = self._group_of(model.source)
        return reader if group is None else factory.bound(reader, group)

    def complete(self, model: Compiled) -> CompleteTo | None:
        """Return until where a landing has whole transactions; None if its source doesn't take them."""
        assert model.source is not None
        group = self._group_of(model.source)
        if group is None:
            return None
        before = self.plan.tables[model.name].state
        return group.complete() or (before.complete if before else None)

    def renew_cuts(self) -> None:
        """Let the next landing of sources that take whole transactions find the newest one."""
        for group in self.groups.values():
            group.renew()

    def _group_of(self, source: Source) -> Group | None:
        """Return what the sources that take whole transactions share in this tick; None for any other source."""
        if source.transactions is None:
            return None
        with self.lock:
            if source.transactions not in self.groups:
                members = [m.source for m in self.workspace.transaction_group(source) if m.source is not None]
                folder = f"{self.warehouse}/{environment_paths.system_folder(self.plan.env)}"
                root = self.workspace.project.root
                self.groups[source.transactions] = factory.group_of(root, members, self.connections, folder)
            return self.groups[source.transactions]

    def commits(self, name: str, after: int, until: int) -> tuple[int, ...]:
        """Return the commits of a table between two versions that changed data; of a source the last if rows differ."""
        path = self.plan.tables[name].spec.path
        if self.plan.tables[name].is_source:
            return (until,) if file_rows.between(path, after, until).parts else ()
        return delta_table.effective_commits(path, after, until)

    def rows_changed(self, name: str, after: int, commits: tuple[int, ...]) -> int:
        """Return the number of rows that the commits of a table changed since a version, by metrics or statistics."""
        path = self.plan.tables[name].spec.path
        if self.plan.tables[name].is_source:
            return sum(file_rows.between(path, after, until).count for until in commits)
        return delta_table.rows_changed(path, commits)

    def of_warehouse(self) -> dict[str, TableState]:
        """Return the states of the warehouse's tables; a source's version is among the inputs of its readers."""
        return {name: state for name, state in self.states.items() if not is_source(state.path)}

    def before(self, name: str) -> tuple[str, int]:
        """Return a table's path and its version before this tick, for estimates; its current version if it is new.

        What the tick itself has committed would have to be read back first.
        """
        table = self.plan.tables[name]
        return table.spec.path, (table.state or self.states[name]).version

    def metadata(self) -> Mapping[str, str]:
        """Return the commit metadata that names the tick."""
        return {"sqlrun.as_of": self.plan.as_of.isoformat()}
