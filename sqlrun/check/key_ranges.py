"""Ranges of changed rows' keys, which let reads skip files without such a key. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sqlrun.runtime import arrow_rows
from sqlrun.runtime.far_times import ordered

if TYPE_CHECKING:
    import pyarrow as pa

# Maximum number of ranges: each one adds a comparison for each file.
MOST = 1000
# Maximum number of groups that are evaluated one by one.
LOOKS = 32
# Maximum number of keys that get a range each.
FEW = 32
Ranges = tuple[tuple[str, Any, Any], ...]


def of(rows: pa.Table, key: Sequence[str], partition_by: Sequence[str]) -> Ranges:
    """Return ranges (column, least, greatest) of one key column that cover all keys of `rows`.

    If a partition column is part of the key, its values are the ranges; else the first key column has a range for each
    value of the first partition column, because keys that arrive together are often close. Few keys get a range each.
    Empty if there are no useful ranges: a NULL among the keys, a column of floats.

    >>> import pyarrow as pa
    >>> of(pa.table({"id": ["c", "x", "a"]}), ["id"], [])
    (('id', 'a', 'a'), ('id', 'c', 'c'), ('id', 'x', 'x'))
    >>> of(pa.table({"id": ["a", "c", "x"], "day": [1, 1, 2]}), ["id"], ["day"])
    (('id', 'a', 'c'), ('id', 'x', 'x'))
    """
    parts = [name for name in key if name in partition_by]
    if not key or not rows.num_rows:
        return ()
    name = (parts or list(key))[0]
    column = rows.column(name)
    if column.null_count or not _ordered(column.type):
        return ()
    groups = [group for group in partition_by[:1] if group in rows.column_names]
    if parts or (not groups and rows.num_rows <= FEW):
        found = sorted(arrow_rows.values(column.unique()), key=ordered)
        return _few(tuple((name, value, value) for value in found), name)
    ends = sorted(_ends(column, rows.column(groups[0]) if groups else None), key=lambda ends: tuple(map(ordered, ends)))
    return _few(tuple((name, low, high) for low, high in ends), name)


def _ends(column: pa.ChunkedArray, group: pa.ChunkedArray | None) -> Iterator[tuple[Any, Any]]:
    """Yield the minimum and the maximum of each group."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kinds: Sequence[Any] = [None] if group is None else group.unique()
    if group is not None and (len(kinds) > LOOKS or not _ordered(group.type)):  # NaN equals nothing
        found = pa.table([column, group], ["key", "group"]).group_by(["group"])
        for row in arrow_rows.plain(found.aggregate([("key", "min"), ("key", "max")])):
            yield row["key_min"], row["key_max"]
        return
    # PyArrow's group_by is in a library of its own, which takes longer to load than a few scans of a column.
    for kind in kinds:
        own = column
        if group is not None:
            own = column.filter(pc.equal(group, kind) if kind.is_valid else group.is_null())
        least = pc.min_max(own)
        yield arrow_rows.value(least["min"]), arrow_rows.value(least["max"])


def _few(ranges: Ranges, name: str) -> Ranges:
    if len(ranges) <= MOST:
        return ranges
    return ((name, min((low for _, low, _ in ranges), key=ordered), max((high for _, _, high in ranges), key=ordered)),)


def _ordered(kind: pa.DataType) -> bool:
    """Return whether statistics of such a column have the order of its values."""
    import pyarrow.types as is_a

    tests = (is_a.is_integer, is_a.is_string, is_a.is_large_string, is_a.is_date, is_a.is_timestamp)
    return any(test(kind) for test in tests)
