"""YAML values to suites of expectations. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from sqlrun.errors import Place
from sqlrun.load.yaml_reader import Reader, plain
from sqlrun.project import CRITICAL, ON_FAIL, SEVERITIES, Expectation, Limit, Suite, follows

SUITE_KEYS = ("name", "description", "expectations", "max_quarantined", "meta")
EXPECTATION_KEYS = ("type", "kwargs", "severity", "on_fail", "description", "meta")
# Arguments that name columns.
COLUMNS = ("column", "column_A", "column_B", "column_list", "column_set")
LIMIT = re.compile(r"(?P<share>[0-9]{1,3}([.][0-9]{1,9})?)%|[0-9]{1,12}")


def suite(reader: Reader, model: str) -> Suite:
    """Return the suite of a file; other modules validate types and arguments of its expectations."""
    root = reader.mapping(reader.root, Place(reader.file), "a suite", SUITE_KEYS, ("expectations",))
    found = []
    for item, place in reader.items(root, "expectations", "a suite"):
        item = reader.mapping(item, place, "an expectation", EXPECTATION_KEYS, ("type",))
        severity = reader.choice(item, "severity", SEVERITIES, CRITICAL)
        on_fail = reader.choice(item, "on_fail", ON_FAIL, follows(severity))
        kwargs = item.get("kwargs")
        if kwargs is not None and not isinstance(kwargs, Mapping):
            hint = "Write a mapping: kwargs: {column: order_id}"
            reader.problem("SR103", reader.value_place(item, "kwargs"), "`kwargs` must be a mapping", hint)
            kwargs = None
        kind, description = reader.text(item, "type"), reader.words(item)
        arguments = _columns(_floats(plain(kwargs or {})))
        found.append(Expectation(kind, arguments, severity, on_fail, description, place))
    return Suite(model, reader.file, tuple(found), _limit(reader, root))


def _limit(reader: Reader, root: Any) -> Limit | None:
    """Return the value of `max_quarantined`: a percentage or a number of lines."""
    if not isinstance(root, Mapping) or "max_quarantined" not in root:
        return None
    text = reader.text(root, "max_quarantined").replace(" ", "")
    empty = root["max_quarantined"] is None
    place = reader.place(root, "max_quarantined") if empty else reader.value_place(root, "max_quarantined")
    share = LIMIT.fullmatch(text)
    if share is None or (share["share"] is not None and Decimal(share["share"]) > 100):
        message = f"invalid `max_quarantined`: `{root['max_quarantined']}`"
        reader.problem(
            "SR717", place, message, "Write a share of the landed lines, such as 0.5%, or a count, such as 20."
        )
        return None
    return Limit(text, place)


def _columns(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return arguments with the names of columns in lower case, as parsed queries have them."""

    def lower(value: Any) -> Any:
        if isinstance(value, list):
            return [lower(each) for each in value]
        return value.lower() if isinstance(value, str) else value

    return {key: lower(value) if key in COLUMNS else value for key, value in kwargs.items()}


def _floats(value: Any) -> Any:
    """Return a value with floats for exact decimals, as Great Expectations needs them."""
    match value:
        case dict():
            return {key: _floats(inner) for key, inner in value.items()}
        case list():
            return [_floats(inner) for inner in value]
        case Decimal():
            return float(value)
        case _:
            return value
