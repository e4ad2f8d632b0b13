"""Power failure: every file newer than the last sync may be empty, truncated, or gone. Repaired exactly, or rejected.

A golden warehouse is made once and stored as bytes. Each example writes it again, with some of the unsynced files
damaged, and builds. Then every table equals the whole query over every line, or the build prints what to do.
`SQLRUN_EXHAUSTIVE=1` tries every file in every way instead of a sample.
"""

from __future__ import annotations

import copy
import json
import os
import random
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from pathlib import Path
from unittest import mock

import pytest

from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.errors import SqlrunError
from sqlrun.events import TickResult
from sqlrun.publish.ledger import Ledger
from sqlrun.runtime import atomic_files
from sqlrun.system_tables import receipts
from tests.run.test_machine import Stop, project, stopping
from tests.support.projects import Site
from tests.support.script import FIVE, START
from tests.support.whole import differences

pytestmark = [pytest.mark.slow, pytest.mark.disk]
ALL = bool(os.environ.get("SQLRUN_EXHAUSTIVE"))
NOW = datetime(2026, 11, 22, tzinfo=timezone.utc)
HEALED = "was moved to _sqlrun/set_aside/"
Files = dict[str, bytes]


def lines(number: int) -> list[str]:
    """Return three sales of a tick: a new one, another state of an old one, one of long ago."""
    sales = [(f"n{number}", 1, "x", number), ("old", number, "y", -3 * number), (f"l{number}", 1, "z", -40)]
    return [
        json.dumps(
            {
                "id": name,
                "version": version,
                "shop": shop,
                "amount": f"{number}.50",
                "sold_at": (START + timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ"),
            }
        )
        for name, version, shop, minutes in sales
    ]


def read(folder: str) -> Files:
    root = Path(folder)
    return {file.relative_to(root).as_posix(): file.read_bytes() for file in root.rglob("*") if file.is_file()}


class Golden:
    """A project and its warehouse at moments: the synced files, and the files at the power failure."""

    def __init__(self, folder: Path) -> None:
        self.site = Site(project(folder), DuckDBEngine())
        self.moments: dict[str, tuple[Files, Files]] = {}
        self.count = 0
        self._first()
        self._later()

    def tick(self, number: int) -> TickResult:
        result = self.site.tick(START + number * FIVE)
        receipts.write(self.site.warehouse, result, "duckdb", NOW)
        return result

    def arrive(self, number: int) -> None:
        self.site.write(f"{number:04}.jsonl", lines(number))

    def cut_short(self, number: int) -> None:
        with suppress(Stop), stopping(Ledger, "publish", 1, after=False):
            self.site.tick(START + number * FIVE)

    def state(self) -> Files:
        return read(self.site.warehouse)

    def _first(self) -> None:
        """Add the moment of the very first tick, before which nothing was published."""
        self.arrive(0)
        before = self.state()
        self.cut_short(0)
        self.moments["first"] = before, self.state()

    def _later(self) -> None:
        """Add ticks after published ones: one cut short, two cut short, one published whose row is not yet synced."""
        for number in range(3):
            self.tick(number)
            self.arrive(number + 1)
        before = self.state()
        self.cut_short(3)
        self.moments["one"] = before, self.state()
        self.arrive(4)
        self.cut_short(4)
        self.moments["two"] = before, self.state()
        synced: list[Files] = []
        real = atomic_files.sync

        def syncing(folder: str) -> None:
            real(folder)
            synced.append(self.state())

        with mock.patch.object(atomic_files, "sync", syncing):
            self.tick(5)
        self.moments["published"] = synced[-2], self.state()

    def lines(self) -> int:
        return 3 * len(list(self.site.orders.iterdir()))


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Golden]:
    made = Golden(tmp_path_factory.mktemp("golden") / "shops")
    yield made
    made.site.engine.close()


def cuts(name: str, data: bytes) -> dict[str, bytes | None]:
    """Return possible remains of a file: empty, a part of it, all but its last line, or no file at all."""
    left: dict[str, bytes | None] = {"empty": b"", "half": data[: len(data) // 2], "gone": None}
    rows = data.split(b"\n")
    if name.endswith(".json") and len(rows) > 1:
        left["line"] = b"\n".join(rows[:-1])
        left["line end"] = left["line"] + b"\n" if left["line"] is not None else None
    return left


def fresh(moment: tuple[Files, Files]) -> list[str]:
    """Return the names of unsynced files, except for the lock, which has no content."""
    before, after = moment
    return sorted(name for name in after if after[name] != before.get(name) and name != "_sqlrun/lock")


def lay_out(folder: Path, files: Mapping[str, bytes | None]) -> None:
    for name, data in files.items():
        if data is not None:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)


def outcome(golden: Golden, folder: Path, files: Mapping[str, bytes | None]) -> str:
    """Build on the remains of a power failure; return "" if all is exact, else the reason of the rejection."""
    lay_out(folder, files)
    site = copy.copy(golden.site)
    site.warehouse, site.events = str(folder), []
    site.ledger = Ledger(site.warehouse, site.prepared.project.name)
    as_of = START + 6 * FIVE
    used = site.prepared
    try:
        result = site.tick(as_of)
    except SqlrunError as error:
        return str(error)
    if not result.published:
        return "; ".join(node.message for node in result.nodes if node.message)
    assert site.prepared is used
    assert len(site.rows("stg_lines")) == golden.lines()
    assert differences(site, as_of) == {}
    return ""


# A message about damage beyond repair includes one of these.
ADVICE = ("--full-refresh", "from a backup", "Put it back")


def check(golden: Golden, folder: Path, moment: str, damage: Mapping[str, bytes | None]) -> None:
    why = outcome(golden, folder, {**golden.moments[moment][1], **damage})
    # Plans and the mark are synced one by one: they survive a power failure, and other damage may be rejected.
    single = any("/batches/" in name or name.endswith(("/id", "/format")) for name in damage)
    assert not why or (single and any(advice in why for advice in ADVICE)), why


def examples() -> Iterator[tuple[str, int]]:
    for moment, count in (("first", 4), ("one", 8), ("two", 3), ("published", 3)):
        yield from ((moment, number) for number in range(count))


@pytest.mark.long
@pytest.mark.skipif(ALL, reason="all are tried")
@pytest.mark.parametrize(("moment", "number"), list(examples()))
def test_one_damaged_file_is_repaired(golden: Golden, tmp_path: Path, moment: str, number: int) -> None:
    """A sample: each example damages another file, in another way."""
    names = fresh(golden.moments[moment])
    name = random.Random(f"{moment}").sample(names, len(names))[number % len(names)]
    left = cuts(name, golden.moments[moment][1][name])
    way = sorted(left)[number % len(left)]

    check(golden, tmp_path, moment, {name: left[way]})


@pytest.mark.skipif(not ALL, reason="a sample is tried")
@pytest.mark.parametrize("moment", ["first", "one", "two", "published"])
def test_every_damage_of_every_file_is_repaired(golden: Golden, tmp_path: Path, moment: str) -> None:
    faults = []
    for name in fresh(golden.moments[moment]):
        for way, left in cuts(name, golden.moments[moment][1][name]).items():
            try:
                check(golden, tmp_path / f"{len(list(tmp_path.iterdir()))}", moment, {name: left})
            except Exception as error:
                faults.append(f"{name} {way}: {type(error).__name__} {str(error)[:300]}")
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("way", ["empty", "line", "gone"])
@pytest.mark.parametrize("moment", ["first", "one", "two", "published"])
def test_damage_of_all_files_is_repaired(golden: Golden, tmp_path: Path, moment: str, way: str) -> None:
    """All except for files that are synced one by one."""
    before, after = golden.moments[moment]
    damage = {
        name: cuts(name, after[name]).get(way, before.get(name))
        for name in fresh(golden.moments[moment])
        if "/checkpoints/" not in name and not name.endswith("/format")
    }
    check(golden, tmp_path, moment, damage)


@pytest.mark.parametrize("number", range(200 if ALL else 4))
def test_damage_of_some_files_is_repaired(golden: Golden, tmp_path: Path, number: int) -> None:
    """Any files, each in its own way."""
    draw = random.Random(number)
    moment = draw.choice(["first", "one", "two", "published"])
    damage = {}
    for name in fresh(golden.moments[moment]):
        if "/checkpoints/" not in name and not name.endswith("/format") and draw.random() < 0.4:
            left = cuts(name, golden.moments[moment][1][name])
            damage[name] = left[draw.choice(sorted(left))]
    check(golden, tmp_path, moment, damage)
