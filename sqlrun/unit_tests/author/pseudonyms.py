"""Pseudonyms for private values: they have the same type, are equal where the values are, and reveal nothing. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from sqlrun.graph.lineage import Item, Lineage, Value
from sqlrun.parse.parse import Query
from sqlrun.project import Project, Row

TEXTS = re.compile("string|binary|array|struct|map")


class Masks:
    """Numbers for private values in the order of their appearance, shared by all tables so that joins still match.

    >>> masks = Masks()
    >>> masks.value("ada@example.org"), masks.value(None), masks.value("bob"), masks.value("ada@example.org")
    ('masked_1', None, 'masked_2', 'masked_1')
    """

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, object], int] = {}

    def value(self, given: Any) -> Any:
        """Return the pseudonym of a value; NULL stays NULL, and each item of a list or a struct gets its own."""
        match given:
            case None:
                return None
            case bool():
                return False  # the other boolean would reveal the value
            case dict():
                return {name: self.value(inner) for name, inner in given.items()}
            case list():
                return [self.value(inner) for inner in given]
        # Equal numbers of different types get one pseudonym, because an int may be joined to a decimal.
        kind = "number" if isinstance(given, int | float | Decimal) else type(given).__name__
        number = self._numbers.setdefault((kind, given), 1 + sum(1 for known, _ in self._numbers if known == kind))
        match given:
            case datetime():
                return datetime(2000, 1, 1, tzinfo=given.tzinfo) + timedelta(minutes=number)
            case date():
                return date(2000, 1, 1) + timedelta(days=number)
            case Decimal():
                exponent = given.as_tuple().exponent
                return Decimal(number).quantize(Decimal(1).scaleb(exponent if isinstance(exponent, int) else 0))
            case int() | float():
                return type(given)(number)
            case bytes():
                return f"masked_{number}".encode()
            case _:
                return f"masked_{number}"

    def row(self, row: Row, private: Collection[str]) -> dict[str, Any]:
        """Return a row with its private columns masked."""
        return {name: self.value(value) if name in private else value for name, value in row.items()}


def private_columns(project: Project, lineage: Lineage, node: str) -> tuple[str, ...]:
    """Return the columns of a model or seed that are tagged pii, copy a private column, or are text made from one."""
    tagged = {
        *(Item(model.name, c.name) for model in project.models for c in model.columns if c.is_private),
        *(Item(seed.name, c.name) for seed in project.seeds for c in seed.columns if c.is_private),
        *(Item(s.node, c.name) for s in project.sources for c in s.columns if c.is_private),
    }

    def private(item: Item) -> bool:
        made = lineage.derive(Value(item))
        # A count or a sum reveals nothing about one guest; a text may.
        reveals = made.how == "copied" or TEXTS.match(lineage.types[item.node].get(item.column, ""))
        return item in tagged or (bool(reveals) and any(private(value.item) for value in made.made_of))

    return tuple(item.column for item in lineage.columns(node) if private(item))


def copies(
    lineage: Lineage, node: str, columns: Collection[str], queries: Mapping[str, Query]
) -> dict[str, list[Item]]:
    """Return, by column of a model, the input columns that it copies unchanged."""
    found: dict[str, list[Item]] = {}
    for item in lineage.columns(node) if node in queries else ():
        made = lineage.up([item])[0]
        if item.column in columns and made.how == "copied":
            found[item.column] = [value.item for value in made.made_of if not value.path]
    return found
