"""The table of contents of the algebra: which file holds the rule of which operator. Pure.

Each rule has two functions: `rows` writes the operator over the old or the new rows of its inputs, `changes` the
SELECTs whose union is its change (rows with a `_weight`).
"""

from __future__ import annotations

from types import ModuleType

from sqlrun.incremental.algebra import (
    Aggregate,
    Explode,
    Filter,
    Join,
    Latest,
    Moving,
    Node,
    Project,
    Scan,
    Single,
    Temporal,
    Touched,
    UnionAll,
    Window,
)
from sqlrun.incremental.rules import (
    aggregate,
    explode,
    filter,
    join,
    latest,
    moving,
    project,
    scan,
    single,
    temporal,
    touched,
    union_all,
    window,
)
from sqlrun.incremental.script import Script

RULES: dict[type, ModuleType] = {
    Scan: scan,
    Single: single,
    Filter: filter,
    Project: project,
    Explode: explode,
    UnionAll: union_all,
    Join: join,
    Aggregate: aggregate,
    Window: window,
    Temporal: temporal,
    Moving: moving,
    Latest: latest,
    Touched: touched,
}


def rows(node: Node, script: Script, flavour: str) -> str:
    """Write a node over the old or the new rows of its inputs."""
    text: str = RULES[type(node)].rows(node, script, flavour)
    return text


def changes(node: Node, script: Script) -> list[str]:
    """Write the SELECTs whose union is a node's change; none where nothing can have changed."""
    texts: list[str] = RULES[type(node)].changes(node, script)
    return texts
