"""A published tick's answers in memory, complete before the server shows them. Shell: Delta files, DuckDB."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from sqlrun.dashboards.nouns import Dashboard
from sqlrun.engine_api import Relation
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.errors import UsageError
from sqlrun.publish.reader import relation
from sqlrun.publish.table_state import Published, committed_until, to_json
from sqlrun.serve import dashboard
from sqlrun.serve.offer import Mart, Offer
from sqlrun.serve.source_lines import Recorded

if TYPE_CHECKING:
    import pyarrow as pa

# Number of ids that become Python texts at once; others can be answered after each piece.
PIECE = 5_000


@dataclass(frozen=True, slots=True)
class Board:
    """One dashboard's answers in a tick: the columns of `dashboard.answers_sql`, with a row for each of `ids`.

    `tables` are the tables of lists computed on demand. `packed` caches bytes by column, row and compression.
    """

    declared: Dashboard
    published: Published
    ids: Sequence[str] = ()
    rows: Mapping[str, int] = field(default_factory=dict)
    columns: Mapping[str, Any] = field(default_factory=dict)
    tables: Mapping[str, Relation] = field(default_factory=dict)
    packed: dict[tuple[str, int, str], bytes] = field(default_factory=dict)

    def body(self, column: str, row: int) -> bytes:
        """Return the bytes of an answer; `column` is `known` or `window_<hours>`."""
        found: bytes = self.columns[column][row].as_buffer().to_pybytes()
        return found

    def trend(self, row: int) -> bytes:
        """Return the bytes of an entity's hours; the first request computes them."""
        key = ("hours", row, "")
        if key not in self.packed:
            named = ("hour", *(f"trend_{number}" for number in range(len(self.declared.trend))))
            lists = {name: self.columns[name][row].as_py() for name in named}
            known, at = self.body("known", row).decode(), self.published
            self.packed[key] = dashboard.trend(self.declared, known, at.tick, at.as_of, lists).encode()
        return self.packed[key]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One tick's answers: dashboards by the `api` of each, and marts by name. `mark` identifies the tick's content.

    `losses` are the numbers of recorded losses of lines that a window may lack, by the window's hours.
    """

    published: Published
    published_at: datetime
    mark: str
    boards: Mapping[str, Board]
    marts: Mapping[str, Relation]
    losses: Mapping[int, int]


class Reader:
    """Reads snapshots of a warehouse's ticks: one at a time, in any thread."""

    def __init__(self, warehouse: str, offered: Offer, env: str = "") -> None:
        self.warehouse, self.offered = warehouse, offered
        self._recorded = Recorded(warehouse, env)
        # One core at most, so that another can answer requests while a tick is read.
        self.engine = DuckDBEngine({"threads": "1"})

    def read(self, published: Published, published_at: datetime) -> Snapshot:
        """Return the snapshot of a tick.

        Raises: UsageError if the tick lacks a required table or column; EngineError if its files can't be read.
        """
        widths = sorted({hours for board in self.offered.boards for hours in board.widths})
        losses = self._recorded.in_windows(published, widths)
        digest = f"{published.tick} {published.as_of.isoformat()} {to_json(published.tables)} {losses}"
        mark = f"{published.tick}-{hashlib.sha256(digest.encode()).hexdigest()[:12]}"
        marts = {name: _mart(self.warehouse, published, mart) for name, mart in self.offered.marts.items()}
        boards = {board.api: self._board(board, published, losses) for board in self.offered.boards}
        return Snapshot(published, published_at, mark, boards, marts, losses)

    def _board(self, board: Dashboard, published: Published, losses: Mapping[int, int]) -> Board:
        tick, as_of = published.tick, published.as_of
        tables = {}
        for name, columns in dashboard.needs(board).items():
            tables[name] = self._table(published, name, f"the dashboard `{board.api}`")
            require(published, tables[name], columns, f"the dashboard `{board.api}`")
        for name, ranges in dashboard.ranges(board, as_of).items():
            tables[name] = replace(tables[name], ranges=ranges)
        begins = board.by_hour or board.by_slot
        since = _begin(tables[begins.table], begins.at) if begins is not None else ""
        lossy = frozenset(hours for hours in board.widths if losses[hours])
        complete_to = committed_until(published.tables, tables)
        sql = dashboard.answers_sql(board, tables, tick, as_of, since, lossy, complete_to)
        found = self.engine.query(sql, tuple(tables.values()))
        parts, schema = found.to_batches(), found.schema
        del found
        answers = _in_one_piece(parts, schema)
        keys = answers[dashboard.KEY]
        ids = [each for start in range(0, len(keys), PIECE) for each in keys.slice(start, PIECE).to_pylist()]
        held = {name: answers[name].chunk(0) if ids else [] for name in answers.column_names}
        return Board(
            declared=board,
            published=published,
            ids=ids,
            rows={each: row for row, each in enumerate(ids)},
            columns=held,
            tables=self._behind_lists(board, published),
        )

    def _behind_lists(self, board: Dashboard, published: Published) -> Mapping[str, Relation]:
        """Return the tables of lists computed on demand; a list whose tables the tick lacks isn't available."""
        found = {}
        for ranked in board.lists:
            for name in (ranked.everything.slots.table, ranked.everything.names) if ranked.everything else ():
                if name in published.tables:
                    found[name] = relation(self.warehouse, name, published.tables[name])
        return found

    def _table(self, published: Published, name: str, who: str) -> Relation:
        if name not in published.tables:
            raise UsageError(f"tick {published.tick} has no table `{name}`, which {who} needs. Run `sqlrun build`.")
        return relation(self.warehouse, name, published.tables[name])


def _in_one_piece(parts: list[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """Return the rows of all parts in one piece, and empty the list.

    The parts are freed one by one. Python frees all of 700 MB without a break, which stops all answers for 50 ms.
    """
    import pyarrow as pa

    rows = pa.Table.from_batches(parts, schema).combine_chunks()
    while parts:
        parts.pop()
    return rows


def _mart(warehouse: str, published: Published, mart: Mart) -> Relation:
    if mart.name not in published.tables:
        raise UsageError(
            f"tick {published.tick} has no table `{mart.name}`, which an exposure serves. Run `sqlrun build`."
        )
    found = relation(warehouse, mart.name, published.tables[mart.name])
    require(published, found, (*mart.keys, *([mart.owned_by] if mart.owned_by else [])), "its exposure")
    return found


def require(published: Published, table: Relation, columns: Sequence[str], who: str) -> None:
    """Check that a table has these columns.

    Raises: UsageError that names the first missing column and lists the existing ones.
    """
    there = [column.name for column in table.columns]
    for name in columns:
        if name not in there:
            raise UsageError(
                f"{table.name} has no column `{name}` at tick {published.tick}, which {who} needs; "
                f"it has {', '.join(there)}. Select it in the model, and build."
            )


def _begin(table: Relation, at: str) -> str:
    """Return the hour of the first fact from the files' statistics; "" if a file has none."""
    files = delta_table.files_at(delta_table.open_table(table.path, table.version), (at,))
    starts = [file.get(f"min.{at}") for file in files]
    if not starts or any(start is None for start in starts):
        return ""
    return min(
        dashboard.iso(dashboard.hour_of(_in_utc(start))) if isinstance(start, datetime) else str(start)
        for start in starts
    )


def _in_utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=timezone.utc) if moment.tzinfo is None else moment.astimezone(timezone.utc)
