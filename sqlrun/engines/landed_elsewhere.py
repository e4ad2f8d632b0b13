"""Landings that both engines reject: a table that the other engine lands, and missing parts. Shell: files.

Each engine has its own checkpoint format. Maintenance may change engines from tick to tick; landing may not, because
one engine can't read the other's checkpoint.
"""

from __future__ import annotations

from sqlrun.engine_api import Landing
from sqlrun.engines.delta import table as delta_table
from sqlrun.errors import EngineError, SourceError
from sqlrun.source_api import Positions
from sqlrun.sources import batches, checkpoint, stream_checkpoint
from sqlrun.sources.folder import some


def nothing_waits(landing: Landing, engine: str) -> bool:
    """Return whether another engine lands this table and has landed all its files; False if no other engine does.

    Raises: EngineError if files are pending for the other engine.
    """
    streaming = landing.source.streaming
    if streaming is None:
        return False  # both engines have the same checkpoint
    place, other = landing.checkpoint, "spark"
    # The id of DuckDB's batches was read when the tick began; a stream's checkpoint would be asked for.
    if engine == "duckdb" and not batches.began(place) and stream_checkpoint.began(place):
        # Spark completes its batches in order, and deletes old ones.
        newest = max(stream_checkpoint.numbers(place, stream_checkpoint.COMMITS), default=-1)
        ended = (each for each in streaming.streamed(place) if each.batch <= newest)
        seen: Positions = checkpoint.streamed(ended)
    elif engine == "spark" and batches.began(place) and not stream_checkpoint.began(place):
        other, seen = "duckdb", _planned(landing, place)
    else:
        return False
    waiting = landing.source.pending(seen).parts
    if not waiting:
        return True
    raise EngineError(
        f"the engine {other} landed {landing.table.name}, and {len(waiting)} of its source's files are pending "
        f"({waiting[0]}). {engine} doesn't know what {other} landed. Land the files with a profile of that engine, or "
        f"land all files again: `sqlrun build --full-refresh --select {landing.table.name}+`.",
        model=landing.table.name,
    )


def _planned(landing: Landing, place: str) -> Positions:
    """Return the parts of DuckDB's batches that are in the table."""
    app_id = f"{landing.app_id}:{batches.identity(place)}"
    committed = delta_table.open_table(landing.table.path).transaction_version(app_id) or 0
    plans = batches.read(place).items()
    return batches.landed(plan for number, plan in plans if plan is not None and number <= committed)


def missing(landing: Landing, parts: list[str]) -> SourceError:
    """Return the error for parts of a batch that no longer exist."""
    them = "a file" if len(parts) == 1 else f"{len(parts):,} files"
    name = landing.table.name
    return SourceError(
        f"{name} must land {them} of {landing.source.location} that can't be found: {some(parts)}. "
        "Restore the missing files, or continue without them: sqlrun build --accept-lost-files",
        model=name,
    )
