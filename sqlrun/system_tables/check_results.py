"""Results of every check in every tick, as rows of a Delta table beside the ledger. Shell: Delta files.

Written after a tick has ended, published or not, so that no reader waits for them. No decision depends on these rows: a
build that can't write them warns and continues.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlrun.engine_api import StoredColumn, TableSpec
from sqlrun.engines.delta import table as delta_table
from sqlrun.events import TickResult
from sqlrun.publish.environment_paths import system_folder
from sqlrun.runtime.lru import Recent
from sqlrun.system_tables import receipts

COLUMNS = (
    StoredColumn("tick", "bigint", False),
    StoredColumn("as_of", "timestamp", False),
    StoredColumn("written_at", "timestamp", False),
    StoredColumn("published", "boolean", False),
    StoredColumn("check_id", "string", False),
    StoredColumn("model", "string", False),
    StoredColumn("expectation", "string", False),
    StoredColumn("columns", "array<string>", False),
    StoredColumn("severity", "string", False),
    StoredColumn("status", "string", False),
    StoredColumn("evaluated", "bigint", False),
    StoredColumn("unexpected", "bigint", False),
    StoredColumn("seconds", "double", False),
    StoredColumn("message", "string", False),
)
# Columns of a check's history that the report shows.
NEEDED = ("tick", "check_id", "status", "evaluated", "unexpected")


def path_of(warehouse: str, env: str = "") -> str:
    """Return the path of the check history of an environment."""
    return f"{warehouse}/{system_folder(env)}/checks"


def write(warehouse: str, result: TickResult, at: datetime, env: str = "") -> None:
    """Append a row for each check of a tick in one commit; do nothing if no check ran.

    Raises: EngineError if they can't be written.
    """
    rows = rows_of(result, at)
    step = receipts.append(_spec(warehouse, env), rows, result.tick) if rows else None
    known = None if step is None else _known.known(step[0])
    if step is not None and known is not None:
        _known.put(step[1], replace(known, rows=(*known.rows, *_of_checks(rows, known.checks))))


def _spec(warehouse: str, env: str) -> TableSpec:
    return TableSpec("checks", path_of(warehouse, env), COLUMNS)


@dataclass(frozen=True, slots=True)
class _Known:
    """The outcomes of some checks since a tick."""

    since: int
    checks: frozenset[str]
    rows: tuple[dict[str, Any], ...]


# By the table's version; a process that runs several ticks adds its own outcomes to those it has read.
_known: Recent[delta_table.Entry, _Known] = Recent(4)


def recent(warehouse: str, env: str, since: int, checks: Collection[str]) -> list[dict[str, Any]]:
    """Return the outcomes of some checks since a tick, by check id; empty if nothing was written yet.

    Raises: EngineError if they can't be read.
    """
    if not checks:
        return []
    spec = _spec(warehouse, env)
    entry = delta_table.entry_of_head(spec.path)
    known = None if entry is None else _known.known(entry)
    if known is None or known.since > since or not known.checks.issuperset(checks):
        # Thousands of checks pass where a few fail: filter before rows become Python objects.
        ids = ", ".join("'" + each.replace("'", "''") + "'" for each in sorted(checks))
        rows = receipts.rows(spec, NEEDED, f"tick >= {since} and check_id in ({ids})")
        known = _Known(since, frozenset(checks), tuple(rows))
    known = replace(known, since=since, rows=tuple(row for row in known.rows if row["tick"] >= since))
    if entry is not None:
        _known.put(entry, known)
    return _of_checks(known.rows, checks)


def _of_checks(rows: Iterable[dict[str, Any]], checks: Collection[str]) -> list[dict[str, Any]]:
    return [{name: row[name] for name in NEEDED} for row in rows if row["check_id"] in checks]


def rows_of(result: TickResult, at: datetime) -> list[dict[str, Any]]:
    """Return a row for each check; without samples, so that no row of a table is stored here."""
    return [
        {
            "tick": result.tick,
            "as_of": result.as_of,
            "written_at": at,
            "published": result.published,
            "check_id": check.check_id,
            "model": check.model,
            "expectation": check.type,
            "columns": list(check.columns),
            "severity": check.severity,
            "status": check.status.stored,
            "evaluated": check.evaluated,
            "unexpected": check.unexpected,
            "seconds": check.seconds,
            "message": check.message,
        }
        for check in result.checks
        if check.status.has_past
    ]
