"""Freshness of a model in its contract: the maximum age of its latest event. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from sqlrun.load.yaml_reader import Reader, did_you_mean, spelled
from sqlrun.project import Column, Freshness

KEYS = ("warn_after", "error_after")
UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}
EXAMPLE = "Write a duration: 30 minutes, 2 hours, 1 day"
EVENT_TIME = "the column with the time of the event"


def event_time(reader: Reader, node: Any, columns: Sequence[Column], model: str) -> str:
    """Return the column with the time of a row's event; "" if there is none, or if it is invalid, which is recorded."""
    name = reader.text(node, "event_time")
    if not name or not columns:
        return ""
    place, names = reader.value_place(node, "event_time"), [column.name for column in columns]
    if (known := spelled(name, names)) not in names:
        hint = f"Columns: {', '.join(names)}.{did_you_mean(name, names)}"
        reader.problem("SR108", place, f"unknown column `{name}` in `event_time` of `{model}`", hint)
        return ""
    kind = next(column.type for column in columns if column.name == known)
    if kind != "timestamp":
        times = [column.name for column in columns if column.type == "timestamp"]
        hint = f"Columns of type timestamp: {', '.join(times) or 'none'}."
        reader.problem("SR110", place, f"`event_time` must be a timestamp column, but `{name}` is {kind}", hint)
        return ""
    return known


def freshness(reader: Reader, node: Any) -> Freshness | None:
    """Return the value of `freshness:`, in dbt's form or with spans as words; None if there is none."""
    raw = node.get("freshness")
    if raw is None:
        return None
    place = reader.place(node, "freshness")
    raw = reader.mapping(raw, reader.value_place(node, "freshness"), "`freshness`", KEYS)
    warn_after, error_after = (_span(reader, raw, key) for key in KEYS)
    if not any(raw.get(key) for key in KEYS):
        reader.problem("SR104", place, "`freshness` has neither `warn_after` nor `error_after`", f"{EXAMPLE}.")
    if node.get("event_time") is None:
        hint = f"Add `event_time:` beside it, {EVENT_TIME}."
        reader.problem("SR104", place, "`freshness` needs `event_time`", hint)
    if warn_after is not None and error_after is not None and warn_after > error_after:
        message = f"`warn_after` is later than `error_after`: `{reader.text(raw, 'warn_after')}`"
        reader.problem(
            "SR110", reader.value_place(raw, "warn_after"), message, "Make `warn_after` the shorter of the two."
        )
    return Freshness(place, warn_after, error_after)


def _span(reader: Reader, raw: Any, key: str) -> float | None:
    """Return a time span in seconds: `30 minutes`, or dbt's `{count: 30, period: minute}`."""
    value = raw.get(key)
    if value is None:
        return None
    place = reader.value_place(raw, key)
    if isinstance(value, Mapping):
        value = reader.mapping(value, place, f"`{key}`", ("count", "period"), ("count", "period"))
        value = f"{value.get('count')} {value.get('period')}"
    found = seconds(str(value))
    if found is None:
        reader.problem("SR110", place, f"invalid `{key}`: `{value}`", f"{EXAMPLE}.")
    return found


def seconds(text: str) -> float | None:
    """Return a time span in seconds; None if it is malformed or zero.

    >>> seconds("30 minutes"), seconds("1 day"), seconds("soon"), seconds("0 hours")
    (1800.0, 86400.0, None, None)
    """
    found = re.fullmatch(r"(\d{1,6})\s*(second|minute|hour|day)s?", text.strip())
    span = int(found[1]) * UNITS[found[2]] if found else 0
    return float(span) or None
