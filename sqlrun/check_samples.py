"""Sample rows of failed checks, as text that hides what is tagged pii. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sqlrun.expectation_sql import batch_query, row_predicate
from sqlrun.model import Model

if TYPE_CHECKING:
    import pyarrow as pa

MASK = "***"
LONGEST = 80


def sample_rows(table: pa.Table, places: Sequence[int]) -> list[dict[str, object]]:
    """Take rows by their place in the table."""
    return table.take(list(places)).to_pylist() if places else []


def sampled_columns(model: Model, names: Sequence[str]) -> tuple[str, ...]:
    """Name the columns that tell a row apart (its grain) and those that the check looked at."""
    return tuple(dict.fromkeys([*model.grain, *names]))


def masked(model: Model, row: Mapping[str, object], query: str, wanted: Sequence[str] | None = None) -> str:
    """Write a row as `name=value, ...`. Columns tagged pii show ***, and so does all that a query made of them.

    A query that does more than pick rows can give a value any name; then all is hidden if the model has pii.
    """
    private = {column.name for column in model.columns if "pii" in column.tags}
    if private and query and row_predicate(batch_query(query)) is None:
        private = set(row)
    names = [name for name in wanted if name in row] if wanted is not None else list(row)
    return ", ".join(f"{name}={MASK if name in private else _text(row[name])}" for name in names)


def _text(value: object) -> str:
    text = "null" if value is None else str(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
