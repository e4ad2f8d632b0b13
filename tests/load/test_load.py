"""Reading a project's folder; its problems are in tests/cases/errors."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from sqlrun import project_files
from sqlrun.errors import Place, Problem, ProjectError
from sqlrun.load import built_in_macros, load, seeds
from sqlrun.load.yaml_reader import Reader, plain
from sqlrun.project import Column, Config
from sqlrun.render import render
from sqlrun.render.context import Calls, Known
from tests.support.broken import contract, models, write

SEED = "seeds:\n  - name: {0}\n    description: Rows.\n    columns:\n"


def codes(root: Path) -> list[str]:
    return [problem.code for problem in project_files.read(root).problems]


def test_settings_cascade_from_folder_to_contract(tmp_path):
    toml = """[tool.sqlrun]
name = "small"
profile = "duckdb"
vars = {hours = [1, 24]}

[tool.sqlrun.models]
tags = "all"

[tool.sqlrun.models.staging]
materialized = "view"
tags = ["raw"]

[tool.sqlrun.models.staging.orders]
at_worst = "merge"
"""
    files = models(
        {"staging/orders/a": "select 1", "staging/b": "select 1", "c": "select 1", "x/staging/d": "select 1"}
    )
    own = contract("a", extra="    config: {materialized: table, partition_by: id, tags: [own]}")
    project = project_files.project(
        write(tmp_path, {"pyproject.toml": toml, **files, "models/staging/orders/a.yml": own})
    )
    configs = {model.name: model.config for model in project.models}

    assert (project.name, project.profile, project.vars) == ("small", "duckdb", {"hours": [1, 24]})
    assert configs["a"] == Config("table", ("id",), "merge", ("all", "raw", "own"))
    assert configs["b"] == Config("view", (), "full", ("all", "raw"))
    # A folder's settings apply to that folder of models/, not to every folder of its name.
    assert configs["c"] == configs["d"] == Config("table", (), "full", ("all",))


def test_a_contract_in_dbts_words(tmp_path):
    text = """version: 2
models:
  - name: orders
    description: >
      One row
      an order.
    grain: [order_id]
    repeats: true
    columns:
      - name: order_id
        data_type: DECIMAL( 18 , 2 )
        description: Which.
        data_tests: [not_null, unique]
      - {name: a, data_type: int, description: A., constraints: [{type: not_null}], unit: cents, tags: [pii]}
      - {name: b, data_type: int, description: B., constraints: not_null}
      - {name: c, data_type: "array<struct<x: int, y: string>>", description: C., nulls: false}
      - {name: d, data_type: int, description: D.}
"""
    model = project_files.project(
        write(tmp_path, {**models({"orders": "select 1"}), "models/orders.yml": text})
    ).models[0]

    assert model.description == "One row\nan order.".replace("\n", " ")
    assert (model.grain, model.repeats, model.contract_file) == (("order_id",), True, "models/orders.yml")
    assert [column.nullable for column in model.columns] == [False, False, False, False, True]
    assert [column.type for column in model.columns[:4:3]] == ["decimal(18,2)", "array<struct<x:int,y:string>>"]
    assert model.columns[1] == Column("a", "int", "A.", Place("models/orders.yml", 14, 9), "cents", False, ("pii",))


@pytest.mark.parametrize(
    ("tests", "grain"),
    [
        ("[{name: a, tests: [unique, not_null]}, {name: b}]", ("a",)),
        ("[{name: a, constraints: [{type: primary_key}]}]", ("a",)),
        ("[{name: a, data_tests: [{unique: {name: once}}]}]", ("a",)),
        ("[{name: a, data_tests: unique}]", ("a",)),
        ("[{name: a, data_tests: [not_null]}]", ()),
        ("[{name: a, data_type: int, tests: [unique]}, {name: b, data_type: int}]", ("a",)),
    ],
)
def test_a_unique_column_is_the_grain(tmp_path, tests, grain):
    """dbt's projects say it of a column, under `tests` or `data_tests`."""
    text = f"models:\n  - name: orders\n    columns: {tests}\n"
    files = {**models({"orders": "select 1 as a, 2 as b"}), "models/orders.yml": text}

    assert project_files.project(write(tmp_path, files)).models[0].grain == grain


def test_a_unique_column_is_the_grain_of_a_seed(tmp_path):
    text = "seeds:\n  - {name: dishes, columns: [{name: a, data_type: int, data_tests: [unique, not_null]}]}\n"
    files = {"seeds/dishes.yml": text, "seeds/dishes.csv": "a\n1\n2\n"}

    assert project_files.project(write(tmp_path, files)).seeds[0].grain == ("a",)
    assert codes(write(tmp_path, {"seeds/dishes.csv": "a\n1\n1\n"})) == ["SR113"]


def test_two_unique_columns_are_no_grain(tmp_path):
    """Each of them alone would be one, and sqlrun checks one."""
    text = "models:\n  - name: orders\n    columns: [{name: a, tests: unique}, {name: b, tests: unique}]\n"
    files = {**models({"orders": "select 1 as a, 2 as b"}), "models/orders.yml": text}

    with pytest.raises(ProjectError) as caught:
        project_files.project(write(tmp_path, files))
    assert [problem.message for problem in caught.value.problems] == [
        "`unique` of column `a` isn't the only unique column", "`unique` of column `b` isn't the only unique column",
    ]  # fmt: skip


def test_a_unit_test_preserves_values_as_written(tmp_path):
    tests = """
unit_tests:
  - name: exact
    model: sums
    as_of: 2026-01-01 12:00:00
    overrides: {vars: {hours: [1]}}
    given:
      - input: source( "shop" ,'events')
        rows: [{id: 1.10, at: 2026-01-01, items: [{n: 12345678901234567890.12, ok: true}], none: null}]
      - {input: ref("sums"), rows: []}
    expect: {rows: [{id: 010}]}
"""
    source = """sources:
  - name: shop
    tables:
      - name: events
        path: landing
        columns:
"""
    source += "".join(
        f"          - {{name: {n}, data_type: '{kind}', description: d}}\n"
        for n, kind in (
            ("id", "string"),
            ("at", "string"),
            ("items", "array<struct<n:decimal(38,2),ok:boolean>>"),
            ("none", "string"),
        )
    )
    files = models({"sums": "select {{ var('hours', 1) }} as id"})
    files["models/sums.yml"] += tests
    project = project_files.project(write(tmp_path, {**files, "models/_sources.yml": source}))
    test = project.models[0].unit_tests[0]

    assert (test.as_of, test.vars, test.place) == (
        "2026-01-01 12:00:00",
        {"hours": [1]},
        Place("models/sums.yml", 8, 5),
    )
    assert [given.input for given in test.given] == ["source('shop', 'events')", "ref('sums')"]
    nested = [{"n": Decimal("12345678901234567890.12"), "ok": True}]
    assert test.given[0].rows == ({"id": Decimal("1.10"), "at": "2026-01-01", "items": nested, "none": None},)
    assert str(test.given[0].rows[0]["id"]) == "1.10"
    assert load.missing_sources(project)[0].code == "SR120"
    (tmp_path / "landing").mkdir()
    assert load.missing_sources(project) == ()


def test_a_suite_has_defaults(tmp_path):
    suite = """expectations:
  - {type: expect_a, kwargs: {column: id, mostly: 0.9, value_set: [1, 2]}}
  - {type: expect_b, severity: warning, description: Why.}
  - {type: expect_c, on_fail: quarantine}
"""
    found = project_files.project(
        write(tmp_path, {**models({"marts/a": "select 1"}), "expectations/marts/a.yml": suite})
    ).suites

    assert [(e.type, e.severity, e.on_fail) for e in found[0].expectations] == [
        ("expect_a", "critical", "fail"),
        ("expect_b", "warning", "warn"),
        ("expect_c", "critical", "quarantine"),
    ]
    assert found[0].expectations[0].kwargs == {"column": "id", "mostly": 0.9, "value_set": [1, 2]}


def rows(text: str, *columns: Column, grain: tuple[str, ...] = ()) -> tuple[seeds.Rows, list[Problem]]:
    problems: list[Problem] = []
    return seeds.rows("seeds/a.csv", text, columns, grain, problems), problems


def column(name: str, kind: str = "string", nullable: bool = True) -> Column:
    return Column(name, kind, "", Place("seeds/a.yml"), nullable=nullable)


def test_csv_fields_are_read_by_the_standard():
    text = 'a,b\n1,"x, ""y""\nz"\n,""\n\n3,é'
    found, problems = rows(text, column("a"), column("b"))

    assert (found, problems) == ((("1", 'x, "y"\nz'), (None, ""), ("3", "é")), [])


def test_a_wrong_field_after_a_quoted_line_break_has_its_place():
    _, problems = rows('a,b\n"x\ny",1\n"p, q",z\n', column("a"), column("b", "int"))

    assert [problem.place for problem in problems] == [Place("seeds/a.csv", 4, 8)]


@pytest.mark.parametrize(
    ("header", "place"),
    [("ID,Name", None), ("id,nam", 4), ("name,id", 1), ("id", 1), ("id,name,more", 9), ("ID,Nàme", 4)],
)
def test_the_header_of_a_seed_names_its_columns_in_any_case(header, place):
    _, problems = rows(f"{header}\n", column("id", "int"), column("name", "string"))

    assert [problem.place.column for problem in problems] == ([place] if place else [])


def test_a_hopeless_seed_is_reported_in_a_few_lines():
    _, problems = rows("a\n" + "x\n" * 5000, column("a", "int"))

    assert len(problems) == seeds.ENOUGH + 1
    assert problems[-1].message == "4,980 more problems in this file, from here on"


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("int", ["0", "-2147483648", "007"], ["2147483648", "1_0", " 1", "1.0", "٣", ""]),
        ("bigint", ["9223372036854775807"], ["9223372036854775808"]),
        ("decimal(4,2)", ["99.99", "-.5", "1.500", "0099"], ["100", "1.005", "NaN", "1e1", "Infinity"]),
        ("decimal", ["12"], ["1.5"]),
        ("double", ["1e5", "-.5"], ["nan", "inf", "1_0"]),
        ("boolean", ["true", "FALSE"], ["yes", "1"]),
        ("date", ["2024-02-29"], ["2026-02-29", "20260101", "2026-W01-1"]),
        (
            "timestamp",
            ["2026-01-01", "2026-01-01 12:00:00.123", "2026-01-01T12:00:00Z"],
            ["12:00", "2026-01-01 25:00:00"],
        ),
        ("string", ["", "x"], []),
    ],
)
def test_types_of_seeds_are_strict(kind, good, bad):
    assert [text for text in good if not seeds.fits(text, kind)] == []
    assert [text for text in bad if seeds.fits(text, kind)] == []


def test_a_spreadsheets_csv_is_read(tmp_path):
    columns = "      - {name: id, data_type: int, description: It.}\n"
    write(tmp_path, {"seeds/a.yml": SEED.format("a") + columns})
    (tmp_path / "seeds/a.csv").write_bytes(b"\xef\xbb\xbfid\r\n1\r\n2\r\n")

    assert project_files.project(tmp_path).seeds[0].rows == (("1",), ("2",))


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_line_end_in_quotes_is_preserved(tmp_path, end):
    """Regardless of the line ends of the file."""
    columns = "".join(f"      - {{name: {name}, data_type: string, description: It.}}\n" for name in "ab")
    write(tmp_path, {"seeds/a.yml": SEED.format("a") + columns})
    lines = ["a,b", '"x\ry","p\nq"', '"\r\n",z', '"\r",', ""]
    (tmp_path / "seeds/a.csv").write_bytes(end.join(lines).encode())

    assert project_files.project(tmp_path).seeds[0].rows == (("x\ry", "p\nq"), ("\r\n", "z"), ("\r", None))


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_of_a_csv_are_counted_by_any_line_end(end):
    _, problems = rows(f'a,b{end}"x{end}y",1{end}"p, q",z{end}', column("a"), column("b", "int"))

    assert [(problem.place, problem.excerpt) for problem in problems] == [(Place("seeds/a.csv", 4, 8), '"p, q",z')]


def test_a_hidden_file_is_not_a_model(tmp_path):
    files = models({".ipynb_checkpoints/a": "select 1", "a": "select 1"})

    assert [model.file for model in project_files.project(write(tmp_path, files)).models] == ["models/a.sql"]


def test_a_model_without_contract_is_known_to_refs(tmp_path):
    files = models({"a": "select 1", "b": "select * from {{ ref('a') }}"})
    del files["models/a.yml"]
    loaded = project_files.read(write(tmp_path, files))

    assert loaded.problems == ()
    assert render.attempt(loaded.project)[1] == ()


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("models/a.yml", "", "SR104"),
        ("models/a.yml", "models: []\n", "SR104"),
        ("models/a.yml", "- a\n", "SR103"),
        ("models/a.yml", "models:\n  - a\n", "SR103"),
        pytest.param("models/a.yml", "[" * 1200, "SR101", marks=pytest.mark.slow),
        ("models/a.yml", "a: &x [*x]\n", "SR101"),
        ("models/a.yml", "a: !!python/object:os.system x\n", "SR101"),
        ("models/a.yml", "a: 1\n---\nb: 2\n", "SR101"),
        ("models/a.yml", "a: \x07\n", "SR101"),
        ("models/a.yml", contract("a").replace("A row.", "!!int x"), ""),
        ("models/_sources.yml", "sources: {a: 1}\n", "SR103"),
        ("expectations/a.yml", "expectations:\n  - {type: a, kwargs: [1]}\n", "SR103"),
        ("expectations/a.yml", "", "SR104"),
        ("pyproject.toml", "[tool.sqlrun]\nname = 3\n", "SR103"),
        ("pyproject.toml", "[tool.sqlrun.models]\npartition_by = [1]\n", "SR103"),
        ("pyproject.toml", "[tool.sqlrun]\nmodels = {tag = 'x'}\n", "SR102"),
        ("pyproject.toml", "[tool]\nsqlrun = 3\n", "SR100"),
        ("seeds/a.csv", "", "SR106"),
    ],
)
def test_odd_files_are_problems_without_a_crash(tmp_path, name, text, code):
    root = write(tmp_path, {**models({"a": "select 1"}), name: text})
    try:
        found = codes(root)
    except ProjectError as error:
        found = [problem.code for problem in error.problems]

    assert code in found or found == []
    assert bool(found) == bool(code)


def test_numbers_of_yaml_are_exact():
    problems: list[Problem] = []
    text = "[10.00, -0.5, 1_000.50, 0x1F, 0o17, 010, -7, yes, True, ~, .inf, 2026-01-01 12:00:00]"
    values = plain(Reader("a.yml", text, problems).root)

    assert [str(value) for value in values[:7]] == ["10.00", "-0.5", "1000.50", "31", "15", "10", "-7"]
    assert values[7:] == ["yes", True, None, float("inf"), "2026-01-01 12:00:00"]
    assert problems == []


def test_anchors_and_merges_are_plain_values():
    root = Reader("a.yml", "a: &x {k: 1, l: 2}\nb: {<<: *x, l: 3}\nc: [*x]\n", []).root

    assert plain(root) == {"a": {"k": 1, "l": 2}, "b": {"l": 3, "k": 1}, "c": [{"k": 1, "l": 2}]}


def test_no_macro_may_hide_a_function_of_templates():
    packages = {macro.package for macro in built_in_macros.beside(())} - {""}
    names = {*Calls(Known((), (), {})).functions(), "namespace", "adapter", "target", "return", "exceptions", *packages}

    assert set(load.TEMPLATE_NAMES) == names


@pytest.mark.slow
def test_importing_load_stays_light():
    heavy = {"sqlglot", "jinja2", "ruamel.yaml", "duckdb", "pyspark"}
    code = f"import sys, sqlrun.load.load; print({heavy} & set(sys.modules))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert shown.stdout.strip() == "set()"
