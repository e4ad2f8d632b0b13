"""The example `shop_cdc`: a real Postgres through Kafka Connect, with the numbers of the order events themselves."""

from __future__ import annotations

import itertools
import os
import re
import signal
import subprocess
import sys
import threading
import time
import zlib
from datetime import datetime, timedelta, timezone
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner

from sqlrun.cli.main import main
from sqlrun.engine_api import Engine
from sqlrun.engines.duckdb.engine import DuckDBEngine
from tests.support import shop
from tests.support.projects import ROOT, Site, copy_project
from tests.support.servers import topics
from tests.support.servers.connect import Connect
from tests.support.servers.kafka import Broker
from tests.support.servers.postgres import Postgres
from tests.support.waiting import HUNG

ENGINE = DuckDBEngine()
AT = datetime(2026, 5, 4, 12, tzinfo=timezone.utc)
# Minutes of the run with kills; `SQLRUN_MINUTES=10` for a long one.
MINUTES = float(os.environ.get("SQLRUN_MINUTES", "1"))


def simulated(folder: Path, orders: int) -> list[str]:
    """Return the lines of made-up orders up to `AT`, late, repeated, corrected and broken ones among them."""
    options = ["--orders", str(orders), "--to", "2026-05-04T12:00Z", "--restaurants", "8", "--out", str(folder)]
    found = CliRunner().invoke(main, ["--project-dir", str(ROOT), "simulate", *options])
    assert found.exit_code == 0, found.output
    files = sorted(folder.rglob("*.jsonl")) or sorted(folder.rglob("*.json"))
    return [line for file in files for line in file.read_text().splitlines() if line]


def started(folder: Path, postgres: Postgres, broker: Broker, engine: Engine = ENGINE) -> tuple[Site, Connect]:
    """Create the tables and topics, and start the connector; return when its snapshot is over."""
    shop.created(postgres)
    prefix = topics.unique("shop")
    for table in shop.KEYS:
        topics.create(broker, f"{prefix}.public.{table}", 2)
    for name in ("public.marks", "transaction"):
        topics.create(broker, f"{prefix}.{name}")
    connect = Connect(postgres, broker, folder / "connect", prefix, shop.connector())
    connect.start()
    for number in itertools.count():
        postgres.run(f"insert into marks values ({number})")
        time.sleep(0.3)
        if connect.streamed():
            break
        assert number < HUNG, "the connector sends no changes"
    return shop.site(folder / "example", engine, broker, prefix), connect


def caught_up(site: Site, postgres: Postgres, number: int) -> None:
    """Run ticks until the last transaction of the database is in one."""
    (total,) = postgres.rows("select count(distinct txid) as n from audit.changes")
    end = time.monotonic() + HUNG
    while shop.judged(site, postgres) < total["n"]:
        assert time.monotonic() < end, "the connector sends no changes"
        time.sleep(1)
        number += 1
        assert site.tick(AT + timedelta(seconds=number)).published


@pytest.mark.long
@pytest.mark.slow
def test_the_database_has_the_numbers_of_the_events(tmp_path: Path, postgres: Postgres, broker: Broker) -> None:
    """Each tick is the database at one of its transactions, and the last has the marts of the reference project."""
    lines = simulated(tmp_path / "lines", 300)
    site, connect = started(tmp_path, postgres, broker)
    platform = shop.Platform(postgres, 1)
    try:
        for number in range(4):
            platform.write(lines[number::4])
            if number == 1:
                connect.kill()
                connect.start()
            assert site.tick(AT + timedelta(seconds=number)).published
            shop.judged(site, postgres)
        caught_up(site, postgres, 10)
    finally:
        connect.kill()
    as_of = AT + timedelta(minutes=5)
    assert site.tick(as_of).published
    assert shop.windows(site) == shop.expected_windows(lines, as_of)

    reference = Site(copy_project(tmp_path / "reference"), ENGINE)
    reference.write("all.jsonl", lines)
    assert reference.tick(as_of).published
    assert shop.windows(site) == shop.windows(reference)


@pytest.mark.slow
@pytest.mark.long
def test_kills_of_everything_leave_whole_transactions(tmp_path: Path, postgres: Postgres, own_broker: Broker) -> None:
    """The connector, the broker and builds die at random; every tick is the database at one of its transactions.

    Two sessions write at once: their transactions overlap, commit in another order than they began, and change the same
    customers and orders.
    """
    lines = simulated(tmp_path / "lines", round(2_000 * max(MINUTES, 1)))
    site, connect = started(tmp_path, postgres, own_broker)
    random, stop = Random(2), threading.Event()
    orders: list[str] = []
    sessions = [shop.Platform(postgres, seed, pause=0.05, orders=orders) for seed in (2, 3)]
    # All states of an order are written by one session.
    parts = [[line for line in lines if zlib.crc32(order_of(line)) % 2 == half] for half in (0, 1)]
    writers = [threading.Thread(target=written, args=one) for one in zip(sessions, parts, [stop] * 2, strict=True)]
    kills = {"connector": 0, "broker": 0, "build": 0}
    end, number, seen = time.monotonic() + 60 * MINUTES, 0, 0
    for writer in writers:
        writer.start()
    try:
        while time.monotonic() < end:
            number += 1
            what = random.choice(["connector", "broker", "build", "build", ""])
            if what == "connector":
                connect.kill()
                connect.start()
            elif what == "broker":
                own_broker.kill()
                own_broker.start()
            elif what == "build":
                kills[what] += killed(site, AT + timedelta(seconds=number), random.uniform(0.5, 4))
            kills[what] = kills.get(what, 0) + (what in ("connector", "broker"))
            assert site.tick(AT + timedelta(seconds=number)).published
            seen = shop.judged(site, postgres)
            print(f"{number}: {what or 'nothing'}, {seen} transactions, {kills}")
    finally:
        stop.set()
        for writer in writers:
            writer.join()
        try:
            caught_up(site, postgres, number)
        finally:
            connect.kill()
    assert seen > 0 and number > 1
    committed = [row["txid"] for row in postgres.rows(shop.COMMITTED)]
    assert committed != sorted(committed), "no transaction began before one that committed earlier"


def order_of(line: str) -> bytes:
    """Return the order that a line names; nothing of a broken one."""
    found = re.search('"order_id": *"([^"]*)"', line)
    return found[1].encode() if found else b""


def written(platform: shop.Platform, lines: list[str], stop: threading.Event) -> None:
    """Write the platform's events a few at a time over the minutes of the run, until the test ends."""
    for start in range(0, len(lines), 20):
        if stop.wait(50 * MINUTES * 20 / len(lines)):
            return
        platform.write(lines[start : start + 20])


def killed(site: Site, as_of: datetime, after: float) -> bool:
    """Begin a build and kill it after some seconds; return whether it died."""
    command = [
        sys.executable,
        "-m",
        "sqlrun",
        "--project-dir",
        str(site.root),
        "build",
        "--as-of",
        f"{as_of:%Y-%m-%dT%H:%M:%SZ}",
    ]
    with (site.root / "build.txt").open("w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, start_new_session=True)
        try:
            code = process.wait(timeout=after)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            code = process.wait()
    assert code in (0, -signal.SIGKILL), (site.root / "build.txt").read_text()
    return code != 0
