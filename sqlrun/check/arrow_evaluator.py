"""Evaluation on Arrow columns, for types and arguments where Great Expectations would return the same result. Pure.

The columns are the ones for Great Expectations (`check_columns`): ranks, codes and signs of the values.
Comparing a rank with a bound and counting is done here without pandas. In any doubt there is no count, and Great
Expectations decides, if it is installed.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast

from sqlrun.check.comparable_columns import Prepared, family_of, inside
from sqlrun.expectations.values import number
from sqlrun.project import Value
from sqlrun.runtime.arrow_rows import array, scalar

if TYPE_CHECKING:
    import pyarrow as pa

Kwargs = Mapping[str, Value]
_COMMON = ("column", "column_A", "column_B", "column_list", "mostly")
_OF_ROWS = ("row_condition", "condition_parser")
_NOT_NULL, _BETWEEN = "expect_column_values_to_not_be_null", "expect_column_values_to_be_between"
_FLAGS = ("strict_min", "strict_max", "or_equal")
_BOUNDS = ("min_value", "max_value", "strict_min", "strict_max")


@dataclass(frozen=True, slots=True)
class Count:
    """Numbers of unexpected rows and of rows that `mostly` is a share of; positions of the first unexpected ones."""

    looked_at: int
    unexpected: int
    places: tuple[int, ...]

    def passes(self, mostly: Value) -> bool:
        """Return whether the count passes, as in Great Expectations: zero rows always pass."""
        if not self.unexpected or not self.looked_at:
            return True
        return (self.looked_at - self.unexpected) / self.looked_at >= number(mostly, 1.0)


def count(kind: str, prepared: Prepared, most: int, *, alone: bool = False) -> Count | None:
    """Count the unexpected rows of one expectation, with the positions of the first ones, at most `most`.

    None if Great Expectations' result can't be predicted. `alone`: nothing else evaluates the check, so repeated keys
    and sets of any type are counted too. Raises: any error of Arrow.
    """
    rule = _RULES.get(kind)
    if rule is None:
        return None
    kwargs = {name: value for name, value in prepared.kwargs.items() if value is not None}
    if not _plain(kwargs, rule.takes):
        return None
    mask = rule.unexpected(kwargs, prepared.columns)
    if mask is None and alone and rule.alone is not None:
        mask = rule.alone(kwargs, prepared.columns)
    if mask is None:
        return None
    import pyarrow.compute as pc

    unexpected = int(pc.sum(mask).as_py() or 0)
    places = pc.indices_nonzero(mask).slice(0, most).to_pylist() if unexpected else []
    return Count(len(mask) - int(mask.null_count), unexpected, tuple(places))


def none_unexpected(kind: str, kwargs: Kwargs, table: pa.Table) -> bool:
    """Return whether no row is unexpected, by a shortcut: the column has no NULL, or both its ends are in the range.

    False if this is unknown: then all values are evaluated, and faults are reported.
    """
    import pyarrow as pa

    kwargs = {name: value for name, value in kwargs.items() if value is not None and name not in _OF_ROWS}
    name, rule = str(kwargs.get("column")), _RULES.get(kind)
    if kind not in (_NOT_NULL, _BETWEEN) or rule is None or not _plain(kwargs, rule.takes):
        return False
    if name not in table.column_names or pa.types.is_dictionary(table.column(name).type):
        return False
    if kind == _NOT_NULL:
        return bool(table.column(name).null_count == 0)
    try:
        return inside(dict(kwargs), table.column(name))
    except Exception:  # Arrow's errors are of many classes
        return False


def _plain(kwargs: Kwargs, takes: tuple[str, ...]) -> bool:
    """Return whether all arguments are known, of types that Great Expectations reads in one way only."""
    mostly = kwargs.get("mostly", 1.0)
    if isinstance(mostly, bool) or not isinstance(mostly, (int, float)) or not 0 <= mostly <= 1:
        return False
    if not all(isinstance(kwargs[name], bool) for name in _FLAGS if name in kwargs):
        return False
    return set(kwargs) <= {*_COMMON, *takes}


# ---------------------------------------------------------------------------------------- rules
# Each returns true for an unexpected row, false for a good one, NULL for an ignored one; or None: unknown.

_Columns = Mapping[str, "pa.Array"]


def _null(kwargs: Kwargs, columns: _Columns) -> pa.Array:
    return _one(kwargs, columns).is_null()


def _not_null(kwargs: Kwargs, columns: _Columns) -> pa.Array:
    return _one(kwargs, columns).is_valid()


def _outside(kwargs: Kwargs, columns: _Columns) -> pa.Array | None:
    return _beyond(_one(kwargs, columns), kwargs)


def _lengths(kwargs: Kwargs, columns: _Columns) -> pa.Array | None:
    import pyarrow.compute as pc

    column = _one(kwargs, columns)
    ends = [kwargs[name] for name in ("min_value", "max_value", "value") if name in kwargs]
    if family_of(column.type) != "text" or not ends or not all(type(end) is int and 0 <= end < 2**31 for end in ends):
        return None
    lengths = pc.utf8_length(column)
    return pc.not_equal(lengths, scalar(cast(int, kwargs["value"]))) if "value" in kwargs else _beyond(lengths, kwargs)


def _beyond(column: pa.Array, kwargs: Kwargs) -> pa.Array | None:
    """Mark the values outside integer bounds."""
    import pyarrow.compute as pc

    low, high = cast("int | None", kwargs.get("min_value")), cast("int | None", kwargs.get("max_value"))
    if low is not None and high is not None and low > high:
        return None
    too_low = pc.less_equal if kwargs.get("strict_min") else pc.less
    too_high = pc.greater_equal if kwargs.get("strict_max") else pc.greater
    below = None if low is None else too_low(column, scalar(low))
    above = None if high is None else too_high(column, scalar(high))
    if below is None or above is None:
        return above if below is None else below
    return pc.or_(below, above)


def _not_in_set(kwargs: Kwargs, columns: _Columns) -> pa.Array | None:
    """Mark the values that are not in a set."""
    import pyarrow.compute as pc

    found = _in_set(kwargs, columns)
    return None if found is None else pc.invert(found)


def _in_set(kwargs: Kwargs, columns: _Columns) -> pa.Array | None:
    """Mark the values that are in a set; only for types with a single notion of equality."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column, value_set = _one(kwargs, columns), kwargs.get("value_set")
    family = family_of(column.type)
    if family not in _EXACT or not isinstance(value_set, (list, tuple)) or not value_set:
        return None
    if not all(type(value) is _EXACT[family] for value in value_set):
        return None
    if family == "integer":
        if pa.types.is_unsigned_integer(column.type) or not all(abs(cast(int, value)) < 2**63 for value in value_set):
            return None
        column = column.cast(pa.int64())
    if family in ("date", "decimal"):
        equal = [pc.equal(column, scalar(cast(Any, value))) for value in value_set]
        return functools.reduce(pc.or_, equal)
    return pc.if_else(column.is_valid(), pc.is_in(column, array(cast(Any, value_set)).cast(column.type)), _null_truth())


_EXACT: Mapping[str, type] = {"text": str, "integer": int, "decimal": Decimal, "boolean": bool, "date": date}


def _unmatched(kwargs: Kwargs, columns: _Columns) -> pa.Array | None:
    import pyarrow.compute as pc

    found = _matched(kwargs, columns)
    return None if found is None else pc.invert(found)


def _matched(kwargs: Kwargs, columns: _Columns) -> pa.Array | None:
    """Mark the texts in which Python's `re` finds an expression; Arrow's syntax has other meanings."""

    column, pattern = _one(kwargs, columns), kwargs.get("regex")
    if family_of(column.type) != "text" or not isinstance(pattern, str):
        return None
    try:
        search = re.compile(pattern).search
    except (re.error, OverflowError, RecursionError):
        return None
    encoded = column.dictionary_encode()
    truths = [search(text) is not None for text in encoded.dictionary.to_pylist()]
    return array(truths).take(encoded.indices)


def _unequal(kwargs: Kwargs, columns: _Columns) -> pa.Array | None:
    return _pair(kwargs, columns, "equal")


def _not_greater(kwargs: Kwargs, columns: _Columns) -> pa.Array | None:
    return _pair(kwargs, columns, "greater_equal" if kwargs.get("or_equal") else "greater")


def _pair(kwargs: Kwargs, columns: _Columns, compare: str) -> pa.Array | None:
    """Mark pairs that don't satisfy a comparison; a pair with a missing value doesn't, unless it is ignored."""
    import pyarrow.compute as pc

    first, second = (columns[str(kwargs[name])] for name in ("column_A", "column_B"))
    bad = pc.invert(pc.fill_null(getattr(pc, compare)(first, second), scalar(False)))
    match kwargs.get("ignore_row_if", "both_values_are_missing"):
        case "both_values_are_missing":
            ignored = pc.and_(first.is_null(), second.is_null())
        case "either_value_is_missing":
            ignored = pc.or_(first.is_null(), second.is_null())
        case "neither":
            return bad
        case _:
            return None
    return pc.if_else(ignored, _null_truth(), bad)


def _repeated(kwargs: Kwargs, columns: _Columns) -> pa.Array | None:
    """Return no unexpected rows if no key repeats; else None, and Great Expectations finds the repeated keys."""
    column = _one(kwargs, columns)
    return _none(len(column)) if _all_differ([column.drop_null()]) else None


def _repeated_together(kwargs: Kwargs, columns: _Columns) -> pa.Array | None:
    import pyarrow.compute as pc

    found = [columns[name] for name in cast(Sequence[str], kwargs["column_list"])]
    missing = [column.is_null() for column in found]
    match kwargs.get("ignore_row_if", "all_values_are_missing"):
        case "all_values_are_missing":
            ignored = functools.reduce(pc.and_, missing)
        case "any_value_is_missing":
            ignored = functools.reduce(pc.or_, missing)
        case "never":
            ignored = None
        case _:
            return None
    if ignored is not None and pc.any(ignored).as_py():
        found = [column.filter(pc.invert(ignored)) for column in found]
    return _none(len(missing[0])) if _all_differ(found) else None


def _all_differ(codes: Sequence[pa.Array]) -> bool:
    """Return whether all rows of some columns of codes differ; NULL has its own code."""
    import pyarrow as pa
    import pyarrow.compute as pc

    whole, values = None, 1
    for column in codes:
        top = int(pc.max(column).as_py() or 0) + 2
        values *= top
        if values >= 2**62:
            return False
        filled = pc.fill_null(column, scalar(float(top - 1))).cast(pa.int64())
        whole = filled if whole is None else pc.add(pc.multiply(whole, scalar(top)), filled)
    return int(pc.count_distinct(whole).as_py()) == len(codes[0])


def _sharing(kwargs: Kwargs, columns: _Columns) -> pa.Array:
    """Mark the rows that share a value with another row."""
    codes = _one(kwargs, columns).to_pylist()
    times = Counter(codes)
    return _truths([None if code is None else times[code] > 1 for code in codes])


def _sharing_together(kwargs: Kwargs, columns: _Columns) -> pa.Array:
    """Mark the rows that share several values with another row; NULL equals NULL."""
    keys = list(zip(*(columns[name].to_pylist() for name in cast(Sequence[str], kwargs["column_list"])), strict=True))
    match kwargs.get("ignore_row_if", "all_values_are_missing"):
        case "all_values_are_missing":
            ignored = [all(value is None for value in key) for key in keys]
        case "any_value_is_missing":
            ignored = [None in key for key in keys]
        case _:
            ignored = [False] * len(keys)
    times = Counter(key for key, left in zip(keys, ignored, strict=True) if not left)
    return _truths([None if left else times[key] > 1 for key, left in zip(keys, ignored, strict=True)])


def _of_any_type(kwargs: Kwargs, columns: _Columns) -> pa.Array:
    """Mark the values that equal one of a set in Python."""
    values = cast(Sequence[Value], kwargs["value_set"])
    return _truths([None if value is None else value in values for value in _one(kwargs, columns).to_pylist()])


def _not_of_any_type(kwargs: Kwargs, columns: _Columns) -> pa.Array:
    import pyarrow.compute as pc

    return pc.invert(_of_any_type(kwargs, columns))


def _truths(found: Sequence[bool | None]) -> pa.Array:
    import pyarrow as pa

    return pa.array(found, pa.bool_())


def _none(rows: int) -> pa.Array:
    import pyarrow as pa

    return pa.repeat(scalar(False), rows)


def _null_truth() -> pa.Scalar:
    import pyarrow as pa

    return pa.nulls(1, pa.bool_())[0]


def _one(kwargs: Kwargs, columns: _Columns) -> Any:
    return columns[str(kwargs["column"])]


@dataclass(frozen=True, slots=True)
class _Rule:
    unexpected: Callable[[Kwargs, _Columns], Any]
    takes: tuple[str, ...] = ()
    alone: Callable[[Kwargs, _Columns], Any] | None = None


_RULES: Mapping[str, _Rule] = {
    _NOT_NULL: _Rule(_null),
    "expect_column_values_to_be_null": _Rule(_not_null),
    _BETWEEN: _Rule(_outside, _BOUNDS),
    "expect_column_values_to_be_in_set": _Rule(_not_in_set, ("value_set",), _not_of_any_type),
    "expect_column_values_to_not_be_in_set": _Rule(_in_set, ("value_set",), _of_any_type),
    "expect_column_values_to_match_regex": _Rule(_unmatched, ("regex",)),
    "expect_column_values_to_not_match_regex": _Rule(_matched, ("regex",)),
    "expect_column_value_lengths_to_be_between": _Rule(_lengths, _BOUNDS),
    "expect_column_value_lengths_to_equal": _Rule(_lengths, ("value",)),
    "expect_column_values_to_be_unique": _Rule(_repeated, (), _sharing),
    "expect_compound_columns_to_be_unique": _Rule(_repeated_together, ("ignore_row_if",), _sharing_together),
    "expect_column_pair_values_to_be_equal": _Rule(_unequal, ("ignore_row_if",)),
    "expect_column_pair_values_a_to_be_greater_than_b": _Rule(_not_greater, ("ignore_row_if", "or_equal")),
}
# Expectations that are counted here, with plain arguments.
KINDS = frozenset(_RULES)
