"""Touched: a semi join with the keys that a tick has touched, pushed down to the tables. Pure."""

from __future__ import annotations

from sqlglot import exp

from sqlrun.incremental import properties
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
    with_children,
)
from sqlrun.incremental.script import WEIGHT, Script

Keys = dict[str, str]


def rows(node: Touched, script: Script, flavour: str) -> str:
    """Keep the rows with touched keys."""
    child = script.rows(node.child, flavour)
    columns = script.names(node.columns, "l")
    return f"select {columns} from {script.semi_join(child, node.relation, node.keys)}"


def changes(node: Touched, script: Script) -> list[str]:
    """Keep the changes with touched keys."""
    child = script.changes(node.child)
    if child is None:
        return []
    columns = script.names(node.columns, "l")
    joined = script.semi_join(child, node.relation, node.keys)
    return [f"select {columns}, l.{WEIGHT} from {joined}"]


def restrict(node: Node, relation: str, keys: Keys) -> Node:
    """Keep only rows whose `keys` (own column -> column of `relation`) are touched, as near to the tables as can be."""
    pushed, complete = _push(node, relation, keys)
    return pushed if complete else Touched(pushed, relation, tuple(keys.items()))


def _push(node: Node, relation: str, keys: Keys) -> tuple[Node, bool]:
    """Give the node with restricted inputs, and whether that already restricts it wholly."""
    if not keys:
        return node, False
    match node:
        case Scan() | Single() | Touched():
            return Touched(node, relation, tuple(keys.items())), True
        case Filter() | Temporal() | Moving():
            return _below(node, node.child, relation, keys, keys)
        case Project():
            items = dict(node.items)
            plain = {items[c].name: k for c, k in keys.items() if isinstance(items[c], exp.Column)}
            return _below(node, node.child, relation, keys, plain)
        case Explode():
            kept = {c: k for c, k in keys.items() if c in node.child.columns}
            return _below(node, node.child, relation, keys, kept)
        case Aggregate():
            groups = dict(node.keys)
            plain = {groups[c].name: k for c, k in keys.items() if c in groups and isinstance(groups[c], exp.Column)}
            return _below(node, node.child, relation, keys, plain)
        case Window():
            kept = {c: k for c, k in keys.items() if c in node.partition}
            return _below(node, node.child, relation, keys, kept)
        case Latest():
            kept = {c: k for c, k in keys.items() if c in node.keys}
            return _below(node, node.child, relation, keys, kept)
        case UnionAll():
            parts = []
            for part in node.parts:
                names = dict(zip(node.columns, part.columns, strict=True))
                parts.append(restrict(part, relation, {names[c]: k for c, k in keys.items()}))
            return UnionAll(tuple(parts)), True
        case Join():
            return _join(node, relation, keys)


def _below(node: Node, child: Node, relation: str, keys: Keys, mapped: Keys) -> tuple[Node, bool]:
    pushed, complete = _push(child, relation, mapped)
    whole = len(mapped) == len(keys) and set(mapped.values()) == set(keys.values())
    if mapped and not complete:
        pushed, complete = Touched(pushed, relation, tuple(mapped.items())), True
    return with_children(node, (pushed,)), complete and whole


def _join(node: Join, relation: str, keys: Keys) -> tuple[Node, bool]:
    """Restrict both sides by the keys that they have, equal columns of the other side included."""
    left = {c: k for c, k in keys.items() if c in node.left.columns}
    right = {c: k for c, k in keys.items() if c in node.columns and c in node.right.columns}
    equal_left: Keys = {}
    equal_right: Keys = {}
    for a, b in node.keys:
        if isinstance(a, exp.Column) and isinstance(b, exp.Column):
            if a.name in left:
                equal_right.setdefault(b.name, left[a.name])
            if b.name in right and node.kind == "inner":
                equal_left.setdefault(a.name, right[b.name])
    new_left = restrict(node.left, relation, left | equal_left) if left | equal_left else node.left
    # The right side, but of an inner join: restricted by the left's keys only, or rows would lose their partners.
    on_right = right | equal_right if node.kind == "inner" else equal_right
    new_right = restrict(node.right, relation, on_right) if on_right else node.right
    whole = len(left) == len(keys) or (node.kind == "inner" and len(left | equal_left) == len(keys))
    return with_children(node, (new_left, new_right)), whole


def support(node: Node, keys: tuple[str, ...], script: Script) -> list[str]:
    """Write SELECTs of the key values that a tick may have touched: all of them, seldom more.

    The values of `keys` (columns of the node) come in that order under the names `k1`, `k2`, ...
    """
    match node:
        case Filter():
            return support(node.child, keys, script)
        # Where the clock changes a value, a row is touched that has not changed below.
        case Project() if not properties.is_clocked(node) and all(
            isinstance(dict(node.items)[key], exp.Column) for key in keys
        ):
            items = dict(node.items)
            return support(node.child, tuple(items[key].name for key in keys), script)
        case Window() if set(keys) <= set(node.partition):
            return support(node.child, keys, script)
        case Latest() if set(keys) <= set(node.keys):
            return support(node.child, keys, script)
        case Aggregate() if all(isinstance(dict(node.keys).get(key), exp.Column) for key in keys):
            groups = dict(node.keys)
            return support(node.child, tuple(groups[key].name for key in keys), script)
        case Join():
            found = _join_support(node, keys, script)
            return found if found is not None else _from_changes(node, keys, script)
        case _:
            return _from_changes(node, keys, script)


def _from_changes(node: Node, keys: tuple[str, ...], script: Script) -> list[str]:
    child = script.changes(node)
    return [f"select distinct {_numbered(keys, script)} from {child}"] if child else []


def _numbered(keys: tuple[str, ...], script: Script) -> str:
    return ", ".join(f"{script.name(key)} as k{n + 1}" for n, key in enumerate(keys))


def _join_support(node: Join, keys: tuple[str, ...], script: Script) -> list[str] | None:
    """Keys of the left side, touched on the left, or touched on the right through equal columns."""
    if not set(keys) <= set(node.left.columns):
        return None
    equal = {a.name: b.name for a, b in node.keys if isinstance(a, exp.Column) and isinstance(b, exp.Column)}
    texts = support(node.left, keys, script)
    if set(keys) <= set(equal):
        return [*texts, *support(node.right, tuple(equal[key] for key in keys), script)]
    met = script.changes(node.right)
    if met is None:
        return texts
    on = " and ".join(f"{script.expr(a)} = {script.expr(b)}" for a, b in node.keys) or "true"
    word = "left semi join" if script.dialect == "spark" else "semi join"
    for flavour in ("old", "new"):
        left = script.rows(node.left, flavour)
        columns = ", ".join(f"l.{script.name(key)} as k{n + 1}" for n, key in enumerate(keys))
        texts.append(f"select distinct {columns} from {left} as l {word} {met} as r on {on}")
    return texts
