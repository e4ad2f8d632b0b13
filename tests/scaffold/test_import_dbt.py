"""`sqlrun import-dbt`: a dbt project builds without an edit, or the report says what is left."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import sqlrun
from sqlrun import pipeline
from sqlrun.cli.main import main
from tests.support import dbt_project

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
        "models/schema.yml: customers: `meta` was left out",
        "`generate_schema_name` was left out",
        "models/staging/stg_orders.sql: stored as a table, because its tests read stored rows",
        "Nothing was written. Write the project with --write FOLDER.",
    ):
        assert said in done.output
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("packages.yml", "packages: []\n", "packages.yml: packages have no equal"),
        ("models/a.py", "def model(dbt, session): ...\n", "models/a.py: Python models have no equal"),
        ("snapshots/a.sql", "{% snapshot a %}{% endsnapshot %}\n", "snapshots/a.sql: declare the snapshot in YAML"),
        ("macros/t.sql", "{% test odd(model) %}{% endtest %}\n", "macros/t.sql: generic tests have no equal"),
        (
            "tests/two.sql",
            "select 1 as n from {{ ref('orders') }} join {{ ref('customers') }} using (customer_id)\n",
            "tests/two.sql: a SQL check reads one model",
        ),
        (
            "models/more.yml",
            "models:\n  - name: orders_again\n    tests: [dbt_utils.equal_rowcount]\n",
            "models/more.yml: orders_again: the test `dbt_utils.equal_rowcount` of the model has no equal",
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


def test_a_second_unique_column_is_reported(tmp_path: Path) -> None:
    """A table has one grain."""
    text = (
        "models:\n  - name: stg_payments\n    columns:\n      - {name: payment_id, tests: [unique]}\n"
        "      - {name: order_id, tests: [unique]}\n"
    )
    schema = dbt_project.FILES["models/staging/schema.yml"].partition("  - name: stg_payments")[0]

    out, done = imported(tmp_path, {"models/staging/schema.yml": schema, "models/staging/payments.yml": text})

    assert done.exit_code == 0, done.output
    assert "stg_payments.order_id: a second `unique` was left out; `payment_id` is the grain" in done.output
    assert "tests" not in str((out / "models" / "staging" / "payments.yml").read_text().partition("order_id")[2])


def test_what_is_left_to_edit_is_listed_with_places(tmp_path: Path) -> None:
    """The project is written all the same, and the exit code says that it isn't valid yet."""
    sql = "select * from {{ ref('stg_orders') }} {% if is_incremental() %} where true {% endif %}\n"

    out, done = imported(tmp_path, {"models/late.sql": sql})

    assert done.exit_code == 1
    assert "Edit by hand what is left:" in done.output and "SR206 models/late.sql:1:" in done.output
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
