"""Which functions a model may call; the list is kept closed on purpose. Pure."""

from __future__ import annotations

import difflib

from sqlglot import exp

# A model is a function of its inputs and as_of: these change by themselves.
VOLATILE = {
    "rand", "randn", "random", "uuid", "monotonically_increasing_id", "spark_partition_id",
    "shuffle", "randstr", "uniform", "normal", "zipf", "generator", "seq1", "seq2", "seq4", "seq8",
}  # fmt: skip
# Clocks other than the tick's, which current_timestamp(), now() and current_date() give.
CLOCKS = {
    "localtimestamp", "localtime", "current_time", "current_datetime", "current_timestamp_ltz",
    "systimestamp", "utc_timestamp", "utc_time", "utc_date", "getdate", "sysdate", "curtime",
}  # fmt: skip
# These read what is not the model's to read, or run what nobody checked.
FORBIDDEN = {
    "java_method", "reflect", "try_reflect", "identifier", "read_files", "read_kafka",
    "input_file_name", "input_file_block_start", "input_file_block_length", "table_changes",
    "table_changes_by_path", "current_user", "session_user", "user", "current_catalog",
    "current_database", "current_schema", "current_timezone", "version", "current_version",
    "raise_error", "assert_true", "http_request", "secret", "try_secret", "range", "getvariable",
}  # fmt: skip
# What sqlglot reads as a function of its own and Spark has too; the list is kept closed, by class name.
_NAMES = """
    Abs Acos Acosh AddMonths And AnyValue ApproxDistinct ApproxQuantile ArgMax ArgMin Array ArrayAgg ArrayAll ArrayAny
    ArrayAppend ArrayCompact ArrayConcat ArrayContains ArrayDistinct ArrayExcept ArrayFilter ArrayFirst ArrayInsert
    ArrayIntersect ArrayLast ArrayMax ArrayMin ArrayOverlaps ArrayPosition ArrayPrepend ArrayRemove ArrayReverse
    ArraySize ArraySlice ArraySort ArraySum ArrayToString ArrayUniqueAgg ArrayUnionAgg ArraysZip Ascii Asin Asinh Atan
    Atan2 Atanh Avg Base64DecodeBinary Base64Encode BitLength BitwiseAndAgg BitwiseCount BitwiseOrAgg BitwiseXorAgg
    ByteLength Case Cast Cbrt Ceil Chr Coalesce Concat ConcatWs Contains Convert ConvertTimezone Corr Cos Cosh Cot Coth
    Count CountIf CovarPop CovarSamp Csc CumeDist CurrentDate CurrentTimestamp Date DateAdd DateDiff DateFromParts
    DateFromUnixDate DateStrToDate DateSub DateToDateStr DateToDi DateTrunc Datetime DatetimeAdd DatetimeDiff
    DatetimeSub DatetimeTrunc Day DayOfMonth DayOfWeek DayOfWeekIso DayOfYear Dayname Decode DecodeCase Degrees
    DenseRank DiToDate Elt Encode EndsWith EqualNull Exists Exp Explode ExplodeOuter _ExplodeOuter
    ExplodingGenerateSeries Extract Factorial First FirstValue Flatten Floor Format FromBase64 FromJson GenerateSeries
    Getbit Greatest GroupConcat Grouping GroupingId Hex Hll Hour If Initcap Inline IsInf IsNan IsNullValue
    JSONExtract JSONExtractScalar JSONFormat JSONObject JSONKeys Kurtosis Lag Last LastDay LastValue Lead Least Left
    Length Levenshtein List Ln Log LogicalAnd LogicalOr Lower MD5 MD5Digest MakeInterval Map MapCat MapContainsKey
    MapFromEntries MapKeys Max Median Min Minute Mode Month Monthname MonthsBetween Nanvl Negative NextDay NthValue
    Ntile Nullif NumberToStr Nvl2 Or Overlay Pad ParseJSON ParseUrl PercentRank PercentileCont PercentileDisc Pi
    Posexplode PosexplodeOuter Pow Quantile Quarter Radians Rank Reduce RegexpCount RegexpExtract RegexpExtractAll
    RegexpILike RegexpInstr RegexpLike RegexpReplace RegexpSplit RegexpSubstr RegrAvgx RegrAvgy RegrCount RegrIntercept
    RegrR2 RegrSlope RegrSxx RegrSxy RegrSyy Repeat Replace Reverse Right Rint Round RowNumber SHA SHA1Digest SHA2
    SHA2Digest SafeAdd SafeDivide SafeMultiply SafeSubtract Sec Second Sign Sin Sinh Skewness Soundex Space Split
    SplitPart Sqrt Stack StartsWith Stddev StddevPop StddevSamp StrPosition StrToDate StrToMap StrToTime StrToUnix
    Struct StructExtract Substring SubstringIndex Sum Tan Tanh Time TimeAdd TimeDiff TimeStrToDate TimeStrToTime
    TimeStrToUnix TimeSub TimeToStr TimeToTimeStr TimeToUnix TimeTrunc Timestamp TimestampAdd TimestampDiff
    TimestampFromParts TimestampSub TimestampTrunc ToArray ToBase64 ToBinary ToBoolean ToChar ToDouble ToMap ToNumber
    Transform Translate Trim Trunc Try TryCast TsOrDiToDi TsOrDsAdd TsOrDsDiff TsOrDsToDate TsOrDsToDateStr
    TsOrDsToDatetime TsOrDsToTime TsOrDsToTimestamp Typeof Unhex Unicode UnixDate UnixMicros UnixMillis UnixSeconds
    UnixToStr UnixToTime UnixToTimeStr Unnest Upper VarMap Variance VariancePop Week WeekOfYear WidthBucket Xor Year
    """
KNOWN = frozenset(_NAMES.split())
# Functions that sqlglot has no class for, checked on both engines.
ANONYMOUS = {
    "timestamp_seconds", "timestamp_micros", "timestamp_millis", "unix_micros", "array_min",
    "array_max", "array_distinct", "array_position", "try_element_at", "named_struct", "nvl",
    "bit_count", "bool_and", "bool_or", "every", "some", "try_divide", "array_compact", "exists",
    "forall", "aggregate", "reduce", "hour", "minute", "isnull", "isnotnull", "pmod",
}  # fmt: skip
# Among what is known, for "Did you mean": names that nobody writes are left out.
SPELLED = sorted(
    {*ANONYMOUS, "current_timestamp", "current_date", "now"}
    | {name.lower() for kind in exp.ALL_FUNCTIONS if kind.__name__ in KNOWN for name in kind.sql_names()}
)


def refusal(function: exp.Func) -> tuple[str, str, str] | None:
    """Say why a function may not stand in a model (code, message, hint); None where it may.

    >>> import sqlglot
    >>> refusal(sqlglot.parse_one("java_method('a', 'b')", read="databricks"))[0]
    'SR305'
    """
    name = function_name(function)
    if name in VOLATILE:
        message = f"{name}() gives another answer each time, so no tick could be proved"
        return "SR501", message, "A model may depend only on its inputs and on current_timestamp(), the tick's time."
    if name in CLOCKS or (isinstance(function, exp.StrToUnix | exp.TimeToUnix) and function.this is None):
        return "SR501", f"{name}() is another clock than the tick's", "Write current_timestamp() or current_date()."
    if name in FORBIDDEN:
        message = f"function {name}() may not be used in a model"
        return "SR305", message, "A model reads declared refs and sources alone."
    known = name in ANONYMOUS if isinstance(function, exp.Anonymous) else type(function).__name__ in KNOWN
    if known:
        return None
    near = difflib.get_close_matches(name, SPELLED, 1)
    hint = "sqlrun takes only functions that are known to agree on Spark and DuckDB."
    return "SR305", f"unknown function {name}()", hint + (f" Did you mean {near[0]}()?" if near else "")


def function_name(function: exp.Func) -> str:
    """Name a function as Spark SQL does, in lower case."""
    if isinstance(function, exp.Anonymous):
        return function.name.lower()
    return str(function.sql_name()).lower()
