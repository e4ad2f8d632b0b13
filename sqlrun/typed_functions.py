"""Functions by what they return, as Spark has them. Pure.

tests/spark/test_types_spark.py has an expression for each, and asks Spark.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from sqlrun.spark_types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP, Kind

_RETURNS: Mapping[Kind, tuple[type[exp.Expr], ...]] = {
    STRING: (
        exp.Upper, exp.Lower, exp.Initcap, exp.ConcatWs, exp.Trim, exp.Replace, exp.RegexpReplace, exp.RegexpExtract,
        exp.MD5, exp.SHA2, exp.TimeToStr, exp.JSONExtractScalar, exp.Repeat, exp.Translate, exp.SubstringIndex,
        exp.Left, exp.Right, exp.Hex, exp.JSONFormat, exp.UnixToStr, exp.ArrayToString,
    ),
    INT: (
        exp.Length, exp.ArraySize, exp.Year, exp.Month, exp.Day, exp.Hour, exp.Minute, exp.Second, exp.DayOfWeek,
        exp.DayOfYear, exp.WeekOfYear, exp.Quarter, exp.RowNumber, exp.Rank, exp.DenseRank, exp.Ntile, exp.StrPosition,
        exp.UnixDate, exp.Levenshtein, exp.Ascii, exp.BitwiseCount, exp.DayOfMonth,
    ),
    BIGINT: (
        exp.Count, exp.CountIf, exp.ApproxDistinct, exp.IntDiv, exp.UnixMicros, exp.UnixSeconds, exp.UnixMillis,
        exp.ArrayPosition, exp.StrToUnix,
    ),
    DOUBLE: (
        exp.Sqrt, exp.Exp, exp.Ln, exp.Pow, exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop,
        exp.Corr, exp.PercentRank, exp.CumeDist, exp.Sign, exp.MonthsBetween,
    ),
    DATE: (
        exp.CurrentDate, exp.TsOrDsToDate, exp.LastDay, exp.AddMonths, exp.TsOrDsAdd, exp.DateTrunc,
    ),
    TIMESTAMP: (exp.CurrentTimestamp, exp.TimestampTrunc, exp.StrToTime),
    BOOLEAN: (
        exp.ArrayContains, exp.StartsWith, exp.EndsWith, exp.Contains, exp.LogicalAnd,
        exp.LogicalOr, exp.RegexpLike, exp.IsNan, exp.MapContainsKey,
    ),
}  # fmt: skip
FIXED: Mapping[type[exp.Expr], Kind] = {kind: returned for returned, kinds in _RETURNS.items() for kind in kinds}
# Functions that sqlglot has no class for.
FIXED_NAMES: Mapping[str, Kind] = {
    "timestamp_seconds": TIMESTAMP,
    "timestamp_micros": TIMESTAMP,
    "timestamp_millis": TIMESTAMP,
    "every": BOOLEAN,
    "forall": BOOLEAN,
    "isnull": BOOLEAN,
    "isnotnull": BOOLEAN,
}
# These give what they take first.
SAME: frozenset[type[exp.Expr]] = frozenset((
    exp.Paren, exp.Alias, exp.Min, exp.Max, exp.First, exp.Last, exp.FirstValue, exp.LastValue,
    exp.AnyValue, exp.ArgMax, exp.ArgMin, exp.Window, exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.Nullif,
    exp.ArraySort, exp.ArrayDistinct, exp.ArraySlice, exp.ArrayRemove, exp.ArrayCompact, exp.Lag,
    exp.Lead, exp.Mode, exp.NthValue, exp.Reverse,
))  # fmt: skip
# These give one of several values, so all of those are widened to one type.
WIDEST: frozenset[type[exp.Expr]] = frozenset((exp.Coalesce, exp.Case, exp.If, exp.Nvl2, exp.Greatest, exp.Least))
