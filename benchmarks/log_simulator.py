"""Logs and files of a warehouse's tables over any number of ticks, without writing any. Pure.

The rules are sqlrun's own: `file_layout` chooses the files that a merge writes again and their sizes, and
`retention.needed` the versions that retained ticks need. The constants are imported. What delta-rs does (which files an
OPTIMIZE merges, what a checkpoint lists, what a vacuum deletes) is written down here.
`tests/operations/test_log_simulator.py` compares all counts with those of a real run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone

from sqlrun.engines.delta import deletion_vectors, file_layout
from sqlrun.engines.delta.table import PROPERTIES
from sqlrun.operations import maintenance, retention
from sqlrun.publish import ledger
from sqlrun.publish.table_state import Published, TableState
from sqlrun.system_tables import receipts

INTERVAL = int(PROPERTIES["delta.checkpointInterval"])
REMEMBERED = timedelta(days=int(PROPERTIES["delta.deletedFileRetentionDuration"].split()[1]))
# DuckDB ends a file at this size.
LARGEST = 128 * 1024 * 1024
# The vacuum of a tick begins this long after the tick's time.
LATER = timedelta(seconds=30)

# Bytes of a checkpoint: without files, for each file, for each removal, as measured.
BASE_BYTES, ADD_BYTES, REMOVE_BYTES = 15_000, 150, 90
# A vector in a file: its folder and id, its offset, its size and its number of rows.
NAME_BYTES = 60
# Numbers of one container of a bitmap; up to 4,096 of them take two bytes each, more take a bit for each possible one.
CONTAINER, FEW = 65_536, 4_096


def vector_bytes(rows: int, dead: int) -> int:
    """Return the bytes of a deletion vector: a Roaring bitmap of evenly spread rows.

    >>> vector_bytes(1000, 0), vector_bytes(1000, 10), vector_bytes(2_000_000, 400_000)
    (0, 48, 254220)
    """
    if not dead:
        return 0
    containers = min(dead, -(-rows // CONTAINER))
    each = dead / containers
    return round(4 + 16 + containers * 8 + containers * (2 * each if each <= FEW else CONTAINER / 8))


def logged_bytes(rows: int, dead: int) -> int:
    """Return the bytes of a deletion vector in the log: in Base85, or the name of its file.

    >>> logged_bytes(1000, 0), logged_bytes(1000, 10), logged_bytes(2_000_000, 400_000)
    (0, 60, 60)
    """
    size = vector_bytes(rows, dead)
    return round(size * 1.25) if size <= deletion_vectors.INLINE else NAME_BYTES


@dataclass(frozen=True, slots=True)
class Rules:
    """A profile's `vacuum_every` and `keep_ticks`, the time of tick 0, and the distance of ticks."""

    every: int = 288
    keep: int = 2016
    start: datetime = datetime(2027, 1, 1, tzinfo=timezone.utc)
    step: timedelta = timedelta(minutes=5)


@dataclass(slots=True, eq=False)
class File:
    """A data file: its rows, and how many of them are marked as deleted. `removed`: when it left the table."""

    partition: str
    rows: int
    size: float
    dead: int = 0
    removed: datetime | None = None

    @property
    def live(self) -> int:
        """Return the rows that readers see."""
        return self.rows - self.dead


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint: its version, its time, the files and removals that it lists, and the bytes of their vectors."""

    version: int
    at: datetime
    live: int
    removals: int
    vectors: int = 0

    @property
    def size(self) -> int:
        """Return its bytes, by the slopes that were measured (docs/scale.md)."""
        return BASE_BYTES + ADD_BYTES * self.live + REMOVE_BYTES * self.removals + self.vectors


@dataclass(frozen=True, slots=True)
class Counts:
    """What a table has on the disk; `removals`: of its newest checkpoint; `tail`: commits since then."""

    version: int
    commits: int
    checkpoints: int
    tail: int
    live: int
    most_in_a_partition: int
    vectors: int
    removals: int
    stored: int
    changes: int


@dataclass(slots=True)
class Table:
    """A table's log and files. `own`: sqlrun writes its commits, otherwise delta-rs; their checkpoints differ.

    `merged`: merges change it.
    """

    name: str
    own: bool = True
    row_bytes: float = 40.0
    merged: bool = False
    remembered: timedelta = REMEMBERED
    version: int = 0
    first: int = 0  # the oldest commit in the log
    times: dict[int, datetime] = field(default_factory=dict)
    files: dict[str, list[File]] = field(default_factory=dict)
    gone: list[File] = field(default_factory=list)  # removed, and still on the disk
    removals: deque[tuple[datetime, int]] = field(default_factory=deque)  # time, and bytes of the vector
    removed_bytes: int = 0  # of the vectors of these removals
    checkpoints: list[Checkpoint] = field(default_factory=list)
    fed: dict[int, int] = field(default_factory=dict)  # change files, by version
    written: float = 0.0  # bytes of all data files that were ever written

    def new_file(self, partition: str, rows: int, each: int | None = None) -> list[File]:
        """Add the files of some rows, `each` in one, or as many as its size allows; return them."""
        size = rows * self.row_bytes
        parts = -(-rows // each) if each else max(1, -(-int(size) // LARGEST))
        found = [File(partition, rows // parts + (n < rows % parts), size / parts) for n in range(parts)]
        self.files.setdefault(partition, []).extend(found)
        self.written += size
        return found

    def remove(self, file: File, at: datetime) -> None:
        """Take a file out of the table; the vacuum deletes it later."""
        self.files[file.partition].remove(file)
        file.removed = at
        self.gone.append(file)
        self._remember(file, at)

    def _remember(self, file: File, at: datetime) -> None:
        """Note a removal, which names the vector that the file had: a marked file is removed, and added with another."""
        size = logged_bytes(file.rows, file.dead)
        self.removals.append((at, size))
        self.removed_bytes += size

    def commit(self, at: datetime, changes: int = 0, *, own: bool = False) -> None:
        """End a commit: give it a number, and write a checkpoint where one is due."""
        self.version += 1
        self.times[self.version] = at
        if changes:
            self.fed[self.version] = changes
        if (self.version if own else self.version + 1) % INTERVAL == 0:
            while self.removals and self.removals[0][0] <= at - self.remembered:
                self.removed_bytes -= self.removals.popleft()[1]
            live = [file for files in self.files.values() for file in files]
            vectors = self.removed_bytes + sum(logged_bytes(f.rows, f.dead) for f in live if f.dead)
            self.checkpoints.append(Checkpoint(self.version, at, len(live), len(self.removals), vectors))

    def append(self, at: datetime, rows: int, partition: str = "", *, own: bool = True) -> None:
        """Append rows in one file; `own`: in a commit of sqlrun's, if it writes the table's commits."""
        self.new_file(partition, rows)
        self.commit(at, own=self.own and own)

    def merge(self, at: datetime, hits: Mapping[str, Mapping[int, int]], new: Mapping[str, int]) -> dict[int, File]:
        """Merge rows: `hits` are changed rows by partition and file (its place), `new` the rows to write.

        Return, by the identity of each file that was written again, the file that has its rows now.
        """
        self.merged = True
        moved: dict[int, File] = {}
        leaving = fed = 0
        for partition in {**hits, **new}:
            there = list(self.files.get(partition, ()))
            hit = hits.get(partition, {})
            standings = [file_layout.Standing(str(n), f.rows, f.dead, hit.get(n, 0)) for n, f in enumerate(there)]
            again = {int(n) for n in file_layout.rewritten(standings, new.get(partition, 0))}
            stay = sum(there[n].live - hit.get(n, 0) for n in again)
            for place in hit.keys() - again:
                self._remember(there[place], at)
                there[place].dead += hit[place]
            for place in again:
                self.remove(there[place], at)
            count = new.get(partition, 0) + stay
            live = new.get(partition, 0) + sum(file.live for file in standings)
            made = self.new_file(partition, count, file_layout.rows_of_each(count, live)) if count else []
            moved |= {id(there[place]): made[0] for place in again if made}
            leaving += len(again) + len(hit.keys() - again)
            fed += bool(hit or new.get(partition, 0))
        self.commit(at, fed if leaving else 0, own=self.own)
        return moved

    def compact(self, at: datetime) -> dict[int, File]:
        """Merge each partition's small files, as delta-rs' OPTIMIZE does; return where their rows are now."""
        moved: dict[int, File] = {}
        target = file_layout.COMPACTED
        smaller = {p: [f for f in self.files[p] if f.size < target] for p in sorted(self.files, reverse=True)}
        live = {partition: [file.live for file in files] for partition, files in smaller.items()}
        for partition in file_layout.compacted(live, set([*smaller][:1])) if self.merged else smaller:
            small, size = smaller[partition], 0.0
            bins: list[list[File]] = [[]]
            for file in sorted(small, key=lambda file: file.size):
                if bins[-1] and size + file.size > target:
                    bins.append([])
                    size = 0.0
                bins[-1].append(file)
                size += file.size
            for group in (group for group in bins if len(group) > 1):
                for file in group:
                    self.remove(file, at)
                (made,) = self.new_file(partition, sum(file.live for file in group))[:1]
                moved |= {id(file): made for file in group}
        if moved:
            self.commit(at)
        return moved

    def delete(self, at: datetime, rows: Mapping[str, Mapping[int, int]]) -> None:
        """Delete rows of some files, which delta-rs writes again."""
        if not rows:
            return
        for partition, hit in rows.items():
            there = list(self.files[partition])
            for place, count in hit.items():
                self.remove(there[place], at)
                if there[place].live > count:
                    self.new_file(partition, there[place].live - count)
        self.commit(at, sum(map(len, rows.values())))

    def vacuum(self, now: datetime, age: timedelta, at: datetime) -> None:
        """Delete files that left the table longer ago than `age`, in two commits if there are any."""
        limit = now - timedelta(hours=int(age.total_seconds() // 3600) + 1)
        left = [file for file in self.gone if file.removed is not None and file.removed >= limit]
        if len(left) < len(self.gone):
            self.gone = left
            self.commit(at)
            self.commit(at)

    def trim(self, oldest: int, before: datetime) -> None:
        """Delete log entries before the newest checkpoint that `oldest` and slow readers can begin with."""
        usable = [one.version for one in self.checkpoints if one.version <= oldest and one.at < before]
        if usable:
            self.first = max(usable)
            self.checkpoints = [one for one in self.checkpoints if one.version >= self.first]
            self.times = {version: at for version, at in self.times.items() if version >= self.first}

    def forget_changes(self, oldest: int) -> None:
        """Delete change files of commits up to `oldest`."""
        self.fed = {version: count for version, count in self.fed.items() if version > oldest}

    def counts(self) -> Counts:
        """Return what is on the disk."""
        live = [file for files in self.files.values() for file in files]
        last = self.checkpoints[-1] if self.checkpoints else None
        return Counts(
            version=self.version,
            commits=self.version - self.first + 1,
            checkpoints=len(self.checkpoints),
            tail=self.version - (last.version if last else -1),
            live=len(live),
            most_in_a_partition=max(map(len, self.files.values()), default=0),
            vectors=sum(1 for file in live if file.dead),
            removals=last.removals if last else 0,
            stored=len(live) + len(self.gone),
            changes=sum(self.fed.values()),
        )

    @property
    def bytes_stored(self) -> float:
        """Return the bytes of data files on the disk."""
        return sum(file.size for files in self.files.values() for file in files) + sum(f.size for f in self.gone)


class Keyed:
    """A table whose rows are known by key: each change says exactly which files it hits."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._homes: dict[str, dict[str, File]] = {}

    def merge(self, at: datetime, changed: Mapping[str, Iterable[str]]) -> None:
        """Insert or update rows by key, per partition."""
        hits: dict[str, dict[int, int]] = {}
        keys = {partition: set(found) for partition, found in changed.items()}
        for partition, found in keys.items():
            places = {id(file): n for n, file in enumerate(self.table.files.get(partition, ()))}
            homes = self._homes.setdefault(partition, {})
            for key in found & homes.keys():
                place = places[id(homes[key])]
                hits.setdefault(partition, {})[place] = hits.get(partition, {}).get(place, 0) + 1
        moved = self.table.merge(at, hits, {partition: len(found) for partition, found in keys.items()})
        for partition, found in keys.items():
            self._move(partition, moved)
            self._homes[partition] |= dict.fromkeys(found, self.table.files[partition][-1])

    def compact(self, at: datetime) -> None:
        """Compact the table."""
        moved = self.table.compact(at)
        for partition in self._homes:
            self._move(partition, moved)

    def _move(self, partition: str, moved: Mapping[int, File]) -> None:
        homes = self._homes[partition]
        if any(id(file) in moved for file in homes.values()):
            self._homes[partition] = {key: moved.get(id(file), file) for key, file in homes.items()}


@dataclass(slots=True)
class Log:
    """A system table, to which each tick appends; each of its files has the ticks of its rows."""

    table: Table
    compacted: int
    forgets: bool = True
    _ticks: dict[int, list[int]] = field(default_factory=dict)

    def append(self, at: datetime, tick: int, partition: str = "", *, own: bool = True) -> None:
        """Append a tick's rows."""
        self.table.append(at, 1, partition, own=own)
        self._ticks[id(self.table.files[partition][-1])] = [tick]

    def compact(self, at: datetime) -> None:
        """Compact its files."""
        before = {id(file): file for files in self.table.files.values() for file in files}
        moved = self.table.compact(at)
        for old in before.keys() & moved.keys():
            self._ticks.setdefault(id(moved[old]), []).extend(self._ticks.pop(old))

    def forget(self, at: datetime, oldest: int) -> None:
        """Delete the rows of ticks before `oldest`."""
        rows: dict[str, dict[int, int]] = {}
        ticks: dict[str, list[list[int]]] = {}
        for partition, files in self.table.files.items():
            for place, file in enumerate(files):
                count = sum(tick < oldest for tick in self._ticks[id(file)])
                if count:
                    rows.setdefault(partition, {})[place] = count
                    left = [tick for tick in self._ticks.pop(id(file)) if tick >= oldest]
                    ticks.setdefault(partition, []).extend([left] if left else [])
        self.table.delete(at, rows)
        for partition, lists in ticks.items():
            made = self.table.files[partition][len(self.table.files[partition]) - len(lists) :]
            self._ticks |= {id(file): left for file, left in zip(made, lists, strict=True)}

    def rows(self) -> int:
        """Return its number of rows."""
        return sum(map(len, self._ticks.values()))


class Warehouse:
    """Tables, the ledger and the other system tables, tick after tick.

    `inputs`: the tables that each table reads; `row_bytes`: bytes of a row, by table. A subclass changes the tables in
    `change`.
    """

    def __init__(self, rules: Rules, inputs: Mapping[str, tuple[str, ...]], row_bytes: Mapping[str, float]) -> None:
        self.rules, self.inputs = rules, inputs
        self.tables = {name: Table(name, row_bytes=row_bytes.get(name, 40.0)) for name in inputs}
        self.ledger = Log(Table("_ledger", row_bytes=4_000.0), ledger.COMPACT_EVERY)
        self.logs = {
            "_receipts": Log(Table("_receipts", own=False), receipts.COMPACT_EVERY),
            "_intake": Log(Table("_intake"), receipts.COMPACT_EVERY),
            # Comparisons need weeks of measures, which a year has and a short run doesn't.
            "_measures": Log(Table("_measures", own=False), receipts.COMPACT_EVERY, forgets=False),
        }
        self.count = self.last = self.vacuumed = 0
        self.retained: deque[Published] = deque(maxlen=rules.keep)

    def tick(self) -> None:
        """Run a tick, and the vacuum if it is due."""
        self.count += 1
        self.last += 1
        at = self.rules.start + self.count * self.rules.step
        self._record(at)
        self.change(at)
        states = {name: self._state(name) for name in self.tables}
        self._publish(at, states)
        for name, log in self.logs.items():
            hour = (at - self.rules.step / 2 if self.count > 1 else at).hour
            log.append(at, self.last, str(hour) if name == "_measures" else "")
            if self.last % log.compacted == 0:
                log.compact(at)
        if self.last - self.vacuumed >= self.rules.every:
            self._vacuum(at)

    def change(self, at: datetime) -> None:
        """Change the tables as a tick does."""
        raise NotImplementedError

    def compact(self, name: str, at: datetime) -> None:
        """Compact a table."""
        self.tables[name].compact(at)

    def _state(self, name: str) -> TableState:
        inputs = {one: (one, self.tables[one].version) for one in self.inputs[name]}
        return TableState(name, self.tables[name].version, None, inputs)

    def _record(self, at: datetime, *, own: bool = True) -> None:
        self.ledger.append(at, self.last, own=own)

    def _publish(self, at: datetime, states: dict[str, TableState], *, own: bool = True) -> None:
        self._record(at, own=own)
        if self.last % self.ledger.compacted == 0:
            self.ledger.compact(at)
        self.retained.appendleft(Published(self.last, at, states))

    def _vacuum(self, at: datetime) -> None:
        """Do what `maintenance.vacuum_held` does."""
        now, newest = at + LATER, self.retained[0]
        needed = retention.needed(self.retained)
        states = dict(newest.tables)
        for name, table in self.tables.items():
            self.compact(name, now)
            oldest = min(needed[name])
            age = max(now - table.times[oldest], maintenance.READERS)
            table.vacuum(now, age, now)
            states[name] = TableState(name, table.version, None, newest.tables[name].inputs)
            table.forget_changes(oldest)
            table.trim(oldest, now - maintenance.READERS)
        for log in (self.ledger, *self.logs.values()):
            if log.forgets:
                log.forget(now, self.retained[-1].tick)
            log.compact(now)
            log.table.vacuum(now, maintenance.READERS, now)
            log.table.forget_changes(log.table.version)
            log.table.trim(log.table.version, now - maintenance.READERS)
        if any(states[name].version != newest.tables[name].version for name in states):
            self.last += 1
            # delta-rs writes the ledger's rows of a vacuum.
            self._record(now, own=False)
            self._publish(now, states, own=False)
        self.vacuumed = self.last

    def counts(self) -> dict[str, Counts]:
        """Return the counts of all tables by name."""
        logs = {name: log.table for name, log in {"_ledger": self.ledger, **self.logs}.items()}
        return {name: table.counts() for name, table in sorted({**self.tables, **logs}.items())}
