"""Detection of other writers' commits to sqlrun's tables, and their description. Pure.

Every commit of sqlrun carries a mark or a transaction id. A commit that only moves rows (OPTIMIZE) or files (VACUUM)
changes no query result, so any writer may make it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

# Prefix of the keys in a commit's information that mark it as sqlrun's.
MARK = "sqlrun."
BY = "sqlrun.by"
# Key for the versions that a commit rolls back; together they don't change the table's rows.
UNDOES = "sqlrun.undoes"
ENGINE = "sqlrun:"
# Operations that compact files.
STREAM = "STREAMING UPDATE"
MOVES = {"OPTIMIZE", "REORG"}
# Metrics with which writers count the rows of a commit.
COUNTS = {
    "inserted": ("numOutputRows", "num_added_rows", "numTargetRowsInserted", "num_target_rows_inserted"),
    "deleted": ("numDeletedRows", "num_deleted_rows", "numTargetRowsDeleted", "num_target_rows_deleted"),
    "updated": ("numUpdatedRows", "num_updated_rows", "numTargetRowsUpdated", "num_target_rows_updated"),
}
Actions = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Foreign:
    """A commit of another writer: its version, operation, engine and time, and a summary of its metrics.

    `reshapes`: it changed the table's columns, properties or features.
    """

    version: int
    operation: str
    engine: str
    at: datetime | None
    did: str
    reshapes: bool = False

    def __str__(self) -> str:
        when = f", {self.at:%Y-%m-%d %H:%M:%S} UTC" if self.at else ""
        return f"version {self.version} ({self.operation} by {self.engine}{when}: {self.did})"


def summary(found: Iterable[Foreign]) -> str:
    """Return a list of foreign commits as text, the first three in detail."""
    each = list(found)
    more = f" and {len(each) - 3} more" if len(each) > 3 else ""
    return ", ".join(map(str, each[:3])) + more


def info_of(actions: Actions) -> Mapping[str, Any]:
    """Return a commit's information; empty if it has none."""
    found = next((action["commitInfo"] for action in actions if "commitInfo" in action), None)
    return found if isinstance(found, dict) else {}


def is_marked(actions: Actions) -> bool:
    """Return whether a commit has sqlrun's mark."""
    info = info_of(actions)
    return (
        any(key.startswith(MARK) for key in info)
        or str(info.get("engineInfo", "")).startswith(ENGINE)
        or f'"{MARK}' in str(info.get("userMetadata") or "")
    )


def no_streams() -> frozenset[str]:
    """Return the streams that land into a table that isn't a landing table."""
    return frozenset()


@dataclass(frozen=True, slots=True)
class Whose:
    """The owners of a table's commits: the project, and the streams that land into it.

    `streams` returns None if the stream is unknown; landing rejects such a table. It is called only for a commit that
    has neither sqlrun's mark nor a tick's id.
    """

    project: str
    streams: Callable[[], frozenset[str] | None] = no_streams

    def wrote(self, actions: Actions) -> bool:
        """Return whether a commit is sqlrun's, by its mark or by the transaction id of a tick or of the stream."""
        ids = {str(action["txn"].get("appId")) for action in actions if isinstance(action.get("txn"), dict)}
        if is_marked(actions) or any(name.startswith((f"{self.project}.", f"{self.project}@")) for name in ids):
            return True
        is_streamed = info_of(actions).get("operation") == STREAM
        if not ids:
            return is_streamed  # every commit of a stream has an id: this one is truncated
        streams = self.streams()
        return is_streamed if streams is None else bool(ids & streams)


def is_harmless(actions: Actions) -> bool:
    """Return whether a commit leaves the table's rows, columns and properties unchanged."""
    if reshapes(actions):
        return False
    moved = [a[kind] for a in actions for kind in ("add", "remove") if kind in a]
    still = not any(each.get("dataChange", True) for each in moved)
    return not moved or (still and info_of(actions).get("operation") in MOVES)


def reshapes(actions: Actions) -> bool:
    """Return whether a commit changed a table's columns, properties or features."""
    return any("metaData" in action or "protocol" in action for action in actions)


def undone(actions: Actions) -> frozenset[int]:
    """Return the versions that a commit rolls back."""
    found = info_of(actions).get(UNDOES)
    return frozenset(map(int, str(found).split(","))) if found else frozenset()


def restored(actions: Actions) -> int | None:
    """Return the version that a RESTORE restores; None for any other commit."""
    info = info_of(actions)
    if info.get("operation") != "RESTORE":
        return None
    return int(str((info.get("operationParameters") or {}).get("version")))


def among(commits: Mapping[int, Actions], head: int, since: int, whose: Whose, restores: int = -1) -> list[Foreign]:
    """Return the foreign commits after a version that are still in effect, the oldest first.

    The search runs backwards from the head and ignores commits that sqlrun has rolled back or restored away. Up to the
    version `restores` a RESTORE counts as sqlrun's, because earlier versions of sqlrun didn't mark it.
    """
    found: list[Foreign] = []
    version, undone_versions = head, set[int]()
    while version > since and version in commits:
        actions = commits[version]
        undone_versions |= undone(actions)
        back = restored(actions)
        known = version in undone_versions or (back is not None and version <= restores)
        one = None if known else of(version, actions, whose)
        if one is not None:
            found.append(one)
        version = back if back is not None and one is None and version not in undone_versions else version - 1
    return found[::-1]


def of(version: int, actions: Actions, whose: Whose) -> Foreign | None:
    """Return the description of another writer's commit that changes the table's contents; None for other commits."""
    if version == 0 or is_harmless(actions) or whose.wrote(actions):
        return None
    info = info_of(actions)
    return Foreign(
        version,
        str(info.get("operation") or "an unknown operation"),
        str(info.get("engineInfo") or info.get("clientVersion") or "an unknown writer"),
        _time(info.get("timestamp")),
        _did(actions, info),
        reshapes(actions),
    )


def _time(stamp: Any) -> datetime | None:
    try:
        return datetime.fromtimestamp(int(stamp) / 1000, timezone.utc)
    except (TypeError, ValueError, OverflowError, OSError):
        return None


def _did(actions: Actions, info: Mapping[str, Any]) -> str:
    """Return the number of rows in a commit's metrics, else the number of files that it names."""
    metrics = info.get("operationMetrics")
    metrics = metrics if isinstance(metrics, dict) else {}
    rows = [(what, next((metrics[n] for n in names if n in metrics), None)) for what, names in COUNTS.items()]
    parts = [f"{_count(value)} {what}" for what, value in rows if _count(value)]
    if info.get("operation") in ("DELETE", "UPDATE"):  # copying a file counts output rows too
        parts = [part for part in parts if not part.endswith("inserted")]
    if parts:
        return "rows: " + ", ".join(parts)
    added, removed = (sum(kind in action for action in actions) for kind in ("add", "remove"))
    shape = ["its columns, properties or features changed"] if reshapes(actions) else []
    return ", ".join([*([f"{added} files added, {removed} removed"] if added or removed or not shape else []), *shape])


def _count(value: Any) -> str:
    text = str(value)
    return f"{int(text):,}" if text.isdigit() and int(text) else ""
