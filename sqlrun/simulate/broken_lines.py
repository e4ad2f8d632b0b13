"""Five ways to break a simulated line, all of which readers must survive. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

_ABSURD_DATES = ("1970-01-01T00:00:00Z", "9999-12-31T23:59:59Z")


def broken(line: str, choice: float) -> str:
    """Return a good line broken in the way that `choice`, from 0 up to 1, selects; all ways are equally likely."""
    ways: tuple[Callable[[str, float], str], ...] = (_no_json, _key_gone, _wrong_type, _negative, _absurd_date)
    way = int(choice * len(ways))
    return ways[way](line, choice * len(ways) - way)


def _no_json(line: str, choice: float) -> str:
    """Truncate the line, as a crashed writer would, or use another language's quotes."""
    if choice < 0.5:
        return line[: 1 + int(choice * 2 * (len(line) - 2))]
    return line.replace('"', "'")


def _key_gone(line: str, choice: float) -> str:
    """Delete one key, or set it to null."""
    event = _parsed(line)
    keys = sorted(event)
    place, is_null = divmod(int(choice * len(keys) * 2), 2)
    if is_null:
        event[keys[place]] = None
    else:
        del event[keys[place]]
    return _written(event)


def _wrong_type(line: str, choice: float) -> str:
    """Replace numbers or items by words."""
    event = _parsed(line)
    match int(choice * 4):
        case 0:
            event["items"][0]["quantity"] = "two"
        case 1:
            event["items"][0]["unit_price"] = "free"
        case 2:
            event["version"] = "latest"
        case _:
            event["items"] = "see note"
    return _written(event)


def _negative(line: str, choice: float) -> str:
    """Change the sign of one quantity."""
    event = _parsed(line)
    item = event["items"][int(choice * len(event["items"]))]
    item["quantity"] = -item["quantity"]
    return _written(event)


def _absurd_date(line: str, choice: float) -> str:
    """Move the order's time to the limits of clocks."""
    return _written({**_parsed(line), "ordered_at": _ABSURD_DATES[int(choice * 2)]})


def _parsed(line: str) -> dict[str, Any]:
    event: dict[str, Any] = json.loads(line)
    return event


def _written(event: dict[str, Any]) -> str:
    return json.dumps(event, separators=(",", ":"))
