"""The expression that failed on a row is found by what an engine says about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlrun.engines.spark import data_errors
from sqlrun.errors import DataError, Place
from sqlrun.graph import failing_expressions
from sqlrun.pipeline import prepare
from tests.support.broken import write

QUERY = """\
with numbers as (select id, qty, tags from {{ ref('given') }})
select id, qty * 1000 as q, tags[0] as tag from numbers
union all
select id, qty + id as q, tags[1] as tag from numbers
"""
GIVEN = "select 1 as id, 2 as qty, array('a') as tags from {{ ref('seed') }}"
OVERFLOW = """\
[ARITHMETIC_OVERFLOW] integer overflow. Use 'try_multiply' to tolerate overflow and return NULL instead. If necessary \
set "spark.sql.ansi.enabled" to "false" to bypass this error. SQLSTATE: 22003
== SQL (line 12, position 49) ==
...`id` as INT) as `id`, cast(`q` as INT) as `q`, _weight from _changes_3...
                         ^^^^^^^^^^^^^^^^

\tat org.apache.spark.sql.errors.QueryExecutionErrors$.more
"""
SUBQUERY = """\
An error occurred while calling o1.save.
: org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed while writing rows to file:/t. SQLSTATE: 58030
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.more
Caused by: org.apache.spark.SparkException: [SCALAR_SUBQUERY_TOO_MANY_ROWS] More than one row returned by a subquery \
used as an expression. SQLSTATE: 21000
"""
DUPLICATE = """\
[DUPLICATED_MAP_KEY] Duplicate map key abc was found, please check the input data.
If you want to remove the duplicated keys, you can set "spark.sql.mapKeyDedupPolicy" to "LAST_WIN" so that the key \
inserted at last takes precedence. SQLSTATE: 23505
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(
        tmp_path,
        {
            "models/sums.sql": QUERY,
            "models/given.sql": GIVEN,
            "models/given.yml": "models:\n  - {name: given, config: {materialized: view}}\n",
            "seeds/seed.csv": "id\n1\n",
            "seeds/seed.yml": "seeds:\n  - {name: seed, columns: [{name: id, data_type: int}]}\n",
        },
    )


def found(folder: Path, expression: str, reason: str = "it is too large") -> tuple[Place, str, str]:
    queries = {query.name: query for query in prepare(folder).queries}
    problem = failing_expressions.problem(DataError(reason, expression), queries["sums"], {"given": queries["given"]})
    return problem.place, problem.message.partition(" fails")[0], problem.hint.partition(" Correct")[0]


@pytest.mark.parametrize(
    ("expression", "line", "column"),
    [
        ("qty * 1000", 2, 12),
        ("`_l`.`QTY` * 1000", 2, 12),
        ("`_c1` * 1000", 2, 12),
        ("tags[1]", 4, 27),
        ("`qty` + `id`", 4, 12),
    ],
)
def test_an_expression_is_found_by_its_text(folder: Path, expression: str, line: int, column: int) -> None:
    place, what, _ = found(folder, expression)

    assert (str(place), what) == (f"models/sums.sql:{line}:{column}", "this expression")


def test_an_expression_of_a_view_is_found_in_its_file(folder: Path) -> None:
    assert str(found(folder, "array('a')")[0]).startswith("models/given.sql:1:")


@pytest.mark.parametrize("expression", ["", "cast(nothing as int)", "qty * 1001", "not (an expression"])
def test_what_is_in_no_file_is_reported_at_the_file(folder: Path, expression: str) -> None:
    place, what, hint = found(folder, expression)

    assert (str(place), what, place.exact) == ("models/sums.sql:1:1", "an expression", False)
    assert not hint.startswith("It is one of")


def test_the_cast_to_a_columns_type_stands_for_the_columns_expressions(folder: Path) -> None:
    value = data_errors.found(OVERFLOW)
    assert value is not None
    reason, expression = value

    assert expression == "cast(`q` as INT)"
    assert reason.endswith("Use 'try_multiply' to tolerate overflow and return NULL instead.")
    assert found(folder, expression, reason)[2] == "It is one of models/sums.sql:2:12, models/sums.sql:4:12."


def test_an_index_is_found_by_the_kind_of_the_message(folder: Path) -> None:
    hint = found(folder, "", "[INVALID_ARRAY_INDEX] The index 0 is out of bounds.")[2]

    assert hint == "It is one of models/sums.sql:2:29, models/sums.sql:4:27."


def test_the_cause_of_a_failed_write_is_the_message() -> None:
    message = "[SCALAR_SUBQUERY_TOO_MANY_ROWS] More than one row returned by a subquery used as an expression."

    assert data_errors.found(SUBQUERY) == (message, "")
    assert data_errors.found(SUBQUERY.partition("Caused by")[0]) is None


def test_advice_to_change_a_setting_is_left_out() -> None:
    message = "[DUPLICATED_MAP_KEY] Duplicate map key abc was found, please check the input data."

    assert data_errors.found(DUPLICATE) == (message, "")
