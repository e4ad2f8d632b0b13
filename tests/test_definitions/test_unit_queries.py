"""Queries of unit tests: with overridden vars and macros, of one CTE, of a macro, over rows in each format."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from sqlrun.errors import ProjectError
from sqlrun.pipeline import Prepared, prepare
from sqlrun.runtime.disk_cache import Cache
from sqlrun.test_definitions.queries import Queries
from sqlrun.unit_tests.choosing import of_models
from sqlrun.unit_tests.run.results import TestResult
from sqlrun.unit_tests.run.run import run
from tests.support.broken import contract, write

COLUMNS = ("id int", "amount decimal(10,2)", "tags array<string>")
ORDERS = """sources:
  - name: shop
    tables:
      - name: orders
        path: landing
        columns:
          - {name: id, data_type: int, description: d}
          - {name: amount, data_type: "decimal(10,2)", description: d}
          - {name: tags, data_type: "array<string>", description: d}
"""
FILES = {
    "models/_sources.yml": ORDERS,
    "models/orders.sql": "select * from {{ source('shop', 'orders') }} where amount > {{ var('least', 0) }}",
    "models/orders.yml": contract("orders", *COLUMNS),
    "models/sums.sql": """with large as (
    select id, amount * {{ rate() }} as amount, tags from {{ ref('orders') }} where amount >= {{ var('most', 100) }}
),
tagged as (select id, size(tags) as n_tags, count(*) over (partition by id) as n from large)
select large.id, cast(large.amount as decimal(10,2)) as amount, large.tags
from large join tagged on large.id = tagged.id where n_tags > 0
""",
    "models/sums.yml": contract("sums", *COLUMNS),
    "macros/rate.sql": "{% macro rate() %}cast(1.00 as decimal(4,2)){% endmacro %}",
    "macros/twice.sql": "{% macro twice(x) %}2 * {{ x }}{% endmacro %}",
}


def prepared(folder: Path, tests: str, macro_tests: str = "", files: Mapping[str, str] | None = None) -> Prepared:
    made = {**FILES, "models/sums.yml": f"{FILES['models/sums.yml']}unit_tests:\n{tests}"} if tests else {**FILES}
    if macro_tests:
        made["macros/tests.yml"] = f"unit_tests:\n{macro_tests}"
    return prepare(write(folder, {**made, **(files or {})}))


def results(project: Prepared) -> list[TestResult]:
    queries = {query.name: query for query in project.queries}
    own = Queries(project.project, queries)
    return list(
        run(project.project, queries, [(test, own.of(test)[test.model]) for test in project.project.unit_tests])
    )


def statuses(folder: Path, tests: str, macro_tests: str = "", files: Mapping[str, str] | None = None) -> list[str]:
    return [f"{r.status} {r.message}".strip() for r in results(prepared(folder, tests, macro_tests, files))]


def refusal(folder: Path, tests: str, macro_tests: str = "", files: Mapping[str, str] | None = None) -> str:
    with pytest.raises(ProjectError) as caught:
        results(prepared(folder, tests, macro_tests, files))
    return str(caught.value)


@pytest.mark.slow
def test_rows_of_each_format_are_equal(tmp_path: Path) -> None:
    rows = """
  - name: {0}
    model: sums
    given:
      - input: ref('orders')
        format: {0}
        {1}: {2}
    expect: {{format: {0}, {1}: {2}}}
"""
    sql = "\"select 1 as id, 100.50 as amount, array('a', 'b') as tags union all select 2, 200, array(null)\""
    csv = '"id,amount,tags\\n1,100.50,\\"[\\"\\"a\\"\\",\\"\\"b\\"\\"]\\"\\n2,200,[null]\\n"'
    dicts = "[{id: 1, amount: 100.50, tags: [a, b]}, {id: 2, amount: 200, tags: [null]}]"
    tests = "".join(rows.format(*one) for one in (("sql", "rows", sql), ("csv", "rows", csv), ("dict", "rows", dicts)))
    fixtures = rows.format("csv", "fixture", "two").replace("name: csv", "name: a") + rows.format(
        "sql", "fixture", "two.sql"
    ).replace("name: sql", "name: b")
    files = {
        "tests/fixtures/orders/two.csv": 'id,amount,tags\n1,100.50,"[""a"",""b""]"\n2,200,[null]\n',
        "tests/fixtures/two.sql": "-- two orders\n" + sql.strip('"'),
    }

    assert statuses(tmp_path, tests + fixtures, "", files) == ["pass"] * 5


@pytest.mark.slow
def test_differences_are_found_in_sql_rows_too(tmp_path: Path) -> None:
    test = """  - name: a
    model: sums
    given: [{input: ref('orders'), rows: [{id: 1, amount: 100, tags: [a]}]}]
    expect: {format: sql, rows: "select 1 as id, 99 as amount"}
"""
    found = results(prepared(tmp_path, test))[0]

    assert (found.status, found.columns) == ("fail", ("id", "amount"))
    assert (found.missing, found.unexpected) == ((("1", "99.00"),), (("1", "100.00"),))


@pytest.mark.slow
def test_a_test_uses_its_own_vars_and_macros(tmp_path: Path) -> None:
    test = """  - name: a
    model: sums
    overrides: {vars: {most: 7}, macros: {rate: 2}}
    given: [{input: ref('orders'), rows: [{id: 1, amount: 7, tags: [a]}, {id: 2, amount: 6, tags: [a]}]}]
    expect: {rows: [{id: 1, amount: 14}]}
"""
    project = prepared(tmp_path, test)
    queries = {query.name: query for query in project.queries}
    own, found = Queries(project.project, queries), project.project.unit_tests[0]

    assert [result.status for result in results(project)] == ["pass"]
    # `orders` is given, so it stays the same; each query is made once.
    assert own.of(found)["orders"] is queries["orders"]
    assert own.of(found)["sums"] is own.of(found)["sums"] is not queries["sums"]


def test_vars_apply_to_models_up_to_the_given_inputs(tmp_path: Path) -> None:
    test = """  - name: a
    model: sums
    overrides: {vars: {least: 1000}}
    given: [{input: "source('shop', 'orders')", rows: []}]
    expect: {rows: []}
"""
    project = prepared(tmp_path, test)
    queries = {query.name: query for query in project.queries}
    seen = Queries(project.project, queries).of(project.project.unit_tests[0])

    assert "1000" in seen["orders"].canonical
    assert seen["sums"] is queries["sums"]


@pytest.mark.slow
def test_a_cte_is_tested_alone(tmp_path: Path) -> None:
    test = """  - name: a
    model: sums
    cte: tagged
    given: [{input: ref('orders'), rows: [{id: 1, amount: 100}, {id: 1, amount: 200, tags: [a]}]}]
    expect: {rows: [{id: 1, n_tags: 1, n: 2}, {id: 1, n_tags: null, n: 2}]}
"""
    project = prepared(tmp_path, test)
    query = Queries(project.project, {q.name: q for q in project.queries}).of(project.project.unit_tests[0])["sums"]

    assert [result.status for result in results(project)] == ["pass"]
    assert [(c.name, c.type) for c in query.rendered.model.columns] == [
        ("id", "int"),
        ("n_tags", "int"),
        ("n", "bigint"),
    ]


def test_an_unknown_cte_is_reported_with_known_ones(tmp_path: Path) -> None:
    message = refusal(tmp_path, "  - {name: a, model: sums, cte: tagget, expect: {rows: []}}\n")

    assert "unknown CTE `tagget` of sums" in message
    assert "CTEs: large, tagged. Did you mean `tagged`?" in message


def test_expected_rows_of_a_cte_have_its_columns(tmp_path: Path) -> None:
    test = "  - {name: a, model: sums, cte: tagged, expect: {rows: [{id: 1, n_tags: many}]}}\n"
    unknown = test.replace("n_tags: many", "n_tag: 1")

    assert "`many` is not an int (column `n_tags`)" in refusal(tmp_path / "a", test)
    assert "unknown column `n_tag` of the CTE `tagged`" in refusal(tmp_path / "b", unknown)


MACRO = """  - name: a
    macro: twice
    given: [{input: given, columns: {x: int, at: timestamp}, rows: [{x: 2}, {x: null, at: "2026-01-01"}]}]
    sql: "select at, {{ twice('x') }} as doubled from given"
    expect: {rows: [{doubled: 4, at: null}, {at: "2026-01-01 00:00:00"}]}
"""


@pytest.mark.parametrize(
    "test",
    [
        MACRO,
        MACRO.replace("select at", "with two as (select * from given) select at").replace("from given\"", "from two\""),
        MACRO.replace("{x: int, at: timestamp}", "ref('orders')")
        .replace("x: 2", "id: 2")
        .replace("{x: null, at: \"2026-01-01\"}", "{}")
        .replace("select at, {{ twice('x')", "select tags as at, {{ twice('id')")
        .replace('at: "2026-01-01 00:00:00"', "doubled: null"),
        "  - {name: a, macro: twice, sql: \"select {{ twice(3) }} as x\", expect: {rows: [{x: 6}]}}\n",
        "  - {name: a, macro: rate, sql: \"select '{' as a, {{ rate() }} as x\", expect: {rows: [{x: 1, a: '{'}]}}\n",
        "  - {name: a, macro: twice, overrides: {macros: {rate: 5}}, "
        "sql: \"select {{ twice(rate()) }} as x\", expect: {rows: [{x: 10}]}}\n",
    ],
)  # fmt: skip
@pytest.mark.slow
def test_a_macro_is_tested_by_a_query_that_calls_it(tmp_path: Path, test: str) -> None:
    assert statuses(tmp_path, "", test) == ["pass"]


def test_a_failed_macro_test_is_reported_with_its_place(tmp_path: Path) -> None:
    test = """  - name: a
    macro: twice
    given: [{input: given, columns: {x: int}, rows: [{x: 1}]}]
    sql: |
      select
        {{ twice('y') }} as doubled
      from given
    expect: {rows: []}
"""
    message = refusal(tmp_path, "", test)

    assert "SR304 macros/tests.yml:7:19  unknown column `y`" in message
    assert "  7 |         {{ twice('y') }} as doubled" in message


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("macro: twice", "macro: twise", "unknown macro `twise`"),
        ("{{ twice('x') }}", "2 * x", "the query never calls twice()"),
        ("from given", "from {{ ref('orders') }}", "the test of twice reads `orders`, which is not an input"),
        ("from given", "from elsewhere", "unknown table `elsewhere`"),
        ("x: int,", "x: integger,", "unknown type `integger` of column `x`"),
        ("{x: 2}", "{x: two}", "`two` is not an int"),
        ("{x: 2}", "{y: 2}", "unknown column `y` of the input given"),
        ("input: given", "input: ref('orders')", "invalid name ref('orders')"),
        ("macro: twice", "model: sums\n    macro: twice", "unknown key `model`"),
    ],
)
def test_a_macros_test_is_validated(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in MACRO
    assert message in refusal(tmp_path, "", MACRO.replace(old, new, 1))


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("select 1 as id from orders", "SR303 models/sums.yml:11:76  unknown table `orders`"),
        ("select rnd() as id", "unknown function rnd()"),
        ("select rand() as id", "SR501"),
        ("select current_timestamp() as id", "can't use the time of the tick"),
        ("select 12.5 as id", "`12.5` is not an int (column `id`)"),
        ("select cast('x' as int) as id", "`x` is not an int (column `id`)"),
        ("select 1 as idd", "unknown column `idd` of ref('orders')"),
        ("select 1", "a column of these rows has no name"),
        ("select 1 as id union all select 2, 3", "the branches of UNION have different numbers of columns: 1 and 2"),
        ("select 1 as id, 2 as id", "duplicate column `id`"),
        ("delete from x", "SR302"),
        ("select", "SR30"),
        ("{{ ref('orders') }}", "SR30"),
    ],
)
def test_rows_in_sql_are_literals_of_the_right_types(tmp_path: Path, sql: str, message: str) -> None:
    test = f"""  - name: a
    model: sums
    given: [{{input: ref('orders'), format: sql, rows: "{sql}"}}]
    expect: {{rows: []}}
"""

    assert message in refusal(tmp_path, test)


def test_tests_of_macros_are_selected_with_calling_models(tmp_path: Path) -> None:
    two = MACRO + '  - {name: b, macro: rate, sql: "select {{ rate() }} as x", expect: {rows: [{x: 1}]}}\n'
    project = prepared(tmp_path, "", two)
    order = project.graph.order

    assert [test.name for test in of_models(project.project, order, ("orders", "sums"))] == ["b", "a"]
    assert [test.name for test in of_models(project.project, order, ("sums",))] == ["b"]
    assert of_models(project.project, order, ("orders",)) == ()


@pytest.mark.parametrize(
    ("test", "message"),
    [
        (
            "{name: a, model: orders, given: [{input: ref('sums'), rows: []}], expect: {rows: []}}",
            "orders doesn't read ref('sums'), neither directly nor through other models\n"
            "  Possible inputs: source('shop', 'orders').",
        ),
        (
            "{name: a, model: sums, expect: {quarantined: []}}",
            "sums doesn't land a source, so it quarantines no lines",
        ),
        (
            "{name: a, model: sums, then: [{changes: [{input: ref('sums'), came: [{id: 1}]}]}]}",
            "sums doesn't read ref('sums'), neither directly nor through other models\n"
            "  Possible inputs: ref('orders'), source('shop', 'orders').",
        ),
        ("{name: a, model: sums, overrides: {vars: {moost: 1}}, expect: {rows: []}}", "Did you mean `most`?"),
        ("{name: a, model: sums, overrides: {macros: {rat: 1}}, expect: {rows: []}}", "Did you mean `rate`?"),
        ("{name: a, model: sums, overrides: {macros: {is_incremental: true}}, expect: {rows: []}}", "`then:`"),
        ("{name: a, model: sums, overrides: {macros: {rate: [1]}}, expect: {rows: []}}", "a string or a number"),
        ("{name: a, model: sums, overrides: {env_vars: {A: b}}, expect: {rows: []}}", "SR121"),
        ("{name: a, model: sums, versions: {include: [1]}, expect: {rows: []}}", "SR121"),
        ("{name: a, model: sums}", "a unit test lacks `expect`"),
        ("{name: a, model: sums, expect: {}}", "`expect` lacks `rows`"),
        ("{name: a, model: sums, then: []}", "`then` has no steps"),
        ("{name: a, model: sums, given: [{input: ref('orders')}], expect: {rows: []}}", "lacks `rows`"),
        (
            "{name: a, model: sums, given: [{input: ref('orders'), format: csv, fixture: ther}], expect: {rows: []}}",
            "unknown fixture `ther.csv`\n",
        ),
        (
            "{name: a, model: sums, given: [{input: ref('orders'), fixture: x}], expect: {rows: []}}",
            "fixtures don't support the format `dict`",
        ),
        (
            "{name: a, model: sums, expect: {format: csv, rows: [{id: 1}]}}",
            "`rows` must be a string with `format: csv`",
        ),
        ("{name: a, model: sums, expect: {rows: id}}", "`rows` must be a list"),
        (
            "{name: a, model: sums, expect: {columns: {id: int}, rows: []}}",
            "`columns` repeats the contract of ref('sums')",
        ),
        ("{name: a, model: sums, expect: {format: csv, rows: ''}}", "the CSV is empty"),
        ("{name: a, model: sums, expect: {format: csv, rows: 'id,ID'}}", "duplicate column `ID`"),
        ("{name: a, model: sums, expect: {format: csv, rows: 'id,IDS'}}", "unknown column `IDS`"),
        ("{name: a, model: sums, config: {enabled: maybe}, expect: {rows: []}}", "`enabled` must be true or false"),
    ],
)
@pytest.mark.slow
def test_invalid_tests_are_reported(tmp_path: Path, test: str, message: str) -> None:
    assert message in refusal(tmp_path, f"  - {test}\n")


def test_harmless_dbt_keys_are_accepted(tmp_path: Path) -> None:
    test = """  - name: a
    model: sums
    description: Why.
    config: {tags: [b], meta: {owner: us}}
    tags: a
    expect: {rows: []}
  - {name: b, model: sums, config: {enabled: false}, expect: {rows: [{id: 1}]}}
"""

    assert [(test.name, test.tags) for test in prepared(tmp_path, test).project.unit_tests] == [("a", ("a", "b"))]


@pytest.mark.slow
def test_a_changed_fixture_macro_or_seed_is_read_again(tmp_path: Path) -> None:
    """The cache of tests depends on everything that they name."""
    test = """  - name: a
    model: sums
    given: [{input: ref('orders'), format: csv, fixture: few}]
    expect: {rows: []}
"""
    files = {"tests/fixtures/few.csv": "id\n1\n"}
    prepared(tmp_path, test, files=files)
    for _ in range(2):
        first = prepare(tmp_path, Cache.of(tmp_path))
    write(tmp_path, {"tests/fixtures/few.csv": "id\n2\n"})
    second = prepare(tmp_path, Cache.of(tmp_path))

    assert [one.project.unit_tests[0].given[0].rows for one in (first, second)] == [({"id": "1"},), ({"id": "2"},)]
