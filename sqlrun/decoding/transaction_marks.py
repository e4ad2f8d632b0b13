"""The transaction of a change event, and the marks that Debezium writes when a transaction begins and ends. Pure.

With `provide.transaction.metadata` a connector writes two marks to a topic of their own. The second one counts the
transaction's events of each table. Postgres numbers a transaction, and adds a position in its log that differs between
the marks and from event to event: only the number identifies the transaction.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlrun.decoding.change_events import QUICK, TRANSACTION, TRUNCATE, ChangeEvents, position
from sqlrun.decoding.undecodable import Undecodable

BEGIN, END = "BEGIN", "END"
SNAPSHOT = "r"
_NUMBERED = re.compile(r"([0-9]+):[0-9]+")


@dataclass(frozen=True, slots=True)
class Member:
    """What a change event says about its transaction.

    `transaction` is "" if the event names none. It `is_alone` if there can be none: a row of a snapshot, or a truncate
    of MySQL. `identity` is the same for an event that is delivered again. `committed` is when the database committed
    it, in milliseconds since 1970.
    """

    transaction: str
    is_alone: bool
    identity: str
    committed: int


@dataclass(frozen=True, slots=True)
class Mark:
    """The begin or the end of a transaction; an end counts its events by table, as `schema.table`.

    `committed` is in milliseconds since 1970.
    """

    transaction: str
    is_end: bool
    committed: int
    counts: Mapping[str, int] = field(default_factory=dict)


def member(events: ChangeEvents, text: str) -> Member | None:
    """Return the transaction of an event; None for a tombstone. Raises: Undecodable."""
    event = events.event(text, QUICK)
    if event is None:
        return None
    number = _transaction(event.transaction or "")
    is_alone = event.op == SNAPSHOT or (event.op == TRUNCATE and not number)
    return Member("" if is_alone else number, is_alone, position(event), _milliseconds(event.source.get("ts_ms")))


def mark(text: str) -> Mark | None:
    """Return the mark of a message of the transaction topic; None for a tombstone.

    >>> mark('{"status":"END","id":"7:96","event_count":2,"data_collections":'
    ...      '[{"data_collection":"public.orders","event_count":2}],"ts_ms":5}')
    Mark(transaction='7', is_end=True, committed=5, counts={'public.orders': 2})

    Raises: Undecodable.
    """
    try:
        found = json.loads(text)
        if isinstance(found, dict) and found.keys() == {"schema", "payload"}:
            found = found["payload"]
        if found is None:
            return None
        if not isinstance(found, dict) or not found.keys() >= TRANSACTION or found["status"] not in (BEGIN, END):
            raise Undecodable("it is no mark of a transaction")
        counts = {str(one["data_collection"]): int(one["event_count"]) for one in found["data_collections"] or ()}
        at = _milliseconds(found.get("ts_ms"))
        return Mark(_transaction(str(found["id"])), found["status"] == END, at, counts)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise Undecodable("it is no mark of a transaction") from error


def table_of(name: str) -> str:
    """Return a declared table as the marks name it.

    >>> table_of("shop.public.orders"), table_of("shop.orders")
    ('public.orders', 'shop.orders')
    """
    return ".".join(name.split(".")[-2:])


def _transaction(text: str) -> str:
    """Return what identifies a transaction.

    >>> _transaction("772:26785992"), _transaction("772"), _transaction("file=binlog.000003,pos=7")
    ('772', '772', 'file=binlog.000003,pos=7')
    """
    found = _NUMBERED.fullmatch(text)
    return found[1] if found else text


def _milliseconds(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        return 0
