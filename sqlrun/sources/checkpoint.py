"""A landing's checkpoint of either engine: its path, its engine, and the landed parts. Shell: files."""

from __future__ import annotations

from collections.abc import Iterable

from sqlrun.source_api import Position, Positions, SourceReader, Streamed
from sqlrun.sources import batches, stream_checkpoint
from sqlrun.storage.factory import storage_of

# The file with the whole name of the table whose change events a source lands.
TABLE = "table"


def path_of(table: str) -> str:
    """Return the path of a landing table's checkpoint; both paths are relative to the warehouse."""
    return f"_sqlrun/checkpoints/{table}"


def began(checkpoint: str) -> str:
    """Return the engine that created a checkpoint, `duckdb` or `spark`; "" if there is none."""
    if batches.began(checkpoint):
        return "duckdb"
    return "spark" if stream_checkpoint.began(checkpoint) else ""


def first_table(checkpoint: str, name: str) -> str:
    """Return the whole name of the table of a source's first change event; `name` if there was none before.

    Of events that several processes read at once, any may be the first.
    """
    storage, file = storage_of(checkpoint), f"{checkpoint}/{TABLE}"
    if not storage.is_there(file):
        storage.make_folder(checkpoint)
        storage.put_if_absent(file, name.encode(), synced=True)
    return storage.text(file)


def landed(reader: SourceReader, checkpoint: str) -> Positions:
    """Return the parts in a checkpoint, landed by either engine.

    A corrupt plan was never run, so it is ignored.
    """
    planned = [batch for batch in batches.read(checkpoint).values() if batch is not None]
    logged = reader.streaming.streamed(checkpoint) if reader.streaming is not None else ()
    return batches.landed(planned) | streamed(logged)


def streamed(parts: Iterable[Streamed]) -> dict[str, Position]:
    """Return the latest position of each part of a stream's batches."""
    return {each.part: each.position for each in sorted(parts, key=lambda each: each.batch)}
