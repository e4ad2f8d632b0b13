"""The table that each decoder returns: `value`, a record's text, and `fault`, why it can't be read. Pure.

Also the names of a file's columns, matched with the declared ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any

from sqlrun.decoding.undecodable import Undecodable
from sqlrun.project import Column

if TYPE_CHECKING:
    import pyarrow as pa

# The landing query rejects longer records, and other tools cut them.
MOST_BYTES = 16 * 1024 * 1024
CUT = "…"
OTHER = "Move it away, or declare its columns"
# Returns a text as JSON, with as few escapes as possible.
quoted: Callable[[str], str] = encode_basestring


@dataclass(frozen=True, slots=True)
class Fault:
    """A record that can't be read: its text as it is in the file, and the reason."""

    text: str
    reason: str


def table(values: Any, faults: Mapping[int, Fault] | None = None) -> pa.Table:
    """Return records as a table; `faults` are by their position among all records, `values` the other records.

    >>> found = table(['{"a":1}', '{"a":3}'], {1: Fault("{a:", "no")})
    >>> found.column("value").to_pylist()
    ['{"a":1}', '{a:', '{"a":3}']
    >>> found.column("fault").to_pylist()
    [None, 'no', None]
    """
    import pyarrow as pa

    if not isinstance(values, pa.Array | pa.ChunkedArray):
        values = pa.array(values, pa.large_string())
    reasons = pa.nulls(len(values), pa.large_string())
    if faults:
        places = _places(len(values), sorted(faults))
        texts = pa.array([visible(faults[at].text) for at in sorted(faults)], pa.large_string())
        known = pa.array([faults[at].reason for at in sorted(faults)], pa.large_string())
        parts = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
        values = pa.chunked_array([*parts, texts], pa.large_string()).take(places)
        reasons = pa.chunked_array([reasons, known], pa.large_string()).take(places)
    return pa.Table.from_arrays([values, reasons], ["value", "fault"])


def _places(good: int, faulty: Sequence[int]) -> Any:
    """Return, for each record in order, its place in a list of the good records followed by the faulty ones."""
    import pyarrow as pa

    places: list[int] = []
    before = 0
    for number, at in enumerate(faulty):
        until = at - number  # number of good records before this one
        places.extend(range(before, until))
        places.append(good + number)
        before = until
    places.extend(range(before, good))
    return pa.array(places, pa.int64())


def visible(text: str) -> str:
    """Return a faulty record's text, at most 16 MiB of it, and never one that is a JSON object.

    A record in braces would be one for a reader that ignores `fault`, so it becomes a JSON text.

    >>> visible("1,2"), visible(' {"a": 1}')
    ('1,2', '" {\\\\"a\\\\": 1}"')
    """
    if len(text) * 4 > MOST_BYTES and len(data := text.encode()) > MOST_BYTES:
        text = data[: MOST_BYTES - len(CUT.encode())].decode("utf-8", "ignore") + CUT
    bare = text.strip(" \t\r\n")
    return quoted(text) if bare.startswith("{") and bare.endswith("}") else text


def matched(names: Sequence[str], columns: Sequence[Column]) -> list[str]:
    """Return a file's names, each replaced by the declared name that differs from it at most in case.

    SQL's names have no case. If a file also has the declared name itself, the other one is left as it is.

    >>> from sqlrun.errors import Place
    >>> declared = [Column(name, "int", "", Place("")) for name in ("id", "at")]
    >>> matched(["ID", "at", "AT", "more"], declared)
    ['id', 'at', 'AT', 'more']
    """
    declared = {column.name.lower(): column.name for column in columns if column.name not in names}
    return [declared.get(name.lower(), name) for name in names]


def require_any(found: Sequence[str], columns: Sequence[Column], what: str, advice: str) -> None:
    """Check that a file has at least one of the declared columns; without any it is another file.

    Raises: Undecodable.
    """
    if columns and not {*found} & {column.name for column in columns}:
        shown = ", ".join(found)
        raise Undecodable(f"{what} has none of the declared columns: `{shown[:200]}`. {advice}")
