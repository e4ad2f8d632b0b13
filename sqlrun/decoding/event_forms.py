"""What a change event is, and other forms of it than Debezium's rows: Maxwell's events, MongoDB's documents. Pure.

A row of Maxwell's bootstrap has no position in the binlog. It is older than any change: whatever changed the row before
it was read has the same values, and has come as a change, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, NamedTuple

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
# Of MongoDB.
EPOCH = datetime(1970, 1, 1)
NUMBERS = ("$numberLong", "$numberInt", "$numberDecimal", "$numberDouble")
TEXTS = ("$oid", "$uuid", "$symbol")
NOT_FINITE = ("NaN", "Infinity", "-Infinity")
CAPTURE = (
    "the update has no `after`. Set `capture.mode=change_streams_update_full` for the connector. A document that was "
    "deleted meanwhile has none either"
)
KEYLESS = (
    "the deletion has neither `before` nor a key. Declare a column with `from: key`, or set a `capture.mode` with "
    "pre-images for the connector"
)


class Event(NamedTuple):
    """One change. `row` has the values of the row, or those of its key; `types` the schemas of its fields, if sent.

    `old` has the values that the change replaced, if they are sent.
    """

    op: str
    row: Mapping[str, Any]
    source: Mapping[str, Any]
    transaction: str | None
    types: Mapping[str, Mapping[str, Any]]
    old: Mapping[str, Any] = MappingProxyType({})


# Returns the JSON text of what a column says about a change; the second argument names the unavailable columns.
Writer = Callable[[Event, Sequence[str]], str]


def is_maxwell(found: Mapping[str, Any]) -> bool:
    """Return whether an object is an event of Maxwell."""
    return isinstance(found.get("type"), str) and isinstance(found.get("database"), str)


def maxwell_envelope(found: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return an event of Maxwell as `op`, `before`, `after`, `old` and `source`; None for an event of no row.

    >>> event = {"database": "d", "table": "t", "type": "insert", "ts": 5, "position": "b.000002:7", "data": {"id": 1}}
    >>> (maxwell_envelope(event) or {})["source"]
    {'db': 'd', 'table': 't', 'txId': None, 'ts_ms': 5000, 'snapshot': None, 'file': 'b.000002', 'pos': '7', 'row': 0}

    Raises: Undecodable.
    """
    kind = found.get("type")
    if not is_maxwell(found):
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


def is_mongodb(source: Mapping[str, Any]) -> bool:
    """Return whether the `source` of an event is that of MongoDB."""
    return source.get("connector") == "mongodb" or "collection" in source


def id_of(key: Any, read: Callable[[str], Any], number: Callable[[str], Any]) -> dict[str, Any]:
    """Return the id of a document from the key of its message, as `_id`; {} if it has none. `read` parses JSON.

    >>> import json
    >>> id_of({"id": '{"$oid": "5f"}'}, json.loads, int)
    {'_id': '5f'}
    """
    found = read(key) if type(key) is str else key
    if isinstance(found, dict) and found.keys() == {"schema", "payload"}:
        found = found["payload"]
    if not isinstance(found, dict) or type(found.get("id")) is not str:
        return {}
    return {"_id": unwrapped(read(found["id"]), number)}


def unwrapped(value: Any, number: Callable[[str], Any]) -> Any:
    """Return a value without the marks of its type; `number` makes a number of its text.

    >>> unwrapped({"_id": {"$oid": "5f"}, "n": [{"$numberLong": "7"}], "at": {"$date": 1500}}, int)
    {'_id': '5f', 'n': [7], 'at': '1970-01-01T00:00:01.500000Z'}
    >>> unwrapped({"$binary": {"base64": "AA==", "subType": "00"}}, int), unwrapped({"a": {"$minKey": 1}}, int)
    ('AA==', {'a': {'$minKey': 1}})
    """
    match value:
        case list():
            return [unwrapped(one, number) for one in value]
        case {"$binary": {"base64": str(data)}} | {"$binary": str(data)}:
            return data
        case {"$date": at} if len(value) == 1:
            return _time(unwrapped(at, number))
        case {"$undefined": _} if len(value) == 1:
            return None
        case dict() if len(value) == 1:
            ((name, one),) = value.items()
            if name in TEXTS:
                return one
            if name in NUMBERS and isinstance(one, str):
                return one if one in NOT_FINITE else number(one)
            return {name: unwrapped(one, number)}
        case dict():
            return {name: unwrapped(one, number) for name, one in value.items()}
        case _:
            return value


def _time(value: Any) -> Any:
    """Return a time from its milliseconds since 1970, as a text; any other value as it is."""
    try:
        return f"{(EPOCH + timedelta(milliseconds=int(value))).isoformat(timespec='microseconds')}Z"
    except (TypeError, ValueError, OverflowError):
        return str(value)
