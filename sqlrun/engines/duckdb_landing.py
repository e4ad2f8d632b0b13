"""Landing files on DuckDB: a batch is planned, then committed under its number. Shell: files, DuckDB, Delta files.

The protocol is Structured Streaming's: the files of batch N are written to `<checkpoint>/batches/N.json` first; the
table's commit then carries the transaction id (checkpoint, N). At start a batch that was planned but is not in
the table is carried out again with the very same files; any other is done and never read again.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlrun.engines import delta_files, duckdb_merge
from sqlrun.engines.protocol import Landing
from sqlrun.errors import EngineError

CHUNK = 64 * 1024 * 1024  # bytes of text held in memory at once
KEEP = 64  # batch files before they are folded into one


def land(session: Any, landing: Landing) -> int:
    """Land what is new; give the number of rows written, quarantined ones included."""
    checkpoint = Path(landing.checkpoint)
    table = delta_files.open_table(landing.table.path)
    app_id = f"{landing.app_id}:{_identity(checkpoint, table.version(), landing)}"
    seen, last = _planned(checkpoint)
    committed = table.transaction_version(app_id)
    if table.version() > 0 and (committed is None or committed > last):
        raise EngineError(
            f"the checkpoint of {landing.table.name} belongs to another table, or its list of batches is gone: landing "
            f"again would double rows. Put it back, or run `sqlrun build --full-refresh --select "
            f"{landing.table.name}+`.",
            model=landing.table.name,
        )
    rows = 0
    if last > (committed or 0):
        rows += _commit(session, landing, table, app_id, last, _files_of(checkpoint, last))
    fresh = sorted(name for name in input_files(landing.source) if name not in seen)
    if fresh:
        _plan(checkpoint, last + 1, fresh)
        table.update_incremental()
        rows += _commit(session, landing, table, app_id, last + 1, fresh)
        _fold(checkpoint, last + 1)
    return rows


def input_files(folder: str) -> Iterator[str]:
    """Name the files of a source: *.json, *.jsonl, *.ndjson; hidden ones are being written."""
    try:
        entries = list(os.scandir(folder))
    except FileNotFoundError as error:
        raise EngineError(f"the source folder {folder} does not exist") from error
    for entry in entries:
        if entry.name[0] not in "._" and entry.name.endswith((".json", ".jsonl", ".ndjson")) and entry.is_file():
            yield entry.name


def _identity(checkpoint: Path, version: int, landing: Landing) -> str:
    """Give the checkpoint's own id; a table with rows whose checkpoint is gone is refused, not read again."""
    file = checkpoint / "id"
    if file.exists():
        return file.read_text().strip()
    if version > 0:
        raise EngineError(
            f"{landing.table.name} holds rows, but its checkpoint is gone: landing from the beginning would double "
            "them. Put the checkpoint back, or run `sqlrun build --full-refresh --select "
            f"{landing.table.name}`.",
            model=landing.table.name,
        )
    (checkpoint / "batches").mkdir(parents=True, exist_ok=True)
    made = uuid.uuid4().hex
    _write_file(file, made)
    return made


def _planned(checkpoint: Path) -> tuple[set[str], int]:
    """Read the names of all files in planned batches, and the newest batch's number (0: none)."""
    seen: set[str] = set()
    last = 0
    for file in (checkpoint / "batches").glob("*.json"):
        try:
            batch = json.loads(file.read_text())
        except ValueError:
            file.rename(file.with_suffix(".torn"))  # a torn plan was never carried out: it is synced before
            continue
        seen.update(batch["files"])
        last = max(last, batch["batch"])
    return seen, last


def _files_of(checkpoint: Path, number: int) -> list[str]:
    batch = json.loads((checkpoint / "batches" / f"{number}.json").read_text())
    return list(batch["newest"] if "newest" in batch else batch["files"])


def _plan(checkpoint: Path, number: int, files: list[str]) -> None:
    _write_file(checkpoint / "batches" / f"{number}.json", json.dumps({"batch": number, "files": files}))


def _fold(checkpoint: Path, number: int) -> None:
    """Fold old batches into the newest file, which remembers its own files apart."""
    files = sorted((checkpoint / "batches").glob("*.json"))
    if len(files) <= KEEP:
        return
    seen, _ = _planned(checkpoint)
    newest = _files_of(checkpoint, number)
    folded = {"batch": number, "files": sorted(seen), "newest": newest}
    _write_file(checkpoint / "batches" / f"{number}.json", json.dumps(folded))
    for file in files:
        if file.name != f"{number}.json":
            file.unlink()


def _write_file(file: Path, text: str) -> None:
    """Write whole or not at all, and durably: temporary name, sync, rename, sync the folder."""
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.tmp")
    with temporary.open("w") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    temporary.replace(file)
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _commit(session: Any, landing: Landing, table: Any, app_id: str, number: int, files: list[str]) -> int:
    names = ", ".join(f'"{c.name}"' for c in landing.table.columns)
    session.execute("drop table if exists _landed")
    for chunk in _chunks(landing.source, files):
        session.register("lines", chunk)
        exists = session.execute("select count(*) from duckdb_tables() where table_name = '_landed'").fetchall()[0][0]
        verb = "insert into _landed" if exists else "create temp table _landed as"
        session.execute(f"{verb} select {names} from ({landing.query})")
        session.unregister("lines")
    count = int(session.execute("select count(*) from _landed").fetchall()[0][0])
    commit = delta_files.commit(app_id, number, {**landing.metadata, "sqlrun.files": str(len(files))})
    reader = session.sql("select * from _landed").to_arrow_reader(100_000)
    # A batch without rows is committed too: its number must be on record.
    duckdb_merge._write(table, reader, "append", commit)
    return count


def _chunks(folder: str, files: list[str]) -> Iterator[Any]:
    """Read files as lines, a bounded amount of text at a time; a file is never parted."""
    import pyarrow as pa

    values: list[bytes] = []
    names: list[str] = []
    size = 0

    def table() -> Any:
        texts = pa.array([value.decode("utf-8", "replace") for value in values], pa.string())
        return pa.table({"value": texts, "file": pa.array(names, pa.string())})

    for name in files:
        data = (Path(folder) / name).read_bytes().replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = data.split(b"\n")
        if lines and not lines[-1]:
            lines.pop()
        values.extend(lines)
        names.extend([name] * len(lines))
        size += len(data)
        if size >= CHUNK:
            yield table()
            values, names, size = [], [], 0
    yield table()
