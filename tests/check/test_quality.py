"""Checks on Great Expectations: each kind has a control that must pass and one that must fail."""

import builtins
import functools
import io
import json
import logging
import os
import socket
import subprocess
import sys
import warnings
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest
import sqlglot

from sqlrun.check import great_expectations
from sqlrun.check.check_plan import Rows, Terms
from sqlrun.check.evaluate import run_checks
from sqlrun.check.samples import bounded
from sqlrun.errors import Place
from sqlrun.expectations.catalogue import CATALOGUE, VOLUME
from sqlrun.expectations.validate import from_contract, passes, problems
from sqlrun.project import Column, Config, Expectation, Model, Suite

# Great Expectations takes seconds to import.
pytestmark = pytest.mark.slow
PLACE = Place("expectations/t.yml", 3, 5)
AS_OF = datetime(2024, 5, 1, 12, tzinfo=timezone.utc)
UTC = timezone.utc
TYPES = {
    "id": ("bigint", pa.int64()),
    "big": ("bigint", pa.int64()),
    "qty": ("int", pa.int32()),
    "amount": ("decimal(18,2)", pa.decimal128(18, 2)),
    "fee": ("decimal(10,1)", pa.decimal128(10, 1)),
    "price": ("double", pa.float64()),
    "status": ("string", pa.string()),
    "label": ("string", pa.string()),
    "email": ("string", pa.string()),
    "at": ("timestamp", pa.timestamp("us", "UTC")),
    "seen": ("timestamp_ntz", pa.timestamp("us")),
    "day": ("date", pa.date32()),
    "paid": ("boolean", pa.bool_()),
    "tags": ("array<string>", pa.list_(pa.string())),
}


def column(name, nullable=True):
    tags = ("pii",) if name == "email" else ()
    return Column(name, TYPES[name][0], "", PLACE, "", nullable, tags)


def model(*names, grain=("id",)):
    columns = tuple(column(name) for name in names or TYPES)
    return Model("orders", "o.sql", "", "o.yml", "", grain, False, columns, Config(), ())


def table(**columns):
    return pa.table({name: pa.array(values, TYPES[name][1]) for name, values in columns.items()})


def expect(type, severity="critical", on_fail="fail", **kwargs):
    return Expectation(type, kwargs, severity, on_fail, "", PLACE)


def check(expectation, rows, keyed=None, whole=None):
    (result,) = run_checks(model(), (expectation,), Rows(rows, keyed, whole or (lambda: rows)), Terms(AS_OF))
    return result


BETWEEN = "expect_column_values_to_be_between"
IN_SET = "expect_column_values_to_be_in_set"
NOT_IN_SET = "expect_column_values_to_not_be_in_set"
NOT_NULL = "expect_column_values_to_not_be_null"
UNIQUE = "expect_column_values_to_be_unique"
COMPOUND = "expect_compound_columns_to_be_unique"
PAIR_EQUAL = "expect_column_pair_values_to_be_equal"
PAIR_GREATER = "expect_column_pair_values_a_to_be_greater_than_b"
QUERY = "unexpected_rows_expectation"

GOOD_ROWS = table(
    id=[1, 2, 3],
    qty=[1, 2, None],
    amount=[Decimal("0.10"), Decimal("0.20"), Decimal("0.30")],
    fee=[Decimal("0.1"), Decimal("0.2"), None],
    price=[1.0, 2.0, None],
    status=["a1", "b2", None],
    label=["a1", "b2", None],
    day=[date(2024, 1, 1), date(2024, 1, 2), None],
)
BAD_ROWS = table(
    id=[1, 1, 3],
    qty=[7, 2, 2],
    amount=[Decimal("0.10"), Decimal("9.20"), Decimal("0.30")],
    fee=[Decimal("0.1"), Decimal("0.7"), None],
    price=[100.0, 2.0, None],
    status=["a1", "zzz", "zzz"],
    label=["a1", "b2", "b2"],
    day=[date(2024, 1, 1), date(1999, 1, 2), None],
)
SCHEMA = {"type": "object", "required": ["a"]}
JSON_GOOD, JSON_BAD = table(status=['{"a": 1}', None]), table(status=["{}", "nonsense"])
DATES_GOOD, DATES_BAD = table(status=["2024-01-01", None]), table(status=["2024-01-01", "someday"])
FLAT, SPIKED = table(price=[1.0, 2.0] * 10), table(price=[1.0, 2.0] * 10 + [999.0])

# type, arguments, rows that pass and rows that fail (the pair above unless given)
CONTROLS = [
    ("expect_column_values_to_not_be_null", {"column": "id"}, GOOD_ROWS, table(id=[1, None])),
    ("expect_column_values_to_be_null", {"column": "id"}, table(id=[None, None]), table(id=[1, None])),
    (BETWEEN, {"column": "amount", "min_value": 0.1, "max_value": "0.30"}),
    (IN_SET, {"column": "status", "value_set": ["a1", "b2"]}),
    (NOT_IN_SET, {"column": "status", "value_set": ["zzz"]}),
    ("expect_column_values_to_match_regex", {"column": "status", "regex": "^[ab]([0-9])$"}),
    ("expect_column_values_to_not_match_regex", {"column": "status", "regex": "z+"}),
    ("expect_column_values_to_match_regex_list", {"column": "status", "regex_list": ["a", "b"]}),
    ("expect_column_values_to_not_match_regex_list", {"column": "status", "regex_list": ["z", "y"]}),
    ("expect_column_value_lengths_to_be_between", {"column": "status", "max_value": 2}),
    ("expect_column_value_lengths_to_equal", {"column": "status", "value": 2}),
    ("expect_column_values_to_be_dateutil_parseable", {"column": "status"}, DATES_GOOD, DATES_BAD),
    (
        "expect_column_values_to_match_strftime_format",
        {"column": "status", "strftime_format": "%Y-%m-%d"},
        DATES_GOOD,
        DATES_BAD,
    ),
    ("expect_column_values_to_be_json_parseable", {"column": "status"}, JSON_GOOD, JSON_BAD),
    (
        "expect_column_values_to_match_json_schema",
        {"column": "status", "json_schema": SCHEMA},
        JSON_GOOD,
        table(status=["{}"]),
    ),
    (UNIQUE, {"column": "id"}),
    ("expect_column_values_to_not_be_outliers", {"column": "price", "method": "iqr"}, FLAT, SPIKED),
    (
        "expect_column_value_z_scores_to_be_less_than",
        {"column": "price", "threshold": 3, "double_sided": True},
        FLAT,
        SPIKED,
    ),
    (PAIR_EQUAL, {"column_A": "status", "column_B": "label"}),
    (
        PAIR_GREATER,
        {"column_A": "amount", "column_B": "fee", "or_equal": True, "ignore_row_if": "either_value_is_missing"},
        GOOD_ROWS,
        table(amount=[Decimal(1)], fee=[Decimal(2)]),
    ),
    (
        "expect_column_pair_values_to_be_in_set",
        {"column_A": "qty", "column_B": "status", "value_pairs_set": [[1, "a1"], [2, "b2"]]},
    ),
    (COMPOUND, {"column_list": ["id", "qty"]}, GOOD_ROWS, table(id=[1, 1], qty=[2, 2])),
    (
        "expect_select_column_values_to_be_unique_within_record",
        {"column_list": ["status", "label"]},
        table(status=["a"], label=["b"]),
        GOOD_ROWS,
    ),
    ("expect_multicolumn_values_to_be_equal", {"column_list": ["status", "label"]}),
    (
        "expect_multicolumn_sum_to_equal",
        {"column_list": ["amount", "fee"], "sum_total": 0.3},
        table(amount=[Decimal("0.10")], fee=[Decimal("0.2")]),
        GOOD_ROWS,
    ),
    ("expect_column_sum_to_be_between", {"column": "amount", "min_value": 0.6, "max_value": 0.6}),
    ("expect_column_min_to_be_between", {"column": "day", "min_value": "2024-01-01"}),
    ("expect_column_max_to_be_between", {"column": "amount", "max_value": 0.3}),
    ("expect_column_mean_to_be_between", {"column": "amount", "max_value": 0.3}),
    ("expect_column_median_to_be_between", {"column": "qty", "max_value": 1.5}),
    ("expect_column_stdev_to_be_between", {"column": "amount", "max_value": 0.2}),
    ("expect_column_proportion_of_unique_values_to_be_between", {"column": "id", "min_value": 1}),
    ("expect_column_proportion_of_non_null_values_to_be_between", {"column": "status", "max_value": 0.7}),
    ("expect_column_unique_value_count_to_be_between", {"column": "id", "min_value": 3}),
    (
        "expect_column_quantile_values_to_be_between",
        {"column": "amount", "quantile_ranges": {"quantiles": [0.5], "value_ranges": [[0.1, 0.2]]}},
    ),
    ("expect_column_distinct_values_to_be_in_set", {"column": "day", "value_set": ["2024-01-01", date(2024, 1, 2)]}),
    ("expect_column_distinct_values_to_contain_set", {"column": "day", "value_set": ["2024-01-02"]}),
    ("expect_column_distinct_values_to_equal_set", {"column": "amount", "value_set": [0.1, 0.2, "0.30"]}),
    (
        "expect_column_most_common_value_to_be_in_set",
        {"column": "status", "value_set": ["b2", "a1"], "ties_okay": True},
    ),
    (
        "expect_column_kl_divergence_to_be_less_than",
        {"column": "status", "threshold": 0.1, "partition_object": {"values": ["a1", "b2"], "weights": [0.5, 0.5]}},
    ),
    ("expect_table_row_count_to_be_between", {"min_value": 3}, GOOD_ROWS, table(id=[1])),
    ("expect_table_row_count_to_equal", {"value": 3}, GOOD_ROWS, table(id=[1])),
    ("expect_column_to_exist", {"column": "id"}, GOOD_ROWS, table(qty=[1])),
    ("expect_table_column_count_to_equal", {"value": 1}, table(id=[1]), GOOD_ROWS),
    ("expect_table_column_count_to_be_between", {"max_value": 1}, table(id=[1]), GOOD_ROWS),
    (
        "expect_table_columns_to_match_ordered_list",
        {"column_list": ["id", "qty"]},
        table(id=[1], qty=[1]),
        table(qty=[1], id=[1]),
    ),
    ("expect_table_columns_to_match_set", {"column_set": ["qty", "id"]}, table(id=[1], qty=[1]), table(id=[1])),
    (QUERY, {"unexpected_rows_query": "select * from {batch} where amount > 9"}),
]


@pytest.mark.parametrize("control", CONTROLS, ids=lambda control: control[0])
def test_every_kind_passes_and_fails(control):
    type_, kwargs = control[:2]
    good, bad = control[2:] or (GOOD_ROWS, BAD_ROWS)
    expectation = expect(type_, **kwargs)

    assert problems(Suite("orders", "t.yml", (expectation,)), model(), lands=False) == ()
    passed, failed = check(expectation, good), check(expectation, bad)
    assert (passed.status, passed.message) == ("pass", "")
    assert failed.status == "fail", failed.message
    counts = CATALOGUE[type_].counts_rows or type_ == QUERY
    assert (failed.unexpected > 0) == (len(failed.samples) > 0) == counts


@pytest.mark.parametrize("control", CONTROLS, ids=lambda control: control[0])
def test_no_kind_reaches_the_network_or_a_file(control, monkeypatch):
    """Once imported, an expectation needs only its rows, whether they pass or fail."""
    good, bad = control[2:] or (GOOD_ROWS, BAD_ROWS)
    expectation = expect(control[0], **control[1])
    verdicts = [check(expectation, rows).status for rows in (good, bad)]
    reached = []

    def refuse(*args, **_):
        reached.append(args)
        raise OSError("nothing is reached here")

    for owner, name in ((builtins, "open"), (io, "open"), (os, "open"), (socket, "socket"), (socket, "getaddrinfo")):
        monkeypatch.setattr(owner, name, refuse)
    again = [check(expectation, rows).status for rows in (good, bad)]
    monkeypatch.undo()

    assert (again, reached) == (verdicts, [])


def test_a_pattern_of_a_schema_that_may_run_away_is_an_error():
    """Python's search can't be interrupted: texts that are too long for it are reported, and never searched."""
    schema = {"properties": {"a": {"pattern": "a+b+c"}}}
    expectation = expect("expect_column_values_to_match_json_schema", column="status", json_schema=schema)
    rows = table(status=[json.dumps({"a": "a" * 50_000 + "b" * 50_000})])

    result = check(expectation, rows)

    assert result.status == "error"
    assert "too long" in result.message


def test_every_kind_that_runs_has_its_controls():
    """sqlrun's own kind reads no rows: its controls are in tests/check/test_measuring.py."""
    assert {name for name, kind in CATALOGUE.items() if not kind.refused} == {VOLUME, *(c[0] for c in CONTROLS)}


def test_the_catalogue_matches_great_expectations():
    great_expectations._great_expectations()
    from great_expectations.expectations.expectation import Expectation as Base
    from great_expectations.expectations.registry import (
        get_expectation_impl,
        list_registered_expectation_implementations,
    )

    # Retired by Great Expectations, kept in its registry under the old name.
    names = set(list_registered_expectation_implementations())
    assert set(CATALOGUE) == {VOLUME, *names}
    ours = {*Base.__fields__, "batch_id", "library_metadata"}
    for name in names:
        kind = CATALOGUE[name]
        fields = get_expectation_impl(name).__fields__
        assert set(kind.allowed) == set(fields) - ours, name
        assert {field for field in fields if fields[field].required} <= set(kind.columns + kind.required), name


# One row of values for each type: the minimum, the bound, above it, NULL, and values that confuse floats and pandas.
VALUES = {
    "qty": [1, 2, 3, None, -(2**31)],
    "big": [2**53, 2**53 + 1, 2**53 + 2, None, -(2**63)],
    "amount": [Decimal("0.09"), Decimal("0.10"), Decimal("0.11"), None, Decimal("-9999999999999999.99")],
    "price": [0.5, 1.5, 2.5, None, float("nan"), float("inf"), -0.0],
    "status": ["a", "b", "c", None, "", "é'\\", "NaN", "None"],
    "at": [AS_OF - timedelta(microseconds=1), AS_OF, AS_OF + timedelta(days=1), None,
           datetime(9999, 12, 31, tzinfo=UTC), datetime(1, 1, 1, tzinfo=UTC)],
    "seen": [datetime(2024, 1, 1), datetime(2024, 1, 2), None],
    "day": [date(2024, 1, 1), date(2024, 1, 2), None, date(1, 1, 1)],
    "paid": [True, False, None],
}  # fmt: skip


def rules():
    """Yield every row-level kind with a predicate, on every type where it makes sense, at and near its bounds."""
    for name, values in VALUES.items():
        first, bound = values[0], values[1]
        yield expect(NOT_NULL, column=name)
        yield expect("expect_column_values_to_be_null", column=name)
        yield expect(IN_SET, column=name, value_set=[first, bound])
        yield expect(IN_SET, column=name, value_set=[])
        yield expect(NOT_IN_SET, column=name, value_set=[bound])
        if name == "paid":
            continue
        for strict in (False, True):
            yield expect(BETWEEN, column=name, min_value=bound, strict_min=strict)
            yield expect(BETWEEN, column=name, max_value=bound, strict_max=strict)
            yield expect(BETWEEN, column=name, min_value=first, max_value=bound, strict_max=strict)
            yield expect(BETWEEN, column=name, min_value=bound, max_value=bound, strict_max=strict)
    yield expect(BETWEEN, column="amount", min_value=0.1, max_value="0.105")
    yield expect(BETWEEN, column="qty", min_value=1.5)
    yield expect(BETWEEN, column="at", max_value="2024-05-01T12:00:00Z")
    yield expect(BETWEEN, column="at", max_value=datetime(2024, 5, 1, 14, tzinfo=timezone(timedelta(hours=2))))
    for regex in ("^a|b$", "", r"\\", "é", "^.?$"):
        yield expect("expect_column_values_to_match_regex", column="status", regex=regex)
        yield expect("expect_column_values_to_not_match_regex", column="status", regex=regex)
    yield expect("expect_column_value_lengths_to_be_between", column="status", min_value=1, max_value=2)
    yield expect("expect_column_value_lengths_to_be_between", column="status", max_value=1, strict_max=True)
    yield expect("expect_column_value_lengths_to_equal", column="status", value=3)
    yield expect(IN_SET, column="status", value_set=["é'\\", "NaN"])
    yield expect(BETWEEN, column="qty", min_value=2, row_condition="qty <> 3")
    yield expect(QUERY, unexpected_rows_query="select * from {batch} where qty > 1")


@functools.cache
def connection():
    connection = duckdb.connect()
    connection.execute("set timezone = 'Asia/Kathmandu'")
    return connection


def all_held_on_duckdb(expectations, rows):
    """Return, for each expectation, its predicate's value for each row."""
    parsed = [sqlglot.parse_one(passes(rule, model().columns), read="databricks") for rule in expectations]
    columns = [f"({tree.sql(dialect='duckdb')}) as p{index}" for index, tree in enumerate(parsed)]
    connection().register("batch", rows)
    answers = connection().sql(f"select {', '.join(columns)} from batch").fetchall()
    return list(zip(*answers, strict=True))


def held_on_duckdb(expectation, rows):
    return list(all_held_on_duckdb([expectation], rows)[0])


def hostile_rows():
    longest = max(len(values) for values in VALUES.values())
    padded = {name: values + [None] * (longest - len(values)) for name, values in VALUES.items()}
    return table(id=range(longest), **padded)


@pytest.mark.slow
def test_predicates_and_great_expectations_agree():
    rows = hostile_rows()
    expectations = tuple(rules())

    results = run_checks(model(), expectations, Rows(rows), Terms(AS_OF))
    verdicts = all_held_on_duckdb(expectations, rows)

    assert len(expectations) > 90
    for expectation, result, held in zip(expectations, results, verdicts, strict=True):
        assert None not in held, expectation
        bad = [index for index, good in enumerate(held) if not good]
        assert len(bad) == result.unexpected, (expectation, result)
        assert ("fail" if bad else "pass") == result.status, expectation
        if expectation.type != QUERY:
            sampled = [int(sample.split(",")[0].removeprefix("id=")) for sample in result.samples]
            assert bad[:20] == sampled, expectation


PAIRS = [(1, 1), (2, 1), (1, 2), (None, 1), (1, None), (None, None)]


@pytest.mark.parametrize("ignored", [None, "both_values_are_missing", "either_value_is_missing", "neither"])
@pytest.mark.parametrize(("first", "second"), [("qty", "big"), ("price", "price"), ("amount", "fee")])
def test_pairs_agree(first, second, ignored):
    values = PAIRS + ([(float("nan"), 1), (float("nan"), float("nan")), (1, float("nan"))] if first == "price" else [])
    ours = model()
    names = {"column_A": first, "column_B": second if second != first else "fee"}
    if first == "amount":
        values = [tuple(side if side is None else Decimal(side) for side in pair) for pair in values]
    left = pa.array([a for a, _ in values], TYPES[first][1])
    right = pa.array([b for _, b in values], TYPES[second][1])
    rows = pa.table({names["column_A"]: left, names["column_B"]: right})
    extra = {} if ignored is None else {"ignore_row_if": ignored}

    for type_, more in ((PAIR_EQUAL, {}), (PAIR_GREATER, {}), (PAIR_GREATER, {"or_equal": True})):
        expectation = expect(type_, **names, **extra, **more)
        (result,) = run_checks(ours, (expectation,), Rows(rows), Terms(AS_OF))

        assert held_on_duckdb(expectation, rows).count(False) == result.unexpected, expectation


@pytest.mark.parametrize(
    ("severity", "on_fail", "status"),
    [
        ("critical", "fail", "fail"),
        ("critical", "quarantine", "fail"),
        ("critical", "warn", "warn"),
        ("warning", "fail", "fail"),
        ("info", "fail", "fail"),
        ("warning", "warn", "warn"),
        ("info", "warn", "info"),
        ("warning", "quarantine", "warn"),
        ("info", "quarantine", "info"),
    ],
)
def test_severity_decides_the_outcome_of_a_failure(severity, on_fail, status):
    result = check(expect(NOT_NULL, severity, on_fail, column="id"), table(id=[None]))

    assert (status, 1, 1, PLACE) == (result.status, result.evaluated, result.unexpected, result.place)


def test_a_check_that_raises_is_an_error_and_the_others_are_evaluated():
    checks = (
        expect("expect_column_values_to_match_strftime_format", column="qty", strftime_format="%Y"),
        expect(NOT_NULL, column="nowhere"),
        expect(NOT_NULL, column="id"),
        expect("expect_column_vales_to_not_be_null", column="id"),
        expect(IN_SET, column="id", value_set=["x"]),
        expect(IN_SET, column="id"),
        expect(QUERY, unexpected_rows_query="select nowhere from {batch}"),
        expect(NOT_NULL, column="qty"),
        expect("expect_column_values_to_match_regex", "info", column="status", regex="("),
        expect(BETWEEN, column="id", min_value=1, row_condition="nowhere > 1"),
        expect("expect_column_values_to_match_regex", column="status", rgex="("),
    )
    rows = table(id=[1, 2], qty=[1, None], status=["a", "b"])

    results = run_checks(model(), checks, Rows(rows), Terms(AS_OF))

    expected = ["error", "error", "pass", "error", "error", "error", "error", "fail", "error", "error", "error"]
    assert expected == [result.status for result in results]
    assert all(result.message for result in results if result.status != "pass")


@pytest.mark.parametrize("name", ["expect_column_vales_to_be_null", NOT_NULL])
def test_great_expectations_may_not_drop_a_check(name, monkeypatch):
    """A check that Great Expectations doesn't load is an error even if its type is in the catalogue."""
    monkeypatch.setitem(CATALOGUE, "expect_column_vales_to_be_null", CATALOGUE[NOT_NULL])

    result = check(expect(name, column="id"), table(id=[1]))

    assert ("pass" if name == NOT_NULL else "error") == result.status
    assert ("0 of 1 declared checks loaded" in result.message) == (name != NOT_NULL)


def test_no_rows_pass_vacuously_without_great_expectations(monkeypatch):
    monkeypatch.setattr(great_expectations, "_run", None)
    checks = (expect(NOT_NULL, column="id"), expect(UNIQUE, column="id"))

    results = run_checks(model(), checks, Rows(table(id=[])), Terms(AS_OF))

    assert [(result.status, result.evaluated) for result in results] == [("pass", 0), ("pass", 0)]


def test_table_checks_evaluate_an_empty_table():
    empty = table(id=[], amount=[])

    assert check(expect("expect_table_row_count_to_be_between", min_value=1), empty).status == "fail"
    query = "select count(*) as n from {batch} having count(*) = 0"
    assert check(expect(QUERY, unexpected_rows_query=query), empty).status == "fail"


def test_uniqueness_reads_rows_that_share_a_key():
    changed, keyed = table(id=[2]), table(id=[1, 2, 2])

    assert check(expect(UNIQUE, column="id"), changed).status == "pass"
    result = check(expect(UNIQUE, column="id"), changed, keyed)
    assert (
        result.status, result.evaluated, result.unexpected, result.samples,
    ) == ("fail", 3, 2, ("id=2", "id=2"))  # fmt: skip


def test_a_contract_runs():
    contract = Model(
        "orders", "o.sql", "", "o.yml", "", ("id", "day"), False,
        (column("id", nullable=False), column("day")), Config(), (),
    )  # fmt: skip
    rows = table(id=[1, 1, None], day=[date(2024, 1, 1), date(2024, 1, 1), None])

    results = run_checks(contract, from_contract(contract), Rows(rows), Terms(AS_OF))

    assert [(result.status, result.unexpected) for result in results] == [("fail", 1), ("fail", 2)]


def test_the_whole_table_is_read_once_and_only_if_needed():
    asked = []
    rows = table(id=[1, 2])

    def whole():
        asked.append(1)
        return rows

    row_check = expect(NOT_NULL, column="id")
    count = expect("expect_table_row_count_to_equal", value=2)
    other = expect("expect_column_max_to_be_between", column="id", max_value=2, row_condition="id > 0")
    run_checks(model(), (row_check,), Rows(rows, whole=whole), Terms(AS_OF))
    assert asked == []

    results = run_checks(model(), (row_check, count, other), Rows(rows, whole=whole), Terms(AS_OF))
    assert asked == [1]
    assert [result.status for result in results] == ["pass"] * 3

    (result,) = run_checks(model(), (count,), Rows(rows), Terms(AS_OF))
    assert result.status == "error"


def test_mostly_reports_unexpected_rows_that_it_tolerates():
    rows = table(id=[1, 2, 3, None])
    kind = NOT_NULL

    result = check(expect(kind, column="id", mostly=0.75), rows)
    assert (result.status, result.unexpected) == ("pass", 1)
    assert check(expect(kind, column="id", mostly=0.76), rows).status == "fail"


def test_as_of_is_the_only_clock():
    parameter = {"$PARAMETER": "as_of"}
    late = table(at=[AS_OF, AS_OF + timedelta(seconds=1)], day=[date(2024, 5, 1), date(2024, 5, 2)])
    query = "select * from {batch} where at > current_timestamp() or day > current_date()"

    assert check(expect(BETWEEN, column="at", max_value=parameter), late).unexpected == 1
    assert check(expect(BETWEEN, column="day", max_value=parameter), late).unexpected == 1
    assert check(expect(QUERY, unexpected_rows_query=query), late).unexpected == 1


def test_pii_is_masked_in_samples_and_messages():
    rows = table(id=[1], email=["canary@example.org"], status=["x"])
    queries = [
        "select * from {batch} where status = 'x'",
        "select email as status from {batch} where status = 'x'",
        "with b(status) as (select email from {batch}) select status from b",
        "select max(email) as n from {batch}",
    ]
    checks = [expect(QUERY, unexpected_rows_query=query) for query in queries]
    checks += [
        expect("expect_column_values_to_match_regex", column="email", regex="^x"),
        expect("expect_column_distinct_values_to_be_in_set", column="email", value_set=["x"]),
        expect("expect_column_values_to_match_json_schema", column="email", json_schema={"type": "x"}),
    ]

    results = run_checks(model(), tuple(checks), Rows(rows, whole=lambda: rows), Terms(AS_OF))

    assert [result.status for result in results][:6] == ["fail"] * 6
    assert "canary" not in str(results)
    assert results[0].samples == ("id=1, email=***, status=x",)
    assert results[4].samples == ("id=1, email=***",)


def test_results_of_great_expectations_are_stored_for_failures():
    rows = table(id=list(range(300)), status=["x"] * 299 + ["y" * 500], email=["canary@example.org"] * 300)
    failed = expect("expect_column_values_to_be_in_set", column="status", value_set=["x"])
    many = expect("expect_column_distinct_values_to_be_in_set", column="id", value_set=[1])
    private = expect("expect_column_values_to_match_regex", column="email", regex="^x")
    passed = expect(NOT_NULL, column="id")

    said = [
        one.raw
        for one in run_checks(model(), (failed, many, private, passed), Rows(rows, whole=lambda: rows), Terms(AS_OF))
    ]

    assert said[0]["success"] is False
    assert said[0]["result"]["unexpected_count"] == 1 and said[0]["result"]["element_count"] == 300
    assert all(len(text) <= 80 for text in said[0]["result"]["partial_unexpected_list"])
    assert said[1]["success"] is False
    assert len(bounded({"observed_value": list(range(300))}, hidden=False)["observed_value"]) == 100
    assert said[2]["result"]["unexpected_count"] == 300 and "canary" not in str(said[2])
    assert said[3] is None
    assert json.loads(json.dumps(said)) == said


def test_custom_sql_has_no_access_to_files_and_network(tmp_path):
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n")
    for query in (
        f"select * from {{batch}}, csv.`{secret}`",
        f"select * from {{batch}}, '{secret}'",
        f"select * from {{batch}}, read_csv('{secret}')",
        "select * from {batch}, information_schema.tables",
        "with t as (select 1) select * from {batch}, t, rows",
    ):
        assert check(expect(QUERY, unexpected_rows_query=query), table(id=[1])).status == "error"


def test_samples_are_few_and_short():
    rows = table(id=list(range(30)), status=["x" * 500] * 30)

    result = check(expect("expect_column_value_lengths_to_equal", column="status", value=1), rows)

    assert (result.unexpected, len(result.samples)) == (30, 20)
    assert all(len(sample) < 120 for sample in result.samples)


def test_nested_and_dictionary_columns():
    rows = pa.table(
        {
            "id": pa.array([1, 1, None]).dictionary_encode(),
            "tags": pa.array([["a"], ["a"], None], TYPES["tags"][1]),
            "status": pa.chunked_array([pa.array(["a", "b"]), pa.array(["c"])]).dictionary_encode(),
        }
    )

    assert check(expect(NOT_NULL, column="tags"), rows).unexpected == 1
    assert check(expect(COMPOUND, column_list=["id", "tags"]), rows).unexpected == 2
    assert check(expect(IN_SET, column="status", value_set=["a", "b"]), rows).unexpected == 1
    assert check(expect("expect_column_sum_to_be_between", column="id", min_value=3), rows).status == "fail"


def test_extremes_ignore_nulls():
    rows = table(
        id=[None, 5],
        status=[None, "b"],
        day=[None, date(2024, 1, 2)],
        at=[None, AS_OF],
        amount=[None, Decimal("-1.50")],
    )
    kinds = "expect_column_min_to_be_between", "expect_column_max_to_be_between"
    for name, value in (("id", 5), ("day", "2024-01-02"), ("at", AS_OF), ("amount", "-1.5")):
        for kind in kinds:
            exact = expect(kind, column=name, min_value=value, max_value=value)
            assert check(exact, rows).status == "pass", name
            empty = rows.slice(0, 1)
            assert check(exact, empty).status in ("fail", "error"), name


def test_sums_are_exact():
    rows = table(amount=[Decimal("0.10")] * 3 + [None])
    kind = "expect_column_sum_to_be_between"

    assert check(expect(kind, column="amount", min_value=0.3, max_value=0.3), rows).status == "pass"
    failed = check(expect(kind, column="amount", max_value=0.29), rows)
    assert (failed.status, failed.message) == ("fail", "observed 0.3")


@pytest.mark.slow
def test_importing_leaves_the_process_alone():
    code = """
import logging, sys, warnings
import sqlrun.check.evaluate, sqlrun.expectations.validate
heavy = {"great_expectations", "pandas", "duckdb", "pyarrow"} & set(sys.modules)
assert not heavy, heavy
shown, filters = warnings.showwarning, list(warnings.filters)
sqlrun.check.great_expectations._great_expectations()
assert warnings.showwarning is shown
assert not {w for w in filters} - set(warnings.filters)
assert logging._warnings_showwarning is None
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_warnings_configuration_survives_a_run():
    before = list(warnings.filters), logging.getLogger().handlers[:]

    check(expect("expect_column_values_to_match_regex", column="status", regex="(a)"), table(status=["a"]))

    assert before == (list(warnings.filters), logging.getLogger().handlers[:])


ADDRESS = table(id=[1], email=["ada@example.com"], status=["x"])


@pytest.mark.parametrize(
    "broken",
    [
        expect(QUERY, unexpected_rows_query="select * from {batch} where cast(email as double) > 0"),
        expect(NOT_NULL, column="status", row_condition="cast(email as double) > 0"),
    ],
    ids=["query", "condition"],
)
def test_an_errors_text_quotes_no_value_that_is_tagged_pii(broken):
    result = check(broken, ADDRESS)

    assert result.status == "error"
    assert "ada@" not in result.message and "has the tag pii" in result.message


def test_an_errors_text_that_can_quote_no_value_is_shown():
    result = check(expect(QUERY, unexpected_rows_query="select * from {batch} where emial = 'x'"), ADDRESS)

    assert result.status == "error"
    assert "emial" in result.message
