"""Union all: the changes of its parts, together. Pure."""

from __future__ import annotations

from sqlrun.incremental.algebra import Node, UnionAll
from sqlrun.incremental.script import WEIGHT, Script


def rows(node: UnionAll, script: Script, flavour: str) -> str:
    """Put the rows together, columns by position."""
    texts = [f"select {_renamed(node, part, script)} from {script.rows(part, flavour)}" for part in node.parts]
    return "\nunion all\n".join(texts)


def changes(node: UnionAll, script: Script) -> list[str]:
    """Put the changes together, columns by position."""
    texts = []
    for part in node.parts:
        child = script.changes(part)
        if child is not None:
            texts.append(f"select {_renamed(node, part, script)}, {WEIGHT} from {child}")
    return texts


def _renamed(node: UnionAll, part: Node, script: Script) -> str:
    pairs = zip(part.columns, node.columns, strict=True)
    return ", ".join(f"{script.name(own)} as {script.name(name)}" for own, name in pairs)
