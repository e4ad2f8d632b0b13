"""Measures of every tick, as rows of a Delta table beside the ledger. Shell: Delta files.

Written after a tick has ended, published or not. The table holds counts and shares, no row of a model. A build that
can't write or read it warns and continues. The table is partitioned by the hour of the day, because each tick reads
only the same hour of past weeks, a small part of it.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from sqlrun.engine_api import StoredColumn, TableSpec
from sqlrun.engines.delta import table as delta_table
from sqlrun.events import TickResult
from sqlrun.publish.environment_paths import system_folder
from sqlrun.system_tables import receipts

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = (
    StoredColumn("tick", "bigint", False),
    StoredColumn("as_of", "timestamp", False),
    StoredColumn("written_at", "timestamp", False),
    StoredColumn("published", "boolean", False),
    StoredColumn("subject", "string", False),  # a model
    StoredColumn("source", "string"),  # group.name, of a landing model
    StoredColumn("measure", "string", False),
    StoredColumn("value", "double"),
    StoredColumn("low", "double"),
    StoredColumn("high", "double"),
    StoredColumn("unusual", "boolean", False),
    StoredColumn("detail", "string"),
    StoredColumn("interval_seconds", "double"),
    StoredColumn("hour", "int", False),
)
# Longer than the history that ticks are compared with, for the page of measures.
KEPT = timedelta(weeks=10)


def path_of(warehouse: str, env: str = "") -> str:
    """Return the path of the measures of an environment."""
    return f"{warehouse}/{system_folder(env)}/measures"


def write(warehouse: str, result: TickResult, at: datetime, env: str = "") -> None:
    """Append a row for each measure of a tick in one commit; do nothing if there is no measure.

    Raises: EngineError if they can't be written.
    """
    rows = rows_of(result, at)
    if rows:
        receipts.append(_spec(warehouse, env), rows, result.tick)


def _spec(warehouse: str, env: str) -> TableSpec:
    return TableSpec("measures", path_of(warehouse, env), COLUMNS, ("hour",))


def rows_of(result: TickResult, at: datetime) -> list[dict[str, Any]]:
    """Return a row for each measure."""
    return [
        {
            "tick": result.tick,
            "as_of": result.as_of,
            "written_at": at,
            "published": result.published,
            "subject": each.subject,
            "source": each.source,
            "measure": each.measure,
            "value": each.value,
            "low": each.low,
            "high": each.high,
            "unusual": each.unusual,
            "detail": each.detail,
            "interval_seconds": each.interval_seconds,
            "hour": middle(result.as_of, each.interval_seconds).hour,
        }
        for each in result.measures
    ]


def middle(as_of: datetime, interval_seconds: float | None) -> datetime:
    """Return the midpoint of the time that a tick covers: a tick at 12:00 measures what happened from 11:00 to 12:00.

    >>> middle(datetime(2026, 1, 10, 12, 0), 3600.0)
    datetime.datetime(2026, 1, 10, 11, 30)
    """
    return as_of - timedelta(seconds=(interval_seconds or 0.0) / 2)


def read(
    warehouse: str,
    env: str = "",
    since: datetime | None = None,
    measures: Collection[str] = (),
    hours: Collection[int] = (),
    columns: Collection[str] = (),
) -> list[dict[str, Any]]:
    """Return rows, the oldest tick first; empty if nothing was ever written.

    `since`: ticks from this time on. `measures`, `hours`, `columns`: only these; empty means all.
    Raises: EngineError if they can't be read.
    """
    found = table(warehouse, env, since, measures, hours, columns)
    rows: list[dict[str, Any]] = [] if found is None else found.to_pylist()
    return sorted(rows, key=lambda row: row["tick"]) if not columns or "tick" in columns else rows


def table(
    warehouse: str,
    env: str = "",
    since: datetime | None = None,
    measures: Collection[str] = (),
    hours: Collection[int] = (),
    columns: Collection[str] = (),
) -> pa.Table | None:
    """Return what `read` returns as a table, in no order; None if nothing was ever written."""
    terms = [f"as_of >= {_literal(since)}"] if since else []
    for name, chosen in (("measure", [f"'{m}'" for m in measures]), ("hour", [str(h) for h in hours])):
        terms += [f"{name} in ({', '.join(chosen)})"] if chosen else []
    names = [c.name for c in COLUMNS if not columns or c.name in columns]
    return receipts.scan(_spec(warehouse, env), names, " and ".join(terms) or None)


def take_back(warehouse: str, after: int, env: str = "") -> None:
    """Mark the rows of ticks after `after` as unpublished, because their time is measured again after a rollback.

    Raises: EngineError if they can't be marked.
    """
    path = path_of(warehouse, env)
    if delta_table.head(path) is not None:
        with delta_table.explained(f"the measures at {path} can't be marked"):
            delta_table.update_rows(path, f"tick > {after} and published", {"published": "false"})


def forget(warehouse: str, oldest: int, now: datetime, env: str = "") -> None:
    """Delete the rows of ticks that are neither retained nor recent enough for comparisons.

    Raises: EngineError if they can't be deleted.
    """
    path = path_of(warehouse, env)
    if delta_table.head(path) is not None:
        with delta_table.explained(f"the measures at {path} can't be deleted"):
            delta_table.delete_rows(path, f"tick < {oldest} and as_of < {_literal(now - KEPT)}")


def _literal(at: datetime) -> str:
    """Return a time as a literal of delta-rs' SQL, which doesn't compare values of different types."""
    return f"arrow_cast('{at:%Y-%m-%dT%H:%M:%S.%f}Z', 'Timestamp(Microsecond, Some(\"UTC\"))')"
