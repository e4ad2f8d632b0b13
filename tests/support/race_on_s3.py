"""Writers of Spark and of delta-rs that append to one table in S3 at once: `python -m tests.support.race_on_s3 WORK`.

WORK is JSON: the endpoint of Spark's writers and that of the others, the numbers of both, the commits of each writer of
Spark, and more settings for Spark. The others commit until Spark's are done.
Prints as JSON what they acknowledged and what the table then has.
"""

from __future__ import annotations

import json
import sys
import threading
from collections import Counter
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from deltalake.exceptions import CommitFailedError

from sqlrun.engines.spark import object_store
from sqlrun.engines.spark.session import end, session_of
from tests.support.servers import moto_s3

# Seconds between two commits of a writer of delta-rs.
PAUSE = 0.6
URL = f"s3://{moto_s3.BUCKET}/race"


def options(endpoint: str) -> dict[str, str]:
    """Return delta-rs' options of the server."""
    return {**moto_s3.KEYS, "AWS_ENDPOINT_URL": endpoint, "AWS_REGION": moto_s3.REGION, "AWS_ALLOW_HTTP": "true"}


def main(work: dict[str, Any]) -> None:
    """Run the race."""
    near = options(work["upstream"])
    rows = pa.table({"writer": pa.array([0], pa.int32()), "n": pa.array([0], pa.int32())})
    write_deltalake(URL, rows, storage_options=near)
    settings = {
        "spark.master": "local[4]", "spark.driver.memory": "1g", "spark.sqlrun.connectors": "s3",
        **object_store.settings({"endpoint": work["endpoint"], "region": moto_s3.REGION}, {}),
        **work.get("settings", {}),
    }  # fmt: skip
    session = session_of(settings)
    session.read.format("delta").load(URL).count()
    start, acknowledged = threading.Barrier(work["spark"] + work["rust"]), Counter[int]()
    over, failed = threading.Event(), list[str]()

    def spark(writer: int) -> None:
        own = session.newSession()
        start.wait()
        for n in range(work["commits"]):
            frame = own.createDataFrame([(writer, n)], "writer int, n int").coalesce(1)
            try:
                frame.write.format("delta").mode("append").save(URL)
                acknowledged[writer] += 1
            except Exception as error:
                failed.append(f"spark: {str(error)[:300]}")

    def rust(writer: int) -> None:
        start.wait()
        while not over.wait(PAUSE):
            rows = pa.table({"writer": pa.array([writer], pa.int32()), "n": pa.array([0], pa.int32())})
            try:
                write_deltalake(URL, rows, mode="append", storage_options=near)
                acknowledged[writer] += 1
            except CommitFailedError as error:
                failed.append(f"rust: {str(error)[:300]}")

    drivers = [threading.Thread(target=spark, args=(100 + n,)) for n in range(work["spark"])]
    others = [threading.Thread(target=rust, args=(200 + n,)) for n in range(work["rust"])]
    for each in (*drivers, *others):
        each.start()
    for each in drivers:
        each.join()
    over.set()
    for each in others:
        each.join()
    # Delta's reader of another version of the table: nothing of it is in a cache.
    found = session.read.format("delta").option("versionAsOf", 0).load(URL).count()
    end(session)
    table = DeltaTable(URL, storage_options=near)
    # Not by `to_pyarrow_table`, which now and then aborts a process at its end.
    rows = QueryBuilder().register("t", table).execute("select writer from t").read_all()
    there = Counter(pa.table(rows).column("writer").to_pylist())
    del there[0]
    print(
        json.dumps(
            {
                "acknowledged": sum(acknowledged.values()), "there": sum(there.values()), "version": table.version(),
                "lost": sum((acknowledged - there).values()), "doubled": sum((there - acknowledged).values()),
                "failed": failed, "first": found,
            }
        ), flush=True,
    )  # fmt: skip


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
