"""Operators' views: ticks, sources, models, checks, quarantine. Shell: the ledger, system tables, landing tables.

A view is cached until the ledger or a system table changes. Values that may be personal are masked.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Mapping
from datetime import datetime
from math import isfinite
from typing import Any

from sqlrun.check.samples import MASK
from sqlrun.engine_api import Relation
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.incremental.landing.query import LANDED_AT, ORIGIN, RAW, REASON
from sqlrun.outcome import BLOCKING, Outcome, listed
from sqlrun.project import Project
from sqlrun.publish.ledger import Ledger
from sqlrun.publish.reader import QUARANTINE, find
from sqlrun.serve import source_lines
from sqlrun.serve.dashboard import iso
from sqlrun.system_tables import check_results, intake, measures, receipts

TICKS = 50
CHECKS = 500
REASONS = 50
SAMPLES = 3
LONGEST = 200
Rows = list[dict[str, Any]]


class Operations:
    """The views of one environment. The project's `pii` tags mark personal columns."""

    def __init__(self, ledger: Ledger, project: Project) -> None:
        self._ledger = ledger
        columns = [c for model in project.models for c in model.columns]
        columns += [c for source in project.sources for c in source.columns]
        self._declared = frozenset(c.name for source in project.sources for c in source.columns)
        self._private = frozenset(c.name for c in columns if c.is_private)
        self._engine = DuckDBEngine({"threads": "1"})
        self._counted = source_lines.Counted(ledger.warehouse, ledger.env)
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[object, Rows]] = {}
        self.views: Mapping[str, Callable[[], Rows]] = {
            "ticks": self._ticks,
            "sources": self._sources,
            "lines": self._lines,
            "losses": self._losses,
            "models": self._models,
            "checks": self._checks,
            "quarantine": self._quarantine,
        }

    async def read(self, view: str) -> Rows:
        """Return the rows of a view; read them in a thread, without blocking the loop.

        Raises: SqlrunError if the system tables can't be read.
        """
        return await asyncio.to_thread(self._read, view)

    async def counted(self) -> Mapping[tuple[str, str], int]:
        """Return the lines by source and state that were recorded since the last call.

        Raises: SqlrunError if the accounting can't be read.
        """
        return await asyncio.to_thread(lambda: self._counted.news(self._ledger.read().last_tick))

    def _read(self, view: str) -> Rows:
        with self._lock:
            state = tuple(delta_table.head(path) for path in (self._ledger.path, *self._books().values()))
            known = self._kept.get(view)
            if known is None or known[0] != state:
                known = self._kept[view] = (state, [_plain(row) for row in self.views[view]()])
            return known[1]

    def _books(self) -> dict[str, str]:
        modules = {"checks": check_results, "measures": measures, "receipts": receipts, "intake": intake}
        return {name: one.path_of(self._ledger.warehouse, self._ledger.env) for name, one in modules.items()}

    def _rows(self, book: str, sql: str) -> Rows:
        path = self._books()[book]
        head = delta_table.head(path)
        if not head:
            return []
        held = Relation("book", path, delta_table.columns_at(path, head), "new", version=head)
        found: Rows = self._engine.query(sql, (held,)).to_pylist()
        return found

    def _ticks(self) -> Rows:
        """Return the newest ticks: the time from pin to publish, the models' time, and the changed rows."""
        entries = self._ledger.entries()[:TICKS]
        since = entries[-1].tick if entries else 0
        sql = f"""
            select tick, max(engine) as engine, sum(seconds) as seconds, count(distinct model) as models,
                coalesce(sum(rows_changed) filter ("table" = model), 0)::bigint as rows_changed,
                sum(checks_failed)::bigint as checks_failed, sum(checks_warned)::bigint as checks_warned
            from book where tick >= {since} group by tick"""
        by_tick = {row.pop("tick"): row for row in self._rows("receipts", sql)}
        found = []
        for entry in entries:
            pinned, published = entry.pinned_at, entry.published_at
            took = (published - pinned).total_seconds() if published and pinned else None
            whole = {"tick": entry.tick, "as_of": entry.as_of, "published_at": published, "took_seconds": took}
            found.append(whole | by_tick.get(entry.tick, {}))
        return found

    def _sources(self) -> Rows:
        """Return the latest measures of each source; its watermark is the time of its newest row."""
        sql = """
            with latest as (
                select subject, source, measure, arg_max(value, tick) as value, arg_max(as_of, tick) as as_of,
                    arg_max(unusual, tick) as unusual, max(tick) as tick
                from book where source <> '' group by all
            ), one as (
                select source, subject as model, max(tick) as tick, max(as_of) as as_of, bool_or(unusual) as unusual,
                    max(value) filter (measure = 'rows') as "rows",
                    max(value) filter (measure = 'quarantined') as quarantined,
                    max(value) filter (measure = 'lateness_p95_seconds') as lateness_seconds,
                    max(value) filter (measure = 'freshness_seconds') as freshness_seconds,
                    max(as_of) filter (measure = 'freshness_seconds') as fresh_at
                from latest group by source, subject
            )
            select * exclude (fresh_at), fresh_at - to_seconds(freshness_seconds) as watermark
            from one order by source, model"""
        return self._rows("measures", sql)

    def _lines(self) -> Rows:
        """Return what became of the lines of each source: in its newest tick, and in all recent ticks."""
        return source_lines.of_sources(self._ledger.warehouse, self._ledger.env, self._ledger.read().last_tick)

    def _losses(self) -> Rows:
        """Return the accepted losses of all sources, the newest first."""
        return source_lines.losses(self._ledger.warehouse, self._ledger.env)

    def _models(self) -> Rows:
        """Return the latest run stats of each model, including its hidden tables."""
        sql = """
            select model, tick, max(as_of) as as_of, max(engine) as engine,
                max(strategy) filter ("table" = model) as strategy, max(reason) filter ("table" = model) as reason,
                sum(rows_in)::bigint as rows_in, coalesce(sum(rows_changed) filter ("table" = model), 0)::bigint
                    as rows_changed,
                sum(rows_read)::bigint as rows_read, sum(bytes_read)::bigint as bytes_read,
                sum(seconds) as seconds, sum(commits)::bigint as commits, bool_and(published) as published
            from book group by model, tick
            qualify row_number() over (partition by model order by tick desc) = 1 order by seconds desc, model"""
        return self._rows("receipts", sql)

    def _checks(self) -> Rows:
        """Return the latest result of each check, failed ones first, with the number of checks of each status."""
        sql = f"""
            with one as (
                select check_id, max(model) as model, max(expectation) as expectation,
                    arg_max("columns", tick) as "columns",
                    arg_max(severity, tick) as severity, arg_max(status, tick) as status, max(tick) as tick,
                    arg_max(evaluated, tick) as evaluated, arg_max(unexpected, tick) as unexpected,
                    max(tick) filter (status <> {Outcome.PASS.sql}) as last_bad_tick
                from book group by check_id
            )
            select *, count(*) over (partition by status) as of_status from one
            order by status in {listed(BLOCKING)} desc, status <> {Outcome.PASS.sql} desc,
                last_bad_tick desc nulls last, model, expectation, check_id
            limit {CHECKS}"""
        return self._rows("checks", sql)

    def _quarantine(self) -> Rows:
        """Return the number of quarantined lines by table and reason, with samples of each."""
        newest = self._ledger.read().published
        found: Rows = []
        for name in sorted(name for name, state in (newest.tables if newest else {}).items() if state.where):
            assert newest is not None
            book = find(newest, self._ledger.warehouse, name + QUARANTINE)
            sql = f"""
                select coalesce({REASON}, '') as reason, count(*) as lines, min({LANDED_AT}) as first_landed,
                    max({LANDED_AT}) as last_landed, max_by({RAW}, {LANDED_AT}, {SAMPLES}) as samples,
                    max_by({ORIGIN}, {LANDED_AT}) as last_file
                from "{book.name}" group by 1 order by lines desc, reason limit {REASONS}"""
            for row in self._engine.query(sql, (book,)).to_pylist():
                samples = [self._masked(text) for text in row.pop("samples") or ()]
                found.append({"model": name, **row, "samples": samples})
        return found

    def _masked(self, text: str | None) -> str:
        """Return a line without values that may be personal.

        If no column has the tag `pii`, that is the line. Else it is the declared, untagged fields of a JSON object.
        """
        if not self._private:
            return _short(text or "")
        try:
            line = json.loads(text or "")
        except (ValueError, RecursionError):
            return MASK
        if not isinstance(line, dict):
            return MASK
        plain = self._declared - self._private
        shown = {key: _scalar(value) for key, value in line.items() if key in plain}
        plain_text = json.dumps(shown, ensure_ascii=False)
        return _short(plain_text if len(shown) == len(line) else f"{plain_text}, else {MASK}")


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row for JSON: times in the format of answers, None for NaN and infinity."""
    found = {}
    for name, value in row.items():
        if isinstance(value, datetime):
            value = iso(value)
        found[name] = None if isinstance(value, float) and not isfinite(value) else value
    return found


def _scalar(value: object) -> object:
    """Return a scalar value; mask an object or a list, whose content has no declaration."""
    return MASK if isinstance(value, dict | list) else value


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
