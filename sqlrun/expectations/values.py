"""Conversion of expectations' arguments to values of the column's type. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import date, datetime, time, timezone
from decimal import Decimal, InvalidOperation
from typing import Literal, cast

from sqlrun.expectations.catalogue import CATALOGUE
from sqlrun.project import Column, Expectation, Value

Family = Literal["integer", "decimal", "float", "text", "boolean", "date", "timestamp", "timestamp_ntz", "other"]
PARAMETERS = ("as_of",)

_FAMILIES: Mapping[str, Family] = {
    "tinyint": "integer", "smallint": "integer", "int": "integer", "integer": "integer",
    "bigint": "integer", "long": "integer", "byte": "integer", "short": "integer",
    "decimal": "decimal", "numeric": "decimal", "dec": "decimal",
    "float": "float", "real": "float", "double": "float",
    "string": "text", "varchar": "text", "char": "text",
    "boolean": "boolean", "date": "date",
    "timestamp": "timestamp", "timestamp_ltz": "timestamp", "timestamp_ntz": "timestamp_ntz",
}  # fmt: skip


class AsOf(datetime):
    """The tick's time in place of a parameter: unlike a literal time, it may be truncated to a date."""


def family_of(type_text: str) -> Family:
    """Return the family of a Spark SQL type, which determines how its values compare.

    >>> family_of("decimal(18,2)"), family_of("array<int>")
    ('decimal', 'other')
    """
    return _FAMILIES.get(type_text.lower().split("(")[0].strip(), "other")


def families(columns: tuple[Column, ...]) -> dict[str, Family]:
    """Return the family of each column of a contract."""
    return {column.name: family_of(column.type) for column in columns}


def parameter(value: Value) -> str | None:
    """Return the parameter in place of a value (`{"$PARAMETER": "as_of"}`); None for a plain value."""
    if isinstance(value, Mapping) and set(value) == {"$PARAMETER"}:
        return str(value["$PARAMETER"])
    return None


def typed(value: Value, family: Family) -> Value:
    """Return a YAML value as a value of the column's type: exact decimals, UTC timestamps. None stays None.

    Raises: ValueError with a sentence for the analyst if the value can't be of that type.

    >>> typed("0.10", "decimal"), typed(3, "integer")
    (Decimal('0.10'), 3)
    """
    if value is None or parameter(value) is not None or family == "other":
        return value
    if family in ("integer", "decimal", "float"):
        return _number(value, family)
    if family == "text" and isinstance(value, str):
        return value
    if family == "boolean" and isinstance(value, bool):
        return value
    if family in ("date", "timestamp", "timestamp_ntz"):
        return _moment(value, family)
    raise ValueError(f"{value!r} is not a {family} value" + (": quote it" if family == "text" else ""))


def _number(value: Value, family: Family) -> Value:
    if isinstance(value, bool) or not isinstance(value, (int, float, str, Decimal)):
        raise ValueError(f"{value!r} is not a number")
    try:
        number = Decimal(str(value).strip())
    except InvalidOperation:
        raise ValueError(f"{value!r} is not a number") from None
    if not number.is_finite():
        raise ValueError(f"{value!r} is not a finite number")
    if family == "float":
        return float(number)
    # A bound such as 0.5 on integers keeps its fraction.
    return int(number) if family == "integer" and number == int(number) else number


def _moment(value: Value, family: Family) -> Value:
    if isinstance(value, str):
        try:
            # Python 3.10 accepts only the output of isoformat, without the letter Z.
            value = datetime.fromisoformat(value.strip().replace("Z", "+00:00"))
        except ValueError:
            raise ValueError(f"{value!r} is not an ISO date or time") from None
    if isinstance(value, datetime):
        moment = value
    elif isinstance(value, date):
        moment = datetime.combine(value, time())
    else:
        raise ValueError(f"{value!r} is not a date or time")
    moment = moment.astimezone(timezone.utc) if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
    if family == "timestamp":
        return moment
    if family == "timestamp_ntz":
        return moment.replace(tzinfo=None)
    if moment.time() != time() and not isinstance(value, AsOf):
        raise ValueError(f"{value} has a time of day, but the column is a date")
    return moment.date()


def resolved(kwargs: Mapping[str, Value], as_of: datetime) -> dict[str, Value]:
    """Return the arguments with the tick's time for each `{"$PARAMETER": "as_of"}`, in lists too."""

    def value(given: Value) -> Value:
        if parameter(given) == "as_of":
            return AsOf.fromtimestamp(as_of.timestamp(), timezone.utc)
        return [value(item) for item in given] if isinstance(given, (list, tuple)) else given

    return {name: value(given) for name, given in kwargs.items()}


def columns_of(expectation: Expectation) -> tuple[str, ...]:
    """Return the columns that an expectation's arguments name. A relationship isn't in the catalogue: it has one."""
    kind = CATALOGUE.get(expectation.type)
    found: list[str] = []
    for name in kind.columns if kind else ("column",):
        value = expectation.kwargs.get(name)
        found += [str(item) for item in value] if isinstance(value, (list, tuple)) else [str(value)]
    return tuple(found)


def identity(model: str, expectation: Expectation) -> str:
    """Return the id of a check, the same in all ticks: by model, type and arguments, not by its position in a file.

    >>> from sqlrun.errors import Place
    >>> kwargs = {"column": "amount"}
    >>> identity("orders", Expectation("expect_column_values_to_be_unique", kwargs, "critical", "fail", "", Place("x")))
    'f81f8a0b1929b6a6'
    """
    text = json.dumps([model, expectation.type, expectation.kwargs], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def number(value: Value, default: float) -> float:
    """Return a number such as `mostly`; the default if it isn't given."""
    return default if value is None else float(cast(float, value))
