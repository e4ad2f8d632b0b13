"""Lines of the reference project's source, valid and broken ones, by their peculiarity."""

from __future__ import annotations

import json
from typing import Any

from tests.support.script import START, order

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
    "a bracket between two objects": f"{GOOD},{GOOD}] }}",
    "brackets and more between two objects": f"{GOOD},{GOOD}], 0] x",
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
    "version is a whole number as a fraction": GOOD.replace('"version": 1', '"version": 1.0'),
    "version has an exponent": GOOD.replace('"version": 1', '"version": 1e0'),
    "version is not a number": GOOD.replace('"version": 1', '"version": NaN'),
    "version ends in a line break": changed(version="1\n"),
    "status is a list": changed(status=["placed"]),
    "a comma too many": GOOD[:-1] + ",}",
    "a comma too many in a list": GOOD.replace("}]", "},]"),
    "half of a surrogate pair": GOOD.replace('"placed"', '"\\ud83c"'),
    "a key inside twice": GOOD.replace('"quantity":', '"quantity": 9, "quantity":'),
    "year 0": changed(ordered_at="0000-01-10T10:00:00Z"),
    "the end of time": changed(ordered_at="9999-12-31T23:59:59.999999Z"),
    "beyond the end of time": changed(ordered_at="9999-12-31T23:59:59-01:00"),
    "before the first day": changed(ordered_at="0001-01-01T00:00:00+01:00"),
    "an hour too many": changed(ordered_at="2026-01-10T24:00:00Z"),
    "an offset too far": changed(ordered_at="2026-01-10T10:00:00+18:01"),
    "tabs around": f"\t{GOOD}\t",
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
