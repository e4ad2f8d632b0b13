"""Suites without Great Expectations: validation, checks from contracts, predicates in Spark SQL."""

import re
from datetime import date, datetime, timezone
from decimal import Decimal

import duckdb
import pytest
import sqlglot

from sqlrun.errors import Place
from sqlrun.expectations.validate import from_contract, passes, problems, scope, split
from sqlrun.project import Column, Config, Expectation, Model, Suite

PLACE = Place("expectations/orders.yml", 7, 5)
COLUMNS = (
    Column("order_id", "bigint", "", Place("models/orders.yml", 4, 5), nullable=False),
    Column("amount", "decimal(18,2)", "", PLACE),
    Column("price", "Double", "", PLACE),
    Column("status", "string", "", PLACE),
    Column("ordered_at", "timestamp", "", PLACE),
    Column("day", "date", "", PLACE),
    Column("a`b", "string", "", PLACE),
)


def model(grain=("order_id",), repeats=False):
    return Model(
        "orders", "models/orders.sql", "", "models/orders.yml", "", grain, repeats, COLUMNS, Config(), ()
    )  # fmt: skip


def expect(type, severity="critical", on_fail="fail", **kwargs):
    return Expectation(type, kwargs, severity, on_fail, "", PLACE)


def found(*expectations, lands=True):
    return problems(Suite("orders", PLACE.file, expectations), model(), lands=lands)


BETWEEN = "expect_column_values_to_be_between"
REGEX = "expect_column_values_to_match_regex"
QUERY = "unexpected_rows_expectation"


@pytest.mark.parametrize(
    ("expectation", "code", "says"),
    [
        (expect("expect_column_vales_to_be_null", column="day"), "SR701", "expect_column_values_to_be_null"),
        (expect("expect_column_values_to_be_increasing", column="day"), "SR702", "no order"),
        (expect("expect_column_values_to_match_like_pattern", column="status"), "SR702", "regex"),
        (expect("expect_column_values_to_be_null", colum="day"), "SR703", "`column`"),
        (expect("expect_column_values_to_be_in_set", column="status"), "SR704", "value_set"),
        (expect(BETWEEN, column="amount"), "SR704", "min_value and max_value"),
        (expect("expect_column_values_to_be_null", column="statu"), "SR705", "`status`"),
        (expect("expect_compound_columns_to_be_unique", column_list=["day", "dai"]), "SR705", "`day`"),
        (expect("expect_column_values_to_be_null", "fatal", column="day"), "SR706", "critical"),
        (expect("expect_column_values_to_be_null", on_fail="drop", column="day"), "SR707", "warn"),
        (expect(REGEX, column="status", regex="(a"), "SR709", "(a"),
        (expect(REGEX, column="status", regex="a", mostly=1.5), "SR710", "up to 1"),
        (expect(REGEX, column="status", regex="a", mostly=True), "SR710", "True"),
        (expect(QUERY, unexpected_rows_query="select * from orders"), "SR711", "{batch}"),
        (expect(QUERY, unexpected_rows_query="select * from {batch} where a rlike 'x{3}'"), "SR711", "Double"),
        (expect(QUERY, unexpected_rows_query="select * from {batch}, text.`/etc/x`"), "SR711", "/etc/x"),
        (expect(QUERY, unexpected_rows_query="select java_method('a', 'b') from {batch}"), "SR711", "java_method"),
        (expect(QUERY, unexpected_rows_query="select * frm {batch} where"), "SR711", "SQL"),
        (expect(QUERY, unexpected_rows_query="delete from {batch}"), "SR711", "SELECT"),
        (expect(BETWEEN, column="day", max_value={"$PARAMETER": "asof"}), "SR712", "`as_of`"),
        (expect(BETWEEN, column="amount", min_value="ten"), "SR713", "'ten' is not a number"),
        (expect(BETWEEN, column="amount", min_value=2, max_value=1), "SR713", "greater than"),
        (expect(BETWEEN, column="ordered_at", min_value="soon"), "SR713", "ISO"),
        (expect("expect_column_values_to_be_in_set", column="status", value_set=[1]), "SR713", "quote"),
        (expect("expect_column_values_to_be_in_set", column="status", value_set="a"), "SR713", "list"),
        (expect(BETWEEN, column="amount", min_value=1, condition_parser="pandas"), "SR713", "spark"),
        (expect(BETWEEN, column="amount", min_value=1, row_condition="1 = (select 1)"), "SR711", "boolean"),
        (expect(BETWEEN, column="amount", min_value=1, row_condition="amount"), "SR711", "type `decimal"),
        (expect(BETWEEN, column="amount", min_value=1, row_condition="Day > 3"), "SR711", "in `day > 3`"),
        (expect(QUERY, unexpected_rows_query="select * from {batch} where amount"), "SR711", "not boolean"),
        (expect(QUERY, unexpected_rows_query="select * from {batch} as b where b.day * 2 = 1"), "SR711", "compute"),
        (expect(REGEX, column="amount", regex="a"), "SR714", "decimal"),
        (expect("expect_column_max_to_be_between", on_fail="quarantine", column="day", max_value=1), "SR713", "date"),
        (expect("expect_table_row_count_to_equal", on_fail="quarantine", value=1), "SR708", "one by one"),
        (expect("expect_column_values_to_be_unique", on_fail="quarantine", column="day"), "SR708", "one by one"),
        (expect(REGEX, on_fail="quarantine", column="status", regex="a", mostly=0.9), "SR708", "mostly"),
    ],
)  # fmt: skip
def test_a_mistake_is_a_problem_with_its_place(expectation, code, says):
    problem = found(expectation)[0]

    assert (code, PLACE) == (problem.code, problem.place)
    assert says in f"{problem.message} {problem.hint}"


def test_a_right_suite_has_no_problem():
    suite = [
        expect("expect_column_values_to_not_be_null", on_fail="quarantine", column="status"),
        expect(BETWEEN, "warning", column="ordered_at", max_value={"$PARAMETER": "as_of"}),
        expect(BETWEEN, column="day", min_value=date(2020, 1, 1), max_value="2030-01-01"),
        expect(BETWEEN, column="amount", min_value="0.10", strict_min=True, mostly=0.5),
        expect("expect_column_max_to_be_between", "info", column="day", max_value=date(2030, 1, 1)),
        expect("expect_table_row_count_to_be_between", min_value=1),
        expect(QUERY, unexpected_rows_query="select day from {batch} group by day having count(*) > 9"),
        expect(BETWEEN, column="amount", min_value=1, row_condition="Day > '2026-01-01' and status = '{'"),
        expect(QUERY, unexpected_rows_query="select `a``b` from {batch} where not (amount > 3 or nothing_known)"),
    ]

    assert found(*suite) == ()


def test_quarantine_needs_a_model_that_lands():
    rule = expect("expect_column_values_to_not_be_null", on_fail="quarantine", column="status")

    assert [problem.code for problem in found(rule)] == []
    assert [problem.code for problem in found(rule, lands=False)] == ["SR708"]


def test_a_contract_gives_its_checks():
    first, second = from_contract(model())

    assert (first.type, first.kwargs) == ("expect_column_values_to_not_be_null", {"column": "order_id"})
    assert ("critical", Place("models/orders.yml", 4, 5)) == (first.severity, first.place)
    assert (second.type, second.kwargs) == ("expect_column_values_to_be_unique", {"column": "order_id"})

    compound = from_contract(model(grain=("order_id", "day")))[1]
    assert compound.type == "expect_compound_columns_to_be_unique"
    assert compound.kwargs == {"column_list": ["order_id", "day"]}
    assert len(from_contract(model(repeats=True))) == 1


def test_quarantine_rules_are_split_from_checks():
    rule = expect("expect_column_values_to_not_be_null", on_fail="quarantine", column="status")
    check = expect("expect_column_values_to_be_null", column="status")

    assert ((rule,), (check,)) == split([check, rule])


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("select * from {batch} where amount < 0", "row"),
        ("select b.day, amount from {batch} as b where b.amount < 0", "row"),
        ("select day from {batch} group by day having count(*) > 9", "table"),
        ("select * from {batch} where amount > (select max(amount) from {batch})", "table"),
        ("select * from {batch} a join {batch} b on a.day = b.day where a.amount < 0", "table"),
        ("select * from {batch} where amount < 0 limit 3", "table"),
        ("select * from {batch} tablesample (10 percent) where amount < 0", "table"),
        ("select * from {batch} where amount < 0 qualify row_number() over (order by day) > 1", "table"),
    ],
)
def test_a_query_is_scoped_by_what_it_reads(query, expected):
    expectation = expect(QUERY, unexpected_rows_query=query)

    assert expected == scope(expectation)
    assert (passes(expectation) is not None) == (expected == "row")


@pytest.mark.parametrize(
    ("expectation", "expected"),
    [
        (expect("expect_column_values_to_not_be_null", column="day"), "NOT `day` IS NULL"),
        (expect(BETWEEN, column="amount", min_value="0.10"), "`amount` IS NULL OR `amount` >= 0.10"),
        (
            expect(BETWEEN, column="ordered_at", max_value=datetime(2024, 1, 1, tzinfo=timezone.utc)),
            "`ordered_at` IS NULL OR `ordered_at` <= CAST('2024-01-01 00:00:00+00:00' AS TIMESTAMP)",
        ),
        (
            expect(BETWEEN, column="ordered_at", max_value={"$PARAMETER": "as_of"}),
            "`ordered_at` IS NULL OR `ordered_at` <= CURRENT_TIMESTAMP()",
        ),
        (
            expect("expect_column_values_to_be_in_set", column="a`b", value_set=["it's", "\\"]),
            r"`a``b` IS NULL OR `a``b` IN ('it\'s', '\\')",
        ),
        (
            expect(QUERY, unexpected_rows_query="select * from {batch} b where b.amount < 0"),
            "NOT COALESCE(amount < 0, FALSE)",
        ),
    ],
)
def test_predicates_are_plain_spark_sql(expectation, expected):
    assert expected == passes(expectation, COLUMNS)


@pytest.mark.parametrize("text", ["'", "\\", "\\'", "') or true --", "`", "\n", "é", 'a\\d{2}"', "\x00;"])
def test_no_literal_or_name_escapes_its_quotes(text):
    name = text.replace("\x00", "") + "`) or true --"
    predicate = passes(expect("expect_column_values_to_be_in_set", column=name, value_set=[text]))
    tree = sqlglot.parse_one(predicate, dialect="databricks")

    assert {name} == {column.name for column in tree.find_all(sqlglot.exp.Column)}
    assert [text] == [literal.this for literal in tree.find_all(sqlglot.exp.Literal)]
    # No quote ends early in Spark's own reading: strip escapes, then count.
    assert re.sub(r"\\.|`[^`]*`", "", predicate, flags=re.DOTALL).count("'") % 2 == 0


def test_predicates_are_never_null_and_hold_on_duckdb():
    rows = [(None, None), (Decimal("0.10"), "a"), (Decimal("0.09"), "b")]
    cases = [
        (expect(BETWEEN, column="amount", min_value=0.1), [True, True, False]),
        (expect(BETWEEN, column="amount", min_value=0.1, strict_min=True), [True, False, False]),
        (expect("expect_column_values_to_be_in_set", column="status", value_set=[]), [True, False, False]),
        (expect("expect_column_values_to_not_be_in_set", column="status", value_set=[]), [True] * 3),
        (
            expect(BETWEEN, column="amount", min_value=0.1, row_condition="status = 'a'"),
            [True, True, True],
        ),
    ]
    with duckdb.connect() as connection:
        connection.execute("create table t(amount decimal(18,2), status varchar)")
        connection.executemany("insert into t values (?, ?)", rows)
        for expectation, expected in cases:
            sql = sqlglot.transpile(passes(expectation, COLUMNS), read="databricks", write="duckdb")[0]
            held = connection.execute(f"select {sql} from t").fetchall()

            assert expected == [value for (value,) in held], sql
