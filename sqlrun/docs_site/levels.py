"""Places of the nodes of a graph in columns from left to right. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

# How often the order within the columns is improved; more changes little.
SWEEPS = 6


def levels(order: Sequence[str], parents: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Return the column of each node: the length of the longest path to it. Inputs stand right before their readers.

    `order` has each node after its parents.

    >>> levels(["a", "b", "c", "seed", "d"], {"b": ["a"], "c": ["b"], "d": ["c", "seed"]})
    {'a': 0, 'b': 1, 'c': 2, 'seed': 2, 'd': 3}
    """
    found: dict[str, int] = {}
    for name in order:
        found[name] = max((found[parent] + 1 for parent in parents.get(name, ())), default=0)
    first: dict[str, int] = {}
    for name in order:
        for parent in parents.get(name, ()):
            first[parent] = min(first.get(parent, found[name]), found[name])
    return {
        name: level if parents.get(name) or name not in first else max(0, first[name] - 1)
        for name, level in found.items()
    }


def places(order: Sequence[str], parents: Mapping[str, Sequence[str]]) -> dict[str, tuple[int, int]]:
    """Return the column of each node, and its place within the column from the top, so that few edges cross.

    Each sweep sorts a column by the mean place of the neighbors in the columns before it, then in those behind it.

    >>> places(["a", "b", "x", "y"], {"x": ["b"], "y": ["a"]})
    {'a': (0, 0), 'b': (0, 1), 'y': (1, 0), 'x': (1, 1)}
    """
    level = levels(order, parents)
    children: dict[str, list[str]] = {}
    for name in order:
        for parent in parents.get(name, ()):
            children.setdefault(parent, []).append(name)
    columns: list[list[str]] = [[] for _ in range(max(level.values(), default=-1) + 1)]
    for name in order:
        columns[level[name]].append(name)
    # Places are relative to the height of their column, whose nodes are drawn around one axis.
    at = {name: number - len(column) / 2 for column in columns for number, name in enumerate(column)}
    for sweep in range(SWEEPS):
        near = children if sweep % 2 else parents
        for column in reversed(columns) if sweep % 2 else columns:
            mean = {name: _mean([at[one] for one in near.get(name, ())], at[name]) for name in column}
            column.sort(key=mean.__getitem__)
            at.update({name: number - len(column) / 2 for number, name in enumerate(column)})
    return {name: (number, place) for number, column in enumerate(columns) for place, name in enumerate(column)}


def _mean(values: Sequence[float], without: float) -> float:
    return sum(values) / len(values) if values else without
