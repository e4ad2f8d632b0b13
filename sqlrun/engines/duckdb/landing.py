"""Landing files on DuckDB: a batch is planned, then committed under its number. Shell: files, DuckDB, Delta files.

The protocol is Structured Streaming's: the files of batch N are written to `<checkpoint>/batches/N.json` first; the
table's commit then carries the transaction id (checkpoint, N). At start a batch that was planned but is not in
the table is carried out again with the very same files; any other is done and never read again. A file that has
changed since it was planned is left to the next batch, as long as its own isn't committed.
"""

from __future__ import annotations

import codecs
import json
import uuid
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sqlrun.engine_api import Append, Landing, Write
from sqlrun.engines import checkpoint_files, source_files
from sqlrun.engines.delta import log_faults, table_pool
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.duckdb import append as duckdb_append
from sqlrun.engines.source_files import Stat
from sqlrun.errors import EngineError, LockedError
from sqlrun.runtime import atomic_files

Files = dict[str, Stat]
CHUNK = 64 * 1024 * 1024  # bytes of text held in memory at once
PIECE = 4 * 1024  # lines that a thread of DuckDB's takes at once
KEEP = 64  # batch files before they are folded into one


def land(session: Callable[[], Any], landing: Landing) -> tuple[int, tuple[str, ...]]:
    """Land what is new; give the number of rows written, quarantined ones included, and what is to be told.

    `session` is opened where something lands.
    """
    with table_pool.writing(landing.table.path) as table:
        return _landed(session, landing, table)


def _landed(session: Callable[[], Any], landing: Landing, table: Any) -> tuple[int, tuple[str, ...]]:
    checkpoint = Path(landing.checkpoint)
    app_id = f"{landing.app_id}:{_identity(checkpoint, table.version(), landing)}"
    plans = _planned(checkpoint, landing)
    seen, last = _seen(plans), max(plans, default=0)
    committed = table.transaction_version(app_id)
    if table.version() > 0 and (committed is None or committed > last):
        raise EngineError(
            f"the checkpoint of {landing.table.name} belongs to another table, or its list of batches is gone: landing "
            f"again would double rows. Put it back, or run `sqlrun build --full-refresh --select "
            f"{landing.table.name}+`.",
            model=landing.table.name,
        )
    rows, left = 0, list[str]()
    present = source_files.listed(landing.source)
    # After a loss of power the table may lack more than one.
    for number in (n for n in sorted(plans) if n > (committed or 0)):
        again, unsettled = _commit(session(), landing, table, app_id, number, _files_of(plans[number]))
        delta_table.follow(landing.table.path, table)
        rows, left = rows + again, left + unsettled
    if left:
        seen = {name: stat for name, stat in seen.items() if name not in left}
    fresh = {name: stat for name, stat in sorted(present.items()) if name not in seen and name not in left}
    growing = [name for name, stat in fresh.items() if source_files.half_written(landing.source, name, stat)]
    fresh = {name: stat for name, stat in fresh.items() if name not in growing}
    left += growing
    if fresh:
        if not _plan(checkpoint, last + 1, fresh):
            raise _overtaken(landing.table.name)
        delta_table.follow(landing.table.path, table)
        more, unsettled = _commit(session(), landing, table, app_id, last + 1, fresh)
        rows, left = rows + more, left + unsettled
        _fold(checkpoint, last + 1, landing)
    told = (source_files.warning(seen, present), source_files.waiting(left))
    return rows, tuple(note for note in told if note)


def _identity(checkpoint: Path, version: int, landing: Landing) -> str:
    """Give the checkpoint's own id; a table with rows whose checkpoint is gone is refused, not read again."""
    file = checkpoint / "id"
    known = file.read_text().strip() if file.exists() else ""
    if known:
        return known
    if version > 0:
        raise EngineError(
            f"{landing.table.name} holds rows, but its checkpoint is gone: landing from the beginning would double "
            "them. Put the checkpoint back, or run `sqlrun build --full-refresh --select "
            f"{landing.table.name}`.",
            model=landing.table.name,
        )
    (checkpoint / "batches").mkdir(parents=True, exist_ok=True)
    if not atomic_files.write_new(file, uuid.uuid4().hex):
        raise _overtaken(landing.table.name)
    return file.read_text().strip()


def _planned(checkpoint: Path, landing: Landing) -> dict[int, dict[str, Any]]:
    """Read the planned batches by number: all of them, or from the one on that older ones were folded into."""
    plans = checkpoint_files.plans(checkpoint)
    bad = log_faults.plans_fault(plans)
    if bad is not None:
        raise EngineError(
            f"batch {bad} of {landing.table.name} is torn or gone from {checkpoint / 'batches'}: its files would land "
            f"twice. Put it back, or run `sqlrun build --full-refresh --select {landing.table.name}+`.",
            model=landing.table.name,
        )
    return {number: plan for number, plan in plans.items() if plan is not None}


def _seen(plans: dict[int, dict[str, Any]]) -> Files:
    """Name the files of all planned batches with their state then."""
    seen: Files = {}
    for number in sorted(plans):
        seen |= _stats(plans[number], plans[number]["files"])
    return seen


def _stats(batch: dict[str, Any], names: list[str]) -> Files:
    stats = batch.get("stats", {})
    return {name: (stats[name][0], stats[name][1]) if name in stats else (None, None) for name in names}


def _files_of(plan: dict[str, Any]) -> Files:
    return _stats(plan, plan["newest"] if "newest" in plan else plan["files"])


def _plan(checkpoint: Path, number: int, files: Files) -> bool:
    """Write a batch down; False where another build has planned the same number, with other files perhaps."""
    return atomic_files.write_new(checkpoint / "batches" / f"{number}.json", _planning(number, files))


def _planning(number: int, files: Files) -> str:
    return json.dumps({"batch": number, "files": list(files), "stats": files})


def _overtaken(name: str) -> LockedError:
    return LockedError(f"another build lands {name} at this moment; this one has landed nothing")


def _fold(checkpoint: Path, number: int, landing: Landing) -> None:
    """Fold old batches into the newest file, which remembers its own files apart.

    What is folded can't be carried out again, so its commits are made durable first.
    """
    files = sorted((checkpoint / "batches").glob("*.json"))
    if len(files) <= KEEP:
        return
    atomic_files.sync(landing.table.path)
    plans = _planned(checkpoint, landing)
    seen, newest = _seen(plans), list(_files_of(plans[number]))
    folded = {"batch": number, "files": sorted(seen), "newest": newest, "stats": seen}
    atomic_files.write(checkpoint / "batches" / f"{number}.json", json.dumps(folded))
    for file in files:
        # A later one is another build's, which has overtaken this one.
        if int(file.stem) < number:
            file.unlink(missing_ok=True)


def _commit(
    session: Any, landing: Landing, table: Any, app_id: str, number: int, files: Files
) -> tuple[int, list[str]]:
    """Land a batch; give its rows, and the files that were left out because they aren't what the plan says.

    Those leave the plan before the commit, so that the next batch takes them as they are then.
    """
    write = Write(landing.table, table.version(), number, app_id, (), Append(landing.sql), landing.metadata)
    read = _Reading(landing, files)
    with duckdb_append.coming(session, table, write) as rows:
        for chunk in read.chunks():
            session.register("lines", chunk)
            rows.add(landing.sql)
            session.unregister("lines")
        if read.gone and not landing.accept_lost:
            raise source_files.gone(landing.table.name, landing.source, read.gone)
        left = [*read.unsettled, *read.gone]
        if left:
            if delta_table.head(landing.table.path) != table.version():
                # Another build may have read them: taken off the list they would land again.
                raise _overtaken(landing.table.name)
            rest = {name: stat for name, stat in files.items() if name not in left}
            atomic_files.write(Path(landing.checkpoint) / "batches" / f"{number}.json", _planning(number, rest))
        # A batch without rows is committed too: its number must be on record.
        count = rows.commit({**landing.metadata, "sqlrun.files": str(len(files) - len(left))})
    return count, read.unsettled


class _Reading:
    """Files read as lines, a bounded amount of text at a time; a file is never parted."""

    def __init__(self, landing: Landing, files: Files) -> None:
        self._folder, self._files = landing.source, files
        self.unsettled: list[str] = []
        self.gone: list[str] = []

    def chunks(self) -> Iterator[Any]:
        """Give tables of lines; afterwards it is known which files were not read."""
        parts: list[Any] = []
        size = 0
        for name, stat in self._files.items():
            data = self._read(name, stat)
            if data is None:
                continue
            parts.append(_lines(data, name))
            size += len(data)
            if size >= CHUNK:
                yield _table(parts)
                parts, size = [], 0
        yield _table(parts)

    def _read(self, name: str, stat: Stat) -> bytes | None:
        try:
            data = source_files.read_whole(self._folder, name, stat)
        except FileNotFoundError:
            self.gone.append(name)
            return None
        if data is None:
            self.unsettled.append(name)
        return data


def _lines(data: bytes, name: str) -> Any:
    """Part a file into a table of its lines, as UTF-8; a byte that is none of its is replaced.

    A mark of the byte order at the beginning is no part of the first line, as for Spark.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    data = data.removeprefix(codecs.BOM_UTF8)
    if not data.isascii():
        try:
            data.decode("utf-8")
        except UnicodeDecodeError:
            data = data.decode("utf-8", "replace").encode()
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    # PyArrow looks at each value of a list that it is given, and imports pandas to do so: it is given memory.
    ends = pa.py_buffer(array("q", (0, len(data))))
    whole = pa.LargeStringArray.from_buffers(1, ends, pa.py_buffer(data))
    lines = pc.split_pattern(whole, pattern="\n").flatten()
    if not data or data.endswith(b"\n"):
        lines = lines[:-1]
    return pa.Table.from_arrays([lines, pa.repeat(pa.scalar(name, pa.large_string()), len(lines))], ["value", "file"])


def _table(parts: list[Any]) -> Any:
    """Put tables of lines together, in pieces that DuckDB's threads share."""
    import pyarrow as pa

    schema = pa.schema([("value", pa.large_string()), ("file", pa.large_string())])
    table = pa.concat_tables(parts) if parts else schema.empty_table()
    return pa.Table.from_batches(table.to_batches(PIECE), schema)
