"""One contender on one history: load it, run ticks, compare with the oracle. Shell: processes, folders."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

from benchmarks import environments, hours, mart_readers, tables, truth
from benchmarks.contenders import BY_NAME, RIVALS, ROOT, Contender, Place
from benchmarks.figures import Figures
from benchmarks.ours import make_project
from benchmarks.processes import Resident, Spent, command, less
from benchmarks.worker import copy, portions
from benchmarks.world import World, arrive

LEFT_ALONE = ("requirements.txt", "__init__.py", "__main__.py", "__pycache__")


@dataclass(frozen=True, slots=True)
class Asked:
    """Options of the command line; `warm` ticks come between the cold one and the `ticks` measured ones."""

    root: Path
    ticks: int
    warm: int
    memory: str
    limit: float
    keep: bool = False
    settings: tuple[str, ...] = ()  # of sqlrun's DuckDB, `key: value`
    discard: bool = False  # files of the history, after they landed
    own: bool = False  # rivals run in the suite's own environment, which has the packages of some


class Player:
    """A contender in its folder, ticked in either way."""

    def __init__(self, contender: Contender, place: Place, asked: Asked) -> None:
        self._contender, self._place, self._asked = contender, place, asked
        self._resident: Resident | None = None
        self.engines: dict[str, str] = {}

    def prepare(self) -> None:
        """Create the missing parts of the contender's folder."""
        folder, name = self._place.folder, self._contender.name
        (folder / "data" / "orders").mkdir(parents=True, exist_ok=True)
        if name.startswith("sqlrun"):
            make_project(folder)
            for engine in ("auto", "duckdb", "spark"):
                (folder / "profiles" / f"bench_{engine}.yml").write_text(profile(engine, self._asked))
            return
        shutil.copytree(ROOT / "seeds", folder / "seeds", dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.yml"))
        files = RIVALS / self._contender.environment
        shutil.copytree(files, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(*LEFT_ALONE))
        for file in folder.glob("*.yml"):
            file.write_text(file.read_text().replace("{folder}", str(folder)))

    def tick(self, as_of: datetime) -> Spent:
        """Run a tick; the first one starts a resident process."""
        if not self._contender.resident:
            return self._commands(as_of)
        started, before = time.perf_counter(), Spent()
        if self._resident is None:
            argv = [str(self._place.python), "-m", *self._contender.resident]
            self._resident = Resident(argv, self._place.folder, self._variables(), self._asked.limit, self._log)
        else:
            before = self._resident.so_far()
        started = time.perf_counter() if before.cpu else started
        self.engines = self._resident.ask(do="tick", as_of=as_of.isoformat())["engines"]
        seconds = time.perf_counter() - started
        return less(self._resident.so_far(), before, seconds)

    def _commands(self, as_of: datetime) -> Spent:
        assert self._contender.commands is not None
        whole = Spent()
        for argv in self._contender.commands(self._place, as_of):
            one = command(argv, self._place.folder, self._variables(), self._asked.limit, self._log)
            whole.seconds, whole.cpu = whole.seconds + one.seconds, whole.cpu + one.cpu
            whole.read, whole.written = whole.read + one.read, whole.written + one.written
            whole.memory = max(whole.memory, one.memory)
        return whole

    @property
    def _log(self) -> Path:
        return self._place.folder.parent / "said.log"

    def _variables(self) -> dict[str, str]:
        paths = {"PYTHONPATH": str(ROOT)} if self._contender.resident else {}
        return {"BENCH_MEMORY": self._asked.memory, **paths, **self._contender.variables(self._place)}

    def mart(self) -> list[dict[str, Any]]:
        """Return the mart's rows."""
        if self._contender.rows is not None:
            return self._contender.rows(self._place.folder)
        assert self._resident is not None
        rows: list[dict[str, Any]] = self._resident.ask(do="mart")["rows"]
        return [{**row, "total_sales": Decimal(row["total_sales"])} for row in rows]

    def close(self) -> None:
        """End a resident process."""
        if self._resident is not None:
            self._resident.close()
            self._resident = None


def profile(engine: str, asked: Asked) -> str:
    """Return a sqlrun profile; all have one warehouse, so that a command continues where a process was."""
    settings = [] if engine == "duckdb" else [f"spark.driver.memory: {asked.memory}"]
    settings += [] if engine == "spark" else list(asked.settings)
    text = f"engine: {engine}\nwarehouse: warehouse\nthreads: 2\n"
    return text + ("settings:\n" + "".join(f"  {line}\n" for line in settings) if settings else "")


def carry_out(contender: Contender, world: World, asked: Asked) -> Figures:
    """Run a contender and return its figures, with its error if it failed."""
    found = Figures(
        world.name,
        world.orders,
        world.new,
        contender.name,
        contender.title,
        contender.way,
        f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M}",
    )
    folder = asked.root / world.name / contender.name
    shutil.rmtree(folder / "work", ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "said.log").write_text("")
    player = None
    try:
        python = python_of(contender, asked)
        found.versions = environments.versions(python, contender.packages)
        place = Place(python, folder / "work", asked.memory)
        found.load = _load(contender, place, world, asked)
        player = Player(contender, place, asked)
        player.prepare()
        _measure(player, contender, place, world, asked, found)
    except Exception as error:  # of any kind: the others continue, and this one is listed
        found.error = str(error) or repr(error)
    finally:
        if player is not None:
            player.close()
        if not asked.keep:
            shutil.rmtree(folder / "work", ignore_errors=True)
    return found


def python_of(contender: Contender, asked: Asked) -> Path:
    """Return the Python of a contender's environment, which is created if it is missing."""
    if not contender.environment or asked.own:
        return Path(environments.OWN)
    required = environments.listed(RIVALS / contender.environment / "requirements.txt")
    folder = asked.root / "environments" / contender.environment
    if not environments.is_made(folder, required):
        tables.say(f"installing {', '.join(required)}")
    return environments.installed(folder, required)


def _measure(player: Player, contender: Contender, place: Place, world: World, asked: Asked, found: Figures) -> None:
    # A command starts cold each time: it needs no warm-up ticks.
    warm = asked.warm if contender.resident else 0
    ticks = world.ticks[: 1 + warm + asked.ticks]
    for number, tick in enumerate(ticks):
        for file in tick.files:
            arrive(file, place.folder / "data" / "orders")
        spent = player.tick(tick.as_of)
        found.engines |= player.engines
        if number == 0:
            found.cold = spent
        elif number > warm:
            found.ticks.append(spent)
    # In a world of one tick, a backfill, that tick is measured.
    if len(world.ticks) == 1:
        found.ticks = [spent]
    mart = truth.canonical(player.mart())
    right = oracle(
        [*world.history, *(file for tick in ticks for file in tick.files)], ticks[-1].as_of, asked.root / world.name
    )
    found.rows, found.wrong = len(right), truth.wrong(mart, right)
    if len(world.ticks) == 1:
        expected = hours.right([*world.history, *world.ticks[0].files], asked.root / world.name)
        found.rows += len(expected)
        found.wrong += hours.wrong(mart_readers.of_sqlrun(place.folder, "fct_restaurant_hours"), expected)


def _load(contender: Contender, place: Place, world: World, asked: Asked) -> float:
    """Bring a contender to the history's end, or copy that state from an earlier run; return the seconds."""
    first = BY_NAME[contender.loads_as or contender.name]
    kept = asked.root / world.name / first.name / "loaded"
    started = time.perf_counter()
    if not (kept / "loaded").is_file():
        if (asked.root / world.name / "discarded").exists():
            raise RuntimeError(f"the history's files were discarded: delete {asked.root / world.name}")
        player = Player(first, place, asked)
        player.prepare()
        try:
            slices = 1 if first.at_once else max(1, -(-world.orders // 2_000_000))
            for files, as_of in portions(world, slices):
                for file in files:
                    arrive(file, place.folder / "data" / "orders")
                spent = player.tick(as_of)
                if asked.discard:
                    _discard(files, world, place.folder / "data" / "orders", asked.root / world.name)
                tables.say(f"loaded {len(files)} files in {spent.seconds:.0f} s, {spent.cpu:.0f} processor s")
        finally:
            player.close()
        if not _is_wanted_again(contender, asked):
            return time.perf_counter() - started
        (place.folder / "loaded").touch()
        shutil.rmtree(kept, ignore_errors=True)
        copy(place.folder, kept)
        return time.perf_counter() - started
    copy(kept, place.folder)
    return time.perf_counter() - started


def _discard(files: list[str], world: World, orders: Path, folder: Path) -> None:
    """Delete landed files which the oracle doesn't read; only this contender can tick on that history again."""
    (folder / "discarded").touch()
    for file in files:
        if not truth.is_needed(file, world.as_of):
            Path(file).unlink()
            (orders / Path(file).name).unlink()


def _is_wanted_again(contender: Contender, asked: Asked) -> bool:
    return asked.keep or contender.name.startswith("sqlrun")


def oracle(files: Iterable[str], as_of: datetime, folder: Path) -> truth.Mart:
    """Return the right mart, computed once and cached beside the order files."""
    note = folder / f"right-{as_of:%Y%m%dT%H%M}.json"
    if not note.is_file():
        found = truth.truth(files, as_of)
        note.write_text(json.dumps([[*key, *row] for key, row in found.items()]))
    rows = json.loads(note.read_text())
    return {(h, r): (n, sales, tuple((a, b, c) for a, b, c in top)) for h, r, n, sales, top in rows}
