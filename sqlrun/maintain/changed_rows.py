"""Rows that a tick changed in a table, read once from the files of its commits. Shell: the engine.

One statement returns the rows to check, the quarantined lines of a landing, and what the table's checksum gains:
opening the files and reading their columns is most of the cost of each.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlrun.engine_api import Relation
from sqlrun.engines.delta import table as delta_table
from sqlrun.incremental.compile import Compiled
from sqlrun.incremental.landing.query import HIDDEN, ORIGIN, PROVENANCE, QUARANTINED_ROWS, REASON, RESCUED
from sqlrun.maintain import checksums
from sqlrun.maintain.checksums import BITS, Checksum
from sqlrun.maintain.tick_context import TickContext
from sqlrun.runtime.arrow_rows import scalar
from sqlrun.transpile.writer import identifier

if TYPE_CHECKING:
    import pyarrow as pa

# Maximum number of changed rows that are read at once.
LARGE = 250_000
# Numbers of quarantined lines, by reason.
Reasons = tuple[tuple[str, int], ...]
# Columns that are read in addition to the table's own.
WEIGHT, SHOWN, NUMBER = "_weight", "_sqlrun.shown", "_sqlrun.number"
# Half of a number's bits: sums of halves don't overflow.
HALF = 32


@dataclass(frozen=True, slots=True)
class Change:
    """A model's change in a tick: its commits, and their effect on its own table.

    `rows` are the current public rows that were inserted or changed; None if there are too many to hold, `count` is
    their number. `reasons` counts quarantined lines by reason. `files` and `rescued` count the files of the lines and
    the lines with undeclared fields. `added` is what the table's checksum gains; None if it must be computed
    separately. `grew`: no row was deleted.
    """

    commits: tuple[int, ...] = ()
    rows: pa.Table | None = None
    count: int = 0
    reasons: Reasons = ()
    files: int = 0
    rescued: int = 0
    added: Checksum | None = None
    grew: bool = False

    @property
    def quarantined(self) -> int:
        """Return the number of quarantined lines."""
        return sum(count for _, count in self.reasons)

    @property
    def lines(self) -> int:
        """Return the number of a source's lines, quarantined ones included."""
        return self.count + self.quarantined


def feed(context: TickContext, model: Compiled, commits: tuple[int, ...], where: str) -> Relation:
    """Return the relation `feed`, bound to the changes of a model's own table."""
    table = context.plan.tables[model.name]
    return Relation("feed", table.spec.path, table.public, "changes", commits=commits, where=where)


def query(context: TickContext, model: Compiled) -> str:
    """Return a query of the inserted and changed rows of `feed`, with all columns for samples of whole rows."""
    return f"select {_names(context, model)} from feed where {WEIGHT} > 0"


def of_tick(context: TickContext, model: Compiled) -> Change:
    """Return what a tick changed in a model's own table."""
    before = context.plan.tables[model.name].state
    after = context.states[model.name].version
    commits = context.commits(model.name, before.version if before else 0, after)
    return read(context, model, commits) if commits else Change()


def of_seed(context: TickContext, name: str, commits: tuple[int, ...]) -> int:
    """Count the rows of a seed that came or left by these commits; one that was edited counts once."""
    table = context.plan.tables[name]
    columns = ", ".join(identifier(column.name, context.reader.dialect) for column in table.public)
    weights = f"select sum({WEIGHT}) as moved from feed group by {columns}"
    sql = f"select sum(greatest(moved, 0)) as came, sum(greatest(-moved, 0)) as gone from ({weights}) as weights"
    feed = Relation("feed", table.spec.path, table.public, "changes", commits=commits)
    (moved,) = context.reader.query(sql, (feed,)).to_pylist()
    return max(int(moved["came"] or 0), int(moved["gone"] or 0))


def read(context: TickContext, model: Compiled, commits: tuple[int, ...]) -> Change:
    """Return what commits changed: read at once, unless it is too large to hold."""
    if delta_table.rows_changed(context.plan.tables[model.name].spec.path, commits) <= LARGE:
        most = 2 * LARGE  # an updated row occurs twice
        before = checksums.continuable(context.plan.tables[model.name].state, context.reader.dialect)
        function = None if before is None else before.function
        found = context.reader.query(*_all(context, model, commits, most + 1, function))
        if found.num_rows <= most:
            return _split(found, [column.name for column in model.own.public], commits, function)
    return _one_by_one(context, model, commits)


def _names(context: TickContext, model: Compiled) -> str:
    return ", ".join(identifier(column.name, context.reader.dialect) for column in model.own.public)


def _all(
    context: TickContext, model: Compiled, commits: tuple[int, ...], most: int, function: str | None
) -> tuple[str, tuple[Relation, ...]]:
    """Return a query of everything about a change, hidden columns and deleted rows included.

    `function`: the hash function of rows' numbers; None leaves them out, if this tick can't continue the checksum.
    """
    table, dialect = context.plan.tables[model.name], context.reader.dialect
    items = [_names(context, model), WEIGHT]
    if table.where:
        items.append(f"({table.where}) as {identifier(SHOWN, dialect)}")
    if model.source is not None:
        items += [REASON, ORIGIN, RESCUED]
    if function is not None:
        number = checksums.number(table.spec.columns, function, dialect)
        items.append(f"cast({number} as bigint) as {identifier(NUMBER, dialect)}")
    changes = Relation("feed", table.spec.path, table.spec.columns, "changes", commits=commits)
    return f"select {', '.join(items)} from feed limit {most}", (changes,)


def _split(found: pa.Table, public: list[str], commits: tuple[int, ...], function: str | None) -> Change:
    """Split the rows of a change into the parts of a `Change`; `function`: that of their numbers."""
    import pyarrow.compute as pc

    came = pc.greater(found.column(WEIGHT), scalar(0))
    grew = bool(pc.all(came).as_py())
    if SHOWN in found.column_names:
        came = pc.and_(came, pc.fill_null(found.column(SHOWN), scalar(False)))
    rows = found.select(public)
    if not pc.all(came).as_py():
        rows = rows.filter(came)
    small = rows if rows.num_rows <= LARGE else None
    change = Change(
        commits, small, rows.num_rows, added=None if function is None else _added(found, function), grew=grew
    )
    if ORIGIN not in found.column_names:
        return change
    files, rescued = pc.count_distinct(found.column(ORIGIN)).as_py(), found.column(RESCUED)
    return replace(change, reasons=_quarantine_reasons(found), files=files, rescued=len(rescued) - rescued.null_count)


def _quarantine_reasons(found: pa.Table) -> Reasons:
    """Return the number of quarantined lines by reason; a replayed line has left its reason and may have another."""
    import pyarrow.compute as pc

    reasons, weights = found.column(REASON), found.column(WEIGHT)
    if reasons.null_count == len(reasons):
        return ()
    counts: Counter[str] = Counter()
    for weight in (1, -1):
        for each in pc.value_counts(reasons.filter(pc.equal(weights, scalar(weight)))).to_pylist():
            if each["values"] is not None:
                counts[str(each["values"])] += weight * int(each["counts"])
    return tuple(sorted((reason, count) for reason, count in counts.items() if count > 0))


def _added(found: pa.Table, function: str) -> Checksum:
    """Return the checksum of inserted rows minus that of deleted rows."""
    import pyarrow.compute as pc

    weights = found.column(WEIGHT)
    numbers = pc.multiply(weights, found.column(NUMBER))
    high = pc.sum(pc.shift_right(numbers, scalar(HALF))).as_py() or 0
    low = pc.sum(pc.bit_wise_and(numbers, scalar(2**HALF - 1))).as_py() or 0
    return Checksum(int(pc.sum(weights).as_py() or 0), (high * 2**HALF + low) % 2**BITS, function)


def _one_by_one(context: TickContext, model: Compiled, commits: tuple[int, ...]) -> Change:
    """Return a change read by several queries; rows are held only if there are few."""
    ask, public = context.reader.query, feed(context, model, commits, context.plan.tables[model.name].where)
    changed = ask(f"{query(context, model)} limit {LARGE + 1}", (public,))
    change = Change(commits, changed, changed.num_rows)
    if changed.num_rows > LARGE:
        (counted,) = ask(f"select count(*) as n from feed where {WEIGHT} > 0", (public,)).to_pylist()
        change = Change(commits, None, int(counted["n"]))
    if model.source is None:
        return change
    origin = replace(public, columns=PROVENANCE[:1], where=QUARANTINED_ROWS)
    sql = f"select {REASON} as reason, sum({WEIGHT}) as n from feed group by {REASON} having sum({WEIGHT}) > 0"
    reasons = tuple(sorted((str(row["reason"]), int(row["n"])) for row in ask(sql, (origin,)).to_pylist()))
    landed = replace(public, columns=tuple(column for column in HIDDEN if column.name in (ORIGIN, RESCUED)), where="")
    sql = f"select count(distinct {ORIGIN}) as files, count({RESCUED}) as rescued from feed"
    (counted,) = ask(sql, (landed,)).to_pylist()
    return replace(change, reasons=reasons, files=int(counted["files"]), rescued=int(counted["rescued"]))
