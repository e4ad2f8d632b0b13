"""Landing files with Structured Streaming: exactly once, by Spark's own log and Delta's. Shell: Spark, files."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from sqlrun.engines import delta_files, spark_modes
from sqlrun.engines.duckdb_landing import input_files
from sqlrun.engines.protocol import Landing
from sqlrun.errors import EngineError

IDENTITY = "_sqlrun_checkpoint"
LINE_BYTES = 200


def heal(landing: Landing) -> None:
    """Set aside torn log files that Spark and Delta never heal, and refuse a checkpoint that isn't this table's.

    A process that dies while it writes leaves a zero-length newest file; Spark then refuses to start, and Delta
    reads it as a commit without rows. Set aside, the batch is replayed under the same transaction id.
    """
    checkpoint = Path(landing.checkpoint)
    for folder in ("offsets", "commits"):
        _set_aside_torn(checkpoint / folder, "")
    _set_aside_torn(Path(landing.table.path) / "_delta_log", ".json")
    _check_identity(landing, checkpoint)
    _wind_back(landing, checkpoint)


def _set_aside_torn(folder: Path, ending: str) -> None:
    if not folder.is_dir():
        return
    files = [f for f in folder.iterdir() if f.name.removesuffix(ending).isdigit() and f.name.endswith(ending)]
    newest = max(files, key=lambda f: int(f.name.removesuffix(ending)), default=None)
    if newest is not None and newest.stat().st_size == 0:
        newest.rename(newest.with_name(f"_torn_{newest.name}"))
        # Delta's own checksum of that version: without the version, delta-rs refuses the whole table.
        checksum = newest.with_suffix(".crc")
        if ending and checksum.exists():
            checksum.rename(checksum.with_name(f"_torn_{checksum.name}"))
    for crc in folder.glob(".*.crc"):
        if not (folder / crc.name[1:].removesuffix(".crc")).exists():
            crc.unlink()


def _check_identity(landing: Landing, checkpoint: Path) -> None:
    """Compare the checkpoint's query id with the one that the table remembers."""
    known = Path(landing.table.path) / IDENTITY
    metadata = checkpoint / "metadata"
    mine = json.loads(metadata.read_text())["id"] if metadata.is_file() and metadata.stat().st_size else None
    version = delta_files.head(landing.table.path) or 0
    if mine is not None and known.is_file() and known.read_text().strip() == mine:
        return
    if version == 0:
        if mine is not None and _numbers(checkpoint / "commits"):
            # Its batches went elsewhere: the stream would take their files for landed and this table would stay empty.
            raise EngineError(
                f"{landing.table.name} is empty, but its checkpoint has landed files: it belongs to another table. "
                f"Move {landing.checkpoint} away to land from the beginning.",
                model=landing.table.name,
            )
        known.unlink(missing_ok=True)
        return
    if mine is not None and not known.is_file():
        return  # stopped after the first batch, before the table was told
    what = "is gone" if mine is None else "belongs to another table"
    raise EngineError(
        f"{landing.table.name} holds rows, but its checkpoint {what}: landing from the beginning would double them. "
        f"Put the checkpoint back, or run `sqlrun build --full-refresh --select {landing.table.name}+`.",
        model=landing.table.name,
    )


def _numbers(folder: Path) -> list[int]:
    return sorted(int(f.name) for f in folder.iterdir() if f.name.isdigit()) if folder.is_dir() else []


def _wind_back(landing: Landing, checkpoint: Path) -> None:
    """Wind the checkpoint back to what the table holds: after a power loss it may be ahead.

    The table's own log says which batch it holds last (its transaction id is the query's id and the batch). Batches
    after it are run again: Spark replays only its newest offsets, so those after the next one go too.
    """
    commits = _numbers(checkpoint / "commits")
    if not commits:
        return
    query = json.loads((checkpoint / "metadata").read_text())["id"]
    table = delta_files.open_table(landing.table.path)
    held = table.transaction_version(query)
    if held is None and table.version() > 0:
        raise EngineError(
            f"{landing.table.name} holds rows, but none of its checkpoint's: landing them again could double them. "
            f"Run `sqlrun build --full-refresh --select {landing.table.name}+`.",
            model=landing.table.name,
        )
    last = -1 if held is None else held
    if commits[-1] <= last:
        return
    if last + 1 not in _numbers(checkpoint / "offsets"):
        raise EngineError(
            f"{landing.table.name} lacks batches {last + 1} to {commits[-1]} of its checkpoint, and their offsets are "
            f"gone. Run `sqlrun build --full-refresh --select {landing.table.name}+`.",
            model=landing.table.name,
        )
    for folder, after in (("commits", last), ("offsets", last + 1)):
        for number in _numbers(checkpoint / folder):
            if number > after:
                (checkpoint / folder / str(number)).unlink()
                (checkpoint / folder / f".{number}.crc").unlink(missing_ok=True)


def nothing_new(landing: Landing) -> bool:
    """Tell without Spark that every file has been landed: the newest batch is committed and its log names them all."""
    checkpoint = Path(landing.checkpoint)
    offsets, commits = _numbers(checkpoint / "offsets"), _numbers(checkpoint / "commits")
    if not offsets or offsets[-1] not in commits:
        return False
    seen = _seen(checkpoint)
    return all(name in seen for name in input_files(landing.source))


def _seen(checkpoint: Path) -> set[str]:
    """Name the files of the source's log."""
    folder = checkpoint / "sources" / "0"
    logs = [log for log in folder.iterdir() if not log.name.startswith(".")] if folder.is_dir() else []
    lines = itertools.chain.from_iterable(log.read_text().splitlines()[1:] for log in logs)
    return {unquote(json.loads(line)["path"].rsplit("/", 1)[-1]) for line in lines}


def _new_rows(landing: Landing) -> int:
    """Estimate the lines that wait to be landed."""
    seen = _seen(Path(landing.checkpoint))
    files = [Path(landing.source) / name for name in input_files(landing.source) if name not in seen]
    return sum(file.stat().st_size for file in files if file.exists()) // LINE_BYTES


def stream(session: Any, landing: Landing) -> None:
    """Run the landing query over every file that is new, then stop."""
    # A row whose expression fails is set aside with its reason; it must not end the stream.
    session.conf.set("spark.sql.ansi.enabled", "false")
    spark_modes.choose(session, _new_rows(landing))
    try:
        reader = session.readStream.format("text").option("pathGlobFilter", "*.{json,jsonl,ndjson}")
        lines = reader.option("maxFilesPerTrigger", 100000).load(landing.source)
        name = "url_decode(replace(element_at(split(_metadata.file_path, '/'), -1), '+', '%2B')) as file"
        lines.selectExpr("value", name).createOrReplaceTempView("lines")
        query = (
            session.sql(landing.query)
            .writeStream.format("delta")
            .outputMode("append")
            .option("checkpointLocation", landing.checkpoint)
            .trigger(availableNow=True)
            .start(landing.table.path)
        )
        query.awaitTermination()
        (Path(landing.table.path) / IDENTITY).write_text(str(query.id))
    finally:
        session.conf.unset("spark.sql.ansi.enabled")
