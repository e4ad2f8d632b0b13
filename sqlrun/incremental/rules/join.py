"""Join: telescoping, dR with the other's old rows, then the new rows with dS. Pure.

Left, semi and anti joins are linear in their left side while the right side stands still:
d(L left join R) = dL left join R.new + (L.old left join R.new - L.old left join R.old), and the second part
needs only the old left rows that meet a changed row of R.
"""

from __future__ import annotations

from sqlrun.incremental.algebra import Join
from sqlrun.incremental.script import WEIGHT, Script


def rows(node: Join, script: Script, flavour: str) -> str:
    """Pair the rows."""
    left, right = script.rows(node.left, flavour), script.rows(node.right, flavour)
    return f"select {script.names(node.columns)} from {_paired(node, script, left, right)}"


def changes(node: Join, script: Script) -> list[str]:
    """Pair the changes of each side with the rows of the other."""
    left, right = script.changes(node.left), script.changes(node.right)
    if node.kind != "inner":
        return _by_left(node, script, left, right)
    texts = []
    if left is not None:
        texts.append(_signed(node, script, left, script.rows(node.right, "old"), f"l.{WEIGHT}"))
    if right is not None:
        texts.append(_signed(node, script, script.rows(node.left, "new"), right, f"r.{WEIGHT}"))
    return texts


def _by_left(node: Join, script: Script, left: str | None, right: str | None) -> list[str]:
    texts = []
    if left is not None:
        texts.append(_signed(node, script, left, script.rows(node.right, "new"), f"l.{WEIGHT}"))
    if right is not None:
        touched = _touched(node, script, right)
        texts.append(_signed(node, script, touched, script.rows(node.right, "new"), "1"))
        texts.append(_signed(node, script, touched, script.rows(node.right, "old"), "-1"))
    return texts


def _touched(node: Join, script: Script, right: str) -> str:
    """Keep the old left rows that may meet a changed right row."""
    old = script.rows(node.left, "old")
    word = "left semi join" if script.dialect == "spark" else "semi join"
    columns = script.names(node.left.columns, "l")
    return script.part(f"select {columns} from {old} as l {word} {right} as r on {_on(node, script)}", "met")


def _signed(node: Join, script: Script, left: str, right: str, weight: str) -> str:
    paired = _paired(node, script, left, right)
    return f"select {script.names(node.columns)}, {weight} as {WEIGHT} from {paired}"


def _paired(node: Join, script: Script, left: str, right: str) -> str:
    words = {"inner": "join", "left": "left join", "semi": "semi join", "anti": "anti join"}
    if script.dialect == "spark":
        words |= {"semi": "left semi join", "anti": "left anti join"}
    return f"{left} as l {words[node.kind]} {right} as r on {_on(node, script)}"


def _on(node: Join, script: Script) -> str:
    # Column names of the two sides never clash: translate renames them.
    conditions = [f"{script.expr(a)} = {script.expr(b)}" for a, b in node.keys]
    if node.condition is not None:
        conditions.append(f"({script.expr(node.condition)})")
    return " and ".join(conditions) or "true"
