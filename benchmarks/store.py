"""Warm ticks on a disk, on an S3-compatible server, and on one whose answers are late: `python -m benchmarks.store --help`.

The reference project on DuckDB. The three warehouses take turns, so that they share what else the machine does; their
tables must be equal at the end. Requests are counted by a proxy before the server, those of delta-rs among them.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path

from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.publish.ledger import Ledger
from sqlrun.simulate.orders import events
from sqlrun.simulate.settings import Settings, to_minute
from sqlrun.storage.factory import register
from tests.support.projects import Site, copy_project
from tests.support.script import FIVE, START
from tests.support.servers.object_stores import S3
from tests.support.servers.unreliable import Faults, Unreliable


class Proxy:
    """A proxy in a process of its own: delta-rs holds Python's lock while it waits for an answer."""

    def __init__(self, port: int, latency: float) -> None:
        self._ours, theirs = multiprocessing.Pipe()
        self._process = multiprocessing.get_context("spawn").Process(target=_carry, args=(port, latency, theirs))
        self._process.start()
        self.endpoint: str = self._ours.recv()

    @property
    def asked(self) -> Counter[str]:
        """Return the number of requests so far, by method."""
        self._ours.send("asked")
        found: Counter[str] = self._ours.recv()
        return found

    def stop(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.join()


def _carry(port: int, latency: float, theirs: Connection) -> None:
    with Unreliable(port, Faults(latency=latency)) as proxy:
        theirs.send(proxy.endpoint)
        while theirs.recv():
            theirs.send(proxy.asked.copy())


@dataclass
class Place:
    """A warehouse, the proxy before its store, and what its ticks took."""

    name: str
    site: Site
    proxy: Proxy | None = None
    seconds: list[float] = field(default_factory=list)
    requests: list[Counter[str]] = field(default_factory=list)

    def tick(self, number: int) -> None:
        """Run a tick and note its time and its requests."""
        before = self.proxy.asked if self.proxy else Counter[str]()
        started = time.perf_counter()
        result = self.site.tick(START + number * FIVE)
        self.seconds.append(time.perf_counter() - started)
        assert result.published, result
        self.requests.append((self.proxy.asked if self.proxy else Counter[str]()) - before)


def place(name: str, folder: Path, server: S3 | None = None, proxy: Proxy | None = None) -> Place:
    """Return a new warehouse in a folder, or on a server."""
    site = Site(copy_project(folder / name), DuckDBEngine())
    if server is not None and proxy is not None:
        site.warehouse = f"s3://lake/{name}"
        register(site.warehouse, {"endpoint": proxy.endpoint, "allow_http": "true", "region": "us-east-1"})
        site.ledger = Ledger(site.warehouse, site.prepared.project.name)
    return Place(name, site, proxy)


def main() -> None:
    """Read the command line, run and print."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.store", description=__doc__)
    options.add_argument("--ticks", type=int, default=20)
    options.add_argument("--orders-per-day", type=int, default=20_000)
    options.add_argument(
        "--latency", type=float, default=20.0, help="milliseconds that the late server adds to an answer"
    )
    chosen = options.parse_args()
    settings = Settings(orders_per_day=chosen.orders_per_day, restaurants=200)
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        server = S3(folder / "s3")
        server.start()
        stack.callback(server.stop)
        os.environ |= {key: value for key, value in server.environment.items() if "KEY" in key}
        near, late = (Proxy(server.port, latency) for latency in (0.0, chosen.latency / 1000))
        for proxy in (near, late):
            stack.callback(proxy.stop)
        places = [place("disk", folder), place("near", folder, server, near), place("late", folder, server, late)]
        for number in range(chosen.ticks + 1):
            end = START + number * FIVE
            lines = events(settings, to_minute(end - (FIVE if number else timedelta(days=1))), to_minute(end))
            for each in places:
                each.site.write(f"{number:04}.jsonl", list(lines))
                each.tick(number)
        tables = [each.site.everything() for each in places]
        assert tables[0] == tables[1] == tables[2], "the tables differ"
        print_results(places, chosen.latency / 1000)


def print_results(places: list[Place], latency: float) -> None:
    """Print medians of the ticks after the first one, which lands a day."""
    disk = statistics.median(places[0].seconds[1:])
    for each in places:
        seconds, asked = statistics.median(each.seconds[1:]), each.requests[1:]
        total = statistics.median(sum(one.values()) for one in asked)
        kinds = {kind: statistics.median(one[kind] for one in asked) for kind in sorted(set().union(*asked))}
        shown = ", ".join(f"{kind} {count:g}" for kind, count in kinds.items())
        print(
            f"{each.name}: first {each.seconds[0]:.2f} s, then {seconds:.3f} s a tick, {seconds / disk:.2f} times the disk; "
            f"{total:g} requests ({shown or 'none'})"
        )
    late = statistics.median(places[2].seconds[1:])
    near = statistics.median(places[1].seconds[1:])
    if latency:
        print(f"The latency costs as much as {(late - near) / latency:.0f} answers one after the other.")


if __name__ == "__main__":
    main()
