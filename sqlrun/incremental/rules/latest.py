"""Latest per key: the newest row wins. Pure.

Over a table that only grows a model is kept by comparing with the stored row (`state.py`), so stale and repeated
versions change nothing; inside a query the touched keys are recomputed.
"""

from __future__ import annotations

from sqlrun.incremental.algebra import Latest, OrderKey
from sqlrun.incremental.rules import keyed
from sqlrun.incremental.script import Script


def rows(node: Latest, script: Script, flavour: str) -> str:
    """Keep the first row of each key in the order."""
    return newest(node, script, script.rows(node.child, flavour), ())


def newest(node: Latest, script: Script, source: str, also: tuple[str, ...]) -> str:
    """Write the newest row of each key in `source`."""
    columns = script.names((*node.columns, *also))
    order = ", ".join(_written(key, script) for key in node.order)
    rank = f"row_number() over (partition by {script.names(node.keys)} order by {order})"
    inner = script.part(f"select {columns}, {rank} as _rank from {source}", "ranked")
    return f"select {columns} from {inner} where _rank = 1"


def _written(key: OrderKey, script: Script) -> str:
    direction, nulls = "desc" if key.descending else "asc", "first" if key.nulls_first else "last"
    return f"{script.name(key.name)} {direction} nulls {nulls}"


def changes(node: Latest, script: Script) -> list[str]:
    """Recompute the keys that a change touches."""
    return keyed.changes(node, node.child, node.keys, script)
