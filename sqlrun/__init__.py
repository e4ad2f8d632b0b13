"""sqlrun keeps the answers of whole SQL queries true, tick after tick. Shell: Delta files, in `published` alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

__version__ = "0.1.0"


def published(model: str, warehouse: str, tick: int | None = None) -> pa.Table:
    """Read a table as a published tick has it (the newest by default), without a JVM and without the project.

    `MODEL__quarantine` gives the lines that a landing model has set aside. It may be called while a build is at work.

    Raises: UsageError if the warehouse has no published tick, not this one, or no such table.
    """
    from sqlrun.ledger import Ledger
    from sqlrun.readers import find, query, tick_of

    # Reading needs no project's name; what is written carries it.
    relation = find(tick_of(Ledger(warehouse, ""), tick), warehouse, model)
    return query(
        f"select {', '.join(_quoted(c.name) for c in relation.columns)} from {_quoted(relation.name)}", [relation]
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
