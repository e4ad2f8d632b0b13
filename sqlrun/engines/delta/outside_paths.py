"""Paths in a Delta log that lead out of the table's folder: refused, because the log is another program's. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote

from sqlrun.errors import EngineError

# A deletion vector in a file: below the table's folder, or anywhere (Delta protocol, "Deletion Vectors").
ABSOLUTE = "p"
# Digits of a deletion vector's file name, behind its folder.
NAME = 20


class OutsideError(EngineError):
    """A log names a file outside of its table's folder."""


def decoded(path: str) -> str:
    """Return a path of a log as the path of a file."""
    return unquote(path)


def leads_outside(path: str) -> bool:
    """Return whether a path in a log isn't below the table's folder.

    >>> [leads_outside(path) for path in ("day=1/a%20b.parquet", "%2e%2e/a", "/a", "file:///a", "a/../../b")]
    [False, True, True, True, True]
    """
    plain = unquote(path).replace("\\\\", "/")
    scheme = plain.partition("/")[0]
    return plain.startswith("/") or scheme.endswith(":") or ".." in plain.split("/")


def require_none(table: str, actions: Iterable[Mapping[str, Any]]) -> None:
    """Check the paths of log entries. Raises: EngineError (SR782) with the first one that leads outside."""
    for action in actions:
        for kind in ("add", "remove", "cdc"):
            if kind in action and (found := outside(action[kind])):
                raise OutsideError(message(table, found))


def outside(entry: Mapping[str, Any]) -> str:
    """Return the path of a log entry, or of its deletion vector, that leads outside; "" if none does."""
    if leads_outside(entry["path"]):
        return str(entry["path"])
    vector = entry.get("deletionVector") or {}
    if vector.get("storageType") == ABSOLUTE or (
        vector.get("storageType") == "u" and leads_outside(vector["pathOrInlineDv"][:-NAME] or "a")
    ):
        return str(vector["pathOrInlineDv"])
    return ""


def message(table: str, path: str) -> str:
    """Return the message about a path that leads outside of a table's folder."""
    return (
        f"SR782 the log of {table} names a file outside of the table's folder: {path[:200]}. sqlrun reads no such "
        "table, because its writer could make it read any file. If it is a shallow clone, make a deep clone, or copy "
        "the rows: CREATE TABLE ... AS SELECT"
    )
