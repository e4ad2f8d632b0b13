"""Accounting of landed lines: one row for each part of a source in each batch, in a Delta table. Shell: Delta files.

Of a row, `read` = `landed` + `quarantined` + `dropped` + `unexplained`, and `until` - `since` positions = `read` +
`gaps` where a source counts positions; `lost` are positions that the source no longer had, and whose loss was accepted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from sqlrun.engine_api import StoredColumn, TableSpec
from sqlrun.publish.environment_paths import system_folder
from sqlrun.system_tables import receipts
from sqlrun.transpile.writer import string

COLUMNS = (
    StoredColumn("source", "string", False),
    StoredColumn("model", "string", False),
    StoredColumn("path", "string", False),
    StoredColumn("tick", "bigint", False),
    StoredColumn("version", "bigint", False),
    StoredColumn("written_at", "timestamp", False),
    StoredColumn("part", "string", False),
    StoredColumn("since", "bigint"),
    StoredColumn("until", "bigint"),
    StoredColumn("read", "bigint"),
    StoredColumn("landed", "bigint", False),
    StoredColumn("quarantined", "bigint", False),
    StoredColumn("dropped", "bigint"),
    StoredColumn("gaps", "bigint"),
    StoredColumn("lost", "bigint"),
    StoredColumn("unexplained", "bigint"),
    StoredColumn("dropped_because", "string"),
    StoredColumn("lost_because", "string"),
    StoredColumn("accepted_by", "string"),
)
# Name of the row for lines that a batch counts for all its parts together.
TOGETHER = ""


@dataclass(frozen=True, slots=True)
class Intake:
    """What became of the lines of one part in one batch.

    A number is None if it isn't known for this part: a row named `TOGETHER` has it for all parts of the batch.
    `dropped_because` is a JSON object of counts by reason.
    """

    part: str
    since: int | None = None
    until: int | None = None
    read: int | None = None
    landed: int = 0
    quarantined: int = 0
    dropped: int | None = None
    gaps: int | None = None
    lost: int | None = None
    unexplained: int | None = None
    dropped_because: str | None = None
    lost_because: str | None = None
    accepted_by: str | None = None


NAMES = tuple(field.name for field in fields(Intake))


@dataclass(frozen=True, slots=True)
class Subject:
    """What intake is about: a source, the landing model, its table's path in the warehouse, the tick and the time."""

    source: str
    model: str
    path: str
    tick: int
    at: datetime


def path_of(warehouse: str, env: str = "") -> str:
    """Return the path of the intake of an environment."""
    return f"{warehouse}/{system_folder(env)}/intake"


def table_of(warehouse: str, env: str = "") -> TableSpec:
    """Return the table of the intake of an environment."""
    return TableSpec("intake", path_of(warehouse, env), COLUMNS)


def write(
    warehouse: str, env: str, subject: Subject, version: int, rows: Sequence[Intake], *, own_commit: bool = False
) -> list[dict[str, Any]]:
    """Append the rows of a batch, whose lines are in a version of the landing table, in one commit; return them.

    `own_commit`: sqlrun may write the commit itself instead of delta-rs.
    Raises: EngineError if they can't be written.
    """
    common = {
        "source": subject.source, "model": subject.model, "path": subject.path, "tick": subject.tick,
        "version": version, "written_at": subject.at,
    }  # fmt: skip
    found = [{**common, **{name: getattr(row, name) for name in NAMES}} for row in rows]
    if found:
        receipts.append(table_of(warehouse, env), found, subject.tick, own_commit=own_commit)
    return found


def read(warehouse: str, env: str, model: str = "", since: int = 0) -> list[dict[str, Any]]:
    """Return the rows from a tick on, of one model or of all, the oldest first.

    Raises: EngineError if they can't be read.
    """
    rows = _rows(warehouse, env, f"tick >= {since}" if since else None)
    return [row for row in rows if not model or row["model"] == model]


def losses(warehouse: str, env: str) -> list[dict[str, Any]]:
    """Return the rows of accepted losses, the oldest first. Files without a loss aren't opened.

    Raises: EngineError if they can't be read.
    """
    return _rows(warehouse, env, "lost_because is not null")


def of_versions(warehouse: str, env: str, path: str, after: int) -> dict[int, list[dict[str, Any]]]:
    """Return the rows of the batches after a version of a landing table, by version."""
    found: dict[int, list[dict[str, Any]]] = {}
    for row in _rows(warehouse, env, f"version > {after} and path = {string(path, 'duckdb')}"):
        found.setdefault(row["version"], []).append(row)
    return found


def _rows(warehouse: str, env: str, predicate: str | None) -> list[dict[str, Any]]:
    rows = receipts.rows(table_of(warehouse, env), [column.name for column in COLUMNS], predicate)
    return sorted(rows, key=lambda row: (row["tick"], row["path"], row["version"], row["part"], row["since"] or 0))
