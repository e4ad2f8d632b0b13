"""`make soak`: thousands of ticks in one process, and nothing of it grows: memory, threads, files, folders.

The build is `Session.run`, as for `--replay` and `--every`; before each tick a few lines arrive. What is measured
every so many ticks is fitted by a line after a warm-up, and a slope that is above its bound for sure is an error.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.delta import vacuum as delta_vacuum
from sqlrun.engines.duckdb import engine as duckdb_engine
from sqlrun.operations import maintenance
from sqlrun.pipeline import prepare_to_build
from sqlrun.publish.ledger import Ledger
from sqlrun.report.build_display import BuildDisplay
from sqlrun.report.console import Console
from sqlrun.run.session import Session, Times
from tests.support import broken, shops

START = datetime(2026, 1, 1, tzinfo=timezone.utc)
# Hours, so that those of a day come again soon: measures lie in a partition for each.
STEP = timedelta(hours=1)
# Versions of a table that the next tick may read.
RECENT = 6
# For so many seconds a kept tick the logs name files that left. Upkeep deletes them before that, on a busy
# machine too: a file that the log has forgotten stays for 30 days.
REMEMBERED = 30
# delta-rs' allocator (jemalloc) gives back at once what it would otherwise hold for ten seconds, or forty ticks.
AT_ONCE = "dirty_decay_ms:0,muzzy_decay_ms:0"
PAGE = os.sysconf("SC_PAGE_SIZE")
# A heap that fills up within a run: the JVM gives none of it back. And Spark forgets its old batches within one, too.
SPARK = {
    "spark.driver.memory": "1g",
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.sql.streaming.fileSource.log.cleanupDelay": "1s",
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.sql.ui.retainedExecutions": "50",
    # What is only kept while there is room counts as garbage.
    "spark.driver.extraJavaOptions": "-XX:SoftRefLRUPolicyMSPerMB=0",
}
NEWEST = "select id, max(shop) as shop, max(amount) as amount from {{ ref('stg_sales') }} group by id\n"
LARGEST = "select max(amount) as amount, shop from {{ ref('newest') }} group by shop\n"
OPTIONS: dict[str, Any] = {
    **dict.fromkeys(("as_of", "every", "env")), **dict.fromkeys(("wait", "full_refresh", "accept_lost_files"), False),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sample:
    """What a process and its folders take after a tick; `java` is the JVM's memory, `live` its heap after a collection.

    `held` is what Python and the libraries have got from the C library and not given back: unlike `memory`, it has no
    noise of pages that are kept for later.
    """

    tick: int
    seconds: float
    memory_kb: int
    held_kb: int
    java_kb: int
    live_kb: int
    objects: int
    threads: int
    handles: int
    temporary: int
    target_kb: int
    books_kb: int
    warehouse_files: int


# Growth a tick that is still flat: noise of the allocator, and of vacuums that come in waves.
BOUNDS = {
    "memory_kb": 8.0, "held_kb": 3.0, "java_kb": 400.0, "live_kb": 20.0, "objects": 2.0, "threads": 0.005,
    "handles": 0.005, "temporary": 0.005, "target_kb": 0.5, "books_kb": 2.0, "warehouse_files": 0.5,
}  # fmt: skip


def project(folder: Path, engine: str, keep: int) -> Path:
    """Write the project: sales that land, sums, newest rows and what is made of them; it is vacuumed often."""
    shops.project(folder)
    broken.write(folder, {
        "models/newest.sql": NEWEST,
        "models/newest.yml": broken.contract(
            "newest", "id string", "shop string", "amount decimal(10,2)", extra="    grain: [id]"
        ),
        "models/largest.sql": LARGEST,
        "models/largest.yml": broken.contract(
            "largest", "shop string", "amount decimal(10,2)", extra="    grain: [shop]"
        ),
        "profiles/local.yml":
            f"engine: {engine}\nwarehouse: warehouse\nvacuum_every: {keep}\nkeep_ticks: {keep}\n{settings(engine)}",
    })  # fmt: skip
    return folder


def settings(engine: str) -> str:
    """Write a profile's settings."""
    if engine == "duckdb":
        return ""
    return "settings:\n" + "".join(f"  {key}: {value}\n" for key, value in SPARK.items())


class Soaked(Session):
    """A build whose ticks come at once, each behind a few lines that arrive."""

    def soak(self, ticks: int, every: int) -> list[Sample]:
        """Tick, and give the samples."""
        self.samples: list[Sample] = []
        self._wanted, self._every = ticks, every
        code = self.run({**OPTIONS, "replay": None, "step": "5m"}, Times(STEP))
        assert code == 0, code
        return self.samples

    def _times(self, times: Times, ledger: Ledger) -> Iterator[datetime]:
        del ledger
        for number in range(self._wanted):
            arrive(self.root, number)
            started = time.perf_counter()
            yield START + times.step * number
            if number % self._every == self._every - 1:
                self.samples.append(sample(self.root, number + 1, time.perf_counter() - started))
                print(self.samples[-1], flush=True)


def arrive(root: Path, number: int) -> None:
    """Let a file of a few sales come: a new one, one again with another amount, at times a broken line."""
    lines = [
        f'{{"id": "s{number}", "shop": "ada", "amount": "{number % 90}.50", "guest": "g"}}',
        f'{{"id": "s{number % 50}", "shop": "bob", "amount": "{number % 70}.25", "guest": "h"}}',
    ]
    lines += ["broken"] if number % 10 == 0 else []
    folder = root / "data" / "orders"
    (folder / f"{number:06}.jsonl").write_text("\n".join(lines) + "\n")


def sample(root: Path, tick: int, seconds: float) -> Sample:
    """Measure this process and the project's folders."""
    gc.collect()
    held, here = held_kb(), Path("/proc/self")
    return Sample(
        tick, round(seconds, 3), resident("self"), held, sum(map(resident, children())), sum(map(live, children())),
        len(gc.get_objects()),
        own_threads(here), len(list((here / "fd").iterdir())), files(Path(tempfile.gettempdir())),
        size(root / "target"), size(root / "warehouse" / "_sqlrun"), files(root / "warehouse"),
    )  # fmt: skip


class Allocated(ctypes.Structure):
    """What `mallinfo2` of the C library gives."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in ("arena", "free", "fast", "maps", "mapped", "most", "fast_bytes", "used", "unused", "top")
    )


def held_kb() -> int:
    """Tell how many KB are got from the C library, and have it return the pages that hold none of them."""
    library = ctypes.CDLL(None)
    library.malloc_trim(0)
    library.mallinfo2.restype = Allocated
    memory = library.mallinfo2()
    return int(memory.used + memory.mapped) // 1024


def own_threads(process: Path) -> int:
    """Count threads but for those that read and write files for delta-rs.

    There are as many as it ever had at once, 512 at most; they end when none was wanted for ten seconds.
    """
    names = []
    for task in (process / "task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended since it was listed
            names.append((task / "comm").read_text())
    return sum(not name.startswith("tokio") for name in names)


def resident(process: str) -> int:
    """Tell how many KB of memory a process has."""
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * PAGE // 1024
    except FileNotFoundError:
        return 0


def live(process: str) -> int:
    """Tell how many KB of objects a JVM holds after it has collected; 0 for another process."""
    if Path(f"/proc/{process}/comm").read_text().strip() != "java":
        return 0
    return min(_collected(process) for _ in range(3))


def _collected(process: str) -> int:
    """Return the KB of a JVM's heap after a collection, with what its threads have made meanwhile."""
    subprocess.run(["jcmd", process, "GC.run"], check=True, capture_output=True)
    said = subprocess.run(["jcmd", process, "GC.heap_info"], check=True, capture_output=True, text=True).stdout
    # The heap of one collector, or the generations of another; its other lines give no total.
    return sum(map(int, re.findall(r"total \d+K, used (\d+)K", said)))


def children() -> list[str]:
    """Name the processes below this one."""
    found, left = list[str](), ["self"]
    while left:
        process = left.pop()
        for task in Path(f"/proc/{process}/task").glob("*/children"):
            new = task.read_text().split()
            found += new
            left += new
    return found


def files(folder: Path) -> int:
    """Count the files below a folder."""
    return sum(len(names) for _, _, names in os.walk(folder))


def size(folder: Path) -> int:
    """Tell how many KB the files below a folder take."""
    return sum((Path(top) / name).stat().st_size for top, _, names in os.walk(folder) for name in names) // 1024


def slopes(samples: Sequence[Sample]) -> dict[str, tuple[float, float]]:
    """Fit a line to each measure after the first third; give its growth a tick, and the least that it is for sure."""
    later = samples[len(samples) // 3 :]
    ticks = [each.tick for each in later]
    names = [field.name for field in fields(Sample) if field.name not in ("tick", "seconds")]
    return {name: slope(ticks, [getattr(each, name) for each in later]) for name in names}


def slope(ticks: Sequence[int], values: Sequence[float]) -> tuple[float, float]:
    """Fit a line; give its slope, and that less two of its standard errors.

    >>> slope([1, 2, 3, 4], [5.0, 7.0, 9.0, 11.0])
    (2.0, 2.0)
    >>> [round(each, 2) for each in slope([1, 2, 3, 4], [5.0, 9.0, 5.0, 9.0])]
    [0.8, -1.46]
    """
    fitted = statistics.linear_regression(ticks, values)
    left = sum((v - fitted.intercept - fitted.slope * t) ** 2 for t, v in zip(ticks, values, strict=True))
    spread = sum((t - statistics.fmean(ticks)) ** 2 for t in ticks)
    error = (left / max(1, len(ticks) - 2) / spread) ** 0.5
    return fitted.slope, fitted.slope - 2 * error


def hasten(keep: int) -> None:
    """Let a vacuum delete what no kept tick needs at once, and the logs forget it: days pass here in minutes."""

    def vacuum(path: str, age: timedelta) -> int:
        del age
        table = delta_table.open_table(path)
        newest = table.version()
        held = [version for version in range(newest, max(-1, newest - RECENT), -1) if _is_there(path, version)]
        return len(table.vacuum(0, False, False, keep_versions=held, post_commithook_properties=delta_table.hooks()))

    maintenance.READERS = timedelta(0)
    delta_table.PROPERTIES["delta.deletedFileRetentionDuration"] = f"interval {REMEMBERED * keep} seconds"
    delta_vacuum.vacuum = vacuum


def _is_there(path: str, version: int) -> bool:
    return (Path(path) / "_delta_log" / f"{version:020}.json").exists()


def soak(root: Path, engine: str, ticks: int, every: int, keep: int) -> list[Sample]:
    """Make the project and tick in this process."""
    project(root, engine, keep)
    hasten(keep)
    prepared, target = prepare_to_build(root, None)
    names = tuple(name for name in prepared.graph.order if not name.startswith("source:"))
    console = Console(quiet=True)
    made = Soaked(root, prepared, target, names, BuildDisplay(console), lambda: datetime.now(timezone.utc), False)
    return made.soak(ticks, every)


def main() -> int:
    """Soak as the command line says; give the exit code."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--ticks", type=int, default=3000)
    asked.add_argument("--sample", type=int, default=50)
    asked.add_argument("--keep", type=int, default=50, help="ticks that are kept, and ticks between vacuums")
    asked.add_argument("--engine", default="duckdb")
    asked.add_argument("--sessions", type=int, default=0, help="sessions after which DuckDB's database is opened anew")
    given = asked.parse_args()
    duckdb_engine.SESSIONS = given.sessions or duckdb_engine.SESSIONS
    with tempfile.TemporaryDirectory() as folder:
        # Below it lie this process's temporary files alone.
        tempfile.tempdir = f"{folder}/tmp"
        Path(tempfile.tempdir).mkdir()
        os.environ["TMPDIR"] = tempfile.tempdir
        os.environ["_RJEM_MALLOC_CONF"] = AT_ONCE
        samples = soak(Path(folder) / "project", given.engine, given.ticks, given.sample, given.keep)
    found = slopes(samples)
    for name, (growth, least) in found.items():
        wrong = "GROWS" if least > BOUNDS[name] else "flat"
        first, last = getattr(samples[len(samples) // 3], name), getattr(samples[-1], name)
        trend = f"{growth:+.4f} a tick ({least:+.4f} for sure), at most {BOUNDS[name]}"
        print(f"{wrong:6} {name:16} {first:>10,} -> {last:>10,}  {trend}")
    print(f"{threading.active_count()} threads of Python's at the end")
    return 1 if any(least > BOUNDS[name] for name, (_, least) in found.items()) else 0


if __name__ == "__main__":
    sys.exit(main())
