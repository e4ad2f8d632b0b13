"""Return types of functions, as Spark has them. Pure.

tests/spark/test_types_spark.py evaluates an expression for each on Spark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp
from sqlglot.errors import SqlglotError

from sqlrun.transpile.spark_types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    INTEGERS,
    MOST_DIGITS,
    STRING,
    TIMES,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    VOID,
    Kind,
    array,
    averaged,
    decimal,
    is_integer,
    is_number,
    mapping,
    read,
    rounded,
    struct,
    summed,
    whole,
    widest,
)

TEXTS = Kind("array", parts=(STRING,))

_RETURNS: Mapping[Kind, tuple[type[exp.Expr], ...]] = {
    STRING: (
        exp.Upper, exp.Lower, exp.Initcap, exp.ConcatWs, exp.Trim, exp.Replace, exp.RegexpReplace, exp.RegexpExtract,
        exp.MD5, exp.JSONExtractScalar, exp.Repeat, exp.Translate, exp.Hex, exp.ArrayToString, exp.ToBase64, exp.Space,
        exp.SHA, exp.Soundex, exp.ParseUrl, exp.Typeof,
    ),
    INT: (
        exp.Length, exp.ArraySize, exp.Year, exp.Month, exp.Day, exp.DayOfYear, exp.WeekOfYear, exp.RowNumber,
        exp.Rank, exp.DenseRank, exp.Ntile, exp.StrPosition, exp.UnixDate, exp.Ascii, exp.BitwiseCount, exp.DayOfMonth,
        exp.BitLength, exp.RegexpInstr, exp.RegexpCount,
    ),
    BIGINT: (
        exp.Count, exp.CountIf, exp.ApproxDistinct, exp.IntDiv, exp.UnixMicros, exp.UnixSeconds, exp.RegrCount,
        exp.GroupingId, exp.WidthBucket,
    ),
    DOUBLE: (
        exp.Sqrt, exp.Exp, exp.Ln, exp.Pow, exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop,
        exp.Corr, exp.PercentRank, exp.CumeDist, exp.Acos, exp.Acosh, exp.Asin, exp.Asinh, exp.Atan, exp.Atan2,
        exp.Atanh, exp.Cbrt, exp.Cos, exp.Cosh, exp.Cot, exp.CovarPop, exp.CovarSamp, exp.Degrees, exp.Pi,
        exp.Radians, exp.RegrIntercept, exp.RegrR2, exp.RegrSlope, exp.RegrSxx,
        exp.RegrSxy, exp.RegrSyy, exp.Sin, exp.Sinh, exp.Tan, exp.Tanh,
    ),
    DATE: (exp.CurrentDate, exp.TsOrDsToDate, exp.DateTrunc),
    TIMESTAMP: (exp.CurrentTimestamp, exp.TimestampTrunc),
    BOOLEAN: (
        exp.ArrayContains, exp.StartsWith, exp.EndsWith, exp.Contains, exp.LogicalAnd,
        exp.LogicalOr, exp.RegexpLike, exp.IsNan, exp.Escape,
    ),
    BINARY: (exp.FromBase64, exp.ToBinary, exp.Encode, exp.HexString),
    TINYINT: (exp.Grouping,),
    TEXTS: (exp.RegexpSplit, exp.RegexpExtractAll),
}  # fmt: skip
FIXED: Mapping[type[exp.Expr], Kind] = {kind: returned for returned, kinds in _RETURNS.items() for kind in kinds}
# Functions without a class in sqlglot, or read as they were written (`transpile/dialect.py`).
_NAMED: Mapping[Kind, str] = {
    STRING: """bin btrim char chr conv date_format dayname format_number format_string from_unixtime monthname printf
        regexp_substr schema_of_json sha2 split_part substring_index to_char to_json to_varchar url_decode
        url_encode""",
    INT: """cardinality dayofweek find_in_set hash hour json_array_length len levenshtein minute octet_length quarter
        second weekday""",
    BIGINT: """array_position crc32 factorial hll_sketch_estimate timestampdiff to_unix_timestamp unix_millis
        unix_timestamp xxhash64""",
    DOUBLE: "csc e expm1 hypot kurtosis log log10 log1p log2 months_between rint sec sign signum skewness",
    DATE: "add_months date_from_unix_date date_sub last_day make_date next_day to_date try_to_date",
    TIMESTAMP: """from_utc_timestamp make_timestamp timestamp_micros timestamp_millis timestamp_seconds timestampadd
        to_timestamp to_utc_timestamp try_make_timestamp try_to_timestamp""",
    TIMESTAMP_NTZ: "convert_timezone",
    BOOLEAN: "arrays_overlap equal_null every forall isnotnull isnull map_contains_key some",
    BINARY: "unhex",
    TINYINT: "bit_get getbit",
    TEXTS: "json_object_keys",
    Kind("map", parts=(STRING, STRING)): "str_to_map",
}
FIXED_NAMES: Mapping[str, Kind] = {name: returned for returned, names in _NAMED.items() for name in names.split()}
# Functions with another type if a unit comes before their arguments: (without, with).
BY_UNIT: Mapping[str, tuple[Kind, Kind]] = {
    "date_add": (DATE, TIMESTAMP),
    "dateadd": (DATE, TIMESTAMP),
    "date_diff": (INT, BIGINT),
    "datediff": (INT, BIGINT),
}
# Types whose values Spark casts to text without being asked.
_WRITTEN = frozenset(
    {*INTEGERS, "decimal", "float", "double", "string", "boolean", "date", "timestamp", "timestamp_ntz"}
)
# Parts of a time, by the names that Spark has for them.
_PARTS_BY_KIND: Mapping[Kind, str] = {
    INT: """year y years yr yrs yearofweek quarter qtr month mon mons months week w weeks day d days dayofweek dow
        dayofweek_iso dow_iso doy hour h hours hr hrs minute m min mins minutes""",
    decimal(8, 6): "second s sec seconds secs",
}
_PARTS: Mapping[str, Kind] = {name: kind for kind, names in _PARTS_BY_KIND.items() for name in names.split()}
# The characters of a number format for `to_number`.
_FORMAT = frozenset("09.D,G$SMIPR")
# Lambdas of functions with a class in sqlglot.
_LAMBDAS: Mapping[type[exp.Expr], str] = {
    exp.Transform: "transform",
    exp.ArrayFilter: "filter",
    exp.ArraySort: "array_sort",
}


def of_call(name: str, kinds: Sequence[Kind | None], arguments: Sequence[exp.Expr]) -> Kind | None:
    """Return the type of a call without a class in sqlglot; None if it isn't known."""
    if name in BY_UNIT:
        return BY_UNIT[name][len(kinds) == 3]
    fixed = FIXED_NAMES.get(name)
    if fixed is not None or not kinds:
        return fixed
    match name:
        case "from_json" if len(arguments) > 1:
            return _of_schema(arguments[1])
        case "to_number" if len(arguments) > 1:
            return _of_format(arguments[1])
        case "date_part" | "datepart" if len(arguments) == 2 and isinstance(arguments[0], exp.Literal):
            return part_of_time(arguments[0].name, kinds[1])
        case "bround":
            digits = whole(arguments[1]) if len(arguments) > 1 else 0
            return rounded(kinds[0], digits) if digits is not None else None
        case _:
            return _of_numbers(name, kinds) or _of_texts(name, kinds) or _of_nested(name, kinds)


def _of_numbers(name: str, kinds: Sequence[Kind | None]) -> Kind | None:
    first = kinds[0]
    match name:
        case "try_sum":
            return summed(first)
        case "try_avg":
            return averaged(first)
        case "negative" | "positive" | "nullifzero" if is_number(first):
            return first
        case "zeroifnull" if is_number(first):
            return widest([first, INT])
        case "shiftrightunsigned":
            return shifted(first)
        case "nanvl" if set(kinds) <= {FLOAT, VOID} and first == FLOAT:
            return FLOAT
        case "nanvl" if is_number(first) and all(is_number(kind) or kind == VOID for kind in kinds):
            return DOUBLE
        case _:
            return None


def _of_texts(name: str, kinds: Sequence[Kind | None]) -> Kind | None:
    match name:
        case "left" | "right" | "lpad" | "rpad":
            return text_of(kinds[:1])
        case "elt" if set(kinds[1:]) == {STRING}:
            return STRING
        case "decode" if len(kinds) == 2:
            return STRING
        case "decode":  # without a default, Spark returns a NULL of type string
            default = kinds[-1] if len(kinds) % 2 == 0 else STRING
            return widest([*kinds[2::2], default])
        case _:
            return None


def _of_nested(name: str, kinds: Sequence[Kind | None]) -> Kind | None:
    """Return the type of a function of arrays or maps."""
    first = kinds[0]
    if name == "array_repeat":
        return array(first)
    if first is None or first.name not in ("array", "map"):
        return None
    match name:
        case "flatten":
            return first.parts[0] if first.parts[0].name == "array" else None
        case "get" if first.name == "array":
            return first.parts[0]
        case "array_union" | "array_intersect" | "array_except" if len(kinds) == 2:
            return widest(kinds)
        case "array_remove" if len(kinds) == 2:
            return added(first, kinds[1])
        case "array_insert" if len(kinds) == 3:
            return added(first, kinds[2])
        case "map_concat" if first.name == "map" and set(kinds) == {first}:
            return first
        case "map_values" if first.name == "map":
            return array(first.parts[1])
        case "map_entries" if first.name == "map":
            return array(struct(zip(("key", "value"), first.parts, strict=True)))
        case _:
            return None


def added(first: Kind | None, element: Kind | None) -> Kind | None:
    """Return the type of an array with one more element; None where Spark's rule isn't that of a union."""
    if first is None or first.name != "array" or element is None:
        return None
    kinds = {first.parts[0], element} - {VOID}
    if len(kinds) > 1 and not all(is_integer(kind) or kind == DOUBLE for kind in kinds):
        return None
    return array(widest([first.parts[0], element]))


def of_entries(kind: Kind | None) -> Kind | None:
    """Return the map of an array of structs with two fields."""
    if kind is None or kind.name != "array" or kind.parts[0].name != "struct" or len(kind.parts[0].parts) != 2:
        return None
    return mapping(*kind.parts[0].parts)


def parameters(call: exp.Expr, kinds: Sequence[Kind | None]) -> tuple[Kind | None, ...]:
    """Return the types of the parameters of a call's lambda; `kinds` are those of the other arguments."""
    name = _named(call)
    parts = [kind.parts if kind is not None and kind.name in ("array", "map") else () for kind in kinds]
    if not parts or not all(parts):
        return ()
    match name, len(parts[0]):
        case (("transform" | "filter"), 1):
            return parts[0][0], INT
        case "array_sort", 1:
            return parts[0][0], parts[0][0]
        case "zip_with", 1 if len(parts) == 2:
            return parts[0][0], parts[1][0]
        case (("map_filter" | "transform_keys" | "transform_values"), 2):
            return parts[0]
        case "map_zip_with", 2 if len(parts) == 2 and parts[0][0] == parts[1][0]:
            return *parts[0], parts[1][1]
        case _, 1:
            return (parts[0][0],)
        case _:
            return ()


def of_lambda(call: exp.Expr, kinds: Sequence[Kind | None], body: Kind | None) -> Kind | None:
    """Return the type of a call with a lambda that returns `body`; `kinds` are those of the other arguments."""
    first = kinds[0] if kinds else None
    if first is None:
        return None
    match _named(call), first.name:
        case "transform", "array":
            return array(body)
        case "zip_with", "array" if kinds[-1] is not None:
            return array(body)
        case "map_filter", "map":
            return first
        case "transform_keys", "map":
            return mapping(body, first.parts[1])
        case "transform_values", "map":
            return mapping(first.parts[0], body)
        case "map_zip_with", "map" if kinds[-1] is not None and kinds[-1].parts[:1] == first.parts[:1]:
            return mapping(first.parts[0], body)
        case _:
            return None


def _named(call: exp.Expr) -> str:
    return call.name.lower() if isinstance(call, exp.Anonymous) else _LAMBDAS.get(type(call), "")


def percentile(value: Kind | None, part: Kind | None, *, exact: bool = True) -> Kind | None:
    """Return the type of a percentile: an exact one is a double, an approximate one has the type of its values."""
    if not (is_number(value) or (value in TIMES and not exact)):
        return None
    one = DOUBLE if exact else value
    if part is not None and part.name == "array":
        return array(one)
    return one if is_number(part) else None


def sequence(first: Kind | None, last: Kind | None, step: Kind | None) -> Kind | None:
    """Return the type of sequence(); between times the step is an interval, whose type doesn't matter."""
    kind = widest([first, last])
    kind = widest([kind, step]) if is_integer(kind) else kind
    return array(kind) if is_integer(kind) or kind in TIMES else None


def stacked(rows: int | None, kinds: Sequence[Kind | None]) -> tuple[Kind | None, ...]:
    """Return the types of the columns of stack(); what the last row lacks is NULL."""
    if not rows or rows < 0:
        return ()
    width = -(-len(kinds) // rows)
    columns = [set(kinds[place::width]) for place in range(width)]
    return tuple(next(iter(known)) if len(known := column - {VOID}) == 1 else None for column in columns)


def text_of(kinds: Sequence[Kind | None]) -> Kind | None:
    """Return string if Spark reads all values as text; None for others, such as bytes."""
    texts = [kind for kind in kinds if kind is not None and kind.name in _WRITTEN]
    return STRING if texts and len(texts) == len(kinds) else None


def joined(kinds: Sequence[Kind | None]) -> Kind | None:
    """Return the type of concat() and `||`, which join texts, bytes or arrays."""
    names = {kind.name if kind is not None else "" for kind in kinds}
    if names == {"binary"}:
        return BINARY
    names -= {"void"}
    if names == {"array"}:
        return widest(kinds)
    return STRING if names and names <= _WRITTEN else None


def reversed_of(kind: Kind | None) -> Kind | None:
    """Return the type of reverse(): an array's own, or string."""
    return kind if kind is not None and kind.name == "array" else text_of([kind])


def shifted(kind: Kind | None) -> Kind | None:
    """Return the type of a number whose bits are shifted."""
    if not is_integer(kind):
        return None
    return BIGINT if kind == BIGINT else INT


def part_of_time(name: str, kind: Kind | None) -> Kind | None:
    """Return the type of a part of a date or time; None for other values, such as intervals.

    >>> str(part_of_time("SECOND", TIMESTAMP))
    'decimal(8,6)'
    """
    return _PARTS.get(name.lower()) if kind in TIMES else None


def days_later(one: Kind, other: Kind, *, either: bool) -> Kind | None:
    """Return the type of a date plus or minus a number of days; `either` of the two may be the date."""
    day, days = (other, one) if either and other == DATE else (one, other)
    return DATE if day == DATE and days.name in ("tinyint", "smallint", "int") else None


def _of_schema(node: exp.Expr) -> Kind | None:
    """Return the type that the schema of from_json() says, if it is a literal."""
    if not isinstance(node, exp.Literal) or not node.is_string:
        return None
    text = node.name.strip()
    is_whole = text.lower().startswith(("struct<", "array<", "map<"))
    try:
        kind = read(text if is_whole else f"struct<{text}>")
    except (SqlglotError, ValueError, RecursionError):
        return None
    return kind if kind is not None and (kind.name != "struct" or kind.fields) else None


def _of_format(node: exp.Expr) -> Kind | None:
    """Return the decimal of a number format, if it is a literal."""
    text = node.name.upper() if isinstance(node, exp.Literal) and node.is_string else ""
    before, _, after = text.replace("D", ".").partition(".")
    digits, scale = (sum(part.count(digit) for digit in "09") for part in (before + after, after))
    return decimal(digits, scale) if set(text) <= _FORMAT and 0 < digits <= MOST_DIGITS else None


# Functions that return the type of their first argument.
SAME: frozenset[type[exp.Expr]] = frozenset((
    exp.Paren, exp.Alias, exp.Min, exp.Max, exp.First, exp.Last, exp.FirstValue, exp.LastValue,
    exp.AnyValue, exp.ArgMax, exp.ArgMin, exp.Window, exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.Nullif,
    exp.ArraySort, exp.ArrayDistinct, exp.ArraySlice, exp.ArrayCompact, exp.Lag,
    exp.Lead, exp.Mode, exp.NthValue, exp.BitwiseAndAgg, exp.BitwiseOrAgg, exp.BitwiseXorAgg,
))  # fmt: skip
# Functions that return one of several values, whose types are widened to one.
WIDEST: frozenset[type[exp.Expr]] = frozenset((exp.Coalesce, exp.Case, exp.If, exp.Nvl2, exp.Greatest, exp.Least))
