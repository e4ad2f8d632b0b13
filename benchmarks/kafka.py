"""Landing from Kafka beside landing the same lines from files, and beside Spark's bare connector. Shell: processes.

python -m benchmarks.kafka
python -m benchmarks.kafka --parts duckdb,backlog --repeat 5

`duckdb`: 20,000 orders of 490 bytes, landed by the engine DuckDB from a topic and from a file, alternately, each into a
new landing table of the reference project. `spark`: the same landed by the engine Spark, beside `availableNow` of its own connector to Delta; the
second query of a session. `backlog`: 1,000,000 pending messages in ticks of `max_offsets_per_tick`, with the peak memory
of the process. All figures of a part come from one run, so that their ratios mean something on a busy machine.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

from confluent_kafka import Producer

from sqlrun.engine_api import Landing, StoredColumn, TableSpec, Written
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.project import Connection, Topic
from sqlrun.source_api import SourceReader
from sqlrun.sources.folder import Folder
from sqlrun.sources.kafka import Kafka
from sqlrun.sources.kafka_client import Client
from tests.support.projects import Site, copy_project
from tests.support.servers import jars, topics
from tests.support.servers.kafka import Broker

ROOT = Path(__file__).parent.parent
MESSAGES, BYTES, BACKLOG, LIMIT = 20_000, 490, 1_000_000, 100_000
PARTITIONS = 4
# Spark's bare connector parses nothing, so neither does sqlrun beside it.
COLUMNS = (StoredColumn("value", "string"), StoredColumn("_file", "string"))
BARE = Landing(TableSpec("stg", "", COLUMNS), Folder(""), "", "select value, file as _file from lines", "app")
ITEM = '{"dish_id":"d001","quantity":2,"unit_price":"10.50"}'
LINE = (
    '{"event_id":"e%09d-1","order_id":"o%09d","version":1,"restaurant_id":"r0001","customer_id":"c000001",'
    '"ordered_at":"2026-11-21T11:58:00Z","status":"placed","items":[' + ",".join([ITEM] * 5) + "]%s}"
)


def lines(count: int) -> Iterator[bytes]:
    """Yield orders of 490 bytes."""
    spaces = " " * (BYTES - len(LINE % (0, 0, "")))
    for number in range(count):
        yield (LINE % (number, number, spaces)).encode()


def sent(broker: Broker, name: str, count: int) -> Kafka:
    """Produce the lines to a new topic, and return its source."""
    topics.create(broker, name, PARTITIONS)
    producer = Producer({"bootstrap.servers": broker.address, "linger.ms": 20, "queue.buffering.max.messages": 500_000})
    for number, line in enumerate(lines(count)):
        while True:
            try:
                producer.produce(name, line, f"o{number:09d}", number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(120) == 0
    return Kafka(Topic(topic=name), (), Client("kafka", Connection(broker.address)))


def landing(folder: Path, source: SourceReader, like: Landing = BARE) -> Landing:
    """Return the landing of a source into a new table, by the query of another landing."""
    shutil.rmtree(folder, ignore_errors=True)
    table = replace(like.table, path=str(folder / "stg"))
    delta_table.create(table)
    return replace(like, table=table, source=source, checkpoint=str(folder / "checkpoint"))


class Watched(DuckDBEngine):
    """An engine that remembers how it landed last."""

    landing: Landing

    def land(self, landing: Landing) -> Written:
        self.landing = landing
        return super().land(landing)


def of_orders(folder: Path) -> Landing:
    """Return how the reference project lands its orders."""
    engine = Watched()
    site = Site(copy_project(folder), engine)
    site.write("1.jsonl", [line.decode() for line in lines(1)])
    assert site.tick(datetime(2026, 11, 21, 12, tzinfo=timezone.utc), ("stg_order_events",)).published
    return engine.landing


def timed(run: Callable[[], object]) -> float:
    """Return the seconds of a call."""
    begun = time.perf_counter()
    run()
    return time.perf_counter() - begun


def rows(folder: Path) -> int:
    """Return the number of landed rows."""
    return int(delta_table.open_table(str(folder / "stg")).to_pyarrow_table(columns=["_file"]).num_rows)


def alternated(sides: dict[str, Callable[[], float]], repeat: int) -> dict[str, list[float]]:
    """Return the seconds of each side, one after the other, without a first round that warms up."""
    found: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(repeat + 1):
        for name, run in sides.items():
            seconds = run()
            if number:
                found[name].append(seconds)
    return found


def shown(found: dict[str, list[float]], base: str) -> None:
    """Print the median of each side, and its ratio to the base in the same round."""
    for name, seconds in found.items():
        ratios = [one / other for one, other in zip(seconds, found[base], strict=True)]
        print(f"  {name:<24} {statistics.median(seconds):8.3f} s   x {statistics.median(ratios):.2f}")


def duckdb(broker: Broker, folder: Path, repeat: int) -> None:
    """Land 20,000 messages, and the same lines of a file."""
    source, like = sent(broker, "small", MESSAGES), of_orders(folder / "project")
    (folder / "lines").mkdir(parents=True)
    (folder / "lines" / "1.jsonl").write_bytes(b"".join(line + b"\n" for line in lines(MESSAGES)))
    engine = DuckDBEngine()

    def land(name: str, read: SourceReader) -> float:
        one = landing(folder / name, read, like)
        seconds = timed(lambda: engine.land(one))
        assert rows(folder / name) == MESSAGES
        return seconds

    sides = {"file": lambda: land("file", Folder(str(folder / "lines"))), "kafka": lambda: land("kafka", source)}
    print(f"DuckDB, {MESSAGES:,} messages of {BYTES} bytes; aim: x 1.5")
    shown(alternated(sides, repeat), "file")


def spark(broker: Broker, folder: Path, repeat: int) -> None:
    """Land 20,000 messages, and have Spark's connector write them to Delta by `availableNow`."""
    from sqlrun.engines.spark.engine import SparkEngine

    source = sent(broker, "sparked", MESSAGES)
    listed = ",".join(map(str, jars.SPARK_KAFKA.files()))
    engine = SparkEngine({"spark.driver.memory": "1500m", "spark.jars": listed})
    engine.start()

    def bare() -> float:
        shutil.rmtree(folder / "bare", ignore_errors=True)
        options = {"kafka.bootstrap.servers": broker.address, "subscribe": "sparked", "startingOffsets": "earliest"}

        def run() -> None:
            stream = engine._spark.readStream.format("kafka").options(**options).load()
            columns = ("cast(value as string) as value", "concat(topic, '/', partition, '/', offset) as _file")
            writer = stream.selectExpr(*columns).writeStream.format("delta").trigger(availableNow=True)
            query = writer.option("checkpointLocation", str(folder / "bare" / "checkpoint"))
            query.start(str(folder / "bare" / "stg")).awaitTermination()

        seconds = timed(run)
        assert rows(folder / "bare") == MESSAGES
        return seconds

    def land() -> float:
        one = landing(folder / "landed", source)
        seconds = timed(lambda: engine.land(one))
        assert rows(folder / "landed") == MESSAGES
        return seconds

    print(f"Spark, {MESSAGES:,} messages of {BYTES} bytes; aim: x 1.3")
    shown(alternated({"bare availableNow": bare, "sqlrun": land}, repeat), "bare availableNow")
    engine.close()


def backlog(broker: Broker, folder: Path) -> None:
    """Land a backlog in limited ticks in a process of its own, and print its peak memory."""
    sent(broker, "waiting", BACKLOG)
    for limit in (LIMIT, 2 * LIMIT):
        command = [
            sys.executable,
            "-m",
            "benchmarks.kafka",
            "--worker",
            f"{broker.address} {limit} {folder / 'waiting'}",
        ]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        found = json.loads(done.stdout.splitlines()[-1])
        print(
            f"Backlog of {BACKLOG:,} messages, {limit:,} a tick: {found['ticks']} ticks, "
            f"{BACKLOG / found['seconds']:,.0f} messages a second, {found['before']} MB before, "
            f"{found['peak']} MB at most, {found['first']} MB after the first tick"
        )


def worker(address: str, limit: int, folder: Path) -> None:
    """Land all that is pending, and print the figures as JSON."""
    source = Kafka(Topic(topic="waiting", max_offsets_per_tick=limit), (), Client("kafka", Connection(address)))
    engine = DuckDBEngine()
    one = landing(folder, source)
    before, first, ticks, begun = peak(), 0, 0, time.perf_counter()
    while engine.land(one).receipt.rows_written:
        ticks += 1
        first = first or peak()
    seconds = time.perf_counter() - begun
    assert rows(folder) == BACKLOG
    print(json.dumps({"ticks": ticks, "seconds": seconds, "before": before, "first": first, "peak": peak()}))


def peak() -> int:
    """Return the process's peak memory in MB; `getrusage` would include the parent's."""
    [line] = [one for one in Path("/proc/self/status").read_text().splitlines() if one.startswith("VmHWM")]
    return int(line.split()[1]) // 1024


def main() -> None:
    """Read the command line and run."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--parts", default="duckdb,spark,backlog")
    options.add_argument("--repeat", type=int, default=5)
    options.add_argument("--folder", type=Path, default=ROOT / "target" / "benchmarks" / "kafka")
    options.add_argument("--worker", default="", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.worker:
        address, limit, folder = chosen.worker.split(" ", 2)
        worker(address, int(limit), Path(folder))
        return
    folder = chosen.folder.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    broker = Broker(folder / "broker")
    broker.start()
    parts = chosen.parts.split(",")
    try:
        if "duckdb" in parts:
            duckdb(broker, folder, chosen.repeat)
        if "spark" in parts:
            spark(broker, folder, chosen.repeat)
        if "backlog" in parts:
            backlog(broker, folder)
    finally:
        broker.stop()


if __name__ == "__main__":
    main()
