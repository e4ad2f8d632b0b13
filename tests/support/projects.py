"""The reference project in a test's own folder, and ticks of it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from typing import Any, Literal

from sqlrun import project_files
from sqlrun.engine_api import Engine, Relation
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.events import TickResult
from sqlrun.maintain.tick_context import TickContext
from sqlrun.pipeline import Prepared, prepare
from sqlrun.project import Connection, Project
from sqlrun.publish.catalog_tables import CatalogTables
from sqlrun.publish.ledger import Ledger
from sqlrun.publish.reader import find, relation, tick_of
from sqlrun.run.tick import Request, tick
from sqlrun.runtime import arrow_rows
from sqlrun.storage.factory import storage_of

ROOT = Path(__file__).parents[2]
# One engine for all, because opening DuckDB takes longer than reading a small table.
READER = DuckDBEngine()
# A project without a name is named after its folder.
UNNAMED = "unnamed"
ROOMS = ("models", "macros", "seeds", "snapshots", "expectations", "profiles", "tests/fixtures")


def copy_project(folder: Path) -> Path:
    """Copy the analyst's files; data and tables belong to the test."""
    for room in ROOMS:
        if (ROOT / room).is_dir():
            shutil.copytree(ROOT / room, folder / room)
    shutil.copy(ROOT / "pyproject.toml", folder / "pyproject.toml")
    (folder / "data" / "orders").mkdir(parents=True)
    return folder


@cache
def _prepared(name: str, texts: tuple[tuple[str, str], ...]) -> Prepared:
    """Prepare a project from its texts; each is prepared once for all tests of a process."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / name
        for path, text in texts:
            file = root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return prepare(root)


def prepared(root: Path) -> Prepared:
    """Return the prepared project of a folder, or that of an equal one."""
    files = [file for room in ROOMS for file in (root / room).rglob("*") if file.is_file()]
    texts = {file.relative_to(root).as_posix(): file.read_text() for file in (*files, root / "pyproject.toml")}
    found = _prepared(UNNAMED, tuple(sorted(texts.items())))
    if found.project.name == UNNAMED:
        found = _prepared(root.name, tuple(sorted(texts.items())))
    project = replace(found.project, root=str(root.resolve()))
    return replace(found, project=project, workspace=replace(found.workspace, project=project))


@cache
def project() -> Project:
    """Return the reference project, loaded once for all tests of a process."""
    return project_files.project(ROOT)


def rows_of(table: Relation) -> list[dict[str, Any]]:
    """Return all rows of a table."""
    return arrow_rows.plain(READER.query(f'select * from "{table.name}"', (table,)))


def now() -> datetime:
    return datetime.now(timezone.utc)


def warehouse_of(root: Path) -> str:
    """Return the warehouse of a test's folder: in it, or on a server of `servers/` with STORE=s3, azure or gcs."""
    match os.environ.get("STORE"):
        case "s3":
            from tests.support.servers import object_stores

            return object_stores.shared().warehouse(root)
        case "azure":
            from tests.support.servers import azure

            return azure.warehouse(root)
        case "gcs":
            from tests.support.servers import gcs

            return gcs.warehouse(root)
        case _:
            return str(root / "warehouse")


@dataclass
class Site:
    """A project, a warehouse and an engine."""

    root: Path
    engine: Engine
    env: str = ""
    prepared: Prepared = field(init=False)
    events: list[Any] = field(default_factory=list)
    published: list[TickContext] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    connections: Mapping[str, Connection] = field(default_factory=dict)
    current_folders: bool | Literal["copies"] = False
    catalog: CatalogTables | None = None

    def __post_init__(self) -> None:
        self.prepared = prepared(self.root)
        self.warehouse = warehouse_of(self.root)
        storage_of(self.warehouse).make_folder(self.warehouse)
        self.ledger = Ledger(self.warehouse, self.prepared.project.name, self.env)

    @property
    def orders(self) -> Path:
        return self.root / "data" / "orders"

    def tick(
        self, as_of: datetime, select: tuple[str, ...] = (), refresh: bool = False, accept_lost: bool = False
    ) -> TickResult:
        names = select or tuple(n for n in self.prepared.graph.order if not n.startswith("source:"))
        request = Request(
            warehouse=self.warehouse, as_of=as_of, selected=names, refresh=refresh, threads=2, holder="test", clock=now,
            accept_lost=accept_lost, published=self.published.append, connections=self.connections,
            say=self.said.append, current_folders=self.current_folders, catalog=self.catalog,
        )  # fmt: skip
        return tick(self.prepared.workspace, self.engine, self.ledger, request, self.events.append)

    def rows(self, name: str) -> list[dict[str, Any]]:
        published = self.ledger.read().published
        assert published is not None
        return rows_of(relation(self.warehouse, name, published.tables[name]))

    def everything(self, tick: int | None = None) -> dict[str, Counter[str]]:
        """Return the rows of every public table at a published tick."""
        published = tick_of(self.ledger, tick)
        names = [name for name in published.tables if "__state_" not in name]
        return {name: Counter(map(str, rows_of(find(published, self.warehouse, name)))) for name in names}

    def write(self, name: str, lines: list[str]) -> None:
        (self.orders / name).write_text("".join(line + "\n" for line in lines))
