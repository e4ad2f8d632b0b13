"""Which engine maintains a table in a tick, by the seconds that each is predicted to take. Pure.

Another engine is never another result: both carry out the same change on the same files. A prediction is a fixed cost
and one for each row read, fitted to what past ticks took, and `USUAL` as long as those are few. Spark takes seconds to
start, and DuckDB works in the memory that its settings give it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from statistics import median
from typing import Literal, cast

Name = Literal["duckdb", "spark"]


@dataclass(frozen=True, slots=True)
class Cost:
    """What a statement takes on an engine: seconds whatever it reads, and seconds for each row that it reads.

    `reach`: up to so many rows; `beyond` is what each further one takes.
    """

    fixed: float
    per_row: float
    reach: float = math.inf
    beyond: float = 0.0

    def seconds(self, rows: int) -> float:
        """Predict a statement's seconds."""
        near = min(max(rows, 0), self.reach)
        return self.fixed + self.per_row * near + self.beyond * (max(rows, 0) - near)


@dataclass(frozen=True, slots=True)
class Past:
    """What a table took in a tick, as its receipt says: rows changed in its inputs, rows read, seconds."""

    engine: str
    table: str
    changed: float | None
    read: float | None
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Work:
    """What a table's statement is about to do: rows changed in its inputs, rows and bytes that it will read.

    `whole`: it reads its inputs whole, so that past changes say nothing of how many rows those are. Bytes are those
    of files, compressed.
    """

    table: str
    changed: int
    rows: int
    bytes: int = 0
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Chosen:
    """The engine, what each would take, and why where that is not the prediction: "" otherwise."""

    engine: Name
    duckdb: float
    spark: float
    why: str = ""


# On two cores, as benchmarked; what a machine's own receipts say counts more as soon as there are enough of them.
USUAL: Mapping[Name, Cost] = {"duckdb": Cost(0.05, 1.5e-6), "spark": Cost(1.5, 6e-6)}
COLD_START = 10.0
# Fewer receipts than this say nothing.
ENOUGH = 3
NEWEST = 50
# Receipts whose rows differ by less say nothing of what a row costs.
APART = 10_000
# A file's byte becomes so many in memory: columns are unpacked, and joins and sorts hold rows twice.
UNPACKED = 6.0
# What doesn't fit is put on the disk: it takes so many times as long, up to so many times the memory.
SPILLING, MOST_SPILLED = 2.0, 4.0
# Beyond anything that a tick took: such a receipt is no receipt.
LONGEST, MOST_ROWS = 7 * 86_400.0, 1e13
# Receipts say what a row costs in a change of up to so many times the rows of their largest: what small ticks say of it
# is mostly noise, which a large change would multiply.
REACH = 4.0
# A fitted cost of a row is taken seriously within this factor of the usual one.
WITHIN = 30.0


def choose(work: Work, past: Iterable[Past], memory: int | None, *, spark_is_up: bool) -> Chosen:
    """Take the engine that is predicted to be done first; Spark for what is many times DuckDB's memory.

    `memory`: bytes that DuckDB may use; None where that is not known. It spills what doesn't fit, which takes longer.

    >>> small = Work("fct", changed=20_000, rows=60_000)
    >>> choose(small, (), None, spark_is_up=True).engine
    'duckdb'
    >>> choose(Work("fct", 5_000_000, 30_000_000, bytes=1 << 30), (), 1 << 30, spark_is_up=True).why
    'about 6.0 GiB to work on, DuckDB may use 1.0 GiB'
    """
    known = _sound(past)
    duckdb = cost_of("duckdb", work.table, known).seconds(_rows("duckdb", work, known))
    spark = cost_of("spark", work.table, known).seconds(_rows("spark", work, known))
    spark += 0.0 if spark_is_up else COLD_START
    needed = work.bytes * UNPACKED
    if memory is not None and 0 < memory < needed:
        duckdb *= SPILLING
        if memory * MOST_SPILLED < needed:
            why = f"about {_gib(needed)} to work on, DuckDB may use {_gib(memory)}"
            return Chosen("spark", duckdb, spark, why)
    return Chosen("spark" if spark < duckdb else "duckdb", duckdb, spark)


def _gib(size: float) -> str:
    return f"{size / (1 << 30):,.1f} GiB"


def _sound(past: Iterable[Past]) -> tuple[Past, ...]:
    """Leave out receipts that can't be true: of an unknown engine, without numbers, negative, NaN, huge."""

    def is_sound(one: Past) -> bool:
        read, seconds = _is_within(one.read, MOST_ROWS), _is_within(one.seconds, LONGEST)
        changed = one.changed is None or one.changed == 0 or _is_within(one.changed, MOST_ROWS)
        return one.engine in USUAL and read and seconds and changed

    return tuple(one for one in past if is_sound(one))


def _is_within(value: object, most: float) -> bool:
    return isinstance(value, int | float) and 0 < value <= most  # NaN is not


def _rows(engine: Name, work: Work, past: tuple[Past, ...]) -> int:
    """Tell how many rows a change will read on an engine: a MERGE of Spark's reads its table twice.

    Small changes read whole files for a few rows; of one far larger than they were they say nothing.
    """
    if work.whole:
        return work.rows
    mine = [p for p in past if p.engine == engine and p.table == work.table and p.changed and p.read]
    if len(mine) < ENOUGH or work.changed > REACH * max(cast(float, p.changed) for p in mine):
        return work.rows
    return round(work.changed * median(cast(float, p.read) / cast(float, p.changed) for p in mine[-NEWEST:]))


def cost_of(engine: Name, table: str, past: Iterable[Past]) -> Cost:
    """Fit an engine's cost for a table: to the table's own receipts, else to all of the engine's, else the usual one.

    The cost of a row is the median of the slopes between two receipts each (Theil, Sen), so that a tick in which the
    machine was busy moves it little; the fixed cost is the median of what is left. Rows far beyond those of all
    receipts cost what is usual. Where only the other engine has receipts, and they are slow, so is this one's usual
    cost: the machine is slow, or busy. Newest last.

    >>> ticks = [Past("spark", "t", 10, rows, 2.0 + rows * 4e-6) for rows in (1_000, 100_000, 1_000_000)]
    >>> cost_of("spark", "t", ticks)
    Cost(fixed=2.0, per_row=4e-06, reach=4000000.0, beyond=6e-06)
    >>> cost_of("spark", "t", []) == USUAL["spark"]
    True
    """
    usual, past = USUAL[engine], tuple(past)
    points = [(cast(float, p.read), cast(float, p.seconds)) for p in _telling(engine, table, past)]
    if not points:
        slow = _slowness("spark" if engine == "duckdb" else "duckdb", table, past)
        return Cost(usual.fixed * slow, usual.per_row * slow)
    slopes = [(y2 - y1) / (x2 - x1) for (x1, y1), (x2, y2) in combinations(points, 2) if abs(x2 - x1) >= APART]
    slope = median(slopes) if len(slopes) >= ENOUGH else usual.per_row
    slope = min(max(slope, usual.per_row / WITHIN), usual.per_row * WITHIN)
    fixed = median(seconds - slope * rows for rows, seconds in points)
    return Cost(round(max(fixed, 0.0), 6), slope, REACH * max(rows for rows, _ in points), usual.per_row)


def _slowness(engine: Name, table: str, past: Iterable[Past]) -> float:
    """Tell how many times as long as usual an engine takes on this machine; 1 where it doesn't, or nothing says so.

    A table's own ticks are left out: that one is slow on an engine is what the other may do better.
    """
    mine = [p for p in past if p.engine == engine and p.table != table][-NEWEST:]
    if len(mine) < ENOUGH:
        return 1.0
    times = (cast(float, p.seconds) / USUAL[engine].seconds(round(cast(float, p.read))) for p in mine)
    return min(max(median(times), 1.0), WITHIN)


def _telling(engine: Name, table: str, past: Iterable[Past]) -> list[Past]:
    """Take the receipts that a prediction goes by: the table's own where they are enough, else all of the engine's."""
    all_of = [p for p in past if p.engine == engine]
    own = [p for p in all_of if p.table == table]
    found = own if len(own) >= ENOUGH else all_of
    return found[-NEWEST:] if len(found) >= ENOUGH else []


def basis(engine: Name, table: str, past: Iterable[Past]) -> str:
    """Say what the prediction for a table on an engine goes by.

    >>> basis("spark", "fct", [Past("spark", "stg", 10, 1_000, 2.0)] * 5)
    '5 ticks of all tables'
    """
    telling = _telling(engine, table, _sound(past))
    if not telling:
        return "what is usual on two cores"
    own = all(one.table == table for one in telling)
    return f"{len(telling)} ticks of {'its own' if own else 'all tables'}"


def told(name: str, chosen: Chosen) -> str:
    """Say in a line why Spark maintains a table in a tick; "" where DuckDB does, as it mostly does.

    >>> told("fct", Chosen("spark", 90.0, 41.5))
    'fct is maintained by Spark in this tick: about 42 s, DuckDB would take about 90 s'
    """
    if chosen.engine == "duckdb":
        return ""
    why = chosen.why or f"about {chosen.spark:.0f} s, DuckDB would take about {chosen.duckdb:.0f} s"
    return f"{name} is maintained by Spark in this tick: {why}"
