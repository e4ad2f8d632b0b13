"""Checkpoint of a Structured Streaming query over files, as Spark writes it. Shell: files.

`offsets/N` plans batch N, `commits/N` marks its end, `sources/0` is the file source's log with the files of each batch.
Spark removes old batches and folds old logs into `N.compact`.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Collection, Iterator
from urllib.parse import unquote, urlparse

from sqlrun.errors import EngineError
from sqlrun.runtime import hadoop_checksums
from sqlrun.runtime.text_lines import text_lines
from sqlrun.source_api import Streamed
from sqlrun.storage.factory import storage_of

METADATA, OFFSETS, COMMITS, LOG = "metadata", "offsets", "commits", "sources/0"
FOLDERS = (COMMITS, OFFSETS, LOG)
# The file beside a landing table's log with the id of the query that owns its checkpoint.
IDENTITY = "_sqlrun_checkpoint"


def began(checkpoint: str) -> bool:
    """Return whether a stream has written this checkpoint."""
    return storage_of(checkpoint).stamp(f"{checkpoint}/{METADATA}") is not None


def query_id(checkpoint: str) -> str:
    """Return the id of the query that owns a checkpoint.

    Raises: OSError, ValueError, KeyError, TypeError if the file can't be read.
    """
    return str(json.loads(storage_of(checkpoint).text(f"{checkpoint}/{METADATA}"))["id"])


def numbers(checkpoint: str, folder: str) -> list[int]:
    """Return the numbers of the batches in a folder of a checkpoint, in order; [] if there is no folder."""
    return sorted(int(name) for name in storage_of(checkpoint).names(f"{checkpoint}/{folder}") if name.isdigit())


def source_files(checkpoint: str) -> Iterator[Streamed]:
    """Yield each file in the source's log: its name, its modification time (ns, cut to milliseconds), and its batch.

    Raises: EngineError.
    """
    storage, folder = storage_of(checkpoint), f"{checkpoint}/{LOG}"
    logs = [name for name in storage.names(folder) if not name.startswith(".")]
    for line in itertools.chain.from_iterable(text_lines(storage.text(f"{folder}/{log}"))[1:] for log in logs):
        try:
            entry = json.loads(line)
            name, changed_at, batch = entry["path"].rsplit("/", 1)[-1], entry["timestamp"], entry["batchId"]
            found = Streamed(unquote(name), (None, changed_at * 1_000_000), batch)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise EngineError(f"{folder} can't be read: {error}. Run `sqlrun doctor`") from error
        yield found


def source_logs(names: Collection[str]) -> dict[int, str]:
    """Return the files of a source's log by number; `9.compact` replaces all up to 9."""
    found = {}
    for name in names:
        number, _, ending = name.partition(".")
        if number.isdigit() and ending in ("", "compact"):
            found[int(number)] = name
    return found


def paths(checkpoint: str, log: str) -> list[str]:
    """Return the local paths in one file of the source's log."""
    data = storage_of(checkpoint).read(f"{checkpoint}/{LOG}/{log}")
    return [path for path in map(_path, text_lines(data.decode("utf-8", "replace"))[1:]) if path]


def fault(text: str, least: int) -> str:
    """Return what is wrong with a checkpoint's file: `v1`, then at least `least` lines of JSON; "" if it is valid."""
    lines = text.split("\n")
    if not text.strip():
        return "is empty"
    if not lines[0].startswith("v") or len([line for line in lines[1:] if line.strip()]) < least:
        return "is truncated"
    try:
        for line in lines[1:]:
            if line.strip() and line.strip() != "-":
                json.loads(line)
    except ValueError:
        return "is truncated"
    return ""


def relocate(checkpoint: str, qualified: Callable[[], str]) -> bool:
    """Update the paths in the source's log to the files' current place; return whether any changed.

    `qualified` returns the source's folder as Spark writes it, a URI without a final slash; it is called only if there
    is a log. To Spark a file at another path is another file, and it can't resume at a path outside the source; sqlrun
    identifies files by name alone. After an interruption, some files of the log are updated, and the next call updates
    the others.
    """
    storage, logs = storage_of(checkpoint), f"{checkpoint}/{LOG}"
    names = source_logs(storage.names(logs)).values()
    folder = qualified() if names else ""
    moved = False
    for name in names:
        text = storage.text(f"{logs}/{name}")
        now = "\n".join(_relocated(text, folder))
        if now != text:
            _write(logs, name, now.encode())
            moved = True
    return moved


def _relocated(text: str, folder: str) -> Iterator[str]:
    """Yield a log's lines with current paths; lines that are correct stay byte for byte."""
    version, *lines = text.split("\n")
    yield version
    for line in lines:
        if not line:
            yield line
            continue
        entry = json.loads(line)
        before, _, name = entry["path"].rpartition("/")
        if before == folder:
            yield line
        else:
            yield json.dumps(entry | {"path": f"{folder}/{name}"}, ensure_ascii=False, separators=(",", ":"))


def _write(folder: str, name: str, data: bytes) -> None:
    """Replace a file and Hadoop's checksum beside it: the old checksum never exists beside the new text."""
    storage, checksum = storage_of(folder), f"{folder}/.{name}.crc"
    is_summed = storage.is_there(checksum)
    storage.delete(checksum)
    storage.put(f"{folder}/{name}", data, synced=True)
    if is_summed:
        storage.put(checksum, hadoop_checksums.checksum_of(data), synced=False)


def _path(line: str) -> str:
    """Return the local path in a line of a source's log; "" if it has none."""
    try:
        url = urlparse(json.loads(line)["path"])
    except (ValueError, KeyError, TypeError):
        return ""
    return unquote(url.path) if url.scheme in ("", "file") else ""
