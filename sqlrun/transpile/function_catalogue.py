"""The functions that a model may call, by theme, and the ones that run on Spark alone. Pure.

Each has examples in tests/cases/functions/, which tests run on Spark and on DuckDB.
"""

from __future__ import annotations

from collections.abc import Mapping

THEMES: Mapping[str, str] = {
    "text": """
        ascii base64 bit_length btrim char char_length character_length chr concat concat_ws contains crc32 decode
        elt encode endswith find_in_set format_number format_string hex ilike initcap instr lcase left len length
        levenshtein like locate lower lpad ltrim md5 octet_length overlay parse_url position printf regexp
        regexp_count regexp_extract regexp_extract_all regexp_instr regexp_like regexp_replace regexp_substr repeat
        replace reverse right rlike rpad rtrim sha sha1 sha2 soundex space split split_part startswith str_to_map
        substr substring substring_index to_binary to_char to_number to_varchar translate trim ucase unbase64 unhex
        upper url_decode url_encode
    """,
    "numbers": """
        abs acos acosh asin asinh atan atan2 atanh bin bit_count bit_get bround cbrt ceil ceiling conv cos cosh cot
        csc degrees div e exp expm1 factorial floor getbit greatest hash hypot isnan least ln log log10 log1p log2
        mod nanvl negative nullifzero pi pmod positive pow power radians rint round sec shiftleft shiftright
        shiftrightunsigned sign signum sin sinh sqrt tan tanh try_add try_divide try_mod try_multiply try_subtract
        width_bucket xxhash64 zeroifnull
    """,
    "conditions and casts": """
        and bigint boolean case cast coalesce date decimal double equal_null float if ifnull in int isnotnull isnull
        not nullif nvl nvl2 or smallint string timestamp tinyint try_cast typeof
    """,
    "dates and times": """
        add_months convert_timezone curdate current_date current_timestamp date_add date_diff date_format
        date_from_unix_date date_part date_sub date_trunc dateadd datediff datepart day dayname dayofmonth dayofweek
        dayofyear extract from_unixtime from_utc_timestamp hour last_day make_date make_dt_interval make_interval
        make_timestamp make_ym_interval minute month monthname months_between next_day now quarter second
        timestamp_micros timestamp_millis timestamp_seconds timestampadd timestampdiff to_date to_timestamp
        to_unix_timestamp to_utc_timestamp trunc try_make_timestamp try_to_date try_to_timestamp unix_date
        unix_micros unix_millis unix_seconds unix_timestamp weekday weekofyear year
    """,
    "arrays, maps and structs": """
        aggregate array array_append array_compact array_contains array_distinct array_except array_insert
        array_intersect array_join array_max array_min array_position array_prepend array_remove array_repeat
        array_size array_sort array_union arrays_overlap arrays_zip cardinality element_at exists filter flatten
        forall get map map_concat map_contains_key map_entries map_filter map_from_arrays map_from_entries map_keys
        map_values map_zip_with named_struct reduce sequence size slice sort_array struct transform transform_keys
        transform_values try_element_at zip_with
    """,
    "JSON": """
        from_json get_json_object json_array_length json_object_keys schema_of_json to_json
    """,
    "aggregates": """
        any_value approx_count_distinct approx_percentile array_agg avg bit_and bit_or bit_xor bool_and bool_or
        collect_list collect_set corr count count_if covar_pop covar_samp every first first_value grouping
        grouping_id hll_sketch_agg hll_sketch_estimate hll_union hll_union_agg kurtosis last last_value listagg max
        max_by mean median min min_by mode percentile percentile_approx percentile_cont percentile_disc regr_avgx
        regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy skewness some std stddev
        stddev_pop stddev_samp string_agg sum try_avg try_sum var_pop var_samp variance
    """,
    "windows and rows": """
        cume_dist dense_rank explode explode_outer inline inline_outer lag lead nth_value ntile percent_rank
        posexplode posexplode_outer rank row_number stack
    """,
}
# What DuckDB does differently, and what to write instead.
SPARK_ONLY: Mapping[str, tuple[str, str]] = {
    "approx_count_distinct": ("it uses another algorithm", "count(distinct x) is exact."),
    "approx_percentile": ("it uses another algorithm", "percentile(x, p) is exact."),
    "array_insert": ("it has no array_insert", ""),
    "arrays_zip": ("it gives the fields other names", ""),
    "bit_get": ("its function is for bit strings", ""),
    "bround": ("it rounds halves to even differently", ""),
    "conv": ("it has no conv", ""),
    "convert_timezone": ("it has no convert_timezone", ""),
    "crc32": ("it has no crc32", "sha2(x, 256) is the same on both."),
    "expm1": ("it has no expm1", "exp(x) - 1"),
    "format_number": ("it rounds and groups digits differently", "round(x, n) is the same on both for decimals."),
    "format_string": ("its formats are not Java's", ""),
    "from_json": (
        "its schemas are not Spark's, and malformed JSON is an error",
        "get_json_object(x, path) is the same on both.",
    ),
    "getbit": ("its function is for bit strings", ""),
    "hash": ("its hash() is another function", "sha2(x, 256) is the same on both."),
    "hll_sketch_agg": ("it has no HyperLogLog sketches", ""),
    "hll_sketch_estimate": ("it has no HyperLogLog sketches", ""),
    "hll_union": ("it has no HyperLogLog sketches", ""),
    "hll_union_agg": ("it has no HyperLogLog sketches", ""),
    "inline": ("it has no inline", "Explode the array, and select the struct's fields."),
    "inline_outer": ("it has no inline", "Explode the array, and select the struct's fields."),
    "log1p": ("it has no log1p", "ln(1 + x)"),
    "make_dt_interval": ("it has no make_dt_interval", ""),
    "make_ym_interval": ("it has no make_ym_interval", ""),
    "map_zip_with": ("it has no map_zip_with", ""),
    "parse_url": ("it has no parse_url", ""),
    "percentile_approx": ("it uses another algorithm", "percentile(x, p) is exact."),
    "printf": ("its formats are not Java's", ""),
    "regr_avgx": ("its average has different digits", "avg(x) filter (where y is not null)"),
    "regr_avgy": ("its average has different digits", "avg(y) filter (where x is not null)"),
    "schema_of_json": ("it has no schema_of_json", ""),
    "shiftrightunsigned": ("it has no such shift", ""),
    "soundex": ("it has no soundex", ""),
    "stack": ("it has no stack", ""),
    "str_to_map": ("it has no str_to_map", ""),
    "to_char": ("it has no number formats", ""),
    "to_json": ("it writes NULL fields, times and decimals differently", ""),
    "to_number": ("it has no number formats", ""),
    "to_utc_timestamp": ("it reads the hour that a clock change repeats as the later one", ""),
    "to_varchar": ("it has no number formats", ""),
    "try_avg": ("it has no try_avg", ""),
    "try_sum": ("it has no try_sum", "Sum decimals: sum(cast(x as decimal(38, 0)))."),
    "typeof": ("it returns the names of its own types", ""),
    "url_decode": ("it leaves + unchanged, Spark returns a space", ""),
    "url_encode": ("it writes a space as %20, Spark as +", ""),
    "width_bucket": ("it has no width_bucket", ""),
    "xxhash64": ("it has no xxhash64", "sha2(x, 256) is the same on both."),
}
# The result of these depends on the order of rows, unless an ORDER BY or a sort determines it.
ORDER_DEPENDENT = frozenset({
    "any_value", "approx_percentile", "array_agg", "collect_list", "collect_set", "first", "first_value", "last",
    "last_value", "listagg", "max_by", "min_by", "mode", "percentile_approx", "string_agg",
})  # fmt: skip
# The only differences between the engines: DuckDB returns another value, or an error if there is one.
NOTES: Mapping[str, str] = {
    "get_json_object": "malformed JSON is an error on DuckDB; Spark reads what it can, or returns NULL",
    "json_array_length": "malformed JSON is an error on DuckDB, NULL on Spark",
    "json_object_keys": "malformed JSON is an error on DuckDB, NULL on Spark",
    "sum": "a sum of whole numbers beyond a bigint is an error on Spark, on DuckDB only if it is stored",
}

# The same for operators, by the names of their examples.
OPERATORS: Mapping[str, str] = {
    "plus": "on DuckDB a date column plus an interval is a timestamp",
    "equal": "DuckDB compares a text with a number as decimals",
}
# Nondeterministic functions: a model is a function of its inputs and as_of.
VOLATILE = {
    "rand", "randn", "random", "uuid", "monotonically_increasing_id", "spark_partition_id",
    "shuffle", "randstr", "uniform", "normal", "zipf", "generator", "seq1", "seq2", "seq4", "seq8",
}  # fmt: skip
# Clocks other than the tick's, which current_timestamp(), now() and current_date() return.
CLOCKS = {
    "localtimestamp", "localtime", "current_time", "current_datetime", "current_timestamp_ltz",
    "systimestamp", "utc_timestamp", "utc_time", "utc_date", "getdate", "sysdate", "curtime",
}  # fmt: skip
# Functions that read data outside the model's inputs, or run unchecked code.
FORBIDDEN = {
    "java_method", "reflect", "try_reflect", "identifier", "read_files", "read_kafka",
    "input_file_name", "input_file_block_start", "input_file_block_length", "table_changes",
    "table_changes_by_path", "current_user", "session_user", "user", "current_catalog",
    "current_database", "current_schema", "current_timezone", "version", "current_version",
    "raise_error", "assert_true", "http_request", "secret", "try_secret", "range", "getvariable",
}  # fmt: skip


def names() -> frozenset[str]:
    """Return the names of all functions that a model may call."""
    return frozenset(name for theme in THEMES.values() for name in theme.split())
