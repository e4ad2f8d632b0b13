"""Values that stand for private ones: of their type, equal where they are, telling nothing of them. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from sqlrun.graph.lineage import Item, Lineage, Value
from sqlrun.parse.parse import Query
from sqlrun.project import Project, Row

PII = "pii"
TEXTS = re.compile("string|binary|array|struct|map")


class Masks:
    """Numbers private values in the order in which they come, in all tables together, so that joins find each other.

    >>> masks = Masks()
    >>> masks.value("ada@example.org"), masks.value(None), masks.value("bob"), masks.value("ada@example.org")
    ('masked_1', None, 'masked_2', 'masked_1')
    """

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, object], int] = {}

    def value(self, given: Any) -> Any:
        """Return what stands for a value; NULL stays, and what is inside of lists and structs is masked each."""
        match given:
            case None:
                return None
            case bool():
                return False  # there is no other that would not tell
            case dict():
                return {name: self.value(inner) for name, inner in given.items()}
            case list():
                return [self.value(inner) for inner in given]
        # Equal numbers of several types are one value: an int may be joined to a decimal.
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
        """Mask a row's private columns."""
        return {name: self.value(value) if name in private else value for name, value in row.items()}


def private_columns(project: Project, lineage: Lineage, node: str) -> tuple[str, ...]:
    """Name the columns of a model or a seed that are tagged pii, are copies of one that is, or texts made of one."""
    tagged = {
        *(Item(model.name, c.name) for model in project.models for c in model.columns if PII in c.tags),
        *(Item(seed.name, c.name) for seed in project.seeds for c in seed.columns if PII in c.tags),
        *(Item(f"source:{s.group}.{s.name}", c.name) for s in project.sources for c in s.columns if PII in c.tags),
    }

    def private(item: Item) -> bool:
        made = lineage.derive(Value(item))
        # A number that is counted or added up says nothing of one guest; a text may.
        tells = made.how == "copied" or TEXTS.match(lineage.types[item.node].get(item.column, ""))
        return item in tagged or (bool(tells) and any(private(value.item) for value in made.made_of))

    return tuple(item.column for item in lineage.columns(node) if private(item))


def copies(
    lineage: Lineage, node: str, columns: Collection[str], queries: Mapping[str, Query]
) -> dict[str, list[Item]]:
    """Find of which columns of its inputs a model's columns are plain copies."""
    found: dict[str, list[Item]] = {}
    for item in lineage.columns(node) if node in queries else ():
        made = lineage.up([item])[0]
        if item.column in columns and made.how == "copied":
            found[item.column] = [value.item for value in made.made_of if not value.path]
    return found
