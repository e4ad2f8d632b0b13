"""The list of functions: its examples on DuckDB compared with Spark's results, and its completeness."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
import sqlglot
from sqlglot import exp

from sqlrun.errors import Problem, ProjectError, UsageError
from sqlrun.expectations import validate
from sqlrun.incremental.landing import query as landing_query
from sqlrun.load import settings
from sqlrun.parse import functions
from sqlrun.parse.spark_only import problems
from sqlrun.parse.where_clause import condition
from sqlrun.transpile import function_catalogue
from sqlrun.transpile.dialect import DIALECT
from sqlrun.transpile.function_catalogue import CLOCKS, FORBIDDEN, NOTES, ORDER_DEPENDENT, SPARK_ONLY, VOLATILE
from sqlrun.transpile.writer import expression
from tests.support import case_files, projects
from tests.support.function_cases import ARROWS, FILES, Example, compiled, read, rows, text
from tests.support.memory import connect

ROOT = Path(__file__).parents[2]
EXAMPLES = [example for file in FILES for example in read(file)]
LISTED = function_catalogue.names()
SUBJECTS = sorted({(e.kind, e.subject) for e in EXAMPLES})
# `make test-fast` tries one of eight.
each_subject = pytest.mark.parametrize(
    "subject",
    [
        pytest.param(subject, id=" ".join(subject), marks=[pytest.mark.slow] if number % 8 else [])
        for number, subject in enumerate(SUBJECTS)
    ],
)


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    made = connect()
    yield made
    made.close()


def on_duckdb(connection: duckdb.DuckDBPyConnection, example: Example) -> tuple[str, str]:
    """Return what DuckDB does with an example: `refused`, `error`, or `value` with the value."""
    query = compiled([example])
    if problems([query]):
        return "refused", ""
    try:
        return "value", rows(connection.sql(text(query, "duckdb")).to_arrow_table())
    except duckdb.Error:
        return "error", ""


def arrow_of(connection: duckdb.DuckDBPyConnection, example: Example) -> str:
    """Return the arrow that compares DuckDB's result with Spark's."""
    done, value = on_duckdb(connection, example)
    if done == "refused":
        return "*>"
    if example.value.startswith("error"):
        return "=>" if done == "error" else "~>"
    return "!>" if done == "error" else "=>" if value == example.value else "~>"


@each_subject
def test_duckdb_behaves_as_the_arrow_says(connection: duckdb.DuckDBPyConnection, subject: tuple[str, str]) -> None:
    """The same value, an error, or a refusal; never another value without a note."""
    own = [example for example in EXAMPLES if (example.kind, example.subject) == subject]
    done = {example.sql: arrow_of(connection, example) for example in own}

    assert done == {example.sql: example.arrow for example in own}


def test_there_is_an_example_for_every_function() -> None:
    """There is none for a function that isn't listed."""
    assert {example.subject for example in EXAMPLES if example.kind == "function"} == LISTED


def test_the_list_agrees_with_the_examples() -> None:
    """Spark-only functions are always refused on DuckDB; the others agree in at least one example."""
    arrows: dict[str, set[str]] = {name: set() for name in LISTED}
    for example in EXAMPLES:
        if example.kind == "function":
            arrows[example.subject].add(example.arrow)

    assert {name for name, shown in arrows.items() if name in SPARK_ONLY and shown != {"*>"}} == set()
    assert {name for name, shown in arrows.items() if name not in SPARK_ONLY and "=>" not in shown} == set()


def test_differing_values_have_a_note() -> None:
    """The list has a note where DuckDB returns another value; docs/functions.md covers operators."""
    other = {example.subject for example in EXAMPLES if ARROWS[example.arrow] == "other" and example.kind == "function"}

    assert other <= NOTES.keys()


def test_reasons_and_notes_belong_to_listed_functions() -> None:
    """Every reason, note and flag belongs to a listed function; nothing dangerous is listed."""
    assert {*SPARK_ONLY, *NOTES, *ORDER_DEPENDENT} <= LISTED
    assert not LISTED & {*VOLATILE, *CLOCKS, *FORBIDDEN}
    assert not NOTES.keys() & SPARK_ONLY.keys()


def used(tree: exp.Expr) -> set[str]:
    return {name for function in tree.find_all(exp.Func) if (name := functions.function_name(function))}


def test_the_reference_project_uses_listed_functions() -> None:
    """Models with their macros, and every predicate of an expectation."""
    prepared = projects.prepared(projects.ROOT)
    names = {name for query in prepared.queries for name in used(query.tree)}
    for suite in prepared.project.suites:
        for expectation in suite.expectations:
            predicate = validate.passes(expectation)
            names |= used(sqlglot.parse_one(predicate, read=DIALECT)) if predicate else set()

    assert names
    assert names <= LISTED


def test_the_cases_use_listed_functions() -> None:
    """A function in a passing case may be called."""
    names: set[str] = set()
    for file in (ROOT / "tests" / "cases" / "incremental").glob("*.case"):
        for case in case_files.read(file):
            for view in case.views:
                names |= used(sqlglot.parse_one(view.sql, read=DIALECT))

    assert names
    assert names - VOLATILE - CLOCKS <= LISTED


def found(sql: str, admitted: tuple[str, ...] = ()) -> list[Problem]:
    query = compiled([Example("x", "function", "x", sql, "", "")])
    return list(problems([query], admitted))


def test_a_refusal_points_at_the_call() -> None:
    """The refusal has what DuckDB does differently and what to write instead."""
    (problem,) = found("concat('a', cast(hash('b') as string))")

    assert str(problem.place) == "example.sql:1:25"
    assert problem.code == "SR310"
    assert problem.message == "hash() runs on Spark only. DuckDB: its hash() is another function"
    assert problem.hint == "sha2(x, 256) is the same on both. Use the Spark engine."


def test_single_forms_of_a_call_can_be_refused() -> None:
    """The same function agrees in its other forms."""
    assert not found("date_format(date '2026-01-02', 'yyyy')")
    assert [problem.message for problem in found("date_format(date '2026-01-02', 'G')")] == [
        "date_format() runs on Spark only in this form. DuckDB: it has no pattern letters `G`"
    ]


@pytest.mark.slow
@pytest.mark.parametrize("sql", [e.sql for e in EXAMPLES if not e.sql.startswith("select ")][::5])
def test_checking_a_query_leaves_it_intact(sql: str) -> None:
    """Type inference walks from a node up to its query."""
    query = compiled([Example("rows", "function", "x", sql, "", "")])

    problems([query])

    pairs = [(above, node) for above in query.tree.walk() for node in above.iter_expressions()]
    assert [node for above, node in pairs if node.parent is not above and not isinstance(node, exp.Identifier)] == []


def project(functions_line: str) -> settings.Settings:
    noted: list[Problem] = []
    made = settings.read(f'[tool.sqlrun]\nname = "x"\n{functions_line}\n', "x", (), noted)
    if noted:
        raise ProjectError(noted)
    return made


def test_settings_admit_functions_to_spark_alone() -> None:
    """The settings admit unknown names in any case; on DuckDB they are refused."""
    assert project('functions = ["My_UDF", "kll_sketch_agg_bigint"]').functions == ("my_udf", "kll_sketch_agg_bigint")
    tree = sqlglot.parse_one("select my_udf(1)", read=DIALECT)
    (call,) = tree.find_all(exp.Anonymous)

    assert functions.refusal(call) is not None
    assert functions.refusal(call, ("my_udf",)) is None
    assert [why for _, why, _ in functions.unlike(tree, ("my_udf",))] == [
        "my_udf() runs on Spark only: pyproject.toml lists it under `functions`"
    ]


@pytest.mark.parametrize("name", ["java_method", "REFLECT", "read_files", "rand", "utc_timestamp"])
def test_settings_admit_nothing_dangerous(name: str) -> None:
    """Regardless of what else is in the list."""
    with pytest.raises(ProjectError, match=rf"SR110 .*can't allow `{name}`"):
        project(f'functions = ["fine", "{name}"]')


@pytest.mark.parametrize("line", ["functions = 'x'", "functions = [1]", "functions = ['a b']", "functions = ['']"])
def test_settings_accept_names_alone(line: str) -> None:
    """Anything else is reported at its place."""
    with pytest.raises(ProjectError, match=r"SR103 pyproject\.toml:3:1"):
        project(line)


@pytest.mark.parametrize(
    "sql",
    [
        "select iff(true, 1, 2)",
        "select arg_max(1, 2)",
        "select safe_add(1, 2)",
        "select str_position('a', 'b')",
        "select x:y from (select '{}' as x)",
        "select json_extract('{}', '$.a')",
    ],
)
def test_functions_of_other_dialects_are_unknown(sql: str) -> None:
    """sqlglot parses them, but Spark doesn't have them."""
    tree = sqlglot.parse_one(sql, read=DIALECT)

    assert any(functions.refusal(function) for function in tree.find_all(exp.Func))


def test_conditions_and_checks_refuse_spark_only_functions() -> None:
    """They run on DuckDB with any engine."""
    with pytest.raises(UsageError, match=r"--where: hash\(\) runs on Spark only"):
        condition("hash(a) = 1", {"a": "string"})


def test_landing_rules_are_read_in_the_same_dialect() -> None:
    """A rule's text reaches DuckDB with the same translations."""
    assert "cardinality" in landing_query._dialect("size(a) > 0", "duckdb").lower()
    assert re.search(r"size\(a\)", landing_query._dialect("size(a) > 0", "spark"))


@pytest.mark.parametrize(("key", "value"), [("cast(b as string)", 1e-9), ("cast(s as int)", "x")])
def test_a_key_of_a_window_may_be_an_error(connection: duckdb.DuckDBPyConnection, key: str, value: object) -> None:
    """DuckDB allows no `error()` there; what fails elsewhere fails there too, and nothing else does."""
    sql = expression(
        sqlglot.parse_one(f"select row_number() over (order by {key}, a) as n from t", read=DIALECT), "duckdb"
    )
    connection.execute("create or replace temp table t as select 1 as a, cast(2.5 as double) as b, '7' as s")

    assert connection.execute(sql).fetchall() == [(1,)]

    connection.execute(f"update t set {'b' if isinstance(value, float) else 's'} = ?", [value])
    with pytest.raises(duckdb.ConversionException, match="cast: "):
        connection.execute(sql)
