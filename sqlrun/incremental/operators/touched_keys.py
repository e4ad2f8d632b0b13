"""The values of keys that a tick has touched, as SELECTs. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from sqlrun.incremental.algebra import Node
from sqlrun.incremental.script import Script


def numbered(keys: Iterable[str], script: Script, table: str = "") -> str:
    """Name keys `k1`, `k2`, ..., so that a relation of touched keys has the same columns whatever they are called."""
    prefix = f"{table}." if table else ""
    return ", ".join(f"{prefix}{script.name(key)} as k{n + 1}" for n, key in enumerate(keys))


def of_changes(node: Node, keys: tuple[str, ...], script: Script) -> list[str]:
    """Return the keys of a node's own changes, which is right for any node: what came and what left, both.

    It costs what the changes cost. Where keys pass through an operator, those of its input are found for less.
    """
    child = script.changes(node)
    return [f"select distinct {numbered(keys, script)} from {child}"] if child else []
