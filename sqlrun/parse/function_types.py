"""Return types of functions, as Spark has them. Pure.

tests/spark/test_types_spark.py evaluates an expression for each on Spark.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from sqlrun.transpile.spark_types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    Kind,
    array,
    struct,
    widest,
)

_RETURNS: Mapping[Kind, tuple[type[exp.Expr], ...]] = {
    STRING: (
        exp.Upper, exp.Lower, exp.Initcap, exp.ConcatWs, exp.Trim, exp.Replace, exp.RegexpReplace, exp.RegexpExtract,
        exp.MD5, exp.JSONExtractScalar, exp.Repeat, exp.Translate, exp.Hex, exp.ArrayToString, exp.ToBase64, exp.Space,
        exp.SHA, exp.Soundex,
    ),
    INT: (
        exp.Length, exp.ArraySize, exp.Year, exp.Month, exp.Day, exp.DayOfYear, exp.WeekOfYear, exp.RowNumber,
        exp.Rank, exp.DenseRank, exp.Ntile, exp.StrPosition, exp.UnixDate, exp.Ascii, exp.BitwiseCount, exp.DayOfMonth,
        exp.BitLength, exp.RegexpInstr, exp.RegexpCount,
    ),
    BIGINT: (
        exp.Count, exp.CountIf, exp.ApproxDistinct, exp.IntDiv, exp.UnixMicros, exp.UnixSeconds, exp.RegrCount,
    ),
    DOUBLE: (
        exp.Sqrt, exp.Exp, exp.Ln, exp.Pow, exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop,
        exp.Corr, exp.PercentRank, exp.CumeDist, exp.Acos, exp.Acosh, exp.Asin, exp.Asinh, exp.Atan, exp.Atan2,
        exp.Atanh, exp.Cbrt, exp.Cos, exp.Cosh, exp.Cot, exp.CovarPop, exp.CovarSamp, exp.Degrees, exp.Median, exp.Pi,
        exp.Radians, exp.RegrIntercept, exp.RegrR2, exp.RegrSlope, exp.RegrSxx,
        exp.RegrSxy, exp.RegrSyy, exp.Sin, exp.Sinh, exp.Tan, exp.Tanh,
    ),
    DATE: (exp.CurrentDate, exp.TsOrDsToDate, exp.DateTrunc),
    TIMESTAMP: (exp.CurrentTimestamp, exp.TimestampTrunc),
    BOOLEAN: (
        exp.ArrayContains, exp.StartsWith, exp.EndsWith, exp.Contains, exp.LogicalAnd,
        exp.LogicalOr, exp.RegexpLike, exp.IsNan,
    ),
    BINARY: (exp.FromBase64, exp.ToBinary, exp.Encode),
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
    DOUBLE: "csc e expm1 hypot log log10 log1p log2 months_between rint sec sign signum",
    DATE: "add_months date_from_unix_date date_sub last_day make_date next_day to_date try_to_date",
    TIMESTAMP: """from_utc_timestamp make_timestamp timestamp_micros timestamp_millis timestamp_seconds timestampadd
        to_timestamp to_utc_timestamp try_to_timestamp""",
    BOOLEAN: "arrays_overlap equal_null every forall isnotnull isnull map_contains_key some",
    BINARY: "unhex",
}
FIXED_NAMES: Mapping[str, Kind] = {name: returned for returned, names in _NAMED.items() for name in names.split()}
# Functions with another type if a unit comes before their arguments: (without, with).
BY_UNIT: Mapping[str, tuple[Kind, Kind]] = {
    "date_add": (DATE, TIMESTAMP),
    "dateadd": (DATE, TIMESTAMP),
    "date_diff": (INT, BIGINT),
    "datediff": (INT, BIGINT),
}
# Functions that return text for text and bytes for bytes.
TEXTS = frozenset({"left", "right", "lpad", "rpad"})
# Functions that return an array of their argument's type.
ARRAYS = frozenset({"array_except", "array_intersect", "array_union", "array_remove", "positive"})


def of_array(name: str, kinds: list[Kind | None]) -> Kind | None:
    """Return the type of a function of arrays or maps for arguments of these types; None if it isn't known."""
    first = kinds[0] if kinds else None
    match name:
        case "array_repeat":
            return array(first)
        case "flatten" if first is not None and first.name == "array":
            return first.parts[0] if first.parts[0].name == "array" else None
        case "map_values" if first is not None and first.name == "map":
            return array(first.parts[1])
        case "map_entries" if first is not None and first.name == "map":
            return array(struct(zip(("key", "value"), first.parts, strict=True)))
        case _ if name in ARRAYS:
            return widest(kinds if name in ("array_union", "array_intersect") else [first])
        case _:
            return None


# Functions that return the type of their first argument.
SAME: frozenset[type[exp.Expr]] = frozenset((
    exp.Paren, exp.Alias, exp.Min, exp.Max, exp.First, exp.Last, exp.FirstValue, exp.LastValue,
    exp.AnyValue, exp.ArgMax, exp.ArgMin, exp.Window, exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.Nullif,
    exp.ArraySort, exp.ArrayDistinct, exp.ArraySlice, exp.ArrayCompact, exp.ArrayAppend, exp.ArrayPrepend, exp.Lag,
    exp.Lead, exp.Mode, exp.NthValue, exp.Reverse, exp.BitwiseAndAgg, exp.BitwiseOrAgg, exp.BitwiseXorAgg,
))  # fmt: skip
# Functions that return one of several values, whose types are widened to one.
WIDEST: frozenset[type[exp.Expr]] = frozenset((exp.Coalesce, exp.Case, exp.If, exp.Nvl2, exp.Greatest, exp.Least))
