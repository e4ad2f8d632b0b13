"""Number of arguments of Spark's functions. Pure.

tests/spark/test_function_list_spark.py compares the list with Spark.
"""

from __future__ import annotations

from collections.abc import Mapping

SPARK = "4.1.3"
# Names by accepted numbers of arguments: `2+` is two or more, `even` any even number.
_TAKEN: Mapping[str, str] = {
    "0": """
        cume_dist curdate current_date current_timestamp dense_rank e now percent_rank pi rank row_number
    """,
    "0 1": """
        ntile
    """,
    "0 1 2": """
        make_ym_interval unix_timestamp
    """,
    "0 1 2 3 4": """
        make_dt_interval
    """,
    "0 1 2 3 4 5 6 7": """
        make_interval
    """,
    "0+": """
        array arrays_zip concat grouping_id map_concat struct
    """,
    "1": """
        abs acos acosh array_agg array_compact array_distinct array_max array_min array_size ascii asin
        asinh atan atanh avg base64 bigint bin bit_and bit_count bit_length bit_or bit_xor bool_and bool_or
        boolean cardinality cbrt char char_length character_length chr collect_list collect_set cos cosh cot
        count_if crc32 csc date date_from_unix_date day dayname dayofmonth dayofweek dayofyear decimal
        degrees double every exp explode explode_outer expm1 factorial flatten float grouping hex
        hll_sketch_estimate hour initcap inline inline_outer int isnan isnotnull isnull json_array_length
        json_object_keys kurtosis last_day lcase len length ln log10 log1p log2 lower map_entries
        map_from_entries map_keys map_values max md5 mean median min minute month monthname negative
        nullifzero octet_length percentile_cont percentile_disc posexplode posexplode_outer positive quarter
        radians reverse rint sec second sha sha1 sign signum sin sinh size skewness smallint some soundex
        space sqrt std stddev stddev_pop stddev_samp string sum tan tanh timestamp timestamp_micros
        timestamp_millis timestamp_seconds tinyint try_avg try_sum typeof ucase unbase64 unhex unix_date
        unix_micros unix_millis unix_seconds upper url_decode url_encode var_pop var_samp variance weekday
        weekofyear year zeroifnull
    """,
    "1 2": """
        any_value approx_count_distinct array_sort bround btrim ceil ceiling first first_value floor
        from_unixtime hll_sketch_agg hll_union_agg last last_value listagg log ltrim mode round rtrim
        schema_of_json sort_array string_agg to_binary to_date to_json to_timestamp to_unix_timestamp trim
        try_to_date try_to_timestamp
    """,
    "1 2 3": """
        lag lead str_to_map
    """,
    "1 2 3 6 7": """
        make_timestamp try_make_timestamp
    """,
    "1+": """
        coalesce concat_ws count format_string hash printf xxhash64
    """,
    "2": """
        add_months array_append array_contains array_except array_intersect array_position array_prepend
        array_remove array_repeat array_union arrays_overlap atan2 bit_get contains corr covar_pop
        covar_samp date_format date_part date_sub date_trunc datepart element_at encode endswith equal_null
        exists extract filter find_in_set forall format_number from_utc_timestamp get get_json_object getbit
        hypot ifnull instr left map_contains_key map_filter map_from_arrays max_by min_by mod nanvl next_day
        nth_value nullif nvl pmod pow power regexp_count regexp_like regexp_substr regr_avgx regr_avgy
        regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy repeat right sha2 shiftleft
        shiftright shiftrightunsigned startswith to_char to_number to_utc_timestamp to_varchar transform
        transform_keys transform_values trunc try_add try_divide try_element_at try_mod try_multiply
        try_subtract
    """,
    "2 3": """
        approx_percentile array_join convert_timezone date_add date_diff dateadd datediff from_json
        hll_union levenshtein locate lpad months_between parse_url percentile percentile_approx position
        regexp_extract regexp_extract_all regexp_instr replace rpad sequence split substr substring
    """,
    "2+": """
        decode elt greatest least stack
    """,
    "3": """
        array_insert conv if make_date map_zip_with nvl2 slice split_part substring_index translate zip_with
    """,
    "3 4": """
        aggregate overlay reduce regexp_replace
    """,
    "4": """
        width_bucket
    """,
    "even": """
        map named_struct
    """,
}
COUNTS: Mapping[str, str] = {name: counts for counts, names in _TAKEN.items() for name in names.split()}


def takes(name: str, count: int) -> bool:
    """Return whether a function accepts a number of arguments; True for an unknown function.

    >>> takes("upper", 1), takes("upper", 2), takes("coalesce", 5), takes("map", 3)
    (True, False, True, False)
    """
    known = COUNTS.get(name)
    if known is None:
        return True
    if known == "even":
        return count % 2 == 0
    if known.endswith("+"):
        return count >= int(known[:-1])
    return count in map(int, known.split())


def counts(name: str) -> str:
    """Return the numbers of arguments that a function accepts, as text.

    >>> counts("substring"), counts("coalesce"), counts("pi")
    ('2 or 3 arguments', '1 or more arguments', 'no arguments')
    """
    known = COUNTS[name]
    if known == "even":
        return "an even number of arguments"
    if known.endswith("+"):
        return f"{known[:-1]} or more arguments"
    listed = known.split()
    text = listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} or {listed[-1]}"
    return "no arguments" if text == "0" else f"{text} argument{'s' * (text != '1')}"
