"""Values that have broken other systems, in every place of a project; `make values` plays any number of them."""

from __future__ import annotations

import json
import random
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sqlrun.engine_api import Append, Merge, StoredColumn, TableSpec, Write
from sqlrun.engines.delta import log_faults
from sqlrun.engines.duckdb import scan as duckdb_scan
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.errors import EngineError
from sqlrun.incremental import hidden_partitions
from sqlrun.runtime import arrow_rows, far_times
from sqlrun.runtime.text_lines import text_lines
from sqlrun.runtime.text_table import as_csv, as_json, table
from tests.values import playing, pool

# Characters that end a line for Python, but not for sqlrun's formats.
BREAKS = "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"


@pytest.mark.parametrize("sign", BREAKS)
def test_a_commit_may_hold_any_text(sign: str) -> None:
    """Neither JSON nor the file statistics of Spark and delta-rs escape these."""
    line = json.dumps({"commitInfo": {"operation": f"a{sign}b"}}, ensure_ascii=sign < " ")

    assert log_faults.actions_of(f"{line}\n{line}\n") == [json.loads(line)] * 2
    assert log_faults.commit_fault(f"{line}\n", transaction=False) == ""
    assert text_lines(f"a{sign}b\nc") == [f"a{sign}b", "c"]


@pytest.mark.parametrize("seed", range(20))
def test_far_times_have_sparks_text(seed: int) -> None:
    """Python's own calendar returns the same for the same day of another cycle of 400 years."""
    chance = random.Random(seed)
    moment = datetime(chance.randint(1, 9999), 1, 1) + timedelta(microseconds=chance.randrange(10**13))
    cycles = chance.choice((-30, -1, 1, 50))
    year = moment.year + 400 * cycles
    micros = far_times.micros(moment) + cycles * 146_097 * 86_400_000_000
    sign = "-" if year < 0 else "+" if year > 9999 else ""

    assert str(far_times.FarTime(micros)) == f"{sign}{abs(year):04d}" + str(moment).lstrip("0123456789")[0:]
    assert far_times.ordered(far_times.moment(micros)) == micros


def test_rows_with_far_times_can_be_shown() -> None:
    micros, days = [253402300800000000, 0, None], [2932897, -800000, None]
    times = pa.array(micros, pa.int64()).cast(pa.timestamp("us", "UTC"))
    held = pa.table(
        {
            "at": times,
            "day": pa.array(days, pa.int32()).cast(pa.date32()),
            "all": pa.ListArray.from_arrays([0, 1, 2, 3], times),
            "both": pa.StructArray.from_arrays([times], ["at"]),
        }
    )

    rows = arrow_rows.plain(held)

    assert str(rows[0]["at"]) == "+10000-01-01 00:00:00"
    assert rows[1]["at"] == datetime(1970, 1, 1, tzinfo=timezone.utc) and rows[2]["at"] is None
    assert [str(rows[0]["day"]), str(rows[1]["day"])] == ["+10000-01-01", "-0221-09-04"]
    assert str(rows[0]["all"][0]) == str(rows[0]["both"]["at"]) == "+10000-01-01 00:00:00"
    assert json.loads(as_json(rows))[0]["at"] == "+10000-01-01T00:00:00Z"
    assert "+10000-01-01 00:00:00" in as_csv(list(rows[0]), rows)
    assert "+10000-01-01" in "\n".join(table(list(rows[0]), [list(row.values()) for row in rows]))


def test_files_are_pruned_by_far_times() -> None:
    last = datetime.max.replace(tzinfo=timezone.utc)
    beyond = far_times.moment(far_times.micros(last) + 1)
    files: list[dict[str, Any]] = [
        {"min.at": datetime(2026, 1, 1), "max.at": last.replace(microsecond=999000)},
        {"min.at": last, "max.at": beyond},
        {"min.at": beyond, "max.at": beyond},
        {"min.at": None, "max.at": None},
    ]

    keep = duckdb_scan.overlapping([("at", last, last)])

    assert [keep(file) for file in files] == [True, True, False, True]
    assert duckdb_scan.overlapping([("at", beyond, beyond)])(files[2])
    assert duckdb_scan.overlapping([("day", date(2026, 1, 1), date(2026, 1, 1))])({"partition.day": date(2026, 1, 1)})


def test_no_column_comes_from_a_path(tmp_path: Path) -> None:
    """A parent folder is named like a column, one like a pattern, and the log has other values than the folders."""
    for name in ("k=wrong/[ab]*", "k=wrong/ab", "k=wrong/bb"):
        (tmp_path / name).mkdir(parents=True)
        pq.write_table(pa.table({"k": [name], "n": [1]}), tmp_path / name / "p=x.parquet")
    file = f"{tmp_path}/k=wrong/[ab]*/p=x.parquet"
    read = duckdb_scan.parquet([file], {file: {"p": "it's ' ~ \u2028", "d": None}}, ())

    found = duckdb.connect().execute(f"select * from {read}").fetchall()

    assert found == [("k=wrong/[ab]*", 1, "it's ' ~ \u2028", None)]


def test_each_text_has_its_own_partition_name() -> None:
    session = duckdb.connect()
    texts = list(dict.fromkeys([*pool.TEXTS, *pool.some(random.Random(1), 300)]))
    session.register("texts", pa.table({"t": texts}))

    names = session.execute(f"select {hidden_partitions.name_of('t', 'string', 'duckdb')} from texts").fetchall()

    assert len({name for (name,) in names}) == len(texts)
    assert all(name.isascii() and len(name) < 60 and name.replace("-", "a").isalnum() for (name,) in names)


@pytest.mark.parametrize("day", ("10000-01-01", "0001-12-31 (BC)"))
@pytest.mark.parametrize("way", ("append", "merge"))
def test_an_impossible_partition_day_is_rejected_before_any_write(tmp_path: Path, day: str, way: str) -> None:
    columns = (StoredColumn("k", "string"), StoredColumn("day", "date"))
    spec = TableSpec("by_day", str(tmp_path / "by_day" / "1a2b"), columns, ("day",))
    engine = DuckDBEngine()
    engine.create(spec)
    sql = f"select 'a' as k, date '{day}' as day"
    items = (("k", "s.k"), ("day", "s.day"))
    statement = Append(sql) if way == "append" else Merge(sql, ("k",), (), items, items)

    with pytest.raises(EngineError, match=r"SR736 the partition column `day` of by_day") as caught:
        engine.write(Write(spec, 0, 1, "app", (), statement))

    assert day in str(caught.value)
    assert engine.head(spec.path) == 0 and not list(Path(spec.path).rglob("*.parquet"))


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("seed", (1, 2))
def test_tables_stay_right_with_hostile_values(tmp_path: Path, seed: int) -> None:
    """As keys, group keys and partition values, with maintenance between ticks; `show`, `check`, `doctor` work."""
    play = playing.play(tmp_path, seed)

    for _ in range(2):
        play.tick(15)
        play.require_true()
        play.maintain()
        play.require_true()

    play.require_shown()


@pytest.mark.long
@pytest.mark.slow
def test_odd_times_stop_no_tick(tmp_path: Path) -> None:
    """Whatever a line has for a time: it lands or is quarantined, and the next tick is published."""
    play = playing.play(tmp_path, 3)
    play.times = (*pool.TIMES, *pool.ODD_TIMES)

    for _ in range(2):
        play.tick(25)
        play.require_true()

    play.maintain()
    play.require_shown()
