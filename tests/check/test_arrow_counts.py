"""Counts on Arrow columns equal Great Expectations', or there is no count."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlrun.check import arrow_evaluator
from sqlrun.check.arrow_evaluator import KINDS, Count
from sqlrun.check.check_plan import Rows, Terms
from sqlrun.check.comparable_columns import prepare
from sqlrun.check.evaluate import run_checks
from sqlrun.errors import Place
from sqlrun.events import CheckResult
from sqlrun.expectations.catalogue import CATALOGUE
from sqlrun.project import Column, Config, Expectation, Model
from sqlrun.runtime.arrow_rows import array, scalar

AS_OF = datetime(2024, 5, 1, 12, tzinfo=timezone.utc)
# More of them: SQLRUN_EXAMPLES=3000 pytest tests/check/test_arrow_counts.py
EXAMPLES = int(os.environ.get("SQLRUN_EXAMPLES", "30"))
PLACE = Place("expectations/t.yml", 3, 5)

TEXTS = [
    "",
    "a",
    "A",
    "b",
    " ",
    "a b",
    "é",
    "e\u0301",
    "😀",
    "\n",
    "a\n",
    "nan",
    "None",
    "null",
    "0",
    "1",
    "x" * 40,
    "\x00",
]
NUMBERS = [0, 1, -1, 2, 127, -128]
MONEY = [Decimal(text) for text in ("0.00", "0.10", "-0.10", "1.00", "99999.99", "-99999.99")]
DAYS = [date(1, 1, 1), date(1970, 1, 1), date(2024, 2, 29), date(2024, 5, 1), date(9999, 12, 31)]
TIMES = [datetime(1700, 1, 1), datetime(1970, 1, 1), datetime(2024, 5, 1, 12), datetime(2024, 5, 1, 12, 0, 0, 1),
         datetime(2262, 4, 12), datetime(9999, 12, 31, 23, 59, 59, 999999)]  # fmt: skip
FLOATS = [0.0, -0.0, 0.1, -1.5, 1e308, 5e-324, float("nan"), float("inf"), float("-inf"), 2.0**53]
BIG = [0, 1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)]
# column: its Spark type, its Arrow type, its values
COLUMNS: dict[str, tuple[str, pa.DataType, list[Any]]] = {
    "text": ("string", pa.string(), TEXTS),
    "words": ("string", pa.large_string(), TEXTS),
    "tiny": ("tinyint", pa.int8(), NUMBERS),
    "whole": ("bigint", pa.int64(), BIG),
    "money": ("decimal(7,2)", pa.decimal128(7, 2), MONEY),
    "wide": ("decimal(38,10)", pa.decimal128(38, 10), [Decimal("1E-10"), Decimal("9" * 28), Decimal(0)]),
    "real": ("float", pa.float32(), [0.0, -0.0, 0.1, float("nan"), float("inf"), 16777216.0]),
    "double": ("double", pa.float64(), FLOATS),
    "flag": ("boolean", pa.bool_(), [True, False]),
    "day": ("date", pa.date32(), DAYS),
    "at": ("timestamp", pa.timestamp("us", "UTC"), [moment.replace(tzinfo=timezone.utc) for moment in TIMES]),
    "seen": ("timestamp_ntz", pa.timestamp("us"), TIMES),
    "list": ("array<string>", pa.list_(pa.string()), [[], ["a"], [None]]),
}
REGEXES = [
    "",
    "^a",
    "a$",
    "^$",
    "b|é",
    r"\d",
    r"(a)(b)?",
    "(?i)A",
    r"a(?!\n)",
    ".",
    r"^[^\W\d_]+$",
    r"\bnan\b",
    "[",
    r"(?P<x>a)\Z",
]
CONDITIONS = [None, "tiny > 0", "text is not null", "false", "money < 1"]


def model() -> Model:
    columns = tuple(
        Column(name, kind, "", PLACE, tags=("pii",) if name == "words" else ())
        for name, (kind, _, _) in COLUMNS.items()
    )
    return Model("orders", "o.sql", "", "o.yml", "", ("tiny",), False, columns, Config(), ())


@st.composite
def tables(draw: Any) -> pa.Table:
    """Draw rows of all columns; some have no NULL, some nothing else, some few values."""
    rows = draw(st.integers(1, 8))
    columns = {}
    for name, (_, kind, values) in COLUMNS.items():
        few = draw(st.lists(st.sampled_from(values), min_size=1, max_size=3))
        one = st.sampled_from([*few, None] if draw(st.booleans()) else few)
        columns[name] = pa.array(draw(st.lists(one, min_size=rows, max_size=rows)), kind)
    return pa.table(columns)


def written(value: Any) -> Any:
    """Return a value as YAML has it."""
    if isinstance(value, (Decimal, datetime, date)):
        return str(value)
    return value


@st.composite
def expectations(draw: Any) -> Expectation:
    """Draw one check with arguments, valid ones and some invalid ones."""
    kind = draw(st.sampled_from(sorted(KINDS)))
    takes = set(CATALOGUE[kind].allowed)
    texts = ["text", "words"]
    column = draw(st.sampled_from(texts if "regex" in kind or "lengths" in kind else sorted(COLUMNS)))
    values = st.sampled_from(COLUMNS[column][2]).map(written)
    kwargs: dict[str, Any] = {}
    if "column" in takes:
        kwargs["column"] = column
    if "column_A" in takes:
        kwargs |= {"column_A": column, "column_B": draw(st.sampled_from([column, *_alike(column)]))}
    if "column_list" in takes:
        kwargs["column_list"] = draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=2, max_size=4, unique=True))
    ends = st.integers(0, 4) if "lengths" in kind else values
    for name in ("min_value", "max_value"):
        if name in takes and draw(st.booleans()):
            kwargs[name] = draw(ends)
    for name in ("strict_min", "strict_max", "or_equal"):
        if name in takes:
            kwargs |= {name: given} if (given := draw(st.sampled_from([None, True, False]))) is not None else {}
    if "value" in takes:
        kwargs["value"] = draw(ends)
    if "value_set" in takes:
        kwargs["value_set"] = draw(st.lists(values, max_size=3))
    if "regex" in takes:
        kwargs["regex"] = draw(st.sampled_from(REGEXES))
    if "ignore_row_if" in takes:
        pair = ["both_values_are_missing", "either_value_is_missing", "neither"]
        several = ["all_values_are_missing", "any_value_is_missing", "never"]
        given_ = draw(st.sampled_from([None, *(pair if "pair" in kind else several)]))
        kwargs |= {"ignore_row_if": given_} if given_ else {}
    mostly = draw(st.sampled_from([None, None, 0, 0.0, 0.3, 0.5, 0.75, 2 / 3, 1, 1.0]))
    kwargs |= {"mostly": mostly} if mostly is not None else {}
    condition = draw(st.sampled_from(CONDITIONS))
    kwargs |= {"row_condition": condition} if condition else {}
    # For a note, Arrow's count is always final.
    severity, on_fail = draw(st.sampled_from([("info", "warn")] * 4 + [("critical", "fail"), ("warning", "warn")]))
    return Expectation(kind, kwargs, severity, on_fail, "", PLACE)


def _alike(column: str) -> list[str]:
    kind = COLUMNS[column][1]
    return [
        name
        for name, (_, other, _) in COLUMNS.items()
        if other == kind or (pa.types.is_floating(kind) and pa.types.is_floating(other))
    ]


def without_evaluator(result: CheckResult) -> CheckResult:
    """Return a result without its evaluator."""
    return replace(result, seconds=0.0, raw=None, evaluator="")


@pytest.mark.long
@pytest.mark.slow  # Great Expectations is imported
@settings(deadline=None, max_examples=EXAMPLES)
@given(tables(), st.lists(expectations(), min_size=4, max_size=8))
def test_arrow_and_great_expectations_agree(rows: pa.Table, asked: list[Expectation]) -> None:
    """Success, counts, samples, messages and errors are the same, for rows and for keys."""
    checks = tuple(asked)
    ours = run_checks(model(), checks, Rows(rows, rows), Terms(AS_OF))
    theirs = run_checks(model(), checks, Rows(rows, rows), Terms(AS_OF, evaluator="great_expectations"))

    for check, mine, said in zip(checks, ours, theirs, strict=True):
        assert without_evaluator(mine) == without_evaluator(said), check
        assert said.evaluator in ("great_expectations", "")
        if mine.status in ("fail", "warn"):
            assert mine.evaluator == "great_expectations"


# ---------------------------------------------------------------------------------------- without Great Expectations


ROWS = pa.table(
    {"tiny": pa.array([1, 2, None], pa.int8()), "text": ["a", "b", None], "money": pa.array([None, None, 1])}
)
BETWEEN = "expect_column_values_to_be_between"
IN_SET = "expect_column_values_to_be_in_set"


def counted(kind: str, rows: pa.Table = ROWS, **kwargs: Any) -> Count | None:
    return arrow_evaluator.count(kind, prepare(kind, kwargs, rows), 20)


def test_rows_are_counted_with_their_positions() -> None:
    """NULL is ignored, except by the checks of NULL."""
    assert counted(BETWEEN, column="tiny", min_value=2) == Count(2, 1, (0,))
    assert counted("expect_column_values_to_not_be_null", column="tiny") == Count(3, 1, (2,))
    assert counted("expect_column_values_to_match_regex", column="text", regex="b") == Count(2, 1, (0,))
    pair = "expect_column_pair_values_to_be_equal"
    assert counted(pair, column_A="tiny", column_B="money") == Count(3, 3, (0, 1, 2))
    either = "either_value_is_missing"
    assert counted(pair, column_A="tiny", column_B="money", ignore_row_if=either) == Count(0, 0, ())


@pytest.mark.parametrize(("mostly", "passes"), [(None, False), (1, False), (0.6, False), (0.5, True), (0.0, True)])
def test_a_share_counts_only_evaluated_rows(mostly: float | None, passes: bool) -> None:
    """Two of three rows have a value, and one of these is good."""
    found = counted(BETWEEN, column="tiny", min_value=2, mostly=mostly)
    assert found is not None and found.passes(mostly) is passes


@pytest.mark.parametrize(
    ("kind", "kwargs"),
    [
        ("expect_column_values_to_be_dateutil_parseable", {"column": "text"}),
        (BETWEEN, {"column": "tiny", "min_value": 1, "mostly": "0.5"}),
        (BETWEEN, {"column": "tiny", "min_value": 1, "mostly": True}),
        (BETWEEN, {"column": "tiny", "min_value": 1, "mostly": 1.5}),
        (BETWEEN, {"column": "tiny", "min_value": 1, "strict_min": "yes"}),
        (BETWEEN, {"column": "tiny", "min_value": 1, "unheard_of": 1}),
        (IN_SET, {"column": "tiny", "value_set": []}),
        (IN_SET, {"column": "tiny", "value_set": [0.5]}),
        ("expect_column_value_lengths_to_equal", {"column": "text", "value": "1"}),
        ("expect_column_value_lengths_to_equal", {"column": "text", "value": True}),
        ("expect_column_values_to_match_regex", {"column": "text", "regex": "["}),
        ("expect_column_pair_values_to_be_equal", {"column_A": "tiny", "column_B": "money", "ignore_row_if": "never"}),
        ("expect_compound_columns_to_be_unique", {"column_list": ["tiny", "text"], "ignore_row_if": "neither"}),
    ],
)
def test_doubtful_cases_are_not_counted(kind: str, kwargs: dict[str, Any]) -> None:
    """Great Expectations evaluates types and arguments that aren't plainly known."""
    assert counted(kind, **kwargs) is None


def test_values_equal_pyarrows_conversion() -> None:
    """Of the same type, to the last digit; PyArrow imports pandas for each of them."""
    east = timezone(timedelta(hours=2))
    times = [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)]
    decimals = [Decimal(text) for text in ("0", "0.10", "-5", "1E+3", "0.00000000001", "9" * 38)]
    texts = ["", "é😀", "\x00"]
    for value in (
        True,
        0,
        -(2**63),
        2**63 - 1,
        0.1,
        -0.0,
        *texts,
        *decimals,
        date(1, 1, 1),
        date(9999, 12, 31),
        *times,
    ):
        assert scalar(value).type == pa.scalar(value).type and scalar(value).equals(pa.scalar(value)), value
    moment = datetime(2024, 5, 1, 12, 0, 0, 1, tzinfo=east)
    assert scalar(moment).equals(pa.scalar(moment, pa.timestamp("us", "UTC")))
    assert array(["a", ""]).equals(pa.array(["a", ""])) and array([]).type == pa.bool_()


NOT_NULL = "expect_column_values_to_not_be_null"
LIMITS = pa.table(
    {
        "n": pa.array([3, None, 7], pa.int32()),
        "none": pa.array([None] * 3, pa.int64()),
        "price": [Decimal("0.10"), Decimal("2.00"), None],
        "day": [date(2026, 1, 1), None, date(2026, 2, 1)],
        "double": [1.0, 2.0, float("nan")],
        "whole": [1, 2, 3],
        "coded": pa.array(["a", "b", "a"]).dictionary_encode(),
    }
)


@pytest.mark.parametrize(
    ("kind", "kwargs", "known"),
    [
        (NOT_NULL, {"column": "whole"}, True),
        (NOT_NULL, {"column": "whole", "mostly": 0.5}, True),
        (NOT_NULL, {"column": "n", "mostly": 0.5}, False),
        (NOT_NULL, {"column": "absent"}, False),
        (NOT_NULL, {"column": "coded"}, False),
        (NOT_NULL, {"column": "whole", "other": 1}, False),
        (BETWEEN, {"column": "n", "min_value": 3, "max_value": 7}, True),
        (BETWEEN, {"column": "n", "min_value": 3, "strict_min": True}, False),
        (BETWEEN, {"column": "n", "min_value": 2.5, "strict_min": True}, True),
        (BETWEEN, {"column": "n", "max_value": 6}, False),
        (BETWEEN, {"column": "n"}, False),
        (BETWEEN, {"column": "n", "min_value": 8, "max_value": 1}, False),
        (BETWEEN, {"column": "n", "min_value": "x"}, False),
        (BETWEEN, {"column": "none", "min_value": 0}, False),
        (BETWEEN, {"column": "price", "min_value": 0.1}, True),
        (BETWEEN, {"column": "price", "min_value": 0.1, "max_value": "1.99"}, False),
        (BETWEEN, {"column": "day", "min_value": "2026-01-01", "max_value": "2026-02-01"}, True),
        (BETWEEN, {"column": "double", "min_value": 0}, False),
        ("expect_column_values_to_be_unique", {"column": "whole"}, False),
    ],
)
def test_the_shortcut_by_statistics_only_proves_a_pass(kind: str, kwargs: dict[str, Any], known: bool) -> None:
    assert arrow_evaluator.none_unexpected(kind, kwargs, LIMITS) is known
    if known:
        count = arrow_evaluator.count(kind, prepare(kind, kwargs, LIMITS), 20)
        assert count is not None and count.unexpected == 0


def test_repeated_keys_are_not_counted() -> None:
    """Only a pass is certain; NULL repeats like any value unless it is ignored."""
    kind = "expect_compound_columns_to_be_unique"
    rows = pa.table({"a": [1, 1, None, None], "b": ["x", "y", None, None]})
    good = counted(kind, rows, column_list=["a", "b"])
    assert good == Count(4, 0, ())
    assert counted(kind, rows, column_list=["a", "b"], ignore_row_if="never") is None
    assert counted("expect_column_values_to_be_unique", rows, column="a") is None
    assert counted("expect_column_values_to_be_unique", rows, column="b") == Count(4, 0, ())


def test_passing_checks_need_no_great_expectations(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failing note needs none either; any other failure does."""
    monkeypatch.setattr("sqlrun.check.great_expectations.evaluated", None)
    asked = (
        Expectation(BETWEEN, {"column": "tiny", "min_value": 1}, "critical", "fail", "", PLACE),
        Expectation(BETWEEN, {"column": "tiny", "min_value": 2}, "info", "warn", "", PLACE),
        Expectation(BETWEEN, {"column": "tiny", "min_value": 2, "mostly": 0.5}, "critical", "fail", "", PLACE),
    )
    found = run_checks(model(), asked, Rows(ROWS), Terms(AS_OF))
    said = [(one.status, one.evaluated, one.unexpected, one.samples, one.evaluator) for one in found]
    assert said == [
        ("pass", 3, 0, (), "arrow"),
        ("info", 3, 1, ("tiny=1",), "arrow"),
        ("pass", 3, 1, ("tiny=1",), "arrow"),
    ]


def test_great_expectations_decides_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    """It evaluates failures, and everything if a model's config requires it."""
    asked: list[list[str]] = []

    def evaluated(items: Any, *_: Any) -> dict[int, Any]:
        asked.append([item.expectation.kwargs["min_value"] for item in items])
        return {item.number: True for item in items}

    monkeypatch.setattr("sqlrun.check.great_expectations.evaluated", evaluated)
    bounds = [1, 2]
    checks = tuple(
        Expectation(BETWEEN, {"column": "tiny", "min_value": n}, "critical", "fail", "", PLACE) for n in bounds
    )

    found = run_checks(model(), checks, Rows(ROWS), Terms(AS_OF))
    assert [one.evaluator for one in found] == ["arrow", "great_expectations"] and asked == [[2]]
    run_checks(model(), checks, Rows(ROWS), Terms(AS_OF, evaluator="great_expectations"))
    assert asked == [[2], bounds]
