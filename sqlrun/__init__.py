"""sqlrun keeps the answers of whole SQL queries true, tick after tick. Shell: Delta files, in `published` alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

from sqlrun.version import __version__ as __version__


def published(model: str, warehouse: str, tick: int | None = None, *, env: str = "") -> pa.Table:
    """Read a table as a published tick has it (the newest by default), without a JVM and without the project.

    `env` names an environment; production is read otherwise.

    `MODEL__quarantine` gives the lines that a landing model has set aside. It may be called while a build is at work.

    Raises: UsageError if the warehouse has no published tick, not this one, or no such table.
    """
    from sqlrun.publish.ledger import Ledger
    from sqlrun.publish.reader import find, query, tick_of

    # Reading needs no project's name; what is written carries it.
    relation = find(tick_of(Ledger(warehouse, "", env), tick), warehouse, model)
    return query(
        f"select {', '.join(_quoted(c.name) for c in relation.columns)} from {_quoted(relation.name)}", [relation]
    )


def views(warehouse: str, tick: int | None = None, *, env: str = "") -> list[str]:
    """Write Spark SQL that makes a temporary view of each table as a published tick has it (the newest by default).

    All of them show the same tick until they are made anew, whatever is built in the meantime.
    Raises: UsageError if the warehouse has no published tick, or not this one.
    """
    from sqlrun.publish.spark_views import of_tick

    return of_tick(warehouse, tick, env)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
