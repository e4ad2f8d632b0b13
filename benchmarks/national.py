"""A day of a national platform on DuckDB: `python -m benchmarks.national --help`.

230,000 restaurants, 5,800 orders in a tick of five minutes, 40,000 at the peak, after a week of history. The reference
project runs in the session of `sqlrun build --every`, one tick after the other. At chosen ticks every row of the
dashboard's mart is compared, to the cent, with what `national_orders.py` computes. With `--ahead` the lines that arrive
more than half a minute before a tick land before it, as `build --every` lands them. Afterwards `sqlrun serve` answers
2,000 requests a second, each at its own time whether or not the previous answer is there, while ticks are published.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import random
import re
import shutil
import signal
import statistics
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.national_orders import DAY, STEP, TICKS, Country, Orders
from benchmarks.processes import Resident, Spent, less
from benchmarks.serve import ROOT, SECRET, WIDTHS, free_port, started
from sqlrun.run import session
from sqlrun.sources.folder import SETTLES

ROOMS = ("models", "macros", "seeds", "expectations", "profiles", "tests/fixtures")
PROFILE = "engine: duckdb\nwarehouse: warehouse/duckdb\nthreads: 2\n{settings}"
TICK = re.compile(rb'"tick":(\d+),')
FIGURES = re.compile(rb'"n_orders":(\d+),"total_sales":"(\d+)\.(\d\d)"')
# Tick, restaurant, hours, orders, cents.
Answer = tuple[int, str, int, int, int]
# A tick is compared with what is right at night, at lunch, at the peak and at the end.
COMPARED = (12, 150, 232, TICKS)
# A file that is complete so long before a tick lands ahead of it.
AHEAD = session.AHEAD + timedelta(seconds=SETTLES)


@dataclass(slots=True)
class Day:
    """What the ticks of a day cost; `load` is the machine's load average in each, which other work shares.

    `ahead` is what it cost to land lines before each tick, with `--ahead`.
    """

    orders: list[int] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    spent: list[Spent] = field(default_factory=list)
    ahead: list[Spent] = field(default_factory=list)
    load: list[float] = field(default_factory=list)
    compared: dict[int, tuple[int, int]] = field(default_factory=dict)

    def row(self, name: str, values: list[float]) -> str:
        ordered = sorted(values)
        p50, p99, most = (ordered[round((len(ordered) - 1) * share)] for share in (0.5, 0.99, 1))
        return f"| {name} | {p50:,.2f} | {p99:,.2f} | {most:,.2f} |"

    def table(self) -> str:
        """Return the figures as Markdown."""
        rows = [
            self.row("orders in a tick", list(map(float, self.orders))),
            self.row("lines in a tick", list(map(float, self.lines))),
            self.row("seconds a tick", [one.seconds for one in self.spent]),
            self.row("processor seconds a tick", [one.cpu for one in self.spent]),
            *([self.row("seconds to land ahead", [one.seconds for one in self.ahead])] if self.ahead else []),
            self.row("memory of the process, MB", [one.memory / 1e6 for one in self.spent]),
            self.row("load average", self.load),
        ]
        right = "; ".join(f"tick {n}: {rows:,} rows, {wrong} wrong" for n, (rows, wrong) in self.compared.items())
        return "\n".join(("| | median | p99 | most |", "|---|---|---|---|", *rows, "", f"Compared: {right}."))


class Platform:
    """A project, its orders, and the process that ticks."""

    def __init__(self, folder: Path, country: Country, memory: str, guests: bool) -> None:
        self.folder, self.country = folder, country
        for room in ROOMS:
            shutil.copytree(ROOT / room, folder / room)
        shutil.copy(ROOT / "pyproject.toml", folder)
        if not guests:
            for file in (*folder.rglob("restaurant_customers.*"), folder / "models/marts/_exposures.yml"):
                file.unlink()
        settings = f"settings:\n  memory_limit: {memory}\n" if memory else ""
        (folder / "profiles" / "duckdb.yml").write_text(PROFILE.format(settings=settings))
        self.data = folder / "data" / "orders"
        self.data.mkdir(parents=True)
        began = time.perf_counter()
        self.orders = Orders(folder, country)
        say(f"drew {self.orders.count:,} orders in {time.perf_counter() - began:.0f} s")
        self.orders.seed(folder / "seeds" / "restaurants.csv")
        # As docs/howto/schedule-builds.md says for pages on the same machine.
        argv = ["nice", "-n", "10", sys.executable, "-m", "benchmarks.rivals.sqlrun", "duckdb"]
        self.process = Resident(argv, folder, {"PYTHONPATH": str(ROOT)}, 1800, folder / "said.log")
        self._files: list[Path] = []
        self._kept = 3
        self._drawn: dict[str, tuple[int, Path]] = {}
        self.done = 0

    def land_ahead(self, after: datetime, until: datetime) -> tuple[int, Spent]:
        """Let the lines of a span arrive, and land them without a tick; return the lines and the cost."""
        lines, file = self._arrived(after, until)
        self._kept = 6
        at_rest = time.time() - AHEAD.total_seconds()
        os.utime(file, (at_rest, at_rest))
        return lines, self._asked(do="land ahead")

    def tick(self, after: datetime, until: datetime) -> tuple[int, Spent]:
        """Let the lines of a span arrive, and run the tick at its end; return the lines and the cost."""
        lines, _ = self._arrived(after, until)
        spent = self._asked(do="tick", as_of=until.isoformat())
        self.done += 1
        # The platform moves its files away some time after they landed.
        for old in self._files[: -self._kept]:
            old.unlink()
        self._files = self._files[-self._kept :]
        return lines, spent

    def draw_next(self, ticks: int) -> None:
        """Draw the lines of the next ticks, which takes both cores for a while: pages shouldn't wait for that."""
        (self.folder / "drawn").mkdir(exist_ok=True)
        after = self.until
        for _ in range(ticks):
            until = after + timedelta(seconds=STEP)
            file = self.folder / "drawn" / _name(until)
            self._drawn[file.name] = self.orders.write(after, until, file), file
            after = until

    @property
    def until(self) -> datetime:
        """Return the time of the last tick of the measured day or after it."""
        return DAY + timedelta(seconds=STEP * (self.done - self.country.days))

    def _arrived(self, after: datetime, until: datetime) -> tuple[int, Path]:
        file = self.data / _name(until)
        self._files.append(file)
        if file.name not in self._drawn:
            return self.orders.write(after, until, file), file
        lines, drawn = self._drawn.pop(file.name)
        drawn.touch()
        return lines, drawn.rename(file)

    def _asked(self, **request: str) -> Spent:
        before = self.process.so_far()
        began = time.perf_counter()
        self.process.ask(**request)
        return less(self.process.so_far(), before, time.perf_counter() - began)

    def rows(self, name: str, tick: int | None = None) -> Any:
        """Return the rows of a published table, as an Arrow table."""
        from sqlrun.publish.ledger import Ledger
        from sqlrun.publish.reader import query, relation

        warehouse = str(self.folder / "warehouse" / "duckdb")
        ledger = Ledger(warehouse, "restaurant_dashboard")
        published = ledger.read().published if tick is None else ledger.published(tick)
        assert published is not None
        return query(f'select * from "{name}"', [relation(warehouse, name, published.tables[name])])

    def close(self) -> None:
        self.process.close()
        self.orders.close()


def _name(until: datetime) -> str:
    return f"orders-{until:%Y%m%dT%H%M%S}.jsonl"


def say(text: str) -> None:
    print(f"{datetime.now():%H:%M:%S}  {text}", flush=True)


def run_day(platform: Platform, ticks: int, compared: tuple[int, ...], *, ahead: bool) -> Day:
    """Run the history in a tick for each day, then the day's ticks; with `ahead`, land most of their lines before."""
    for number in range(platform.country.days):
        after = platform.orders.begin + timedelta(days=number)
        lines, spent = platform.tick(after, after + timedelta(days=1))
        say(f"history, day {number + 1}: {lines:,} lines, {spent.seconds:.0f} s, {spent.cpu:.0f} processor s")
    found, expected = Day(), platform.country.orders()
    for number, (after, until) in enumerate(platform.orders.ticks(), 1):
        if number > ticks:
            break
        landed = 0
        if ahead:
            landed, cost = platform.land_ahead(after, until - AHEAD)
            found.ahead.append(cost)
            after = until - AHEAD
        lines, spent = platform.tick(after, until)
        lines += landed
        found.orders.append(expected[number - 1])
        found.lines.append(lines)
        found.spent.append(spent)
        found.load.append(os.getloadavg()[0])
        if number % 24 == 0 or spent.seconds > 5:
            say(
                f"tick {number}: {lines:,} lines, {spent.seconds:.2f} s, {spent.cpu:.2f} processor s, load {os.getloadavg()[0]:.1f}"
            )
        if number in compared or number == ticks:
            found.compared[number] = platform.orders.wrong(platform.rows("restaurant_windows"), until)
            say(f"tick {number}: {found.compared[number][0]:,} rows, {found.compared[number][1]} wrong")
    return found


# ── the page ─────────────────────────────────────────────────────────────────────────────────────────────────────


class Caller(asyncio.Protocol):
    """One connection. It asks at its own times; the time of an answer counts from when it was to be asked."""

    def __init__(self, load: Load, first: float) -> None:
        self.load, self.due, self.held, self.wanted = load, first, b"", 0

    def connection_made(self, transport: Any) -> None:
        self.transport: Any = transport
        self.wait()

    def wait(self) -> None:
        if self.due >= self.load.end:
            self.transport.close()
        else:
            asyncio.get_running_loop().call_later(max(0.0, self.due - time.perf_counter()), self.ask)

    def ask(self) -> None:
        self.which, self.hours = random.choice(self.load.ids), random.choice(WIDTHS)
        path = f"GET /api/v1/restaurants/{self.which}/windows?hours={self.hours}".encode()
        self.transport.write(path + self.load.heads[self.which])

    def data_received(self, data: bytes) -> None:
        self.held += data
        if not self.wanted:
            end = self.held.find(b"\r\n\r\n")
            if end < 0:
                return
            place = self.held.find(b"content-length: ") + 16
            self.wanted = end + 4 + int(self.held[place : self.held.index(b"\r", place)])
        if len(self.held) >= self.wanted:
            self.load.answered(self.held, self.which, self.hours, time.perf_counter() - self.due)
            self.held, self.wanted = b"", 0
            self.due += self.load.pause
            self.wait()

    def connection_lost(self, error: Exception | None) -> None:
        self.load.errors += self.due < self.load.end
        self.load.open -= 1
        if not self.load.open:
            self.load.done.set()


class Load:
    """Requests at a rate for some seconds, spread evenly over connections."""

    def __init__(self, heads: dict[str, bytes], connections: int, rate: float, seconds: float) -> None:
        self.heads, self.ids, self.open = heads, list(heads), connections
        self.pause, self.end = connections / rate, time.perf_counter() + seconds
        self.times: list[float] = []
        self.seen: set[Answer] = set()
        self.errors = 0
        self.done = asyncio.Event()

    def answered(self, held: bytes, which: str, hours: int, seconds: float) -> None:
        self.times.append(seconds)
        tick, figures = TICK.search(held), FIGURES.search(held)
        if not held.startswith(b"HTTP/1.1 200") or tick is None:
            self.errors += 1
        elif figures is not None:
            cents = int(figures[2]) * 100 + int(figures[3])
            self.seen.add((int(tick[1]), which, hours, int(figures[1]), cents))


def call(port: int, ids: list[str], connections: int, rate: float, seconds: float, given: Any) -> None:
    """Send the requests, each restaurant with its own token, from a process of its own."""
    import uvloop

    from sqlrun.serve.access import token
    from sqlrun.serve.keys import Key

    key = Key("", "HS256", SECRET.encode(), True)
    line = b" HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "
    heads = {
        one: line + token(key, {"restaurants": [one]}, False, time.time(), 3600).encode() + b"\r\n\r\n" for one in ids
    }

    async def run() -> Load:
        load = Load(heads, connections, rate, seconds)
        loop = asyncio.get_running_loop()
        first = time.perf_counter()
        for number in range(connections):
            start = first + number / rate
            await loop.create_connection(lambda start=start: Caller(load, start), "127.0.0.1", port)
        await load.done.wait()
        return load

    uvloop.install()
    load = asyncio.run(run())
    given.send({"times": sorted(load.times), "seen": load.seen, "errors": load.errors})


def serve(platform: Platform, options: argparse.Namespace) -> None:
    """Ask for owners' windows, without and with ticks beside them, and compare each answer with its tick's table."""
    port = free_port()
    server = started(platform.folder, port)
    ids = [
        f"r{n:06d}"
        for n in random.Random(1).sample(range(platform.country.restaurants), min(20_000, platform.country.restaurants))
    ]
    say(f"serve: {rss(server.pid):,.0f} MB")
    print(
        "| | answers/s | p50 ms | p99 ms | most ms | errors | wrong | ticks | load |\n|---|---|---|---|---|---|---|---|---|"
    )
    try:
        for name, beside in (("no tick", False), ("ticks published", True)):
            stop = threading.Event()
            ticking = threading.Thread(target=ticks_beside, args=(platform, stop, options.every))
            if beside:
                platform.draw_next(1 + int(options.seconds / options.every))
                ticking.start()
            ours, theirs = multiprocessing.Pipe(False)
            arguments = (port, ids, options.connections, options.rate, options.seconds, theirs)
            caller = multiprocessing.Process(target=call, args=arguments)
            caller.start()
            found = ours.recv()
            caller.join()
            stop.set()
            if beside:
                ticking.join()
            times, ticks = found["times"], {one[0] for one in found["seen"]}
            p50, p99, most = (times[int((len(times) - 1) * share)] * 1000 for share in (0.5, 0.99, 1))
            wrong = wrong_answers(found["seen"], right_answers(platform, ticks))
            rate = len(times) / options.seconds
            print(
                f"| {name} | {rate:,.0f} | {p50:.1f} | {p99:.1f} | {most:.0f} | {found['errors']} | {wrong} | {len(ticks)} | {os.getloadavg()[0]:.1f} |",
                flush=True,
            )
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(30)


def rss(pid: int) -> float:
    """Return a process's memory in MB."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def ticks_beside(platform: Platform, stop: threading.Event, every: float) -> None:
    """Run further ticks, one at a time, until `stop` is set."""
    while not stop.is_set():
        began = time.monotonic()
        platform.tick(platform.until, platform.until + timedelta(seconds=STEP))
        stop.wait(max(0.0, every - (time.monotonic() - began)))


def right_answers(platform: Platform, ticks: set[int]) -> set[Answer]:
    """Return all rows of the mart at some ticks."""
    found: set[Answer] = set()
    for tick in ticks:
        rows = platform.rows("restaurant_windows", tick).select(
            ["restaurant_id", "window_hours", "n_orders", "total_sales"]
        )
        ids, hours, orders, sales = (column.to_pylist() for column in rows.columns)
        found |= {(tick, i, h, n, int(s * 100)) for i, h, n, s in zip(ids, hours, orders, sales, strict=True)}
    return found


def wrong_answers(seen: set[Answer], right: set[Answer]) -> int:
    """Return the number of answers that differ from their tick's row; a restaurant without orders has none."""
    there = {one[:3] for one in right}
    return sum(one not in right and (one[3:] != (0, 0) or one[:3] in there) for one in seen)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--restaurants", type=int, default=230_000)
    parser.add_argument("--mean", type=int, default=5_800, help="orders in a tick")
    parser.add_argument("--peak", type=int, default=40_000)
    parser.add_argument("--days", type=int, default=7, help="days before the measured one")
    parser.add_argument("--ticks", type=int, default=TICKS, help="measured ticks, some of a day")
    parser.add_argument("--memory", default="4GB", help="DuckDB's memory")
    parser.add_argument("--ahead", action="store_true", help="land most lines of a tick before it")
    parser.add_argument("--no-guests", action="store_true", help="leave out `restaurant_customers`, and the page")
    parser.add_argument("--rate", type=float, default=2_000, help="requests a second")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=30, help="length of each load; 0: none")
    parser.add_argument("--every", type=float, default=10, help="seconds between ticks beside the load")
    parser.add_argument("--folder", type=Path, help="place for its files, which are deleted")
    options = parser.parse_args()
    multiprocessing.set_start_method("spawn")
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        country = Country(options.restaurants, options.mean, options.peak, options.days)
        platform = Platform(Path(name), country, options.memory, not options.no_guests)
        try:
            day = run_day(platform, options.ticks, COMPARED, ahead=options.ahead)
            print(day.table(), flush=True)
            say(f"median of a quiet tick: {statistics.median(one.seconds for one in day.spent[:60]):.2f} s")
            if options.seconds and not options.no_guests:
                serve(platform, options)
        finally:
            platform.close()
    sys.exit(any(wrong for _, wrong in day.compared.values()))


if __name__ == "__main__":
    main()
