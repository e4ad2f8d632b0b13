"""Refuse to land from scratch if files of the table are gone: their lines would be lost. Shell: files, DuckDB."""

from __future__ import annotations

from sqlrun.engine_api import Relation
from sqlrun.errors import EngineError
from sqlrun.incremental.landing import query as landing_query
from sqlrun.land.drift_query import reader_of
from sqlrun.maintain.tick_context import TickContext
from sqlrun.source_api import Positions, SourceReader
from sqlrun.sources import checkpoint
from sqlrun.sources.folder import some


def require(context: TickContext, name: str, source: SourceReader, path: str) -> None:
    """Raise if the published table has lines of files that are gone, unless that was accepted.

    Raises: EngineError with some of their names.
    """
    published = context.plan.published
    old = published.tables.get(name) if published else None
    if old is None or old.path == path or context.accept_lost:
        return
    held = Relation("held", f"{context.warehouse}/{old.path}", landing_query.PROVENANCE, "new", version=old.version)
    files = source.oldest(landing_query.ORIGIN)
    # The table doesn't have files all of whose lines the query filters out; the checkpoint does.
    known = set(_landed(context, source, old.path))
    try:
        known |= {str(row["file"]) for row in reader_of(context).query(files, (held,)).to_pylist()}
    except EngineError as error:
        # If the table lands from scratch because it is corrupt, the checkpoint alone has its files.
        if not known:
            raise EngineError(
                f"neither {name} at {old.path} nor its checkpoint can be read, so sqlrun doesn't know which files it "
                "landed. If no file is missing, run: sqlrun build --accept-lost-files",
                model=name,
            ) from error
    # An earlier, unpublished tick may have landed some in the new table.
    lost = source.missing(known - _landed(context, source, path).keys())
    if lost:
        them = "a file" if len(lost) == 1 else f"{len(lost):,} files"
        raise EngineError(
            f"sqlrun must land {name} again, but {them} of the published table can't be found in "
            f"{source.location}: {some(lost)}. Their lines would be lost. Restore the files, undo the edit, or "
            "build without them: sqlrun build --accept-lost-files",
            model=name,
        )


def _landed(context: TickContext, source: SourceReader, path: str) -> Positions:
    return checkpoint.landed(source, f"{context.warehouse}/{checkpoint.path_of(path)}")
