"""Lines of the reference project's source, good and broken ones, by what is special about them."""

from __future__ import annotations

import json
from typing import Any

from tests.script import START, order

GOOD = order("1", START)


def changed(**fields: Any) -> str:
    return json.dumps({**json.loads(GOOD), **fields})


LINES = {
    "good": GOOD,
    "spaces around": f"  {GOOD} ",
    "another field": changed(more={"a": [1]}),
    "text after it": GOOD + " x",
    "two objects": GOOD + GOOD,
    "two objects with a comma": f"{GOOD},{GOOD}",
    "closing bracket after it": GOOD + "]",
    "arrays around": f"{GOOD}],[{GOOD}",
    "cut off": GOOD[:-20],
    "a list": f"[{GOOD}]",
    "text": '"abc"',
    "null": "null",
    "no JSON": "{bad",
    "items are text": changed(items="abc"),
    "items are an object": changed(items={"dish_id": "d001"}),
    "an item is text": changed(items=["abc"]),
    "an item is null": changed(items=[None]),
    "an item is a list": changed(items=[[]]),
    "quantity is an object": changed(items=[{"dish_id": "d001", "quantity": {"a": 1}, "unit_price": "1.00"}]),
    "status is an object": changed(status={"a": 1}),
    "nothing in it": "{}",
    "no items": changed(items=None),
    "quantity is text": changed(items=[{"dish_id": "d001", "quantity": "two", "unit_price": "1.00"}]),
    "negative quantity": changed(items=[{"dish_id": "d001", "quantity": -2, "unit_price": "1.00"}]),
    "price with an exponent": changed(items=[{"dish_id": "d001", "quantity": 2, "unit_price": "1e3"}]),
    "version is a fraction": changed(version=1.5),
    "version is huge": changed(version=99999999999),
    "version is text": changed(version="1"),
    "an impossible day": changed(ordered_at="2026-02-30T10:00:00Z"),
    "no zone": changed(ordered_at="2026-01-10T10:00:00"),
    "an absurd year": changed(ordered_at="9999-01-10T10:00:00Z"),
    "unknown status": changed(status="eaten"),
    "status is a number": changed(status=5),
    "key in capitals": GOOD.replace('"status"', '"STATUS"'),
    "key twice": GOOD[:-1] + ', "status": "cancelled"}',
    "single quotes": GOOD.replace('"', "'"),
    "unicode": changed(customer_id="ünï 🍕 \u0000 \n"),
}  # fmt: skip
