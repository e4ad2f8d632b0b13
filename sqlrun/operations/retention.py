"""What the ticks that are kept still need of the warehouse: versions of tables, and tables. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from sqlrun.publish.table_state import Published

TABLE = re.compile(r"[^_/][^/]*/[0-9a-f]{12}(-\d+)?(\.[a-z0-9_-]{1,40})?")


def needed(ticks: Iterable[Published]) -> dict[str, set[int]]:
    """Map each table's path to the versions that the ticks show, and those that their tables were made from.

    What a table was made from is where its next change begins, and what `verify` compares it with.

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
    """List the tables, as `model/hash`, that no tick needs; a folder with another name isn't sqlrun's to judge."""
    return sorted(path for path in folders if TABLE.fullmatch(path) and path not in wanted)
