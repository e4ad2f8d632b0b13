"""The simulator of Delta logs counts what a real warehouse has, and what a year leaves stays within budgets."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from benchmarks.log_simulator import Rules, Table, Warehouse, logged_bytes, vector_bytes
from benchmarks.scale import TICKS_A_DAY, Platform, Size, spread
from benchmarks.year import Simulated, simulated_counts
from sqlrun.engines.delta.deletion_vectors import INLINE, descriptor

ROOT = Path(__file__).parents[2]
TICKS, EVERY, KEEP, OLD, LATE = 60, 17, 30, 12_000, 30


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.skipif(shutil.which("cc") is None, reason="the real run needs a C compiler to move its clock")
def test_a_real_run_has_the_simulator_s_counts(tmp_path: Path) -> None:
    """Commits, checkpoints, files, marks, removals and change files of each table, after each vacuum and at the end.

    Bytes of a checkpoint are a slope, so they only have to be near; most of those of `fct_hours` are vectors.
    """
    counts = tmp_path / "counts.json"
    options = {
        "real": TICKS,
        "every": EVERY,
        "keep": KEEP,
        "old": OLD,
        "late": LATE,
        "counts": counts,
        "folder": tmp_path,
    }
    arguments = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    subprocess.run([sys.executable, "-m", "benchmarks.year", *arguments], cwd=ROOT, check=True, timeout=900)
    real = json.loads(counts.read_text())
    for one in real:
        for table in one["tables"].values():
            table["sizes"] = table.pop("checkpoint_bytes")
    sizes = [one["tables"]["fct_hours"].pop("sizes") for one in real]
    for one in real:
        for table in one["tables"].values():
            table.pop("sizes", None)

    assert len(real) == 4
    assert any(table["vectors"] for one in real for table in one["tables"].values())
    assert real == list(simulated_counts(EVERY, KEEP, OLD, LATE, TICKS))
    simulated = Simulated(EVERY, KEEP, OLD, LATE)
    while simulated.count < TICKS:
        simulated.tick()
    assert simulated.tables["fct_hours"].checkpoints[-1].size == pytest.approx(sizes[-1], rel=0.25)


@pytest.mark.parametrize(("rows", "dead"), [(50, 3), (20_000, 900), (200_000, 9_000), (300_000, 90_000)])
def test_the_bytes_of_a_vector_are_known(rows: int, dead: int) -> None:
    real = descriptor(random.Random(1).sample(range(rows), dead))

    assert vector_bytes(rows, dead) == pytest.approx(real["sizeInBytes"], rel=0.05, abs=30)
    if real["sizeInBytes"] <= INLINE:
        assert logged_bytes(rows, dead) == pytest.approx(len(real["pathOrInlineDv"]), rel=0.05, abs=30)


def test_a_checkpoint_forgets_old_removals() -> None:
    rules = Rules()
    table = Table("t")
    table.append(rules.start, 10)
    table.merge(rules.start, {"": {0: 5}}, {"": 5})
    assert (table.version, len(table.removals)) == (2, 1)

    later = rules.start + table.remembered + rules.step
    for _ in range(8):
        table.append(later, 1)

    assert table.checkpoints[-1].version == 10
    assert table.checkpoints[-1].removals == 0


class Hourly(Warehouse):
    """A tick an hour: an appended table, one partitioned by day, and one whose rows change all the time."""

    def __init__(self, rules: Rules) -> None:
        super().__init__(rules, {"lines": (), "days": ("lines",), "state": ("lines",)}, {})

    def change(self, at: datetime) -> None:
        today, yesterday = f"{at:%Y-%m-%d}", f"{at - timedelta(days=1):%Y-%m-%d}"
        self.tables["lines"].append(at, 500)
        days = {today: spread(self.tables["days"], today, 20), yesterday: spread(self.tables["days"], yesterday, 5)}
        self.tables["days"].merge(at, days, {today: 420, yesterday: 5})
        changed = spread(self.tables["state"], "", 2_000)
        self.tables["state"].merge(at, {"": changed}, {"": 2_000 if changed else 50_000})


def hourly(days: int, every: int = 24) -> Hourly:
    """Return a warehouse after some days, of which seven of ticks are retained."""
    found = Hourly(Rules(every=every, keep=168, step=timedelta(hours=1)))
    while found.count < days * 24:
        found.tick()
    return found


def over_budget(one: Warehouse, days: int) -> list[str]:
    """Return what is more than a tick may find: commits after a checkpoint, files, log entries, rows of the ledger."""
    keep, found = one.rules.keep, []
    a_day = timedelta(days=1) // one.rules.step
    for name, counts in one.counts().items():
        # Each vacuum adds three commits: the compaction's, and two for deleted files.
        budgets = {
            "tail": 10 + 3,
            "commits": keep + 10 + 3 * 9,
            "most_in_a_partition": 12,
            "live": days + 12 if name == "days" else 24 + 12,
            "stored": 5 * keep + days,
            # Of four partitions a tick, four files: large ones are marked by one tick, and written again by another.
            "removals": 16 * min(days, 31) * a_day,
        }
        found += [f"{name}: {what}" for what, most in budgets.items() if getattr(counts, what) > most]
    return found + ["ledger: rows"] * (one.ledger.rows() > 2 * keep + 2)


@pytest.mark.slow
def test_a_year_of_ticks_stays_within_budgets() -> None:
    month, year = hourly(40), hourly(365)

    assert over_budget(month, 40) == over_budget(year, 365) == []
    for name in ("lines", "state"):
        before, after = month.tables[name], year.tables[name]
        assert after.checkpoints[-1].size == pytest.approx(before.checkpoints[-1].size, rel=0.05), name
        assert after.checkpoints[-1].removals == before.checkpoints[-1].removals, name
    assert year.tables["state"].bytes_stored < 1.05 * month.tables["state"].bytes_stored


@pytest.mark.slow
def test_without_a_vacuum_the_budgets_are_exceeded() -> None:
    assert {"lines: commits", "days: stored", "ledger: rows"} <= set(over_budget(hourly(40, every=100_000), 40))


@pytest.mark.slow
def test_a_national_platform_stays_within_budgets() -> None:
    """230,000 restaurants, 5,800 orders a tick, with a day of retained ticks instead of a week."""
    platform = Platform(Size(1.67e6, 230_000), Rules(keep=288))
    while platform.count < 3 * TICKS_A_DAY:
        platform.tick()

    assert over_budget(platform, 3) == []


@pytest.mark.slow
def test_no_checkpoint_is_larger_than_its_table() -> None:
    """A removal names the vector that its file had, in each checkpoint of 30 days; a large one is a file's name."""
    state = hourly(40).tables["state"]

    assert state.checkpoints[-1].size < sum(file.size for files in state.files.values() for file in files)
