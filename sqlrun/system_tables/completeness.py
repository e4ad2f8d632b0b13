"""Until which transaction of a database each tick is complete, in a Delta table beside the ledger. Shell: Delta files.

A row for each tick and transaction topic whose sources landed. Written after a tick has ended; no decision depends on
these rows. The ledger has the same fact for each landing table of a published tick.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlrun.engine_api import StoredColumn, TableSpec
from sqlrun.events import TickResult
from sqlrun.publish.environment_paths import system_folder
from sqlrun.system_tables import receipts

COLUMNS = (
    StoredColumn("tick", "bigint", False),
    StoredColumn("as_of", "timestamp", False),
    StoredColumn("written_at", "timestamp", False),
    StoredColumn("published", "boolean", False),
    StoredColumn("connection", "string", False),
    StoredColumn("topic", "string", False),
    StoredColumn("transaction", "string"),
    StoredColumn("committed_at", "timestamp"),
    StoredColumn("next_offset", "bigint", False),
    StoredColumn("waiting", "bigint", False),
)


def path_of(warehouse: str, env: str = "") -> str:
    """Return the path of the table of an environment."""
    return f"{warehouse}/{system_folder(env)}/completeness"


def write(warehouse: str, result: TickResult, at: datetime, env: str = "") -> None:
    """Append a tick's rows in one commit; do nothing if no source takes whole transactions.

    Raises: EngineError if they can't be written.
    """
    rows = rows_of(result, at)
    if rows:
        receipts.append(TableSpec("completeness", path_of(warehouse, env), COLUMNS), rows, result.tick)


def rows_of(result: TickResult, at: datetime) -> list[dict[str, Any]]:
    """Return a row for each transaction topic whose sources landed."""
    facts = {stage.complete for node in result.nodes for stage in node.stages if stage.complete is not None}
    return [
        {
            "tick": result.tick,
            "as_of": result.as_of,
            "written_at": at,
            "published": result.published,
            "connection": fact.connection,
            "topic": fact.topic,
            "transaction": fact.transaction or None,
            "committed_at": fact.committed_at,
            "next_offset": fact.next_offset,
            "waiting": fact.waiting,
        }
        for fact in sorted(facts, key=lambda fact: (fact.connection, fact.topic))
    ]
