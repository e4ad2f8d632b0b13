"""The reference project in a folder of a test's own, and ticks of it."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from sqlrun.build import Request, tick
from sqlrun.engines.duckdb import DuckDBEngine
from sqlrun.engines.protocol import Engine, Relation
from sqlrun.events import TickResult
from sqlrun.ledger import Ledger
from sqlrun.pipeline import Prepared, prepare
from sqlrun.readers import find, relation, tick_of

ROOT = Path(__file__).parent.parent
# Opening DuckDB takes longer than reading a small table.
READER = DuckDBEngine()
ROOMS = ("models", "macros", "seeds", "expectations", "profiles")


def copy_project(folder: Path) -> Path:
    """Copy what the analyst wrote; data and tables are the test's own."""
    for room in ROOMS:
        shutil.copytree(ROOT / room, folder / room)
    shutil.copy(ROOT / "pyproject.toml", folder / "pyproject.toml")
    (folder / "data" / "orders").mkdir(parents=True)
    return folder


def rows_of(table: Relation) -> list[dict[str, Any]]:
    """Read a table whole."""
    rows: list[dict[str, Any]] = READER.query(f'select * from "{table.name}"', (table,)).to_pylist()
    return rows


@dataclass
class Site:
    """A project, a warehouse and an engine."""

    root: Path
    engine: Engine
    prepared: Prepared = field(init=False)
    events: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.prepared = prepare(self.root)
        self.warehouse = str(self.root / "warehouse")
        Path(self.warehouse).mkdir(exist_ok=True)
        self.ledger = Ledger(self.warehouse, self.prepared.nouns.name)

    @property
    def orders(self) -> Path:
        return self.root / "data" / "orders"

    def tick(self, as_of: datetime, select: tuple[str, ...] = (), refresh: bool = False) -> TickResult:
        names = select or tuple(n for n in self.prepared.graph.order if not n.startswith("source:"))
        request = Request(self.warehouse, as_of, names, refresh, 2, "test", lambda: datetime.now(timezone.utc))
        return tick(self.prepared.space, self.engine, self.ledger, request, self.events.append)

    def rows(self, name: str) -> list[dict[str, Any]]:
        published = self.ledger.read().published
        assert published is not None
        return rows_of(relation(self.warehouse, name, published.tables[name]))

    def everything(self, tick: int | None = None) -> dict[str, Counter[str]]:
        """Give the rows of every table that readers may ask for, at a published tick."""
        published = tick_of(self.ledger, tick)
        names = [name for name in published.tables if "__state_" not in name]
        return {name: Counter(map(str, rows_of(find(published, self.warehouse, name)))) for name in names}

    def write(self, name: str, lines: list[str]) -> None:
        (self.orders / name).write_text("".join(line + "\n" for line in lines))
