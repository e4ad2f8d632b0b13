"""Change events of Maxwell, in the form of Debezium's: operation, row and source. Pure.

A row of a bootstrap has no position in the binlog. It is older than any change: whatever changed the row before it was
read has the same values, and has come as a change, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sqlrun.decoding.undecodable import Undecodable

OPS = {"insert": "c", "update": "u", "delete": "d", "bootstrap-insert": "r"}
# The begin and the end of a bootstrap, and changes of a schema.
_OF_NO_ROW = re.compile(r"bootstrap-(?:start|complete)|(?:database|table)-[a-z]+")
_POSITION = re.compile(r"(.+):([0-9]+)")
# The last row of a transaction has `commit` in the place of its number.
LAST = 9_999_999_999
BOOTSTRAP = "bootstrap.0"
# Member of a source without a position: what makes Maxwell send it.
ADVICE = "advice"


def is_event(found: Mapping[str, Any]) -> bool:
    """Return whether an object is an event."""
    return isinstance(found.get("type"), str) and isinstance(found.get("database"), str)


def envelope(found: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return an event as `op`, `before`, `after`, `old` and `source`; None for an event of no row.

    >>> event = {"database": "d", "table": "t", "type": "insert", "ts": 5, "position": "b.000002:7", "data": {"id": 1}}
    >>> (envelope(event) or {})["source"]
    {'db': 'd', 'table': 't', 'txId': None, 'ts_ms': 5000, 'snapshot': None, 'file': 'b.000002', 'pos': '7', 'row': 0}

    Raises: Undecodable.
    """
    kind = found.get("type")
    if not is_event(found):
        raise Undecodable("the object is no change event: it has neither `type` nor `database`")
    if _OF_NO_ROW.fullmatch(str(kind)):
        return None
    if kind not in OPS:
        raise Undecodable(f"the change event has the unknown type `{kind}`")
    op, data = OPS[kind], found.get("data")
    if not isinstance(data, dict):
        raise Undecodable(f"the change event `{kind}` has no `data`")
    source = {
        "db": found["database"],
        "table": found.get("table"),
        "txId": found.get("xid"),
        "ts_ms": _milliseconds(found.get("ts")),
        "snapshot": "true" if op == "r" else None,
        **_place(found, op),
    }
    old = found.get("old")
    row = {"before": data, "after": None} if op == "d" else {"before": None, "after": data}
    return {"op": op, **row, "old": old if isinstance(old, dict) else {}, "source": source}


def _place(found: Mapping[str, Any], op: str) -> dict[str, Any]:
    """Return the place of a row as file, position and number in the transaction."""
    if op == "r":
        return {"file": BOOTSTRAP, "pos": found.get("ts", 0), "row": 0}
    place = _POSITION.fullmatch(str(found.get("position")))
    if place is None:
        return {ADVICE: "Maxwell sends it with `output_binlog_position=true`"}
    return {"file": place[1], "pos": place[2], "row": LAST if found.get("commit") is True else found.get("xoffset", 0)}


def _milliseconds(seconds: Any) -> int | None:
    try:
        return int(seconds) * 1000
    except (TypeError, ValueError):
        return None
