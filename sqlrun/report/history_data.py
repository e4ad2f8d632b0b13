"""History of ticks for charts: checks, costs, measures, quarantine. Shell: Delta files, DuckDB.

DuckDB aggregates thousands of ticks to the columns of a grid, so memory stays small.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import isfinite
from typing import Any

from sqlrun.engine_api import Relation
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.incremental.landing.query import LANDED_AT, REASON
from sqlrun.outcome import BLOCKING, RANKED, Level, Outcome, listed, read
from sqlrun.publish.ledger import Entry, Ledger
from sqlrun.publish.reader import QUARANTINE, find
from sqlrun.publish.table_state import Published
from sqlrun.report.measure_labels import named, order
from sqlrun.report.trends import CheckPast, Grid, Line, Moment, filled, grid, why
from sqlrun.system_tables import check_results, measures, receipts
from sqlrun.system_tables.receipts import LONGEST, MOST_ROWS

# Maximum number of ticks: a week of five-minute ticks. Maximum number of checks drawn.
TICKS = 2016
CHECKS = 500
REASONS = 20


@dataclass(frozen=True, slots=True)
class Past:
    """Contents of a history page. `checks_left` counts checks not drawn; `quarantined`: lines by reason."""

    grid: Grid
    checks: tuple[CheckPast, ...]
    checks_left: int
    lines: tuple[Line, ...]
    costs: tuple[Line, ...]
    quarantined: tuple[Line, ...]


class Books:
    """The system tables of an environment, opened once for several queries."""

    def __init__(self, ledger: Ledger, names: Sequence[str] = ()) -> None:
        self._ledger, self._names = ledger, tuple(names)
        self._engine = DuckDBEngine()

    def __enter__(self) -> Books:
        """Return itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close DuckDB."""
        self._engine.close()

    def read(self) -> Past:
        """Read everything. Raises: EngineError if a table can't be read."""
        entries = self._ledger.entries()[:TICKS][::-1]
        drawn = grid(list(self._moments(entries)), self._count_checks(entries))
        checks, left = self._checks(drawn)
        return Past(drawn, checks, left, self._lines(drawn), self._costs(drawn), self._quarantined(entries, drawn))

    def _book(self, path: str) -> Relation | None:
        head = delta_table.head(path)
        if not head:
            return None
        return Relation("book", path, delta_table.columns_at(path, head), "new", version=head)

    def _rows(self, book: Relation | None, sql: str) -> list[dict[str, Any]]:
        if book is None:
            return []
        found: list[dict[str, Any]] = self._engine.query(sql, (book,)).to_pylist()
        return found

    @property
    def _check_book(self) -> Relation | None:
        return self._book(check_results.path_of(self._ledger.warehouse, self._ledger.env))

    def _chosen(self, column: str) -> str:
        """Return the SQL condition for the selected models."""
        names = ", ".join("'" + name.replace("'", "''") + "'" for name in self._names)
        return f"{column} in ({names})" if names else "true"

    def _count_checks(self, entries: Sequence[Entry]) -> int:
        since = f"tick >= {entries[0].tick}" if entries else "false"
        sql = f"select count(distinct check_id) as n from book where {since} and {self._chosen('model')}"
        rows = self._rows(self._check_book, sql)
        return int(rows[0]["n"]) if rows else 0

    def _moments(self, entries: Sequence[Entry]) -> Iterator[Moment]:
        """Yield a moment for each tick: published or not, and why not."""
        bad = f"status <> {Outcome.PASS.sql}"
        sql = f"select tick, model, status, count(*) as n from book where {bad} group by all order by model"
        failed: dict[int, list[tuple[str, Outcome]]] = {}
        for row in self._rows(self._check_book, sql):
            failed.setdefault(row["tick"], []).extend([(row["model"], read(row["status"]))] * row["n"])
        book = self._book(receipts.path_of(self._ledger.warehouse, self._ledger.env))
        ended = {row["tick"] for row in self._rows(book, "select distinct tick from book where not published")}
        for entry in entries:
            mine, published = failed.get(entry.tick, []), entry.published_at is not None
            reason = "" if published else why(mine, entry.tick in ended)
            warned = sum(1 for _, status in mine if status.level is Level.WARNING)
            yield Moment(entry.tick, entry.as_of, published, reason, warned)

    def _placed(self, drawn: Grid) -> str:
        """Return the grid as a SQL table of (tick, place)."""
        placed = drawn.placed()
        ticks, places = list(placed), list(placed.values())
        return f"(select unnest({ticks}::bigint[]) as tick, unnest({places}::bigint[]) as place) as g"

    def _checks(self, drawn: Grid) -> tuple[tuple[CheckPast, ...], int]:
        """Return checks and how many were left out: failing ones first, then the most recent failures."""
        if not drawn.moments:
            return (), 0
        counts = ", ".join(f"count(distinct tick) filter (status = {one.sql}) as ticks_{one}" for one in RANKED)
        sql = f"""
            with mine as (
                select b.*, unexpected / nullif(evaluated, 0) as part, status <> {Outcome.PASS.sql} as bad
                from book as b where tick >= {drawn.moments[0].tick} and {self._chosen("model")}
            ), one as (
                select check_id, max(model) as model, max(expectation) as expectation,
                    arg_max("columns", tick) as "columns", arg_max(severity, tick) as severity,
                    arg_max(status, tick) as last, max(tick) as last_tick, max(tick) filter (bad) as worst_tick,
                    arg_max(unexpected, tick) filter (bad) as unexpected,
                    arg_max(evaluated, tick) filter (bad) as evaluated,
                    {counts},
                    count(distinct tick) filter (bad) as bad_ticks
                from mine group by check_id
            )
            select *, count(*) over () as checks from one
            order by last in {listed(BLOCKING)} desc, last <> {Outcome.PASS.sql} desc, worst_tick desc nulls last,
                bad_ticks desc, model, expectation, check_id
            limit {CHECKS}
        """
        rows = self._rows(self._check_book, sql)
        cells = self._cells(drawn)
        found = []
        for row in rows:
            ranks, shares = filled(len(drawn.columns), cells.get(row["check_id"], ()))
            found.append(
                CheckPast(
                    check_id=row["check_id"],
                    model=row["model"],
                    expectation=row["expectation"],
                    columns=tuple(row["columns"] or ()),
                    severity=row["severity"],
                    ticks={one: row[f"ticks_{one}"] for one in RANKED},
                    last=read(row["last"]),
                    last_tick=row["last_tick"],
                    worst_tick=row["worst_tick"],
                    unexpected=row["unexpected"] or 0,
                    evaluated=row["evaluated"] or 0,
                    ranks=tuple(ranks),
                    shares=tuple(shares),
                )
            )
        return tuple(found), (rows[0]["checks"] - len(rows) if rows else 0)

    def _cells(self, drawn: Grid) -> dict[str, list[tuple[int, int, float | None]]]:
        """Return (column, worst rank, largest share of unexpected rows) of each check, by check id."""
        ranked = " ".join(f"when {one.sql} then {one.rank}" for one in RANKED)
        sql = f"""
            select check_id, place, max(case status {ranked} end) as rank,
                max(unexpected / nullif(evaluated, 0)) as part
            from book join {self._placed(drawn)} using (tick) where {self._chosen("model")} group by check_id, place
        """
        found: dict[str, list[tuple[int, int, float | None]]] = {}
        for row in self._rows(self._check_book, sql):
            found.setdefault(row["check_id"], []).append((row["place"], row["rank"], row["part"]))
        return found

    def _costs(self, drawn: Grid) -> tuple[Line, ...]:
        """Return each model's seconds and changed rows, hidden tables included, the slowest models first."""
        book = self._book(receipts.path_of(self._ledger.warehouse, self._ledger.env))
        if not drawn.moments:
            return ()
        sql = f"""
            with ticks as (
                select model, tick, coalesce(sum(seconds) filter (seconds between 0 and {LONGEST}), 0) as seconds,
                    coalesce(sum(rows_changed) filter ("table" = model and rows_changed between 0 and {MOST_ROWS}), 0)
                        as "rows"
                from book where {self._chosen("model")} group by model, tick
            )
            select model as subject, place, max(seconds) as seconds, max("rows")::double as "rows",
                sum(sum(seconds)) over (partition by model) as spent
            from ticks join {self._placed(drawn)} using (tick) group by model, place order by spent desc, subject, place
        """
        rows = self._rows(book, sql)
        count = len(drawn.columns)
        return tuple(
            line
            for subject, mine in _by(rows, "subject")
            for line in (
                Line(subject, "seconds", "seconds", _spread(count, mine, "seconds")),
                Line(subject, "rows changed", "rows", _spread(count, mine, "rows")),
            )
        )

    def _lines(self, drawn: Grid) -> tuple[Line, ...]:
        """Return the measures of sources and tables; a column shows its unusual tick, else its highest."""
        if not drawn.moments:
            return ()
        book = self._book(measures.path_of(self._ledger.warehouse, self._ledger.env))
        sql = f"""
            select subject, source, measure, place, value, low, high, coalesce(unusual, false) as unusual,
                coalesce(detail, '') as detail
            from book join {self._placed(drawn)} using (tick) where {self._chosen("subject")}
            qualify row_number() over (
                partition by subject, measure, place order by coalesce(unusual, false) desc, value desc nulls last, tick
            ) = 1
            order by bool_or(source <> '') over (partition by subject) desc nulls last, subject, measure, place
        """
        rows = self._rows(book, sql)
        count = len(drawn.columns)
        found = []
        for subject, mine in _by(rows, "subject"):
            for measure, points in sorted(_by(mine, "measure"), key=lambda item: order(item[0])):
                what, unit = named(measure)
                unusual = tuple((row["place"], row["detail"]) for row in points if row["unusual"])
                found.append(
                    Line(
                        subject, what, unit, _spread(count, points, "value"), _spread(count, points, "low"),
                        _spread(count, points, "high"), unusual,
                    )
                )  # fmt: skip
        return tuple(found)

    def _quarantined(self, entries: Sequence[Entry], drawn: Grid) -> tuple[Line, ...]:
        """Return the lines now in quarantine, by reason and by the tick in which they landed."""
        newest = self._ledger.read().published
        if newest is None or not drawn.moments:
            return ()
        # A line lands after the previous tick was pinned and before its own is.
        pinned = [(entry.pinned_at, entry.tick) for entry in entries if entry.pinned_at]
        placed, found = drawn.placed(), []
        for name in self._quarantines(newest):
            book = find(newest, self._ledger.warehouse, name + QUARANTINE)
            sql = f"""
                select coalesce({REASON}, '') as reason, {LANDED_AT} as at, count(*)::double as n
                from "{book.name}" group by all
            """
            counts: dict[str, dict[int, float]] = {}
            for row in self._engine.query(sql, (book,)).to_pylist():
                place = bisect_left(pinned, (row["at"], 0))
                if place < len(pinned) and row["at"] is not None:
                    mine = counts.setdefault(row["reason"], {})
                    column = placed[pinned[place][1]]
                    mine[column] = mine.get(column, 0) + row["n"]
            most = sorted(counts.items(), key=lambda item: (-sum(item[1].values()), item[0]))
            for reason, mine in most[:REASONS]:
                values = tuple(mine.get(column, 0.0) for column in range(len(drawn.columns)))
                found.append(Line(name, reason, "lines", values))
        return tuple(found)

    def _quarantines(self, newest: Published) -> list[str]:
        chosen = [name for name, state in newest.tables.items() if state.where]
        return [name for name in sorted(chosen) if not self._names or name in self._names]


def _by(rows: Iterable[dict[str, Any]], key: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield groups of adjacent rows with one key."""
    for value, mine in groupby(rows, key=lambda row: row[key]):
        yield str(value), list(mine)


def _spread(columns: int, rows: Iterable[dict[str, Any]], name: str) -> tuple[float | None, ...]:
    """Return one value of each row by column; None for NULL, NaN and infinity."""
    found: list[float | None] = [None] * columns
    for row in rows:
        value = row[name]
        found[row["place"]] = value if value is not None and isfinite(value) else None
    return tuple(found)
