"""Tables and versions that the retained ticks need. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from sqlrun.publish.table_state import Published

TABLE = re.compile(r"[^_/][^/]*/[0-9a-f]{12}(-\d+)?(\.[a-z0-9_-]{1,40})?")


def needed(ticks: Iterable[Published]) -> dict[str, set[int]]:
    """Return the versions of each table that the ticks show or that their tables derive from, by path.

    A table's next change begins at the versions that it derives from, and `verify` compares it with them.

    >>> from sqlrun.publish.table_state import TableState
    >>> a, b = TableState("a/1", 7, None), TableState("b/1", 3, None, {"a": ("a/1", 5)})
    >>> needed([Published(9, None, {"a": a, "b": b})])
    {'a/1': {5, 7}, 'b/1': {3}}
    """
    found: dict[str, set[int]] = {}
    for tick in ticks:
        for state in tick.tables.values():
            found.setdefault(state.path, set()).add(state.version)
            for path, version in state.inputs.values():
                found.setdefault(path, set()).add(version)
    return found


def unused(folders: Iterable[str], wanted: Mapping[str, set[int]]) -> list[str]:
    """Return the tables, as `model/hash`, that no tick needs; folders with other names aren't sqlrun's."""
    return sorted(path for path in folders if TABLE.fullmatch(path) and path not in wanted)
