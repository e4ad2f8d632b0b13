"""Answers per second of `sqlrun serve` while ticks are published: `python -m benchmarks.serve --help`.

Each number shows its tick and its restaurant, so that mixed or misdirected answers are detected. A process on the same
machine produces the load. For comparison the same question goes to DuckDB, which reads the files each time, and to a
warm Spark session (`--spark`).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sqlrun.engine_api import StoredColumn, TableSpec
from sqlrun.engines.delta import table as delta_table
from sqlrun.publish.ledger import Ledger
from sqlrun.publish.table_state import TableState

ROOT = Path(__file__).parent.parent
SECRET = "a secret for a benchmark alone, not for any other use"
WIDTHS = (1, 24, 168)
DAYS = 15
KIND = "array<struct<dish_rank:int,dish_id:string,dish_name:string,quantity:bigint>>"
MONEY = "decimal(18,2)"
COLUMNS = {
    "restaurants": (
        ("restaurant_id", "string"),
        ("restaurant_name", "string"),
        ("city", "string"),
        ("currency", "string"),
        ("time_zone", "string"),
    ),
    "restaurant_windows": (
        ("window_hours", "int"),
        ("restaurant_id", "string"),
        ("restaurant_name", "string"),
        ("n_orders", "bigint"),
        ("total_sales", MONEY),
        ("top_dishes", KIND),
    ),
    "restaurant_customers": (("window_hours", "int"), ("restaurant_id", "string"), ("n_customers", "bigint")),
    "fct_restaurant_hours": (
        ("restaurant_id", "string"),
        ("n_orders", "bigint"),
        ("total_sales", MONEY),
        ("hour_date", "date"),
        ("hour_at", "timestamp"),
    ),
    "fct_restaurant_slots": (
        ("restaurant_id", "string"),
        ("n_orders", "bigint"),
        ("total_sales", MONEY),
        ("slot_date", "date"),
        ("slot_at", "timestamp"),
    ),
}
PARTITIONS = {"fct_restaurant_hours": ("hour_date",), "fct_restaurant_slots": ("slot_date",)}


# ── the warehouse ────────────────────────────────────────────────────────────────────────────────────────────────


class World:
    """A warehouse with a number of restaurants, and its ticks."""

    def __init__(self, folder: Path, restaurants: int) -> None:
        self.folder, self.restaurants, self.tick = folder, restaurants, 0
        self.ids = np.array([f"r{n:05d}" for n in range(restaurants)])
        self.ledger = Ledger(str(folder), "restaurant_dashboard")
        self.now = datetime.now(timezone.utc).replace(second=0, microsecond=0)
        self.now -= timedelta(minutes=self.now.minute % 5)

    def write(self, name: str, data: dict[str, Any]) -> None:
        from deltalake import write_deltalake

        path = str(self.folder / name / "aa")
        columns = tuple(StoredColumn(*one) for one in COLUMNS[name])
        delta_table.create(TableSpec(name, path, columns, PARTITIONS.get(name, ())))
        table = delta_table.open_table(path)
        schema = pa.schema(table.schema().to_arrow())
        arrays = [_array(data[field.name], field.type) for field in schema]
        write_deltalake(table, pa.Table.from_arrays(arrays, schema=schema), mode="overwrite")

    def begin(self) -> None:
        """Write the data that no tick changes: names, guests, the facts of two weeks."""
        n = self.restaurants
        self.write(
            "restaurants",
            {
                "restaurant_id": self.ids,
                "restaurant_name": np.char.add("Restaurant ", self.ids),
                "city": ["Lisbon"] * n,
                "currency": ["EUR"] * n,
                "time_zone": ["Europe/Lisbon"] * n,
            },
        )
        self.write(
            "restaurant_customers", {"window_hours": [24] * n, "restaurant_id": self.ids, "n_customers": [1] * n}
        )
        random_ = np.random.default_rng(1)
        hours = np.array(
            [np.datetime64(int(self.now.timestamp()) // 3600 * 3600 - 3600 * back, "s") for back in range(DAYS * 24)]
        )
        for name, rows in (("fct_restaurant_hours", 144 * n), ("fct_restaurant_slots", 216 * n)):
            rest, at = random_.integers(0, n, rows), hours[random_.integers(0, len(hours), rows)]
            one = {
                "restaurant_id": self.ids[rest],
                "n_orders": np.ones(rows, np.int64),
                "total_sales": np.full(rows, 10),
            }
            stamp = pa.array(at).cast(pa.timestamp("us", "UTC"))
            if name == "fct_restaurant_hours":
                self.write(name, {**one, "hour_date": pa.array(at.astype("datetime64[D]")), "hour_at": stamp})
            else:
                slots = at + random_.integers(0, 12, rows) * np.timedelta64(300, "s")
                self.write(
                    name,
                    {
                        **one,
                        "slot_date": pa.array(slots.astype("datetime64[D]")),
                        "slot_at": pa.array(slots).cast(pa.timestamp("us", "UTC")),
                    },
                )

    def publish(self) -> None:
        """Publish the next tick: restaurant r has (r + 1) * 10,000 + tick orders, in sales and dishes too."""
        self.tick += 1
        rest = np.repeat(np.arange(self.restaurants), len(WIDTHS))
        orders = (rest + 1) * 10_000 + self.tick
        dishes = [
            [{"dish_rank": k, "dish_id": f"d{k:03d}", "dish_name": f"Dish {k}", "quantity": int(q)} for k in (1, 2, 3)]
            for q in orders
        ]
        self.write("restaurant_windows", {
            "window_hours": np.tile(WIDTHS, self.restaurants), "restaurant_id": self.ids[rest], "restaurant_name": np.char.add("Restaurant ", self.ids[rest]),
            "n_orders": orders, "total_sales": orders, "top_dishes": dishes,
        })  # fmt: skip
        states = {
            name: TableState(
                f"{name}/aa", delta_table.head(str(self.folder / name / "aa")) or 0, self.now, {}, "", kinds
            )
            for name, kinds in COLUMNS.items()
        }
        at = datetime.now(timezone.utc)
        pinned = self.ledger.pin(self.tick, self.now, states, at, "benchmark")
        self.ledger.publish(self.tick, self.now, states, at, "benchmark", pinned)


def _array(values: Any, kind: pa.DataType) -> pa.Array:
    if pa.types.is_nested(kind):
        return pa.array(values, kind)
    found = pa.array(values)
    return (found.cast(pa.decimal128(21, 2)) if pa.types.is_decimal(kind) else found).cast(kind)


def publish_on(folder: Path, restaurants: int, tick: int, every: float, newest: Any) -> None:
    """Publish ticks until this process is ended."""
    os.nice(5)  # the documentation recommends it for a build beside a server
    world = World(folder, restaurants)
    world.tick = tick
    while True:
        started = time.monotonic()
        world.publish()
        newest.value = world.tick
        time.sleep(max(0.0, every - (time.monotonic() - started)))


# ── the load ─────────────────────────────────────────────────────────────────────────────────────────────────────

TICK = re.compile(rb'"tick":(\d+),')
ORDERS = re.compile(
    rb'"n_orders":(\d+),"total_sales":"(\d+)\.00","top_dishes":\[\{"dish_rank":1,"dish_id":"d001","dish_name":"Dish 1","quantity":(\d+)'
)


class Caller(asyncio.Protocol):
    """One connection that sends a request, waits for the whole answer, validates it, and repeats."""

    def __init__(self, load: Load) -> None:
        self.load, self.held, self.wanted, self.which = load, b"", 0, 0

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.ask()

    def ask(self) -> None:
        self.which = random.randrange(len(self.load.heads))
        self.began = time.perf_counter()
        self.transport.write(
            b"GET /api/v1/restaurants/r%05d/windows?hours=%d" % (self.which, random.choice(WIDTHS))
            + self.load.heads[self.which]
        )

    def data_received(self, data: bytes) -> None:
        self.held += data
        if not self.wanted:
            end = self.held.find(b"\r\n\r\n")
            if end < 0:
                return
            at = self.held.find(b"content-length: ") + 16
            self.wanted = end + 4 + int(self.held[at : self.held.index(b"\r", at)])
        if len(self.held) >= self.wanted:
            self.load.answered(self.held, self.which, time.perf_counter() - self.began)
            self.held, self.wanted = b"", 0
            if time.monotonic() < self.load.end:
                self.ask()
            else:
                self.transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        if time.monotonic() < self.load.end:
            self.load.errors += 1
        self.load.open -= 1
        if not self.load.open:
            self.load.done.set()


class Load:
    """Load of a number of connections for some seconds."""

    def __init__(self, heads: list[bytes], connections: int, seconds: float) -> None:
        self.heads, self.open, self.end = heads, connections, time.monotonic() + seconds
        self.times: list[float] = []
        self.ticks: set[int] = set()
        self.errors = self.inconsistent = 0
        self.done = asyncio.Event()

    def answered(self, held: bytes, which: int, seconds: float) -> None:
        self.times.append(seconds)
        tick, orders = TICK.search(held), ORDERS.search(held)
        if not held.startswith(b"HTTP/1.1 200") or tick is None or orders is None:
            self.errors += 1
            return
        self.ticks.add(int(tick[1]))
        # All three numbers belong to one tick, the one in the answer, and to the requested restaurant.
        if {int(orders[1]), int(orders[2]), int(orders[3])} != {(which + 1) * 10_000 + int(tick[1])}:
            self.inconsistent += 1


def hammer(port: int, restaurants: int, connections: int, seconds: float, given: Any) -> None:
    """Send requests as fast as answers arrive, each restaurant with its own token, in a separate process."""
    import uvloop

    from sqlrun.serve.access import token
    from sqlrun.serve.keys import Key

    key = Key("", "HS256", SECRET.encode(), True)
    heads = [
        b" HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "
        + token(key, {"restaurants": [f"r{n:05d}"]}, False, time.time(), 3600).encode()
        + b"\r\n\r\n"
        for n in range(restaurants)
    ]

    async def run() -> Load:
        load = Load(heads, connections, seconds)
        loop = asyncio.get_running_loop()
        for _ in range(connections):
            await loop.create_connection(lambda: Caller(load), "127.0.0.1", port)
        await load.done.wait()
        return load

    uvloop.install()
    load = asyncio.run(run())
    given.send(
        {"times": sorted(load.times), "ticks": sorted(load.ticks), "errors": load.errors, "torn": load.inconsistent}
    )


# ── the others ───────────────────────────────────────────────────────────────────────────────────────────────────

QUESTION = "select * from restaurant_windows where restaurant_id = '{}' and window_hours = {}"


def by_duckdb(folder: Path, restaurants: int, seconds: float) -> list[float]:
    """Query DuckDB, which reads the published tick's files for each question."""
    from sqlrun.engines.duckdb.engine import DuckDBEngine
    from sqlrun.publish.reader import find, tick_of

    engine, ledger, times = DuckDBEngine(), Ledger(str(folder), "restaurant_dashboard"), []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        started = time.perf_counter()
        table = find(tick_of(ledger), str(folder), "restaurant_windows")
        rows = engine.query(
            QUESTION.format(f"r{random.randrange(restaurants):05d}", random.choice(WIDTHS)), (table,)
        ).to_pylist()
        times.append(time.perf_counter() - started)
        assert len(rows) == 1
    return sorted(times)


def by_spark(folder: Path, restaurants: int, seconds: float) -> list[float]:
    """Query a warm Spark session."""
    from benchmarks.expert import session

    spark, times = session("2g"), []
    spark.read.format("delta").load(str(folder / "restaurant_windows" / "aa")).createOrReplaceTempView(
        "restaurant_windows"
    )
    ask = QUESTION.format
    for _ in range(20):
        spark.sql(ask("r00001", 24)).collect()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        started = time.perf_counter()
        spark.sql(ask(f"r{random.randrange(restaurants):05d}", random.choice(WIDTHS))).collect()
        times.append(time.perf_counter() - started)
    spark.stop()
    return sorted(times)


# ── the run ──────────────────────────────────────────────────────────────────────────────────────────────────────


def row(name: str, times: list[float], seconds: float, rest: str = "- | - | -") -> str:
    p50, p99, worst = (times[int((len(times) - 1) * q)] * 1000 for q in (0.5, 0.99, 1))
    return f"| {name} | {len(times) / seconds:,.0f} | {p50:.1f} | {p99:.1f} | {worst:.0f} | {rest} |"


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def served(work: Path, port: int) -> subprocess.Popen[bytes]:
    for room in ("models", "macros", "seeds", "profiles", "tests/fixtures"):
        shutil.copytree(ROOT / room, work / room)
    shutil.copy(ROOT / "pyproject.toml", work)
    return started(work, port)


def started(work: Path, port: int) -> subprocess.Popen[bytes]:
    """Start `sqlrun serve` on a project's folder, and wait until it answers."""
    arguments = [
        sys.executable,
        "-m",
        "sqlrun",
        "--project-dir",
        str(work),
        "serve",
        "--profile",
        "duckdb",
        "--port",
        str(port),
    ]
    env = {**os.environ, "SQLRUN_SERVE_KEY": SECRET, "PYTHONPATH": str(ROOT)}
    with (work / "access.log").open("wb") as log:
        process = subprocess.Popen(arguments, env=env, stdout=log, stderr=subprocess.STDOUT)
    for _ in range(1800):
        with socket.socket() as one:
            if not one.connect_ex(("127.0.0.1", port)):
                return process
        assert process.poll() is None, (work / "access.log").read_text()
        time.sleep(0.1)
    raise SystemExit("the server doesn't answer")


def loaded(port: int, options: argparse.Namespace) -> dict[str, Any]:
    ours, theirs = multiprocessing.Pipe(False)
    load = multiprocessing.Process(
        target=hammer, args=(port, options.restaurants, options.connections, options.seconds, theirs)
    )
    load.start()
    found: dict[str, Any] = ours.recv()
    load.join()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--restaurants", type=int, default=10_000)
    parser.add_argument("--connections", type=int, default=24)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--every", type=float, default=5, help="seconds between ticks")
    parser.add_argument("--spark", action="store_true", help="ask a warm Spark session too")
    options = parser.parse_args()
    multiprocessing.set_start_method("spawn")
    with tempfile.TemporaryDirectory() as name:
        run(Path(name), options)


def run(work: Path, options: argparse.Namespace) -> None:
    folder = work / "warehouse" / "duckdb"
    folder.mkdir(parents=True)
    world = World(folder, options.restaurants)
    world.begin()
    world.publish()
    port = free_port()
    server = served(work, port)
    print(
        "| who answers | answers/s | p50 ms | p99 ms | worst ms | ticks | errors | torn |\n|---|---|---|---|---|---|---|---|"
    )
    try:
        for name, publishes in (("sqlrun serve, no tick", False), ("sqlrun serve, ticks published", True)):
            newest = multiprocessing.Value("i", world.tick)
            beside = multiprocessing.Process(
                target=publish_on, args=(folder, options.restaurants, world.tick, options.every, newest)
            )
            if publishes:
                beside.start()
            found = loaded(port, options)
            if publishes:
                beside.terminate()
                beside.join()
            print(
                row(
                    name,
                    found["times"],
                    options.seconds,
                    f"{len(found['ticks'])} | {found['errors']} | {found['inconsistent']}",
                ),
                flush=True,
            )
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(20)
    print(
        row("DuckDB, files for each", by_duckdb(folder, options.restaurants, options.seconds / 3), options.seconds / 3),
        flush=True,
    )
    if options.spark:
        print(
            row("Spark, warm session", by_spark(folder, options.restaurants, options.seconds / 3), options.seconds / 3),
            flush=True,
        )
    lines = (work / "access.log").read_text().splitlines()
    print(
        f"\n{len(lines):,} lines of access log, the last: {json.loads(lines[-1]) if lines[-1].startswith('{') else lines[-1]}"
    )


if __name__ == "__main__":
    main()
