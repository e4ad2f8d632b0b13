"""Folders with paths that stay: `current/<schema>/<table>`, a Delta log that names a table's files. Shell: Delta files.

Each folder has a log of its own. On a disk it has the table's files under second names, so that every reader opens it;
on a store its log names them in the table's folder. A publish appends one commit with the difference of files, after
the ledger's row: a crash in between leaves the folder a tick behind, and the next command repairs it.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from typing import Any, Literal
from urllib.parse import quote, unquote

from sqlrun.engines.delta import deletion_vectors, foreign_commits, vacuum
from sqlrun.engines.delta import state as delta_state
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.delta.state import State, vector_of
from sqlrun.errors import EngineError
from sqlrun.incremental.landing.query import REASON
from sqlrun.publish import warehouse_format
from sqlrun.publish.environment_paths import schema
from sqlrun.publish.ledger import Ledger
from sqlrun.publish.table_state import Published, TableState, is_source, own_tables
from sqlrun.runtime import arrow_rows
from sqlrun.storage.factory import storage_of
from sqlrun.storage.urls import is_url
from sqlrun.version import __version__

FOLDER = "current"
# Keys of a commit's information: the table and version that the folder shows since, and the tick that published it.
SHOWS, TICK = "sqlrun.shows", "sqlrun.tick"
# After a table's version: the folder has its own names of the files.
LINKED = "+links"
UP = "../../.."
EVERY, TRIES = 10, 3
READERS = timedelta(hours=1)
KEPT = ("path", "partitionValues", "size", "modificationTime", "dataChange", "stats", "deletionVector")
NTZ = "timestampNtz"
Action = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder, and the published table that it has to show."""

    path: str
    name: str
    warehouse: str
    state: TableState
    tick: int
    copies: bool | None = None  # on a store: whether it has copies of the files; None: as it has them now
    shown: str = ""

    @property
    def table(self) -> str:
        """Return the path of the published table."""
        return f"{self.warehouse}/{self.state.path}"

    @property
    def shows(self) -> str:
        """Return the table and the version that the folder has to show, and how it names files."""
        return f"{self.state.path}@{self.state.version}{LINKED if self.linked else ''}"

    @property
    def linked(self) -> bool:
        """Return whether the folder has names of its own for the files: on a disk, and as copies on a store."""
        if not is_url(self.warehouse):
            return True
        return self.shown.endswith(LINKED) if self.copies is None else self.copies


def place(ledger: Ledger) -> str:
    """Return the folder of an environment's current tables; "" in a warehouse without an owner."""
    name = schema_of(ledger)
    return f"{ledger.warehouse}/{FOLDER}/{name}" if name else ""


def schema_of(ledger: Ledger) -> str:
    """Return the schema of an environment's tables; "" in a warehouse without an owner."""
    project = ledger.project or warehouse_format.owner(ledger.warehouse)
    return schema(project, ledger.env) if project else ""


def follow(
    ledger: Ledger,
    published: Published | None,
    warn: Callable[[str], None],
    *,
    create: bool | Literal["copies"] = False,
) -> None:
    """Make the folders show a published tick; without `create`, only folders that exist, in the form that they have.

    Delete the folder of a table that is no longer published. A failure is a warning: the tick is published already.
    """
    base = place(ledger)
    if published is None or not base:
        return
    storage = storage_of(ledger.warehouse)
    there = set(storage.names(base))
    tables = {n: s for n, s in own_tables(published.tables).items() if not is_source(s.path)}
    wanted = tables if create else {name: state for name, state in tables.items() if name in there}
    copies = create == "copies" if create else None
    folders = [Folder(f"{base}/{n}", n, ledger.warehouse, s, published.tick, copies) for n, s in sorted(wanted.items())]
    followed = storage.at_once(_followed, folders)
    versions = {folder.name: version for folder, (_, version) in zip(folders, followed, strict=True)}
    messages = [text for text, _ in followed]
    if None not in versions.values() and (folders or there):
        messages.append(_pointed(base, published, versions))
    # After the pointer: a reader of whole ticks looks for no folder that is gone.
    messages += storage.at_once(_dropped, [f"{base}/{name}" for name in sorted(there - tables.keys())])
    for text in filter(None, messages):
        warn(text)


def pointer(base: str) -> str:
    """Return the file that names the newest tick, and the version of each folder that shows it, for readers of ticks.

    It is beside the folders of an environment, `current/<schema>.json`.
    """
    return f"{base}.json"


def _pointed(base: str, published: Published, versions: Mapping[str, int | None]) -> str:
    """Write the pointer in one step, once all folders show the tick; return a warning, or "".

    Without a folder, nothing is published that a reader could find: there is no pointer then.
    """
    if not versions:
        storage_of(base).delete(pointer(base))
        return ""
    content = {"tick": published.tick, "as_of": published.as_of.isoformat(), "tables": versions}
    try:
        storage_of(base).put(pointer(base), json.dumps(content).encode(), synced=False)
    except (EngineError, OSError) as error:
        return f"{pointer(base)} doesn't name tick {published.tick} yet: {error}. The next build tries again."
    return ""


def behind(ledger: Ledger, published: Published | None) -> list[str]:
    """Return the names of the folders that don't show a published tick."""
    base = place(ledger)
    if published is None or not base:
        return []
    tables = own_tables(published.tables)
    folders = [
        Folder(f"{base}/{name}", name, ledger.warehouse, tables[name], published.tick)
        for name in sorted(storage_of(ledger.warehouse).names(base))
        if name in tables
    ]
    shown = ((each, _shown(each.path, delta_table.head(each.path))) for each in folders)
    found = [each.name for each, text in shown if text != replace(each, shown=text).shows]
    return found or ([] if not folders or _named(base) == published.tick else [pointer(base).rpartition("/")[2]])


def _named(base: str) -> int | None:
    """Return the tick that the pointer names; None if there is none, or another writer broke it."""
    try:
        return int(json.loads(storage_of(base).read(pointer(base)))["tick"])
    except (EngineError, OSError, ValueError, KeyError, TypeError):
        return None


def drop(ledger: Ledger) -> None:
    """Delete the folders of an environment."""
    if base := place(ledger):
        storage = storage_of(ledger.warehouse)
        storage.delete(pointer(base))
        storage.delete_folder(base)


def _followed(folder: Folder) -> tuple[str, int | None]:
    """Make a folder show its table; return a warning or "", and the folder's version that shows it."""
    warning = ""
    try:
        for _ in range(TRIES):
            head = _whole_head(folder.path)
            shown = _shown(folder.path, head)
            folder = replace(folder, shown=shown or _last_shown(folder.path, head))
            if shown == folder.shows:
                return warning, head
            if head is not None and not shown:
                warning = _foreign(folder, head)
            version = 0 if head is None else head + 1
            if _committed(folder, version, shown):
                return warning, version
    except (EngineError, OSError, ValueError) as error:
        text = f"The folder {folder.path} doesn't show tick {folder.tick} yet: {error}. The next build tries again."
        return text, None
    text = f"The folder {folder.path} doesn't show tick {folder.tick} yet: another writer keeps writing to it."
    return text, None


def _dropped(path: str) -> str:
    """Delete the folder of a table that is no longer published; leave a folder that sqlrun didn't write."""
    try:
        if _shown(path, delta_table.head(path)):
            storage_of(path).delete_folder(path)
    except (EngineError, OSError) as error:
        return f"The folder {path} shows a table that is no longer published, and can't be deleted: {error}."
    return ""


def _whole_head(path: str) -> int | None:
    """Return a folder's newest version, after deletion of entries that a power failure truncated."""
    while (head := delta_table.head(path)) is not None:
        try:
            delta_table.actions(path, head)
        except EngineError:
            storage_of(path).delete(delta_table.entry_path(path, head))
            continue
        return head
    return None


def _shown(path: str, head: int | None) -> str:
    """Return what a folder shows, by its newest commit; "" if there is none, or another writer made it."""
    if head is None:
        return ""
    try:
        return str(foreign_commits.info_of(delta_table.actions(path, head)).get(SHOWS) or "")
    except EngineError:
        return ""


def _last_shown(path: str, head: int | None) -> str:
    """Return what sqlrun's newest commit to a folder shows; "" if there is none."""
    versions = range(head, -1, -1) if head is not None else ()
    return next(filter(None, (_shown(path, version) for version in versions)), "")


def _foreign(folder: Folder, head: int) -> str:
    """Return a warning about the newest commits of a folder, which others made."""
    whose = foreign_commits.Whose("")
    found = []
    for version in range(head, -1, -1):
        if _shown(folder.path, version):
            break
        actions = delta_table.actions(folder.path, version)
        one = foreign_commits.of(version, actions, whose)
        found += [one] if one is not None else []
    summary = foreign_commits.summary(reversed(found)) or f"version {head}"
    return (
        f"SR741 {folder.path} was changed by another writer than sqlrun: {summary}. The change is gone from the "
        f"folder, which shows {folder.name} of tick {folder.tick} again; the published table was never touched."
    )


def _committed(folder: Folder, version: int, shown: str) -> bool:
    """Commit the difference between what a folder shows and its table; return False if the version is taken."""
    actions = _quick(folder, shown) if version else None
    if actions is None:
        actions = list(_whole(folder, version - 1 if version else None))
    if folder.linked:
        for entry in (action["add"] for action in actions if "add" in action):
            _link(folder, entry)
    now = time.time_ns() // 1_000_000
    info = {
        "timestamp": now,
        "operation": "WRITE",
        "operationParameters": {"mode": "Overwrite"},
        "engineInfo": f"{foreign_commits.ENGINE}{__version__}",
        "txnId": str(uuid.uuid4()),
        SHOWS: folder.shows,
        TICK: str(folder.tick),
    }
    lines = [{"commitInfo": info}, *actions]
    text = "".join(json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n" for line in lines)
    entry = delta_table.entry_path(folder.path, version)
    if not storage_of(entry).put_if_absent(entry, text.encode(), synced=False):
        return False
    if version and version % EVERY == 0:
        delta_table.opened(folder.path, version).create_checkpoint()
        before = datetime.now(timezone.utc) - READERS
        if folder.linked:
            vacuum.drop_unnamed(folder.path, before)
        vacuum.trim_log(folder.path, version, before)
    return True


def _link(folder: Folder, entry: Mapping[str, Any]) -> None:
    """Give a file of the table, and the file of its vector, a name in the folder."""
    for name in (unquote(entry["path"]), deletion_vectors.file_of(entry.get("deletionVector"))):
        if name:
            storage_of(folder.path).link(f"{folder.table}/{name}", f"{folder.path}/{name}")


def _quick(folder: Folder, shown: str) -> list[Action] | None:
    """Return the actions from the table's own commits; None if they don't suffice."""
    path, _, version = shown.removesuffix(LINKED).rpartition("@")
    if shown.endswith(LINKED) != folder.linked or path != folder.state.path or int(version) > folder.state.version:
        return None
    added, removed = dict[str, Action](), dict[tuple[str, str], Action]()
    for number in range(int(version) + 1, folder.state.version + 1):
        done = delta_table.actions(folder.table, number)
        if foreign_commits.reshapes(done):
            return None
        for removal in (a["remove"] for a in done if "remove" in a):
            if folder.state.where or not _can_name(removal):
                return None
            before = added.get(removal["path"])
            if before is not None and vector_of(before) == vector_of(removal):
                del added[removal["path"]]
            else:
                removed[removal["path"], vector_of(removal)] = removal
        added.update({a["add"]["path"]: a["add"] for a in done if "add" in a})
    names = {name for name, _ in folder.state.columns}
    gone = [
        _removal({**each, "path": _path_of(folder, each["path"]), "deletionVector": _vector(folder, each)}, names)
        for each in removed.values()
    ]
    came = [{"add": _entry(folder, each, names)} for each in added.values()]
    return [*gone, *came]


def _whole(folder: Folder, head: int | None) -> Iterator[Action]:
    """Yield the actions by comparing the whole states of the folder and of the table."""
    names = {name for name, _ in folder.state.columns}
    then = delta_state.at(folder.table, folder.state.version)
    now = State() if head is None else delta_state.at(folder.path, head)
    entries = (_entry(folder, each, names) for each in then.files.values())
    wanted = {entry["path"]: entry for entry in entries}
    metadata = _metadata(folder, then, now)
    protocol = _protocol(folder, then, metadata["schemaString"])
    if now.protocol != protocol:
        yield {"protocol": protocol}
    if now.metadata is None or any(now.metadata.get(key) != value for key, value in metadata.items()):
        yield {"metaData": metadata}
    for path, entry in now.files.items():
        if path not in wanted or vector_of(wanted[path]) != vector_of(entry):
            yield _removal(entry, set(entry["partitionValues"]))
    for path, entry in wanted.items():
        if path not in now.files or vector_of(now.files[path]) != vector_of(entry):
            yield {"add": {**entry, "dataChange": True}}


def _path_of(folder: Folder, path: str) -> str:
    """Return a file's path as the folder's log names it."""
    return path if folder.linked else f"{UP}/{quote(folder.state.path)}/{path}"


def _entry(folder: Folder, entry: Mapping[str, Any], names: set[str]) -> Action:
    """Return the entry of a table's file as the folder's log has it."""
    found = {key: entry[key] for key in KEPT if entry.get(key) is not None}
    found["path"] = _path_of(folder, entry["path"])
    found["partitionValues"] = {k: v for k, v in entry["partitionValues"].items() if k in names}
    quarantined = _quarantined(folder, entry) if folder.state.where else []
    if quarantined or not _can_name(entry):
        found["deletionVector"] = deletion_vectors.descriptor(
            (*deletion_vectors.rows_of(folder.table, entry), *quarantined)
        )
    elif vector := _vector(folder, entry):
        found["deletionVector"] = vector
    return found


def _can_name(entry: Mapping[str, Any]) -> bool:
    """Return whether a folder's log can name a file's vector: it has none, or it isn't at an absolute place."""
    vector = entry.get("deletionVector")
    return not vector or vector["storageType"] in (deletion_vectors.INLINED, deletion_vectors.RELATIVE)


def _vector(folder: Folder, entry: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return a file's vector as the folder's log names it."""
    vector: Mapping[str, Any] | None = entry.get("deletionVector")
    if vector and not folder.linked and deletion_vectors.file_of(vector):
        return deletion_vectors.below(vector, f"{UP}/{folder.state.path}")
    return vector


def _quarantined(folder: Folder, entry: Mapping[str, Any]) -> list[int]:
    """Return the numbers of the quarantined rows in a landing table's file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    stats = json.loads(entry.get("stats") or "{}")
    count = stats.get("numRecords")
    if count is not None and (stats.get("nullCount") or {}).get(REASON) == count:
        return []
    file = f"{folder.table}/{unquote(entry['path'])}"
    found = pq.ParquetFile(pa.BufferReader(storage_of(file).read(file))).read(columns=[REASON])
    return [number for number, row in enumerate(arrow_rows.plain(found)) if row[REASON] is not None]


def _removal(entry: Mapping[str, Any], names: set[str]) -> Action:
    removal = {"path": entry["path"], "deletionTimestamp": time.time_ns() // 1_000_000}
    values = {k: v for k, v in (entry.get("partitionValues") or {}).items() if k in names}
    vector = {"deletionVector": entry["deletionVector"]} if entry.get("deletionVector") else {}
    size = {"size": entry["size"]} if "size" in entry else {}
    changes = {"dataChange": entry.get("dataChange", True), "extendedFileMetadata": True}
    return {"remove": {**removal, **changes, "partitionValues": values, **size, **vector}}


def _metadata(folder: Folder, then: State, now: State) -> Action:
    """Return the folder's metadata: that of the table with the declared columns only, and the folder's own id."""
    assert then.metadata is not None
    fields = {field["name"]: field for field in json.loads(then.metadata["schemaString"])["fields"]}
    struct = {"type": "struct", "fields": [fields[name] for name, _ in folder.state.columns]}
    shown = {name for name, _ in folder.state.columns}
    known = now.metadata or {}
    return {
        "id": known.get("id") or str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(struct, separators=(",", ":"), ensure_ascii=False),
        "partitionColumns": [name for name in then.metadata["partitionColumns"] if name in shown],
        "createdTime": known.get("createdTime") or time.time_ns() // 1_000_000,
        "configuration": {"delta.checkpointInterval": str(EVERY)},
    }


def _protocol(folder: Folder, then: State, text: str) -> Action:
    """Return the lowest protocol that supports what the folder has."""
    marks = deletion_vectors.FEATURE in ((then.protocol or {}).get("readerFeatures") or ())
    readers = [*([deletion_vectors.FEATURE] if marks or folder.state.where else []),
               *([NTZ] if '"timestamp_ntz"' in text else [])]  # fmt: skip
    if not readers:
        return {"minReaderVersion": 1, "minWriterVersion": 2}
    named = {"readerFeatures": readers, "writerFeatures": readers}
    return {"minReaderVersion": 3, "minWriterVersion": 7, **named}
