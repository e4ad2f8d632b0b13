"""Where a tick stands: its plan, its engines and the state of each table so far. Shell: the tables' logs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field

from sqlrun.engine_api import Engine
from sqlrun.engines.delta import table as delta_table
from sqlrun.plan.values import TickPlan, Workspace
from sqlrun.publish.table_state import TableState
from sqlrun.system_tables.measure_history import History


@dataclass(slots=True)
class TickContext:
    """Where a tick stands: what it plans, and the state of every table that it has finished or only reads.

    Threads share it; `states` is written under the lock, each table by one thread. `reader` fetches the changed rows
    that are checked: they are few, and a Spark job for them would cost more than the checks. `bases` has the version
    that each table was at when the tick began: the tick's one write begins there, or another build has been at work.
    `pinned` is the ledger's version at the tick's pin, as soon as there is one; no model is committed before.
    """

    workspace: Workspace
    engine: Engine
    reader: Engine
    plan: TickPlan
    states: dict[str, TableState]
    warehouse: str
    bases: Mapping[str, int]
    assert_lock_held: Callable[[], None]
    accept_lost: bool  # land although files of the source are gone
    check_timeout: int
    pinned: Future[int] = field(default_factory=Future)
    lock: threading.Lock = field(default_factory=threading.Lock)
    history: History = field(init=False)

    def __post_init__(self) -> None:
        """Open the past of the tick's measures; nothing is read before it is asked for."""
        self.history = History(self.warehouse, self.plan.env, self.plan.as_of)

    def finish(self, name: str, state: TableState) -> None:
        """Note a table's state at this tick."""
        with self.lock:
            self.states[name] = state

    def commits(self, name: str, after: int, until: int) -> tuple[int, ...]:
        """List the commits of a table that count between two versions."""
        path = self.plan.tables[name].spec.path
        return delta_table.effective_commits(path, after, until)

    def before(self, name: str) -> tuple[str, int]:
        """Return where a table is and its version before this tick, for estimates; its version now, where it is new.

        What the tick itself has committed would first have to be read back.
        """
        table = self.plan.tables[name]
        return table.spec.path, (table.state or self.states[name]).version

    def metadata(self) -> Mapping[str, str]:
        """Return the commit metadata that names the tick."""
        return {"sqlrun.as_of": self.plan.as_of.isoformat()}
