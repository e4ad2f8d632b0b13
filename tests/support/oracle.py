"""Expected contents of the marts, computed from the raw lines in plain Python.

It shares nothing with sqlrun: no import, no SQL, no engine. It reads every line from the start, so it is slow but
easy to read, and a bug in sqlrun can't be repeated here.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

WINDOW_HOURS = (1, 24, 168)
TOP = 3

STATUSES = {"placed", "updated", "cancelled", "delivered"}
INTEGER = re.compile(r"[+-]?[0-9]+")
MONEY = re.compile(r"[+-]?[0-9]+(\.[0-9]{1,2})?")
TIMESTAMP = re.compile(r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(\.\d{1,6})?(Z|[+-]\d\d:\d\d)?", re.ASCII)
EARLIEST = datetime(2020, 1, 1, tzinfo=timezone.utc)
LATEST = datetime(2050, 1, 1, tzinfo=timezone.utc)


class Broken(Exception):
    """A line that is ignored; the message has the reason."""


class Number(str):
    """A JSON number as it was written: the text decides whether 2 and 2.0 are integers."""


@dataclass(frozen=True)
class Item:
    dish_id: str
    quantity: int
    unit_price: Decimal


@dataclass(frozen=True)
class OrderEvent:
    event_id: str
    order_id: str
    version: int
    restaurant_id: str
    customer_id: str
    ordered_at: datetime
    status: str
    items: tuple[Item, ...]


def read_lines(paths: Iterable[Path]) -> list[str]:
    """Return the lines of files; invalid UTF-8 breaks only its own line."""
    return [
        line
        for path in paths
        for line in path.read_bytes().decode("utf-8", errors="replace").split("\n")
        if line.strip()
    ]


def mart(lines: Iterable[str], as_of: datetime) -> dict[tuple[int, str], dict[str, Any]]:
    """Return (window_hours, restaurant_id) -> n_orders, n_customers, total_sales, top_dishes as of `as_of`.

    An order counts in its latest version, unless that is cancelled; a restaurant without orders is left out.
    `top_dishes` has up to three (rank, dish_id, quantity).
    """
    orders = [order for order in latest_versions(lines).values() if order.status != "cancelled"]
    rows = {}
    for hours in WINDOW_HOURS:
        by_restaurant: dict[str, list[OrderEvent]] = defaultdict(list)
        for order in orders:
            if as_of - timedelta(hours=hours) < order.ordered_at <= as_of:
                by_restaurant[order.restaurant_id].append(order)
        for restaurant_id, counted in by_restaurant.items():
            rows[hours, restaurant_id] = {
                "n_orders": len(counted),
                "n_customers": len({order.customer_id for order in counted}),
                "total_sales": sum((i.quantity * i.unit_price for o in counted for i in o.items), Decimal("0.00")),
                "top_dishes": top_dishes(counted),
            }
    return rows


def top_dishes(orders: Iterable[OrderEvent]) -> list[tuple[int, str, int]]:
    """Return dishes ranked by quantity, largest first; equal ones by dish_id."""
    sold: Counter[str] = Counter()
    for order in orders:
        for item in order.items:
            sold[item.dish_id] += item.quantity
    ranked = sorted(sold.items(), key=lambda dish: (-dish[1], dish[0]))[:TOP]
    return [(rank, dish_id, quantity) for rank, (dish_id, quantity) in enumerate(ranked, start=1)]


def latest_versions(lines: Iterable[str]) -> dict[str, OrderEvent]:
    """Return each order's event with the highest (version, event_id); broken lines are ignored."""
    latest: dict[str, OrderEvent] = {}
    for line in lines:
        try:
            event = parse(line)
        except Broken:
            continue
        known = latest.get(event.order_id)
        if known is None or (event.version, event.event_id) > (known.version, known.event_id):
            latest[event.order_id] = event
    return latest


def parse(line: str) -> OrderEvent:
    """Return the event of one line. Raises: Broken for a line that is ignored."""
    try:
        event = json.loads(line, parse_int=Number, parse_float=Number, parse_constant=Number)
    # RecursionError: ten thousand opening brackets are invalid JSON too.
    except (ValueError, RecursionError):
        raise Broken("no JSON") from None
    if not isinstance(event, dict):
        raise Broken("no object")
    items = required(event, "items")
    if not isinstance(items, list) or not items:
        raise Broken("items must be a list with at least one item")
    status = text(event, "status")
    if status not in STATUSES:
        raise Broken(f"unknown status {status}")
    return OrderEvent(
        event_id=text(event, "event_id"),
        order_id=text(event, "order_id"),
        version=integer(event, "version"),
        restaurant_id=text(event, "restaurant_id"),
        customer_id=text(event, "customer_id"),
        ordered_at=timestamp(event, "ordered_at"),
        status=status,
        items=tuple(parse_item(item) for item in items),
    )


def parse_item(item: object) -> Item:
    if not isinstance(item, dict):
        raise Broken("an item must be an object")
    quantity, unit_price = integer(item, "quantity"), money(item, "unit_price")
    if quantity <= 0:
        raise Broken(f"quantity {quantity}")
    if unit_price < 0:
        raise Broken(f"unit_price {unit_price}")
    return Item(text(item, "dish_id"), quantity, unit_price)


def required(holder: dict[str, Any], key: str) -> Any:
    if holder.get(key) is None:
        raise Broken(f"{key} is missing or null")
    return holder[key]


def text(holder: dict[str, Any], key: str) -> str:
    value = required(holder, key)
    if not isinstance(value, str) or isinstance(value, Number):
        raise Broken(f"{key} must be text")
    return value


def scalar(holder: dict[str, Any], key: str, pattern: re.Pattern[str]) -> str:
    """Return a JSON number or text; only its characters count."""
    value = required(holder, key)
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise Broken(f"{key} is {value!r}")
    return str(value)


def integer(holder: dict[str, Any], key: str) -> int:
    return int(scalar(holder, key, INTEGER))


def money(holder: dict[str, Any], key: str) -> Decimal:
    return Decimal(scalar(holder, key, MONEY))


def timestamp(holder: dict[str, Any], key: str) -> datetime:
    """Return a time; without a zone it is UTC."""
    match = TIMESTAMP.fullmatch(text(holder, key))
    if not match:
        raise Broken(f"{key} is no timestamp")
    *parts, fraction, zone = match.groups()
    microseconds = int((fraction or ".0")[1:].ljust(6, "0"))
    offset = timedelta(0)
    if zone and zone != "Z":
        offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[4:6])) * (-1 if zone[0] == "-" else 1)
    try:
        year, month, day, hour, minute, second = map(int, parts)
        moment = datetime(year, month, day, hour, minute, second, microseconds, timezone.utc) - offset
    except (ValueError, OverflowError):
        raise Broken(f"{key} is no date") from None
    if not EARLIEST <= moment <= LATEST:
        raise Broken(f"{key} is {moment}")
    return moment
