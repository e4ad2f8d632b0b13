"""Columns for comparisons in checks: exact images that floats can't blur. Pure.

Great Expectations turns every numeric bound into a binary float, so that 0.10 is not at least 0.1 in a DECIMAL
column, and pandas takes NaN for NULL. Therefore a comparison with bounds runs on ranks (0 below, 1 at the lower
bound, 2 between, 3 at the upper bound, 4 above), a key on codes, a pair on signs. Arrow computes them in the
column's own type; Great Expectations counts and evaluates them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast

from sqlrun.expectations.catalogue import CATALOGUE
from sqlrun.expectations.values import Family, typed
from sqlrun.project import Value
from sqlrun.runtime.arrow_rows import scalar

if TYPE_CHECKING:
    import pyarrow as pa

Kwargs = dict[str, Value]
UNITS = "units"  # units2:amount holds whole numbers of hundredths
FLOAT = "float:"  # forms in which NaN counts as missing, as in pandas' own statistics


@dataclasses.dataclass(frozen=True, slots=True)
class Prepared:
    """Arguments for Great Expectations and the columns that they name. A column with values is named by its form."""

    kwargs: Mapping[str, Value]
    columns: Mapping[str, pa.Array]
    scale: int = 0  # unit of an observed value: 10 ** -scale


def prepare(kind: str, kwargs: Kwargs, table: pa.Table) -> Prepared:
    """Return the columns of one expectation. Raises: KeyError for an absent column, ValueError for a value."""
    kwargs = {name: value for name, value in kwargs.items() if name not in ("row_condition", "condition_parser")}
    if CATALOGUE[kind].scope == "schema":
        empty = table.slice(0, 0)
        return Prepared(kwargs, {name: column(empty, name) for name in table.column_names})
    form = _FORMS.get(kind, _plain)
    return form(kwargs, table)


def column(table: pa.Table, name: Value) -> pa.Array:
    """Return a column as one array of its value type. Raises: KeyError."""
    import pyarrow as pa

    if name not in table.column_names:
        raise KeyError(f"unknown column `{name}` of the table")
    chunks = table.column(str(name))
    if pa.types.is_dictionary(chunks.type):
        chunks = chunks.cast(chunks.type.value_type)
    if chunks.num_chunks == 1:
        return chunks.chunk(0)
    array = chunks.combine_chunks()
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def family_of(kind: pa.DataType) -> Family:
    """Return the family of an Arrow type, which determines how its values compare."""
    from pyarrow import types

    tests: tuple[tuple[Callable[[Any], bool], Family], ...] = (
        (types.is_integer, "integer"),
        (types.is_decimal, "decimal"),
        (types.is_floating, "float"),
        (types.is_string, "text"),
        (types.is_large_string, "text"),
        (types.is_boolean, "boolean"),
        (types.is_date, "date"),
    )
    if types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    return next((family for test, family in tests if test(kind)), "other")


def _nulls(kwargs: Kwargs, table: pa.Table) -> Prepared:
    import pyarrow.compute as pc

    name = f"null:{kwargs['column']}"
    here = pc.if_else(column(table, kwargs["column"]).is_valid(), scalar(1.0), _missing())
    return Prepared({**kwargs, "column": name}, {name: here})


def _ranks(kwargs: Kwargs, table: pa.Table) -> Prepared:
    array = column(table, kwargs["column"])
    family = family_of(array.type)
    low, high = (typed(kwargs.get(end), family) for end in ("min_value", "max_value"))
    if low is None and high is None:
        raise ValueError("neither min_value nor max_value")
    if low is not None and high is not None and low > high:  # type: ignore[operator]
        raise ValueError(f"min_value {low} is greater than max_value {high}")
    name = f"rank:{kwargs['column']}:{low!r}:{high!r}"
    ends = {
        "min_value": None if low is None else 1,
        "max_value": None if high is None else 1 if low == high else 3,
    }
    return Prepared({**kwargs, **ends, "column": name}, {name: _rank(array, family, low, high)})


def inside(kwargs: Kwargs, values: pa.ChunkedArray) -> bool:
    """Return whether all values are in a range, by their minimum and maximum; False if unknown.

    Raises: ValueError for a bound that isn't a value of the column.
    """
    import pyarrow.compute as pc

    family = family_of(values.type)
    low, high = (typed(kwargs.get(end), family) for end in ("min_value", "max_value"))
    if family not in _ORDERED or (low is None and high is None):
        return False
    if low is not None and high is not None and low > high:  # type: ignore[operator]
        return False
    found = pc.min_max(values)
    ends = ((low, found["min"], pc.less, "strict_min"), (high, found["max"], pc.greater, "strict_max"))
    for value, end, beyond, strict in ends:
        bound = None if value is None else _scalar(value, family)
        if bound is None or beyond(bound, end).as_py():
            continue
        if kwargs.get(strict) or not pc.equal(bound, end).as_py():
            return False
    return True


# Types in which Arrow's order is that of ranks; floats aren't, because NaN is in no range.
_ORDERED = ("integer", "decimal", "text", "date", "timestamp", "timestamp_ntz")


def _rank(array: pa.Array, family: Family, low: Value, high: Value) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    if family == "float":
        array = array.cast(pa.float64())
    rank = pc.if_else(array.is_valid(), scalar(2.0), _missing())
    if family == "float":
        # NaN is in no range.
        rank = pc.if_else(pc.is_nan(array), scalar(4.0 if low is None else 0.0), rank)
    if high is not None:
        end = _scalar(high, family)
        rank = pc.if_else(pc.greater(array, end), scalar(4.0), rank)
        rank = pc.if_else(pc.equal(array, end), scalar(3.0), rank)
    if low is not None:
        end = _scalar(low, family)
        rank = pc.if_else(pc.less(array, end), scalar(0.0), rank)
        rank = pc.if_else(pc.equal(array, end), scalar(1.0), rank)
    return rank


def _scalar(value: Value, family: Family) -> pa.Scalar:
    if family == "integer" and isinstance(value, int) and abs(value) < 2**63:
        return scalar(value)
    if family in ("integer", "decimal"):
        return scalar(Decimal(format(Decimal(str(value)), "f")))
    if family == "other" or family == "boolean":
        raise ValueError(f"{value!r} can't be compared with this column")
    return scalar(cast(Any, value))


def _missing() -> pa.Scalar:
    import pyarrow as pa

    return pa.nulls(1, pa.float64())[0]


def _unique(kwargs: Kwargs, table: pa.Table) -> Prepared:
    name = f"code:{kwargs['column']}"
    return Prepared({**kwargs, "column": name}, {name: _codes(column(table, kwargs["column"]))})


def _compound(kwargs: Kwargs, table: pa.Table) -> Prepared:
    names = cast(Sequence[str], kwargs["column_list"])
    columns = {f"code:{name}": _codes(column(table, name)) for name in names}
    return Prepared({**kwargs, "column_list": list(columns)}, columns)


def _codes(array: pa.Array) -> pa.Array:
    import pyarrow as pa

    if pa.types.is_nested(array.type):
        array = pa.array([None if value is None else repr(value) for value in array.to_pylist()])
    if pa.types.is_floating(array.type):
        # 0.0 and -0.0 are one value.
        import pyarrow.compute as pc

        array = pc.add(array, scalar(0.0).cast(array.type))
    return array.dictionary_encode().indices.cast(pa.float64())


def _signs(kwargs: Kwargs, table: pa.Table) -> Prepared:
    import pyarrow.compute as pc

    first, second = (column(table, kwargs[name]) for name in ("column_A", "column_B"))
    same, above, below = scalar(0.0), scalar(1.0), scalar(-1.0)
    sign = pc.if_else(pc.greater(first, second), above, pc.if_else(pc.less(first, second), below, same))
    for side, value in ((second, below), (first, above)):
        if family_of(side.type) == "float":
            # Spark's order: NaN equals itself and is above every number.
            other = first if side is second else second
            both = pc.is_nan(other) if family_of(other.type) == "float" else scalar(False)
            sign = pc.if_else(pc.is_nan(side), pc.if_else(both, same, value), sign)
    name = f"sign:{kwargs['column_A']}:{kwargs['column_B']}"
    columns = {
        f"{name}:A": pc.if_else(first.is_valid(), pc.coalesce(sign, same), _missing()),
        f"{name}:B": pc.if_else(second.is_valid(), same, _missing()),
    }
    return Prepared({**kwargs, "column_A": f"{name}:A", "column_B": f"{name}:B"}, columns)


def _plain(kwargs: Kwargs, table: pa.Table) -> Prepared:
    columns: dict[str, pa.Array] = {}

    def named(given: Value) -> str:
        columns[f"value:{given}"] = column(table, given)
        return f"value:{given}"

    found = dict(kwargs)
    for name in ("column", "column_A", "column_B"):
        if name in kwargs:
            found[name] = named(kwargs[name])
    if "column_list" in kwargs:
        found["column_list"] = [named(item) for item in cast(Sequence[Value], kwargs["column_list"])]
    if "value_set" in kwargs:
        family = family_of(columns[cast(str, found["column"])].type)
        given = cast(Sequence[Value], kwargs["value_set"])
        found["value_set"] = [typed(value, family) for value in given if value is not None]
    if "value_pairs_set" in kwargs:
        ends = [family_of(columns[cast(str, found[name])].type) for name in ("column_A", "column_B")]
        pairs = cast(Sequence[Sequence[Value]], kwargs["value_pairs_set"])
        found["value_pairs_set"] = [
            tuple(typed(value, end) for value, end in zip(pair, ends, strict=True)) for pair in pairs
        ]
    return Prepared(found, columns)


def _statistic(kwargs: Kwargs, table: pa.Table) -> Prepared:
    import pyarrow as pa

    name = f"{FLOAT}{kwargs['column']}"
    array = column(table, kwargs["column"])
    return Prepared({**kwargs, "column": name}, {name: array.cast(pa.float64())})


def _extreme(kwargs: Kwargs, table: pa.Table) -> Prepared:
    import pyarrow.compute as pc

    array = column(table, kwargs["column"])
    family = family_of(array.type)
    if family == "float":
        return _statistic(kwargs, table)
    if array.null_count < len(array):
        # pandas can't compare None; another copy of the minimum changes neither extreme.
        array = pc.fill_null(array, pc.min(array))
    if family in ("decimal", "integer"):
        return _scaled(kwargs, array)
    name = f"full:{kwargs['column']}"
    ends = {end: typed(kwargs.get(end), family) for end in ("min_value", "max_value")}
    return Prepared({**kwargs, **ends, "column": name}, {name: array})


def _sum(kwargs: Kwargs, table: pa.Table) -> Prepared:
    array = column(table, kwargs["column"])
    return _statistic(kwargs, table) if family_of(array.type) == "float" else _scaled(kwargs, array)


def _scaled(kwargs: Kwargs, array: pa.Array) -> Prepared:
    """Return the column in units of the smallest digit: sums of integers are exact, and so are bounds below 2 ** 53."""
    scale = array.type.scale if family_of(array.type) == "decimal" else 0
    name = f"{UNITS}{scale}:{'' if array.null_count else 'full:'}{kwargs['column']}"
    return Prepared({**_in_units(kwargs, scale), "column": name}, {name: array}, scale)


def _in_units(kwargs: Kwargs, scale: int) -> Kwargs:
    found = dict(kwargs)
    for end in ("min_value", "max_value", "sum_total"):
        if found.get(end) is not None:
            found[end] = float(cast(Decimal, typed(found[end], "decimal")) * 10**scale)
    return found


def _sum_of_columns(kwargs: Kwargs, table: pa.Table) -> Prepared:
    """Add integer units, as floats because pandas can't add None: exact below 2 ** 53."""
    import pyarrow as pa
    import pyarrow.compute as pc

    arrays = {str(name): column(table, name) for name in cast(Sequence[Value], kwargs["column_list"])}
    kinds = [array.type for array in arrays.values()]
    if any(family_of(kind) == "float" for kind in kinds):
        return _plain(kwargs, table)
    scale = max((kind.scale for kind in kinds if family_of(kind) == "decimal"), default=0)
    columns = {
        f"whole{scale}:{name}": pc.round(pc.multiply(array.cast(pa.float64()), 10.0**scale))
        for name, array in arrays.items()
    }
    return Prepared({**_in_units(kwargs, scale), "column_list": list(columns)}, columns, scale)


_FORMS: Mapping[str, Callable[[Kwargs, Any], Prepared]] = {
    "expect_column_values_to_not_be_null": _nulls,
    "expect_column_values_to_be_null": _nulls,
    "expect_column_proportion_of_non_null_values_to_be_between": _nulls,
    "expect_column_values_to_be_between": _ranks,
    "expect_column_values_to_be_unique": _unique,
    "expect_compound_columns_to_be_unique": _compound,
    "expect_column_pair_values_to_be_equal": _signs,
    "expect_column_pair_values_a_to_be_greater_than_b": _signs,
    "expect_multicolumn_sum_to_equal": _sum_of_columns,
    "expect_column_sum_to_be_between": _sum,
    "expect_column_min_to_be_between": _extreme,
    "expect_column_max_to_be_between": _extreme,
    "expect_column_mean_to_be_between": _statistic,
    "expect_column_median_to_be_between": _statistic,
    "expect_column_stdev_to_be_between": _statistic,
    "expect_column_quantile_values_to_be_between": _statistic,
    "expect_column_value_z_scores_to_be_less_than": _statistic,
    "expect_column_values_to_not_be_outliers": _statistic,
}
