"""Sample rows of failed checks, as text that masks columns tagged pii. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlrun.expectations.sql import batch_query, row_predicate
from sqlrun.project import Model
from sqlrun.runtime import arrow_rows
from sqlrun.runtime.arrow_rows import array

if TYPE_CHECKING:
    import pyarrow as pa

# Maximum number of sample rows: reports show all of them, the console fewer.
SAMPLES = 20
MASK = "***"
LONGEST = 80
# Maximum number of stored values: Great Expectations may observe every value of a column.
MOST_VALUES = 100
# Keys of its results in which numbers, and mappings' keys, may be a column's values.
VALUES = frozenset({"observed_value", "details"})


def sample_rows(table: pa.Table, places: Sequence[int]) -> list[dict[str, object]]:
    """Return rows by their positions in the table."""
    return arrow_rows.plain(table.take(array(places))) if places else []


def sampled_columns(model: Model, names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that identify a row (its grain) and the columns of the check."""
    return tuple(dict.fromkeys([*model.grain, *names]))


def masked(model: Model, row: Mapping[str, object], query: str, columns: Sequence[str] | None = None) -> str:
    """Return a row as `name=value, ...`. Columns tagged pii show ***, and so does every value that a query derives.

    A query that does more than select rows can give a value any name, so it masks all if the model has pii.
    """
    private = {column.name for column in model.columns if column.is_private}
    if private and query and row_predicate(batch_query(query)) is None:
        private = set(row)
    names = [name for name in columns if name in row] if columns is not None else list(row)
    return ", ".join(f"{name}={MASK if name in private else _text(row[name])}" for name in names)


def bounded(raw: Mapping[str, Any], *, hidden: bool) -> dict[str, object]:
    """Return a result of Great Expectations with long texts and lists cut; `hidden` masks all but its numbers.

    >>> bounded({"result": {"unexpected_count": 1, "partial_unexpected_list": ["a@b"]}}, hidden=True)
    {'result': {'unexpected_count': 1, 'partial_unexpected_list': '***'}}
    """

    def copied(value: Any) -> object:
        match value:
            case dict():
                few = list(value.items())[:MOST_VALUES]
                return {str(key): MASK if hidden and key in VALUES else copied(each) for key, each in few}
            case str() | list() | tuple() if hidden:
                return MASK
            case str():
                return _text(value)
            case list() | tuple():
                return [copied(each) for each in value[:MOST_VALUES]]
            case _:
                return value

    return {key: copied(value) for key, value in raw.items()}


def _text(value: object) -> str:
    text = "null" if value is None else str(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
