"""The checkpoint of a Structured Streaming query over files, as Spark writes it. Shell: files.

`offsets/N` plans batch N, `commits/N` says that it ended, `sources/0` is the file source's log: which files each batch
has. Spark removes old batches and folds old logs into `N.compact`.
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
# The file beside a landing table's log that names the query whose checkpoint belongs to it.
IDENTITY = "_sqlrun_checkpoint"


def began(checkpoint: str) -> bool:
    """Return whether a stream has written this checkpoint."""
    return storage_of(checkpoint).is_there(f"{checkpoint}/{METADATA}")


def query_id(checkpoint: str) -> str:
    """Return the id of the query whose checkpoint this is.

    Raises: OSError, ValueError, KeyError, TypeError where the file can't be read.
    """
    return str(json.loads(storage_of(checkpoint).text(f"{checkpoint}/{METADATA}"))["id"])


def numbers(checkpoint: str, folder: str) -> list[int]:
    """Return the batches that a folder of a checkpoint has, in order; none where there is no folder."""
    return sorted(int(name) for name in storage_of(checkpoint).names(f"{checkpoint}/{folder}") if name.isdigit())


def source_files(checkpoint: str) -> Iterator[Streamed]:
    """Return each file in the source's log: its name, its time of change (ns, cut to milliseconds), and its batch.

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
    """Return the files of a source's log by number; `9.compact` stands for all up to 9."""
    found = {}
    for name in names:
        number, _, ending = name.partition(".")
        if number.isdigit() and ending in ("", "compact"):
            found[int(number)] = name
    return found


def paths(checkpoint: str, log: str) -> list[str]:
    """Return the local paths of the files that one file of the source's log names."""
    data = storage_of(checkpoint).read(f"{checkpoint}/{LOG}/{log}")
    return [path for path in map(_path, text_lines(data.decode("utf-8", "replace"))[1:]) if path]


def fault(text: str, least: int) -> str:
    """Return what is wrong with a file of a checkpoint: `v1`, then JSON by the line, at least `least` of them."""
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
    """Make the source's log name its files where they are now; return whether they were elsewhere.

    `qualified` returns the source's folder as Spark writes it, a URI without a last slash; it is called where there is
    a log. Spark takes a file at another path for another file, and can't resume at a path that isn't the source's;
    sqlrun tells files apart by their names alone. Where this is interrupted, some files of the log are right, and the
    next call goes on.
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
    """Return a log's lines with present paths; lines that are right stay as they are, byte for byte."""
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
    """Replace a file and the checksum that Hadoop keeps beside it: the old one never stands beside the new text."""
    storage, checksum = storage_of(folder), f"{folder}/.{name}.crc"
    is_summed = storage.is_there(checksum)
    storage.delete(checksum)
    storage.put(f"{folder}/{name}", data, synced=True)
    if is_summed:
        storage.put(checksum, hadoop_checksums.checksum_of(data), synced=False)


def _path(line: str) -> str:
    """Return a local file's path from a line of a source's log; "" where it says none."""
    try:
        url = urlparse(json.loads(line)["path"])
    except (ValueError, KeyError, TypeError):
        return ""
    return unquote(url.path) if url.scheme in ("", "file") else ""
