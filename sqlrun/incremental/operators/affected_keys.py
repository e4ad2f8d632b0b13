"""The key values that a tick affects, as SELECTs. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from sqlrun.incremental.algebra import Node
from sqlrun.incremental.script import Script


def numbered(keys: Iterable[str], script: Script, table: str = "") -> str:
    """Return SQL that names keys `k1`, `k2`, ..., so that all relations of affected keys have the same columns."""
    prefix = f"{table}." if table else ""
    return ", ".join(f"{prefix}{script.name(key)} as k{n + 1}" for n, key in enumerate(keys))


def numbers(keys: Iterable[str]) -> dict[str, str]:
    """Return the names that `numbered` gives to keys.

    >>> numbers(["shop", "day"])
    {'shop': 'k1', 'day': 'k2'}
    """
    return {key: f"k{n + 1}" for n, key in enumerate(keys)}


def of_changes(node: Node, keys: tuple[str, ...], script: Script) -> list[str]:
    """Return the keys of a node's own changes, inserted and deleted rows both. This is correct for any node.

    It costs as much as the changes. If keys pass through an operator, those of its input cost less.
    """
    child = script.changes(node)
    return [f"select distinct {numbered(keys, script)} from {child}"] if child else []
