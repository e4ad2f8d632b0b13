"""Statements with many parts on Spark: some parts of a statement that is too long are computed first. Shell: Spark.

Each of them is one job whose rows stay with the executors, as those of a large MERGE do, until nothing reads them.
"""

from __future__ import annotations

from typing import Any

from sqlrun.incremental import parts

# Maximum number of parts in one statement; a part counts as often as it is read.
MOST = 300
VIEW = "_sqlrun_part_"


def frame(session: Any, text: str) -> Any:
    """Return the rows of a SELECT as a DataFrame; some of its parts may already be computed."""
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
        # The frame is analyzed: it refers to the rows, not to the names.
        for view in views:
            session.catalog.dropTempView(view)


def _short(session: Any, every: parts.Parts, final: str) -> Any:
    return session.sql(parts.joined(parts.needed(every, final), final))
