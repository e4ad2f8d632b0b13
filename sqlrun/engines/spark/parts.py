"""A statement of many parts on Spark: where it is too long written out, some are computed before it. Shell: Spark.

Each of them is one job whose rows stay with the executors, as those of a large MERGE do, until nothing reads them.
"""

from __future__ import annotations

from typing import Any

from sqlrun.incremental import parts

# So many parts, each counted as often as it is read, are left to Spark in one statement.
MOST = 300
VIEW = "_sqlrun_part_"


def frame(session: Any, text: str) -> Any:
    """Return the rows of a SELECT as a DataFrame, of which some parts may have been computed already."""
    every, final = parts.split(text)
    chosen = parts.first(every, final, MOST)
    if not chosen:
        return session.sql(text)
    read = {name: f"    select * from {VIEW}{number}" for number, name in enumerate(chosen)}
    views: list[str] = []
    try:
        for number, name in enumerate(chosen):
            before = tuple((n, read[n] if n in chosen[:number] else body) for n, body in every)
            rows = _short(session, before, f"select * from {name}").localCheckpoint(eager=True)
            views.append(f"{VIEW}{number}")
            rows.createOrReplaceTempView(views[-1])
        return _short(session, tuple((n, read.get(n, body)) for n, body in every), final)
    finally:
        # The frame has been analysed: it holds the rows, not the names.
        for view in views:
            session.catalog.dropTempView(view)


def _short(session: Any, every: parts.Parts, final: str) -> Any:
    return session.sql(parts.joined(parts.needed(every, final), final))
