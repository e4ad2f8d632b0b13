"""All that a published tick has to answer, in memory: made aside, then given whole. Shell: Delta files, DuckDB."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import Any

from sqlrun.engine_api import Relation
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.errors import UsageError
from sqlrun.publish.reader import relation
from sqlrun.publish.table_state import Published, to_json
from sqlrun.serve import dashboard
from sqlrun.serve.offer import Mart, Offer


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One tick's answers. `columns` are those of `dashboard.answers_sql`, by `ids`; `mark` tells ticks apart."""

    published: Published
    published_at: datetime
    mark: str
    ids: Sequence[str]
    rows: Mapping[str, int]
    columns: Mapping[str, Any]
    widths: tuple[int, ...]
    marts: Mapping[str, Relation]
    packed: dict[tuple[str, int, str], bytes] = field(default_factory=dict)

    def body(self, column: str, row: int) -> bytes:
        """Return the bytes of an answer: `known`, or `window_<hours>`."""
        found: bytes = self.columns[column][row].as_buffer().to_pybytes()
        return found

    def trend(self, row: int) -> bytes:
        """Return the bytes of a restaurant's hours; they are written when they are asked for first."""
        key = ("hours", row, "")
        if key not in self.packed:
            lists = {name: self.columns[name][row].as_py() for name in ("hour", "n_orders", "total_sales")}
            known, at = self.body("known", row).decode(), self.published
            self.packed[key] = dashboard.trend(known, at.tick, at.as_of, lists).encode()
        return self.packed[key]


class Reader:
    """Makes snapshots of a warehouse's ticks; one after another, in any thread."""

    def __init__(self, warehouse: str, offered: Offer) -> None:
        self.warehouse, self.offered = warehouse, offered
        # One core at most: the other answers requests while a tick is read.
        self.engine = DuckDBEngine({"threads": "1"})

    def read(self, published: Published, published_at: datetime) -> Snapshot:
        """Read a tick whole.

        Raises: UsageError if it lacks a table or a column that is needed; EngineError if its files can't be read.
        """
        digest = f"{published.tick} {published.as_of.isoformat()} {to_json(published.tables)}"
        mark = f"{published.tick}-{hashlib.sha256(digest.encode()).hexdigest()[:12]}"
        marts = {name: _mart(self.warehouse, published, mart) for name, mart in self.offered.marts.items()}
        found = Snapshot(
            published=published,
            published_at=published_at,
            mark=mark,
            ids=(),
            rows={},
            columns={},
            widths=self.offered.widths,
            marts=marts,
        )
        return found if self.offered.missing else self._with_dashboard(found)

    def _with_dashboard(self, found: Snapshot) -> Snapshot:
        tick, as_of, widths = found.published.tick, found.published.as_of, found.widths
        tables = {name: found.marts[name] for name in dashboard.NEEDS}
        for name, columns in dashboard.NEEDS.items():
            require(found.published, tables[name], columns, "the dashboard")
        low, high = dashboard.hour_range(as_of, widths)
        narrow = replace(tables[dashboard.HOURS], ranges=(("hour_at", low, high),))
        edges = tuple(("slot_at", *edge) for edge in dashboard.edges(as_of, widths))
        # Without an edge no slot is needed: a range that holds none.
        slots = replace(tables[dashboard.SLOTS], ranges=edges or (("slot_at", high, low),))
        tables |= {dashboard.HOURS: narrow, dashboard.SLOTS: slots}
        sql = dashboard.answers_sql(tables, tick, as_of, widths, _begin(narrow))
        answers = self.engine.query(sql, tuple(tables.values())).combine_chunks()
        ids = answers[dashboard.OWNER].to_pylist()
        held = {name: answers[name].chunk(0) if ids else [] for name in answers.column_names}
        return replace(found, ids=ids, rows={each: row for row, each in enumerate(ids)}, columns=held)


def _mart(warehouse: str, published: Published, mart: Mart) -> Relation:
    if mart.name not in published.tables:
        raise UsageError(
            f"tick {published.tick} has no table `{mart.name}`, which an exposure serves. Run `sqlrun build`."
        )
    found = relation(warehouse, mart.name, published.tables[mart.name])
    require(published, found, (*mart.keys, *([mart.owned_by] if mart.owned_by else [])), "its exposure")
    return found


def require(published: Published, table: Relation, columns: Sequence[str], who: str) -> None:
    """Refuse a table that lacks a column.

    Raises: UsageError naming the first one, and those that there are.
    """
    there = [column.name for column in table.columns]
    for name in columns:
        if name not in there:
            raise UsageError(
                f"{table.name} has no column `{name}` at tick {published.tick}, which {who} needs; "
                f"it has {', '.join(there)}. Select it in the model, and build."
            )


def _begin(hours: Relation) -> str:
    """Return when the facts begin, by their files' statistics; "" where those don't say."""
    files = delta_table.files_at(delta_table.open_table(hours.path, hours.version), ("hour_at",))
    starts = [file.get("min.hour_at") for file in files]
    if not starts or any(start is None for start in starts):
        return ""
    return min(dashboard.iso(_in_utc(start)) if isinstance(start, datetime) else str(start) for start in starts)


def _in_utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=timezone.utc) if moment.tzinfo is None else moment.astimezone(timezone.utc)
