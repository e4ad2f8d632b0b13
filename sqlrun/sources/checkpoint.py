"""A landing's checkpoint of either engine: where it lies, who began it, and what has landed. Shell: files."""

from __future__ import annotations

from collections.abc import Iterable

from sqlrun.source_api import Position, Positions, SourceReader, Streamed
from sqlrun.sources import batches, stream_checkpoint


def path_of(table: str) -> str:
    """Return the path of a landing table's checkpoint; both paths are relative to the warehouse."""
    return f"_sqlrun/checkpoints/{table}"


def began(checkpoint: str) -> str:
    """Return the engine that began a checkpoint, `duckdb` or `spark`; "" where none has."""
    if batches.began(checkpoint):
        return "duckdb"
    return "spark" if stream_checkpoint.began(checkpoint) else ""


def landed(reader: SourceReader, checkpoint: str) -> Positions:
    """Return the parts that a checkpoint remembers, whichever engine has landed them.

    A torn plan was never carried out.
    """
    planned = [batch for batch in batches.read(checkpoint).values() if batch is not None]
    return batches.landed(planned) | streamed(reader.streamed(checkpoint))


def streamed(parts: Iterable[Streamed]) -> dict[str, Position]:
    """Return the newest position of each part of a stream's batches."""
    return {each.part: each.position for each in sorted(parts, key=lambda each: each.batch)}
