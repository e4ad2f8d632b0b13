"""Landing files with Structured Streaming: exactly once, by Spark's own log and Delta's. Shell: Spark, files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from sqlrun.engines import delta_files
from sqlrun.engines.duckdb_landing import input_files
from sqlrun.engines.protocol import Landing
from sqlrun.errors import EngineError

IDENTITY = "_sqlrun_checkpoint"


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


def _set_aside_torn(folder: Path, ending: str) -> None:
    if not folder.is_dir():
        return
    files = [f for f in folder.iterdir() if f.name.removesuffix(ending).isdigit() and f.name.endswith(ending)]
    newest = max(files, key=lambda f: int(f.name.removesuffix(ending)), default=None)
    if newest is not None and newest.stat().st_size == 0:
        newest.rename(newest.with_name(f"_torn_{newest.name}"))
        newest = None
    for crc in folder.glob(".*.crc"):
        if not (folder / crc.name[1:].removesuffix(".crc")).exists():
            crc.unlink()


def _check_identity(landing: Landing, checkpoint: Path) -> None:
    """Compare the checkpoint's query id with the one that the table remembers."""
    known = Path(landing.table.path) / IDENTITY
    metadata = checkpoint / "metadata"
    mine = json.loads(metadata.read_text())["id"] if metadata.is_file() and metadata.stat().st_size else None
    version = delta_files.head(landing.table.path) or 0
    if known.is_file():
        if mine is not None and known.read_text().strip() == mine:
            return
    elif version == 0 or mine is not None:
        return
    if version == 0:
        known.unlink(missing_ok=True)
        return
    what = "is gone" if mine is None else "belongs to another table"
    raise EngineError(
        f"{landing.table.name} holds rows, but its checkpoint {what}: landing from the beginning would double them. "
        f"Put the checkpoint back, or run `sqlrun build --full-refresh --select {landing.table.name}+`.",
        model=landing.table.name,
    )


def nothing_new(landing: Landing) -> bool:
    """Tell without Spark that every file has been landed: the newest batch is committed and its log names them all."""
    checkpoint = Path(landing.checkpoint)
    try:
        offsets = {f.name for f in (checkpoint / "offsets").iterdir() if f.name.isdigit()}
        commits = {f.name for f in (checkpoint / "commits").iterdir() if f.name.isdigit()}
        logs = list((checkpoint / "sources" / "0").iterdir())
    except FileNotFoundError:
        return False
    if not offsets or max(offsets, key=int) not in commits:
        return False
    seen = set()
    for log in logs:
        if log.name.startswith("."):
            continue
        for line in log.read_text().splitlines()[1:]:
            seen.add(unquote(json.loads(line)["path"].rsplit("/", 1)[-1]))
    return all(name in seen for name in input_files(landing.source))


def stream(session: Any, landing: Landing) -> None:
    """Run the landing query over every file that is new, then stop."""
    # A row whose expression fails is set aside with its reason; it must not end the stream.
    session.conf.set("spark.sql.ansi.enabled", "false")
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
