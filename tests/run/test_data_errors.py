"""An expression that fails on a row: SR533 shows which one, on both engines."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner

from sqlrun.cli.main import main
from sqlrun.engines.duckdb import data_errors
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.errors import DataError, EngineError
from tests.support.broken import write

VALUES = "id,name,qty,amount\n1,7,2,5.00\n2,seven,2000000000,900.00\n"
SEED = """\
seeds:
  - name: numbers
    columns:
      - {name: id, data_type: int}
      - {name: name, data_type: string}
      - {name: qty, data_type: int}
      - {name: amount, data_type: "decimal(10,2)"}
"""
# The query of each model, the place that the message shows, and the message.
FAILING: dict[str, tuple[str, str, str]] = {
    "of_text": (
        "select id,\n  cast(name as int) as n\nfrom {{ ref('numbers') }}",
        "of_text.sql:2:3", "this expression fails on a value of a row: cast: 'seven' is no INT",
    ),
    "of_two": (
        "select id, cast(id as bigint) as n, cast(name as bigint) as s from {{ ref('numbers') }}",
        "of_two.sql:1:37", "this expression fails on a value of a row: cast: 'seven' is no BIGINT",
    ),
    "of_day": (
        "select id, to_date(name, 'yyyy-MM-dd') as day from {{ ref('numbers') }}",
        "of_day.sql:1:12", "this expression fails on a value of a row: '7' does not fit the pattern of its date",
    ),
    "of_zero": (
        "select id,\n  qty /\n  (id - 1) as q\nfrom {{ ref('numbers') }}",
        "of_zero.sql:2:3", "this expression fails on a value of a row: /: division by zero",
    ),
    "of_product": (
        "select id, qty * 2 as q from {{ ref('numbers') }}",
        "of_product.sql:1:12", "an expression, probably this one, fails on a value of a row: Overflow in",
    ),
    "of_decimal": (
        "select id, cast(amount as decimal(3,2)) as a from {{ ref('numbers') }}",
        "of_decimal.sql:1:12", 'an expression, probably this one, fails on a value of a row: Casting value "900.00"',
    ),
    "of_number": (
        "select id, cast(name as decimal(5,2)) as a from {{ ref('numbers') }}",
        "of_number.sql:1:12", "an expression, probably this one, fails on a value of a row: Could not convert string",
    ),
    "of_many": (
        "select id, qty * 2 as q,\n  qty * 3 as r\nfrom {{ ref('numbers') }}",
        "of_many.sql:1:1", "an expression fails on a value of a row: Overflow in multiplication",
    ),
    "of_view": (
        "select id, n from {{ ref('as_numbers') }}",
        "as_numbers.sql:1:12", "this expression fails on a value of a row: cast: 'seven' is no INT",
    ),
    "of_group": (
        "select qty, sum(cast(name as int)) as n from {{ ref('numbers') }} group by qty",
        "of_group.sql:1:17", "this expression fails on a value of a row: cast: 'seven' is no INT",
    ),
    "of_where": (
        "select id from {{ ref('numbers') }} where cast(name as int) > 3",
        "of_where.sql:1:43", "this expression fails on a value of a row: cast: 'seven' is no INT",
    ),
    "of_window": (
        "select id, rank() over (partition by qty order by cast(name as int)) as n from {{ ref('numbers') }}",
        "of_window.sql:1:51", "this expression fails on a value of a row: cast: 'seven' is no INT",
    ),
    "of_letters": (
        "select id, transform(array(name), x -> cast(x as int)) as n from {{ ref('numbers') }}",
        "of_letters.sql:1:40", "this expression fails on a value of a row: cast: 'seven' is no INT",
    ),
}  # fmt: skip
VIEW = "select id, cast(name as int) as n from {{ ref('numbers') }}"


def project(folder: Path) -> Path:
    files = {f"models/{name}.sql": query for name, (query, *_) in FAILING.items()}
    files |= {"seeds/numbers.csv": VALUES, "seeds/numbers.yml": SEED, "models/as_numbers.sql": VIEW}
    files["models/as_numbers.yml"] = "models:\n  - {name: as_numbers, config: {materialized: view}}\n"
    files["profiles/local.yml"] = "engine: duckdb\nwarehouse: warehouse\nthreads: 2\n"
    return write(folder, files)


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return what a build prints about each model."""
    folder = project(tmp_path_factory.mktemp("failing"))
    result = CliRunner().invoke(main, ["--project-dir", str(folder), "build"])
    assert result.exit_code == 1, result.output
    parts = re.split(r"Error in \w+ model (\w+)\n", result.output)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("name", FAILING)
def test_the_failed_expression_is_shown(name: str, output: dict[str, str]) -> None:
    _, place, message = FAILING[name]

    assert f"SR533 models/{place}  {message}" in output[name]
    assert "use a function that returns NULL instead" in output[name]


def test_of_several_expressions_each_place_is_named(output: dict[str, str]) -> None:
    assert "It is one of models/of_many.sql:1:12, models/of_many.sql:2:3." in output["of_many"]


def test_a_message_is_hidden_if_a_column_above_is_tagged_pii(tmp_path: Path) -> None:
    folder = project(tmp_path)
    seed = folder / "seeds" / "numbers.yml"
    seed.write_text(seed.read_text().replace("data_type: string}", "data_type: string, tags: [pii]}"))

    result = CliRunner().invoke(main, ["--project-dir", str(folder), "build", "--select", "numbers", "of_view"])

    assert (
        "models/as_numbers.sql:1:12  this expression fails on a value of a row: its message is hidden" in result.output
    )
    assert "seven" not in result.output
    assert "seven" not in (folder / "target" / "run_results.json").read_text()


def test_a_unit_test_shows_the_expression_of_a_model_above(tmp_path: Path) -> None:
    folder = project(tmp_path)
    (folder / "models" / "of_tests.yml").write_text(
        "unit_tests:\n  - name: fails\n    model: of_view\n    given:\n      - input: ref('numbers')\n"
        "        rows: [{id: 1, name: seven, qty: 1, amount: 1.00}]\n    expect:\n      rows: []\n"
    )

    result = CliRunner().invoke(main, ["--project-dir", str(folder), "test"])

    where = "SR533 models/as_numbers.sql:1:12  this expression fails on a value of a row: cast: 'seven' is no INT."
    assert result.exit_code == 1 and where in result.output


def failed(sql: str) -> EngineError:
    engine = DuckDBEngine()
    try:
        with pytest.raises(EngineError) as caught:
            engine.query(sql, ())
    finally:
        engine.close()
    return caught.value


@pytest.mark.parametrize(
    "sql",
    [
        "select timezone('Mars/Phobos', timestamp '2026-01-01')",
        "select (select * from range(2))",
        "select map_from_entries([('a', 1), ('a', 2)])",
        "select json_extract('{\"a\": 1}x', '$.a')",
        "select make_date(2026, 13, 1)",
        "select strptime('x', '%Y')",
        "select cast(300 as tinyint)",
        "select sum(x) from (values (170141183460469231731687303715884105727::hugeint), (1)) as t(x)",
    ],
)
def test_duckdbs_own_errors_about_values_have_the_code(sql: str) -> None:
    assert isinstance(failed(sql), DataError) and str(failed(sql)).startswith("SR533 ")


def test_a_damaged_file_is_no_error_about_a_value(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1" + b"x" * 100)

    error = failed(f"select * from read_parquet('{tmp_path}/a.parquet')")

    assert not isinstance(error, DataError) and "InvalidInputException" in str(error)


def test_a_value_in_a_message_is_not_taken_for_the_expression() -> None:
    error = duckdb.InvalidInputException("Invalid Input Error: SR533 cast: 'a <- b' is no INT <- CAST(x AS INT)")

    assert data_errors.found(error) == ("cast: 'a <- b' is no INT", "CAST(x AS INT)")


def test_a_statement_in_a_message_is_not_taken_for_a_failed_value() -> None:
    """DuckDB shows the part of the statement where it found a mistake."""
    text = "error('SR533 cast: no INT <- CAST(x AS INT)')"
    mistake, value = failed(f"select case when true then {text} end from"), failed(f"select cast('x' as int), {text}")

    assert not isinstance(mistake, DataError) and "SR533" in str(mistake.__cause__)
    assert isinstance(value, DataError) and "SR533" in str(value.__cause__)
    assert (value.reason, value.expression) == ("Could not convert string 'x' to INT32", "")
