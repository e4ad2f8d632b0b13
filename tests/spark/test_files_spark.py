"""Files of every format land on Spark as they do on DuckDB, and the engines take turns on one landing table."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import pytest

from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.engines.spark.engine import SparkEngine
from tests.sources.test_files import HEADER, PATHS
from tests.support import file_site, same_orders
from tests.support.file_site import Folder
from tests.support.orders_in_formats import COLUMNS, FORMATS, SELECT, orders
from tests.support.projects import Site
from tests.support.servers.kafka import Broker

pytestmark = pytest.mark.spark
MANY = 100_000 if os.environ.get("SQLRUN_EXHAUSTIVE") else 20_000


def result(one: Folder) -> tuple[Any, ...]:
    """Return what must be equal on both engines."""
    return repr(one.rows()), one.held(), one.origins(), one.counts()


def test_the_same_orders_land_on_spark_as_on_duckdb(tmp_path: Path, engine: SparkEngine) -> None:
    rows = orders(300)
    for kind in ("document", "csv", "parquet", "avro"):
        declared, ending, write = FORMATS[kind]
        found = []
        for one in (engine, DuckDBEngine()):
            site = file_site.made(tmp_path / one.name / kind, one, declared, columns=COLUMNS, select=SELECT)
            for number in range(3):
                site.put(f"a/{number}.{ending}", write(rows[number * 100 : (number + 1) * 100]))
            note = site.lands()
            assert "can't be read" not in note, note
            found.append(result(site))
        assert found[0] == found[1], kind
        assert found[0][3]["read"] == 300 and found[0][3]["quarantined"] > 0


@pytest.mark.long
@pytest.mark.slow
def test_every_kind_of_source_lands_many_orders_as_on_duckdb(
    tmp_path: Path, engine: SparkEngine, broker: Broker
) -> None:
    rows = orders(MANY)
    expected = same_orders.from_files(tmp_path / "duckdb", DuckDBEngine(), "lines", rows)
    for kind in FORMATS:
        found = same_orders.from_files(tmp_path / kind, engine, kind, rows)
        # A difference of texts of 60 MB would take minutes to print.
        assert (found == expected) is True, kind
    assert (same_orders.from_topic(tmp_path / "topic", engine, broker, rows) == expected) is True
    good = [row for row in rows if same_orders.fits(row)]
    # Spark groups -0.0 with 0.0, which is equal to it.
    found_in_delta = same_orders.from_delta(tmp_path / "delta", engine, good).replace("'wide': -0.0", "'wide': 0.0")
    assert (found_in_delta == expected[0].replace("'wide': -0.0", "'wide': 0.0")) is True


def test_the_engines_alternate_and_a_broken_file_stops_no_other(tmp_path: Path, engine: SparkEngine) -> None:
    one = file_site.made(tmp_path / "project", engine, "format: csv", columns=PATHS, select=", day, part, tag, origin")
    whole = gzip.compress((HEADER + "o9,s,9\n").encode())
    one.put("day=2026-01-02/part=07/tag=a%20%22b%5C1/f 1.csv", HEADER + 'o1,s,1\n \no2\n"o3",s,x\n')
    one.put("half.csv.gz", whole[:-4])
    one.put("recent.csv.gz", whole[:-4], age=1)
    note = one.lands()
    assert "half.csv.gz: the gzip file ends too early" in note and "1 file is still being written" in note
    assert one.landed() == ["o1"]
    assert one.counts() == {"read": 4, "landed": 1, "quarantined": 2, "dropped": 1, "unexplained": 0}

    head = one.site.root.glob("warehouse/stg/*/_delta_log/*.json")
    commits = len(list(head))
    one.age("recent.csv.gz", 60)
    assert "2 files that can't be read" in one.lands()
    assert len(list(one.site.root.glob("warehouse/stg/*/_delta_log/*.json"))) == commits

    duck = Folder(Site(one.site.root, DuckDBEngine()), one.ticks)
    duck.put("half.csv.gz", whole)
    assert "recent.csv.gz" in duck.lands()
    one.ticks = duck.ticks
    duck.put("recent.csv.gz", gzip.compress((HEADER + "o4,s,4\n").encode()))
    assert one.command("quarantine", "replay", "stg", "--all").exit_code == 0
    assert "CSV: 1 field instead of 3 (1)" in one.lands()
    assert one.landed() == ["o1", "o4", "o9"] and duck.landed() == one.landed()
    assert [reason for reason, _ in one.held()] == ["CSV: 1 field instead of 3", "n: not of type int"]
    assert one.counts() == {"read": 6, "landed": 3, "quarantined": 2, "dropped": 1, "unexplained": 0}
