"""A warehouse with published ticks of the dashboard's marts, written without a build; every number is known.

In tick t restaurant number r has (r + 1) * 1000 + t orders in each window: each number shows its tick and its
restaurant.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from sqlrun import project_files
from sqlrun.engine_api import StoredColumn, TableSpec
from sqlrun.engines.delta import table as delta_table
from sqlrun.project import Project
from sqlrun.publish.ledger import Ledger
from sqlrun.publish.table_state import TableState
from sqlrun.runtime.rate_limits import Limits
from sqlrun.serve.access import Gatekeeper, token
from sqlrun.serve.app import application
from sqlrun.serve.keys import Key, Keys
from sqlrun.serve.live import Live, Watcher
from sqlrun.serve.metrics import Metrics
from sqlrun.serve.offer import offer
from sqlrun.serve.operator import Operations
from sqlrun.serve.site import Site
from sqlrun.serve.snapshot import Reader
from sqlrun.source_api import CompleteTo

ROOT = Path(__file__).parents[2]
START = datetime(2026, 5, 4, 12, 35, tzinfo=timezone.utc)
SECRET = Key("", "HS256", b"a secret of this test's own, long enough", True)
# Seconds for which a token is valid: modules make some when they are collected, and a run may take hours.
VALID = 24 * 3600
TABLES = ("restaurants", "restaurant_windows", "restaurant_customers", "fct_restaurant_hours", "fct_restaurant_slots")
IDS = ("r0001", "r0002", "r0003")
Rows = Mapping[str, list[dict[str, Any]]]


def orders(number: int, tick: int) -> int:
    return (number + 1) * 1000 + tick


def rows(tick: int, ids: tuple[str, ...] = IDS) -> dict[str, list[dict[str, Any]]]:
    """Return the tables' rows in a tick: one order an hour for each restaurant since 20 days before."""
    as_of = as_of_tick(tick)
    hour = as_of.replace(minute=0)
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}
    for number, each in enumerate(ids):
        found["restaurants"].append(
            {
                "restaurant_id": each,
                "restaurant_name": f"Rest {number}",
                "city": "Öst",
                "currency": "EUR",
                "time_zone": "Atlantic/Reykjavik",
            }
        )
        sales = Decimal(orders(number, tick)) / 100
        for hours in (1, 24, 168):
            dish = {"dish_rank": 1, "dish_id": "d001", "dish_name": "Soup", "quantity": orders(number, tick)}
            found["restaurant_windows"].append(
                {"window_hours": hours, "restaurant_id": each, "restaurant_name": f"Rest {number}",
                 "n_orders": orders(number, tick), "total_sales": sales, "top_dishes": [dish]}
            )  # fmt: skip
            found["restaurant_customers"].append(
                {"window_hours": hours, "restaurant_id": each, "n_customers": orders(number, tick)}
            )
        for back in range(20 * 24):
            at = hour - timedelta(hours=back)
            one = {"restaurant_id": each, "n_orders": number + 1, "total_sales": Decimal(number + 1)}
            found["fct_restaurant_hours"].append({**one, "hour_date": at.date(), "hour_at": at})
            found["fct_restaurant_slots"].append({**one, "slot_date": at.date(), "slot_at": at + timedelta(minutes=30)})
    return found


def as_of_tick(tick: int) -> datetime:
    return START + timedelta(minutes=5 * tick)


@dataclass
class Warehouse:
    """Tables and a ledger; a tick is published by writing its rows. All tables are complete to `complete`."""

    folder: Path
    project: Project
    without: frozenset[tuple[str, str]] = frozenset()
    tick: int = 0
    complete: CompleteTo | None = None
    ledger: Ledger = field(init=False)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.ledger = Ledger(str(self.folder), self.project.name)

    def columns(self, name: str) -> tuple[StoredColumn, ...]:
        named: Any = next(n for n in (*self.project.models, *self.project.seeds) if n.name == name)
        return tuple(StoredColumn(c.name, c.type) for c in named.columns if (name, c.name) not in self.without)

    def publish(self, held: Rows | None = None) -> int:
        """Publish the next tick, with these rows or those of `rows`."""
        import pyarrow as pa
        from deltalake import write_deltalake

        self.tick += 1
        held = rows(self.tick) if held is None else held
        states, at = {}, as_of_tick(self.tick)
        for name in held:
            columns = self.columns(name)
            path = self.folder / name / "aa"
            delta_table.create(TableSpec(name, str(path), columns))
            table = delta_table.open_table(str(path))
            schema = pa.schema(table.schema().to_arrow())
            kept = [{c.name: row.get(c.name) for c in columns} for row in held[name]]
            write_deltalake(table, pa.Table.from_pylist(kept, schema=schema), mode="overwrite")
            states[name] = TableState(
                f"{name}/aa", delta_table.head(str(path)) or 0, at, {}, "", tuple((c.name, c.type) for c in columns),
                complete=self.complete,
            )  # fmt: skip
        pinned = self.ledger.pin(self.tick, at, states, at, "test")
        self.ledger.publish(self.tick, at, states, at, "test", pinned)
        return self.tick


def project(folder: Path, **files: str) -> Project:
    """Return the reference project with some files replaced."""
    for room in ("models", "macros", "seeds", "expectations", "tests/fixtures"):
        shutil.copytree(ROOT / room, folder / room)
    shutil.copy(ROOT / "pyproject.toml", folder)
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return project_files.project(folder)


def site(
    warehouse: Warehouse, *, keys: Mapping[str, Key] | None = None, rate: float = 0, clock: Any = None, log: Any = None
) -> tuple[Site, Watcher]:
    """Return a server that has read the warehouse once, and its watcher."""
    held = Keys(None)
    held.by_id = {"": SECRET} if keys is None else keys
    offered = offer(warehouse.project)
    reader = Reader(str(warehouse.folder), offered)
    live = Live(clock or (lambda: as_of_tick(warehouse.tick)), timedelta(minutes=15))
    gatekeeper = Gatekeeper(held.by_id, offered.claims)
    hosts = frozenset({"testserver"})
    made = Site(
        live, offered, reader, held, gatekeeper, Limits(rate, 5 * rate), Metrics(), hosts, log or (lambda _: None),
        Operations(warehouse.ledger, warehouse.project),
    )  # fmt: skip
    return made, Watcher(warehouse.ledger, reader, live)


@contextmanager
def client(made: Site) -> Iterator[TestClient]:
    """Yield a client that calls a server without a network."""
    with TestClient(application(made), raise_server_exceptions=True) as asked:
        yield asked


def bearer(
    *owns: str, operator: bool = False, key: Key = SECRET, seconds: float = VALID, claim: str = "restaurants"
) -> dict[str, str]:
    """Return the headers of a token for restaurants, or for another claim's ids."""
    now = datetime.now(timezone.utc).timestamp()
    return {"Authorization": f"Bearer {token(key, {claim: list(owns)}, operator, now, seconds)}"}
