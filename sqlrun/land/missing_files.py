"""Files that a landing table was made of and that are gone: landing anew would lose them. Shell: files, DuckDB."""

from __future__ import annotations

from pathlib import Path

from sqlrun.engine_api import Relation
from sqlrun.engines import checkpoint_files, source_files
from sqlrun.errors import EngineError
from sqlrun.incremental.landing import query as landing_query
from sqlrun.land.drift_query import reader_of
from sqlrun.maintain.maintain import TickContext


def require(context: TickContext, name: str, source: str, path: str) -> None:
    """Refuse to land anew where the published table has lines of files that are gone, unless that was accepted.

    Raises: EngineError naming some of them.
    """
    published = context.plan.published
    old = published.tables.get(name) if published else None
    if old is None or old.path == path or context.accept_lost:
        return
    present = source_files.listed(source)
    held = Relation("held", f"{context.warehouse}/{old.path}", landing_query.ORIGIN, "new", version=old.version)
    files = f"select distinct {landing_query.FILE} as file from held where {landing_query.FILE} is not null"
    # The table doesn't know files all of whose lines the query leaves out; the checkpoint does.
    warehouse = Path(context.warehouse)
    known = source_files.landed_by(warehouse / checkpoint_files.checkpoint_of(old.path))
    try:
        known |= {str(row["file"]) for row in reader_of(context).query(files, (held,)).to_pylist()}
    except EngineError as error:
        # It is landed anew because it is torn: then the checkpoint alone knows what it was made of.
        if not known:
            raise EngineError(
                f"neither {name} at {old.path} nor its checkpoint can be read, so which files it was made of is not "
                "known. If all of them are still there: sqlrun build --accept-lost-files",
                model=name,
            ) from error
    # An earlier tick may have landed some into the new table, without being published.
    lost = sorted(known - present.keys() - source_files.landed_by(warehouse / checkpoint_files.checkpoint_of(path)))
    if lost:
        them = "a file" if len(lost) == 1 else f"{len(lost):,} files"
        raise EngineError(
            f"{name} is to be landed anew, but {them} that the published table was made of can't be found in {source}: "
            f"{source_files.some(lost)}. Their lines would be lost. Put back what is missing, undo the edit, or build "
            "without it: sqlrun build --accept-lost-files",
            model=name,
        )
