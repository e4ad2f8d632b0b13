"""`sqlrun import-dbt`: a dbt project builds without an edit, or the report says what is left."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import sqlrun
from sqlrun import pipeline
from sqlrun.cli.main import main
from sqlrun.runtime import atomic_files
from tests.support import broken, dbt_project

pytestmark = pytest.mark.slow


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def imported(folder: Path, changed: dict[str, str] | None = None) -> tuple[Path, Result]:
    source, out = dbt_project.write(folder / "dbt", changed), folder / "out"
    return out, run("import-dbt", source, "--write", out)


def test_a_tutorials_project_builds_without_an_edit(tmp_path: Path) -> None:
    """All its tests run, the singular one too, and its rows are those that dbt computes."""
    out, done = imported(tmp_path)
    assert done.exit_code == 0, done.output

    built = run("--project-dir", out, "build")
    assert built.exit_code == 0, built.output
    assert "Found 5 models, 3 seeds, 15 checks" in built.output

    def rows(table: str) -> list[tuple[object, ...]]:
        return sorted(tuple(row.values()) for row in sqlrun.published(table, str(out / "warehouse/duckdb")).to_pylist())

    assert [tuple(map(str, row)) for row in rows("orders")] == [
        ("1", "1", "returned", "10.00", "0.00", "10.00"),
        ("2", "3", "completed", "0.00", "20.50", "20.50"),
        ("3", "1", "placed", "1.00", "0.05", "1.05"),
    ]
    assert [(row[1], row[3]) for row in rows("customers")] == [("Ann", 2), ("Cem", None), ("Eva", 1)]
    project = pipeline.prepare(out).project
    assert project.vars == {"closed": [1, 2]}
    (orders,) = (model for model in project.models if model.name == "orders")
    assert {column.name: column.description for column in orders.columns}[
        "status"
    ] == "One of `placed`, `completed` and `returned`."


def test_the_report_names_what_changed_and_nothing_is_written_without_being_asked(tmp_path: Path) -> None:
    source = dbt_project.write(tmp_path / "dbt")
    before = sorted(tmp_path.rglob("*"))

    done = run("import-dbt", source)

    assert done.exit_code == 0
    for said in (
        "models/schema.yml: customers: `latest_version` was left out",
        "`generate_schema_name` was left out",
        "models/staging/stg_orders.sql: stored as a table, because its tests read stored rows",
        "Nothing was written. Write the project with --write FOLDER.",
    ):
        assert said in done.output
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        (
            "packages.yml",
            "packages: [{package: acme/odd, version: 1.0.0}]\n",
            "packages.yml:1: sqlrun fetches packages from git alone, not `acme/odd`. Write its repository: `- git: ",
        ),
        ("models/a.py", "def model(dbt, session): ...\n", "models/a.py: Python models have no equal"),
        ("snapshots/a.sql", "{% snapshot a %}{% endsnapshot %}\n", "snapshots/a.sql: declare the snapshot in YAML"),
        (
            "macros/m.sql",
            "{% materialization odd, default %}{% endmaterialization %}\n",
            "`{% materialization %}` has no",
        ),
        ("tests/none.sql", "select 1 as n where false\n", "tests/none.sql: the test reads no model or seed"),
        ("tests/x.sql", "select 1 as n from {{ ref('x') }}\n", "the test was left out: there is no table `x`"),
        (
            "models/more.yml",
            "models:\n  - {name: orders_again, columns: []}\n",
            "models/more.yml: left out, because there is no model `orders_again`",
        ),
        (
            "models/a.sql",
            "{{ config(materialized='incremental', unique_key=['n'], pre_hook='x') }} select 1 as n\n",
            "models/a.sql: `incremental` is `table`: sqlrun maintains every table incrementally",
        ),
        (
            "models/a.sql",
            "{{ config(unique_key='a || b', pre_hook='x') }} select 1 as n\n",
            "models/a.sql: `unique_key` was left out. Write the columns as `grain` of a contract",
        ),
        (
            "models/a.sql",
            "{{ config(pre_hook='x, y') }} select 1 as n\n",
            "models/a.sql: `pre_hook` of config() was left",
        ),
        (
            "models/a.sql",
            "{{ config(schema='x') }} select 1 as n\n",
            "models/a.sql: `schema` of config() was left out",
        ),
        ("models/more.yml", "metrics: []\n", "models/more.yml: `metrics` has no equal, and was left out"),
        (
            "models/more.yml",
            "sources:\n  - name: shop\n    tables: [{name: carts}]\n",
            "source shop.carts: say which files it lands",
        ),
    ],
)
def test_what_has_no_equal_is_named(tmp_path: Path, file: str, text: str, said: str) -> None:
    """Nothing is dropped silently."""
    done = run("import-dbt", dbt_project.write(tmp_path / "dbt", {file: text}))

    assert done.exit_code == 0 and said in done.output, done.output


def test_a_source_that_is_a_seed_is_read_as_one(tmp_path: Path) -> None:
    """In models and in their unit tests; an ephemeral model is a view."""
    sources = """
sources:
  - name: bakery
    tables:
      - {name: clients, identifier: raw_customers}
unit_tests:
  - name: one
    model: names
    given:
      - {input: "source('bakery', 'clients')", rows: [{id: 1, first_name: A}]}
    expect: {rows: [{first_name: A}]}
"""
    files = {
        "models/names.sql": "{{ config(materialized='ephemeral') }}\n"
        "select first_name from {{ source('bakery', 'clients') }}\n",
        "models/sources.yml": sources,
    }

    out, done = imported(tmp_path, files)

    assert done.exit_code == 0, done.output
    assert "source bakery.clients: it is the seed raw_customers" in done.output
    assert "{{ ref('raw_customers') }}" in (out / "models" / "names.sql").read_text()
    model = next(model for model in pipeline.prepare(out).project.models if model.name == "names")
    assert model.unit_tests[0].name == "one"
    assert run("--project-dir", out, "test", "--select", "names").exit_code == 0


def test_a_second_unique_column_is_a_check_of_its_own(tmp_path: Path) -> None:
    """A table has one grain."""
    text = (
        "models:\n  - name: stg_payments\n    columns:\n      - {name: payment_id, tests: [unique]}\n"
        "      - {name: order_id, tests: [unique]}\n"
    )
    schema = dbt_project.FILES["models/staging/schema.yml"].partition("  - name: stg_payments")[0]

    out, done = imported(tmp_path, {"models/staging/schema.yml": schema, "models/staging/payments.yml": text})

    assert done.exit_code == 0, done.output
    assert "tests" not in str((out / "models" / "staging" / "payments.yml").read_text().partition("order_id")[2])
    (model,) = (one for one in pipeline.prepare(out).project.models if one.name == "stg_payments")
    assert model.grain == ("payment_id",)
    suites = {suite.model: suite for suite in pipeline.prepare(out).project.suites}
    assert [one.name for one in suites["stg_payments"].expectations] == ["stg_payments__order_id__unique"]


def test_what_is_left_to_edit_is_listed_with_places(tmp_path: Path) -> None:
    """The project is written all the same, and the exit code says that it isn't valid yet."""
    sql = "select * from {{ ref('stg_orders') }} {% if execute %} where true {% endif %}\n"

    out, done = imported(tmp_path, {"models/late.sql": sql})

    assert done.exit_code == 1
    assert "Edit by hand what is left:" in done.output and "SR201 models/late.sql:1:" in done.output
    assert (out / "models" / "orders.sql").exists()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"dbt_project.yml": "name: [\n"}, "SR101 dbt_project.yml"),
        ({"dbt_project.yml": "name: x\nmodel-paths: ['../..']\n"}, "`model-paths` of dbt_project.yml leads out"),
        ({"models/schema.yml": "models: {\n"}, "SR101 models/schema.yml"),
    ],
)
def test_a_broken_project_is_refused_before_anything_is_written(
    tmp_path: Path, changed: dict[str, str], said: str
) -> None:
    out, done = imported(tmp_path, changed)

    assert done.exit_code == 2 and said in done.output, done.output
    assert not out.exists()


def test_links_and_folders_with_files_are_left_alone(tmp_path: Path) -> None:
    """A link may lead to any file of the machine."""
    source = dbt_project.write(tmp_path / "dbt")
    (tmp_path / "secret.sql").write_text("select 'secret' as word\n")
    (source / "models" / "linked.sql").symlink_to(tmp_path / "secret.sql")
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("mine")

    refused = run("import-dbt", source, "--write", out)
    assert refused.exit_code == 2 and "isn't empty. Nothing was written" in refused.output
    assert [file.name for file in out.iterdir()] == ["mine.txt"]

    assert run("import-dbt", source, "--write", tmp_path / "other").exit_code == 0
    assert not (tmp_path / "other" / "models" / "linked.sql").exists()
    assert run("import-dbt", tmp_path).exit_code == 2


def test_a_dbt_project_is_recognized(tmp_path: Path) -> None:
    """Any command says what to type."""
    done = run("--project-dir", dbt_project.write(tmp_path / "dbt"), "build")

    assert done.exit_code == 2 and "This is a dbt project. Convert it: sqlrun import-dbt . --write" in done.output


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("models/a.yml", "models: [a]", "SR103 models/a.yml:1:10  an item of `models` must be a mapping"),
        ("models/a.yml", "models:\n  - name: a\n    columns: 3", "SR103 models/a.yml:3:14  `columns` must be a list"),
        ("models/a.yml", "models: [{name: a, columns: [{name: b, tests: 3}]}]", "`tests` must be a list"),
        ("models/a.yml", "models: [{name: a, config: 3}]", "`config` must be a mapping"),
        ("models/a.yml", "sources: [{name: a, tables: [b]}]", "an item of `tables` must be a mapping"),
        ("models/a.yml", "unit_tests: [a]", "an item of `unit_tests` must be a mapping"),
        ("models/a.yml", "- a", "SR103 models/a.yml:1:1  the file must be a mapping"),
        ("models/a.yml", "models: [", "SR101 models/a.yml"),
        ("dbt_project.yml", "models: 3", "SR103 dbt_project.yml:1:9  `models` must be a mapping"),
        ("dbt_project.yml", "vars: 3", "`vars` must be a mapping"),
        ("dbt_project.yml", "seed-paths: 3", "`seed-paths` must be a list"),
    ],
)
def test_a_form_that_dbt_does_not_have_is_an_error_with_its_place(
    tmp_path: Path, file: str, text: str, said: str
) -> None:
    out, done = imported(tmp_path, {file: text})
    assert done.exit_code == 2 and said in done.output and not out.exists()


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    source = dbt_project.write(tmp_path / "dbt")
    (source / "models" / "a.sql").write_bytes(b"select '\xff'")
    done = run("import-dbt", source)
    assert done.exit_code == 2 and "models/a.sql isn't UTF-8: byte 8 can't be read" in done.output


def test_a_variable_has_any_name(tmp_path: Path) -> None:
    out, _ = imported(tmp_path, {"dbt_project.yml": "name: shop\nvars: {'a \"b': 1, c: {'d e': 2}}"})
    assert '\n"a \\"b" = 1\n' in (out / "pyproject.toml").read_text()


def test_blocks_of_is_incremental_are_deleted_and_said_once(tmp_path: Path) -> None:
    """As where it is false: the query is the whole history, and its unique key is the grain."""
    sql = """{{
    config(
        materialized='incremental',
        unique_key='order_id',
        incremental_strategy='merge',
        tags=['late', "orders"]
    )
}}
select order_id, order_date{% if not is_incremental() %}, 1 as n{% endif %}
from {{ ref('stg_orders') }}
{% if is_incremental() %}
    {% if var('closed') %}where order_date > (select max(order_date) from {{ this }}){% endif %}
{% else %}
where order_id > 0
{% endif %}
"""

    out, done = imported(tmp_path, {"models/late.sql": sql})

    assert done.exit_code == 0, done.output
    assert done.output.count("models/late.sql: the blocks of is_incremental() were deleted") == 1
    for said in ("`unique_key` is `grain`: order_id", "`incremental_strategy` of config() was left out"):
        assert f"models/late.sql: {said}" in done.output
    (model,) = (one for one in pipeline.prepare(out).queries if one.name == "late")
    assert "this" not in model.rendered.sql and "where order_id > 0" in model.rendered.sql
    assert "1 as n" in model.rendered.sql
    assert model.rendered.config.materialized == "table" and model.rendered.config.tags == ("late", "orders")
    assert model.rendered.model.grain == ("order_id",)


TESTS = """
models:
  - name: orders
    data_tests:
      - no_more_than: {least: 1}
      - dbt_utils.expression_is_true:
          name: amounts_are_sums
          expression: "amount = credit_card_amount + coupon_amount"
          config: {severity: warn}
      - dbt_utils.equal_rowcount: {arguments: {compare_model: ref('stg_orders')}}
      - test_name: dbt_utils.unique_combination_of_columns
        combination_of_columns: [customer_id, status]
    columns:
      - name: status
        data_tests:
          - accepted_values: {values: [placed], config: {where: "order_id = 3"}}
          - accepted_values: {values: [placed], config: {severity: warn, warn_if: '>2'}, name: two_may_differ}
          - accepted_values: {values: [placed], config: {error_if: '>2', warn_if: '>=2'}, name: three_are_an_error}
          - not_null: {config: {enabled: false}}
      - name: order_id
        data_tests:
          - unique: {config: {severity: warn}}
          - dbt_expectations.expect_column_values_to_be_between: {min_value: 1, max_value: 2, row_condition: "true"}
seeds:
  - name: raw_customers
    columns:
      - {name: id, tests: [unique, not_null, {relationships: {to: ref('stg_orders'), field: customer_id}}]}
"""
GENERIC = """
{# {% test in_a_comment(model) %}{% endtest %} #}
{% test no_more_than(model, least) %}
    select * from {{ model }} where customer_id > {{ least }}
{% endtest %}
"""
TWO = """-- orders of customers that there are not
{{ config(severity = 'warn', store_failures = true) }}
select o.order_id from {{ ref('bakery', 'orders') }} as o
left join {{ ref('customers') }} as c on o.customer_id = c.customer_id
where c.number_of_orders > 1;
"""


@pytest.mark.long
def test_all_tests_run(tmp_path: Path) -> None:
    """Generic ones of the project and of packages, on columns, models and seeds; with conditions and limits."""
    schema = dbt_project.FILES["models/schema.yml"]
    plain = schema.partition("  - name: orders")[0]
    files = {
        "models/schema.yml": plain,
        "models/orders.yml": TESTS,
        "tests/generic/no_more_than.sql": GENERIC,
        "tests/frequent.sql": TWO,
    }

    out, done = imported(tmp_path, files)

    assert done.exit_code == 0, done.output
    assert "the test `orders__status__not_null` was left out, because it isn't enabled" in done.output
    built = run("--project-dir", out, "build")
    assert built.exit_code == 1
    # The numbers are those of wrong rows.
    shown = re.findall(r"(FAIL|WARN) (\d+) (\w+) (\w+) \.", built.output)
    assert sorted(shown) == [
        ("FAIL", "1", "orders__no_more_than", "orders"),
        ("FAIL", "1", "orders__order_id__expect_column_values_to_be_between", "orders"),
        ("FAIL", "1", "raw_customers__id__relationships", "raw_customers__id__relationships"),
        ("WARN", "2", "three_are_an_error__warn", "orders"),
    ]
    assert "PASS 7 checks of orders" in built.output

    for name in ("orders__no_more_than", "orders__order_id__expect_column_values_to_be_between"):
        (out / "expectations" / f"{name}.sql").unlink()
    (out / "expectations" / "tests" / "raw_customers__id__relationships.sql").unlink()
    built = run("--project-dir", out, "build")
    # A table of wrong rows comes after the tables that it compares.
    assert built.exit_code == 0 and "WARN 2 frequent frequent" in built.output
    assert "FAIL" not in built.output and "merge model orders__equal_rowcount" in built.output


PACKAGE = {
    "dbt_project.yml": "name: money\nmodels: {money: {+materialized: table}}\nvars: {money: {rate: 2}}\n",
    "macros/euros.sql": "{% macro euros(n) %}cast({{ n }} * {{ var('rate') }} as decimal(16, 2)){% endmacro %}\n"
    "{% test positive(model, column_name) %}select * from {{ model }} where {{ column_name }} <= 0{% endtest %}\n",
    "models/rates.sql": "select id, {{ euros('id') }} as rate from {{ ref('raw_orders') }}\n",
    "models/rates.yml": "models:\n  - name: rates\n    columns:\n      - {name: id, tests: [unique]}\n"
    "      - {name: rate, tests: [positive]}\n",
}


def test_a_local_package_is_a_part_of_the_project(tmp_path: Path) -> None:
    """Its models, macros, tests and vars, under the names that the project uses."""
    files = {
        **{f"packages/money/{name}": text for name, text in PACKAGE.items()},
        "packages.yml": "packages:\n  - local: packages/money\n",
        "dbt_project.yml": dbt_project.FILES["dbt_project.yml"].replace("vars:\n", "vars:\n  money: {rate: 3}\n"),
        "models/paid.sql": "select order_id, {{ money.euros('amount') }} as paid, r.rate\n"
        "from {{ ref('orders') }} join {{ ref('money', 'rates') }} as r on order_id = r.id\n",
        "models/paid.yml": "models:\n  - name: paid\n    columns: [{name: paid, data_tests: [money.positive]}]\n",
    }

    out, done = imported(tmp_path, files)

    assert done.exit_code == 0, done.output
    built = run("--project-dir", out, "build")
    assert built.exit_code == 0, built.output
    found = {
        row["order_id"]: row["rate"] for row in sqlrun.published("paid", str(out / "warehouse/duckdb")).to_pylist()
    }
    assert found == {1: 3, 2: 6, 3: 9}
    suites = {suite.model: [one.name for one in suite.expectations] for suite in pipeline.prepare(out).project.suites}
    assert suites["rates"] == ["rates__rate__positive"] and suites["paid"] == ["paid__paid__positive"]
    assert "rate = 3\n" in (out / "pyproject.toml").read_text()
    assert '[tool.sqlrun.models.money]\nmaterialized = "table"\n' in (out / "pyproject.toml").read_text()


@pytest.mark.parametrize(
    "node",
    ["{package: acme/money, version: 1.0.0}", "{git: 'https://x.example/acme/money.git', revision: main}"],
)
def test_a_package_that_dbt_installed_is_read_like_a_local_one(tmp_path: Path, node: str) -> None:
    """One that it needs in turn is beside it, as `dbt deps` puts it."""
    inner = {"dbt_project.yml": "name: inner\n", "macros/inner.sql": "{% macro twice(x) %}2 * {{ x }}{% endmacro %}\n"}
    files = {
        **{f"dbt_packages/money/{name}": text for name, text in PACKAGE.items()},
        "dbt_packages/money/packages.yml": "packages: [{git: 'https://x.example/inner', revision: main}]\n",
        **{f"dbt_packages/inner/{name}": text for name, text in inner.items()},
        "packages.yml": f"packages: [{node}]\n",
        "models/doubled.sql": "select {{ inner.twice('order_id') }} as n from {{ ref('stg_orders') }}\n",
    }
    done = run("import-dbt", dbt_project.write(tmp_path / "dbt", files), "--write", str(tmp_path / "out"))

    assert done.exit_code == 0, done.output
    assert "from git alone" not in done.output
    assert (tmp_path / "out/macros/twice.sql").exists()
    assert (tmp_path / "out/models/money").is_dir()


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"packages.yml": "packages:\n  - local: ../../elsewhere\n"}, "is neither in the project nor beside it"),
        (
            {"packages.yml": "packages:\n  - {git: 'https://x.example/acme/odd-macros.git', revision: main}\n"},
            "packages.yml:2: https://x.example/acme/odd-macros.git isn't in dbt_packages/ at main. Run `sqlrun deps /",
        ),
        ({"packages.yml": "packages:\n  - local: packages/none\n"}, "the package packages/none has no dbt_project.yml"),
        ({"packages.yml": "packages: 3\n"}, "`packages` of the file must be a list"),
        (
            {"packages/p/dbt_project.yml": "name: ../../p\n", "packages.yml": "packages: [{local: packages/p}]\n"},
            "the package packages/p has the invalid name '../../p'",
        ),
        ({"pyproject.toml": "[tool.sqlrun]\nname = 'a'\n"}, "is a project of sqlrun already"),
        (
            {
                "packages/p/dbt_project.yml": "model-paths: [../..]\n",
                "packages.yml": "packages: [{local: packages/p}]\n",
            },
            "leads out of the project",
        ),
    ],
)
def test_a_package_or_a_project_that_cannot_be_read_is_a_clear_end(
    tmp_path: Path, files: dict[str, str], said: str
) -> None:
    source, out = dbt_project.write(tmp_path / "shop" / "dbt"), tmp_path / "out"
    broken.write(source, {"pyproject.toml": "", **files})
    done = run("import-dbt", source, "--write", out)

    assert done.exit_code == 2 and said in done.output, done.output
    assert not out.exists()


@pytest.mark.parametrize(
    "macro",
    [
        "{% include '/etc/passwd' %}",
        "{{ modules.os.environ }}",
        "{{ load_file('/etc/passwd') }}",
        "{% import '/etc/passwd' as p %}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    ],
)
def test_a_package_that_reads_files_is_refused_by_the_sandbox(tmp_path: Path, macro: str) -> None:
    """The project is written, its place is named, and nothing was read."""
    files = {
        "packages/p/dbt_project.yml": "name: p\n",
        "packages/p/macros/m.sql": "{% macro m() %}" + macro + "{% endmacro %}\n",
        "packages.yml": "packages: [{local: packages/p}]\n",
        "models/a.sql": "select '{{ p.m() }}' as x\n",
    }

    _, done = imported(tmp_path, files)

    assert done.exit_code == 1 and "SR201 macros/m.sql:1:" in done.output, done.output
    assert "root:" not in done.output


def test_nothing_is_left_behind_by_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A project that was written in part would look like one that is converted."""
    source = dbt_project.write(tmp_path / "dbt")
    put, written = atomic_files.put, []

    def fail(file: Path, data: bytes, *, synced: bool) -> None:
        written.append(file)
        if len(written) == 5:
            raise OSError("the disk is full")
        put(file, data, synced=synced)

    monkeypatch.setattr(atomic_files, "put", fail)
    done = run("import-dbt", source, "--write", tmp_path / "out")

    assert done.exit_code != 0 and len(written) == 5
    assert sorted(file.name for file in tmp_path.iterdir()) == ["dbt"]


def test_profiles_that_cannot_be_read_are_left_out(tmp_path: Path) -> None:
    _, done = imported(tmp_path, {"profiles.yml": "bakery: {{ env_var('X') }}: [\n"})

    assert done.exit_code == 0 and "profiles.yml: it can't be read, and was left out" in done.output


def test_a_target_that_templates_read_is_a_setting(tmp_path: Path) -> None:
    """Of production, if the profile has it; the same in all environments."""
    profiles = (
        "bakery:\n  target: dev\n  outputs:\n    dev: {type: duckdb, schema: d}\n    prod: {type: duckdb, schema: p}\n"
    )
    files = {
        "profiles.yml": profiles,
        "models/a.sql": "select '{{ target.name }}' as name, '{{ target.schema }}' as room, '{{ target.type }}' as x",
    }

    out, done = imported(tmp_path, files)

    assert done.exit_code == 0, done.output
    assert "[tool.sqlrun.target] has the values of the output `prod`, for all environments" in done.output
    (query,) = (one for one in pipeline.prepare(out).queries if one.name == "a")
    assert query.rendered.sql == "select 'prod' as name, 'p' as room, 'spark' as x"


def test_exposures_and_fixtures_are_taken(tmp_path: Path) -> None:
    """An exposure's refs are written as sqlrun reads them; a fixture of a unit test is a file of its own."""
    text = """
exposures:
  - name: weekly_sales
    label: Weekly sales
    type: dashboard
    maturity: high
    url: https://x.example/sales
    description: '{{ doc("order_status") }}'
    depends_on:
      - ref('bakery', 'orders')
      - ref('customers')
    owner: {name: Sales, email: sales@x.example}
unit_tests:
  - name: two_names
    model: stg_customers
    overrides: {macros: {is_incremental: false}}
    given:
      - {input: ref('raw_customers'), format: csv, fixture: two_customers}
    expect: {rows: [{customer_id: 1, first_name: A}, {customer_id: 2, first_name: B}]}
"""
    files = {"models/more.yml": text, "tests/fixtures/two_customers.csv": "id,first_name,last_name\n1,A,X\n2,B,Y\n"}

    out, done = imported(tmp_path, files)

    assert done.exit_code == 0, done.output
    (exposure,) = pipeline.prepare(out).project.exposures
    assert exposure.depends_on == ("orders", "customers")
    assert exposure.description == "One of `placed`, `completed` and `returned`."
    assert run("--project-dir", out, "test", "--select", "stg_customers").exit_code == 0


def test_words_for_tools_and_models_that_are_not_enabled_are_kept(tmp_path: Path) -> None:
    """With their files, so that they can be enabled again; their tests are left out."""
    settings = dbt_project.FILES["dbt_project.yml"] + "    old:\n      +enabled: false\n      +meta: {owner: x}\n"
    text = """
models:
  - name: off
    config: {enabled: false, group: sales}
    columns:
      - {name: order_id, meta: {pk: true}, tests: [unique, relationships: {to: ref('orders'), field: order_id}]}
  - name: older
    access: private
    columns: [{name: order_id, tests: [dbt_utils.not_constant]}]
"""
    files = {
        "dbt_project.yml": settings,
        "models/off.sql": "select order_id from {{ ref('orders') }}\n",
        "models/old/older.sql": "select order_id from {{ ref('orders') }}\n",
        "models/off.yml": text,
    }

    out, done = imported(tmp_path, files)

    assert done.exit_code == 0, done.output
    assert "models/off.yml: older.order_id: the test was left out: older isn't enabled" in done.output
    project = pipeline.prepare(out).project
    assert project.disabled == ("off", "older")
    assert 'enabled = false\nmeta = {owner = "x"}\n' in (out / "pyproject.toml").read_text()
    assert "access: private" in (out / "models" / "off.yml").read_text()


def test_what_yaml_files_only_document_needs_no_edit(tmp_path: Path) -> None:
    """dbt compares neither columns nor types with a query, unless a contract is enforced."""
    schema = dbt_project.FILES["models/schema.yml"].replace(
        "      - name: customer_id\n        description: Primary key\n",
        "      - {name: total_order_amount, description: There is none}\n"
        "      - name: customer_id\n        data_type: varchar\n        description: Primary key\n",
    )
    files = {
        "models/schema.yml": schema,
        "models/typed.sql": "select {{ 'nullif(null, null)' }} as nothing, order_id from {{ ref('orders') }}\n",
        "models/typed.yml": "models:\n  - name: typed\n    columns: [{name: nothing, data_type: text}]\n",
        "models/fixed.sql": "{{ config(contract={'enforced': true}) }}\nselect order_id from {{ ref('orders') }}\n",
        "models/fixed.yml": "models:\n  - name: fixed\n    columns: [{name: order_id, data_type: integer}]\n",
    }

    out, done = imported(tmp_path, files)

    assert done.exit_code == 0, done.output
    assert "models/customers.sql: the column total_order_amount was left out of its contract" in done.output
    found = {model.name: model for model in pipeline.prepare(out).project.models}
    assert next((column.name, column.type) for column in found["customers"].columns) == ("customer_id", "bigint")
    assert "data_type: string" in (out / "models" / "typed.yml").read_text()
    assert "data_type" not in (out / "models" / "schema.yml").read_text()
    assert found["fixed"].config.enforced or "enforced" in (out / "models" / "fixed.sql").read_text()


def test_the_report_lists_what_is_left_to_edit(tmp_path: Path) -> None:
    """Also without a folder to write to."""
    source = dbt_project.write(tmp_path / "dbt", {"models/late.sql": "select * from {{ ref('nothing') }}\n"})
    before = sorted(tmp_path.rglob("*"))
    done = run("import-dbt", source)

    assert done.exit_code == 0 and "Left to edit by hand:" in done.output and "SR202 models/late.sql:1" in done.output
    assert sorted(tmp_path.rglob("*")) == before


def test_tests_of_sources_and_seeds_are_run_or_named(tmp_path: Path) -> None:
    text = """
sources:
  - name: shop
    freshness: {warn_after: {count: 1, period: day}}
    tables:
      - name: raw_orders
        columns: [{name: status, tests: [{accepted_values: {values: [placed]}}]}]
      - name: elsewhere
        columns: [{name: id, tests: [unique]}]
seeds:
  - name: raw_orders
    meta: {from: till}
    docs: {show: false}
    config: {quote_columns: true}
    columns: [{name: id, meta: {pk: true}, data_tests: [not_null, unique]}]
"""

    out, done = imported(tmp_path, {"models/more.yml": text})

    assert done.exit_code == 0, done.output
    for said in (
        "source shop.elsewhere: its tests were left out. Put them on the model that reads it",
        "source shop.raw_orders: `freshness` was left out",
        "seeds/raw_orders.csv: `docs` was left out",
        "seeds/raw_orders.csv: `config.quote_columns` was left out",
    ):
        assert said in done.output
    prepared = pipeline.prepare(out)
    assert "raw_orders__status__accepted_values" in prepared.names
    (seed,) = (one for one in prepared.project.seeds if one.name == "raw_orders")
    assert seed.grain == ("id",) and not seed.columns[0].nullable
    assert (seed.meta, seed.columns[0].meta) == ('{"from": "till"}', '{"pk": true}')


def test_the_projects_own_macro_comes_before_a_packages(tmp_path: Path) -> None:
    files = {
        "packages/p/dbt_project.yml": "name: p\n",
        "packages/p/macros/m.sql": "{% macro cents_to_euros(n) %}0{% endmacro %}\n",
        "packages.yml": "packages: [{local: packages/p}]\n",
    }

    out, done = imported(tmp_path, files)

    assert done.exit_code == 0, done.output
    assert "macros/m.sql: `cents_to_euros` was left out: another macro has this name" in done.output
    assert "100.0" in (out / "macros" / "cents_to_euros.sql").read_text()
