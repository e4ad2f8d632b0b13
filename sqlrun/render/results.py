"""Rows of a query as dbt's macros read them: a table with columns and rows, which a template can't change. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlrun.runtime import text_table

# As many rows and columns as dbt's `print_table` shows.
MOST_SHOWN, WIDEST_SHOWN = 20, 6


class Named:
    """Values in an order, each of which has a name too."""

    _attributes: tuple[str, ...] = ("values", "keys", "items", "get", "dict")

    def __init__(self, names: Sequence[str], values: Sequence[Any]) -> None:
        self._names, self._values = tuple(names), tuple(values)

    def __getitem__(self, key: int | str) -> Any:
        if isinstance(key, str):
            # Spark ignores the case of letters in names.
            lower = [name.lower() for name in self._names]
            if key.lower() not in lower:
                raise KeyError(key)
            key = lower.index(key.lower())
        return self._values[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def keys(self) -> tuple[str, ...]:
        """Return the names."""
        return self._names

    def values(self) -> tuple[Any, ...]:
        """Return the values."""
        return self._values

    def items(self) -> tuple[tuple[str, Any], ...]:
        """Return the names with their values."""
        return tuple(zip(self._names, self._values, strict=True))

    def get(self, key: int | str, default: object = None) -> Any:
        """Return the value of a name, else the default."""
        try:
            return self[key]
        except LookupError:
            return default

    def dict(self) -> dict[str, Any]:
        """Return the values by name."""
        return dict(self.items())


class Row(Named):
    """A row: its values by the names of the columns."""


class Columns(Named):
    """The columns of a table by name."""


class Column(Named):
    """A column: its values, which have no names."""

    _attributes = ("name", "index", "values")

    def __init__(self, index: int, name: str, values: Sequence[Any]) -> None:
        super().__init__((), values)
        self.index, self.name = index, name


@dataclass(frozen=True, slots=True)
class TypedColumn:
    """A column of a published table, as dbt's adapters describe one."""

    name: str
    dtype: str
    # BigQuery's adapter has the parts of a struct here, which macros for any database look for.
    fields: tuple[str, ...] = ()

    @property
    def column(self) -> str:
        """Return the name."""
        return self.name

    @property
    def data_type(self) -> str:
        """Return the type, in Spark's words."""
        return self.dtype

    @property
    def quoted(self) -> str:
        """Return the name in Spark's quotes."""
        return f"`{self.name}`"


class Table:
    """Rows of a query. `say` prints a line."""

    def __init__(self, names: Sequence[str], columns: Sequence[Sequence[Any]], say: Callable[[str], None]) -> None:
        self._say = say
        self.column_names = tuple(names)
        self.columns = Columns(names, [Column(*each) for each in zip(range(len(names)), names, columns, strict=True)])
        self.rows = tuple(Row(names, values) for values in zip(*columns, strict=True))

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def print_table(
        self, max_rows: int | None = MOST_SHOWN, max_columns: int | None = WIDEST_SHOWN, **_: object
    ) -> str:
        """Print the first rows and columns, all of them with None."""
        names = self.column_names[:max_columns]
        rows = [row.values()[: len(names)] for row in self.rows]
        for line in text_table.table(names, rows, max_rows or 0):
            self._say(line)
        if len(names) < len(self.column_names):
            self._say(f"... and {text_table.counted(len(self.column_names) - len(names), 'column')} more")
        return ""

    def print_csv(self, **_: object) -> str:
        """Print all rows as CSV."""
        self._say(text_table.as_csv(self.column_names, [row.dict() for row in self.rows]))
        return ""

    def print_json(self, **_: object) -> str:
        """Print all rows as JSON."""
        self._say(text_table.as_json([row.dict() for row in self.rows]))
        return ""


_OF_TABLES = ("columns", "rows", "column_names", "print_table", "print_csv", "print_json")


def is_safe(value: object, attribute: str) -> bool:
    """Return whether a template may read an attribute of one of these objects."""
    match value:
        case Table():
            return attribute in _OF_TABLES
        case TypedColumn():
            return attribute in ("name", "column", "dtype", "data_type", "quoted", "fields")
        case Named():
            return attribute in value._attributes
        case _:
            return False
