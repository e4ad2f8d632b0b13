"""Landing files with Structured Streaming: exactly once, by Spark's own log and Delta's. Shell: Spark, files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlrun.engine_api import Landing
from sqlrun.engines import source_files
from sqlrun.engines.checkpoint_files import IDENTITY, numbers
from sqlrun.engines.delta import foreign_commits
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.spark import conf as spark_conf
from sqlrun.engines.spark import moved_source
from sqlrun.engines.spark.cancellation import Cancel
from sqlrun.errors import EngineError
from sqlrun.load.forbidden_names import path_fault
from sqlrun.runtime import atomic_files

LINE_BYTES = 200
# The columns of `lines`; bytes that are no UTF-8 are replaced, as on DuckDB.
COLUMNS = (
    "make_valid_utf8(value) as value",
    "url_decode(replace(element_at(split(_metadata.file_path, '/'), -1), '+', '%2B')) as file",
)


def require_own(landing: Landing) -> None:
    """Refuse a checkpoint that isn't this table's, or that tells of batches which the table doesn't hold.

    What a loss of power has torn was set aside before the tick (`landed.py`), so that this is never its doing.
    """
    checkpoint = Path(landing.checkpoint)
    fault = path_fault(landing.source, "spark")
    if fault:
        raise EngineError(
            f"SR737 the path of the source of {landing.table.name} holds `{fault}`, which Spark takes for a pattern. "
            "Move the project or the folder, or land on DuckDB",
            model=landing.table.name,
        )
    _check_identity(landing, checkpoint)
    _require_held(landing, checkpoint)


def _check_identity(landing: Landing, checkpoint: Path) -> None:
    """Compare the checkpoint's query id with the one that the table remembers."""
    known = Path(landing.table.path) / IDENTITY
    metadata = checkpoint / "metadata"
    mine = json.loads(metadata.read_text())["id"] if metadata.is_file() and metadata.stat().st_size else None
    version = delta_table.head(landing.table.path) or 0
    if mine is not None and known.is_file() and known.read_text().strip() == mine:
        return
    if version == 0:
        if mine is not None and numbers(checkpoint / "commits"):
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


def _require_held(landing: Landing, checkpoint: Path) -> None:
    """Compare the checkpoint's batches with the newest that the table holds by its transaction id, the query's."""
    commits = numbers(checkpoint / "commits")
    if not commits:
        return
    query = json.loads((checkpoint / "metadata").read_text())["id"]
    table = delta_table.open_table(landing.table.path)
    held = table.transaction_version(query)
    if held is None and table.version() > 0:
        raise EngineError(
            f"{landing.table.name} holds rows, but none of its checkpoint's: landing them again could double them. "
            f"Run `sqlrun build --full-refresh --select {landing.table.name}+`.",
            model=landing.table.name,
        )
    if commits[-1] > (-1 if held is None else held):
        raise EngineError(
            f"{landing.table.name} lacks batch {commits[-1]} of its checkpoint. "
            f"Run `sqlrun build --full-refresh --select {landing.table.name}+`.",
            model=landing.table.name,
        )


@dataclass(frozen=True, slots=True)
class Known:
    """A source's folder and Spark's log of it, each read once: name, time in milliseconds and batch of each file."""

    present: Mapping[str, source_files.Stat]
    log: tuple[tuple[str, int, int], ...]

    @property
    def fresh(self) -> list[str]:
        """Name the files that the log doesn't have."""
        return sorted(self.present.keys() - {name for name, _, _ in self.log})


def look(landing: Landing) -> Known:
    """Read what is there and what has landed."""
    return Known(source_files.listed(landing.source), tuple(source_files.spark_log(Path(landing.checkpoint))))


def nothing_new(landing: Landing, known: Known) -> bool:
    """Tell without Spark that every file has been landed: the newest batch is committed and its log names them all."""
    checkpoint = Path(landing.checkpoint)
    offsets, commits = numbers(checkpoint / "offsets"), numbers(checkpoint / "commits")
    if not offsets or offsets[-1] not in commits:
        return False
    return not known.fresh


def notes(known: Known) -> tuple[str, ...]:
    """Tell of files that were changed after they landed; Spark's log knows their time, in milliseconds."""
    landed: dict[str, source_files.Stat] = {name: (None, changed) for name, changed, _ in known.log}
    present = known.present.items()
    now = {name: (size, at // 1_000_000 if at is not None else None) for name, (size, at) in present}
    told = source_files.warning(landed, now)
    return (told,) if told else ()


def require_files(landing: Landing, known: Known) -> None:
    """Refuse to begin a batch again of which files are gone: Spark would fail at them in every tick."""
    newest = max(numbers(Path(landing.checkpoint) / "commits"), default=-1)
    gone = sorted({name for name, _, batch in known.log if batch > newest} - known.present.keys())
    if gone and not landing.accept_lost:
        raise source_files.gone(landing.table.name, landing.source, gone)


def _new_rows(known: Known) -> int:
    """Estimate the lines that wait to be landed."""
    return sum(known.present[name][0] or 0 for name in known.fresh) // LINE_BYTES


def _spelled(session: Any, folder: str) -> str:
    """Write a folder as Spark's log does."""
    path = session._jvm.org.apache.hadoop.fs.Path(folder)
    spelled: str = path.getFileSystem(session._jsc.hadoopConfiguration()).makeQualified(path).toUri().toString()
    return spelled


def stream(session: Any, landing: Landing, known: Known, cancel: Cancel) -> None:
    """Run the landing query over every file that is new, then stop."""
    # A row whose expression fails is set aside with its reason; it must not end the stream.
    session.conf.set("spark.sql.ansi.enabled", "false")
    session.conf.set("spark.sql.files.ignoreMissingFiles", str(landing.accept_lost).lower())
    spark_conf.choose(session, _new_rows(known))
    if known.log:
        moved_source.follow(Path(landing.checkpoint) / "sources" / "0", _spelled(session, landing.source))
    try:
        reader = session.readStream.format("text").option("pathGlobFilter", "*.{json,jsonl,ndjson}")
        lines = reader.option("maxFilesPerTrigger", 100000).load(landing.source)
        lines.selectExpr(*COLUMNS).createOrReplaceTempView("lines")
        found = session.sql(landing.sql)
        if cancel.asked:
            raise _stopped(landing)
        query = (
            found.writeStream.format("delta")
            .outputMode("append")
            .option("checkpointLocation", landing.checkpoint)
            .option("userMetadata", json.dumps({**landing.metadata, foreign_commits.BY: "landing"}))
            .trigger(availableNow=True)
            .start(landing.table.path)
        )
        cancel.streams.append(query)
        query.awaitTermination()
        if cancel.asked:
            # A stream that was stopped ends like one that has done its work.
            raise _stopped(landing)
        atomic_files.write(Path(landing.table.path) / IDENTITY, str(query.id))
    finally:
        session.conf.unset("spark.sql.ansi.enabled")
        session.conf.unset("spark.sql.files.ignoreMissingFiles")


def _stopped(landing: Landing) -> EngineError:
    return EngineError("the stream was stopped", model=landing.table.name)
