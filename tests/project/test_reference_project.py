"""The reference project is complete: everything is described, tested, checked and used."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import jinja2
import pytest

from sqlrun.expectations.validate import problems
from sqlrun.parse import parse
from sqlrun.project import Macro, Model, Project, Suite
from sqlrun.render import render
from sqlrun.test_definitions.queries import Queries
from sqlrun.unit_tests.run import run as unit_tests
from tests.support import projects

ROOT = Path(__file__).parents[2]
PROJECT: Project = projects.project()
MODELS = {model.name: model for model in PROJECT.models}
LAYERS = {"staging": "stg_", "facts": "fct_", "marts": ""}
MEASURED = re.compile("^(tinyint|smallint|int|bigint|decimal|date|timestamp|array)")

each_model = pytest.mark.parametrize("model", PROJECT.models, ids=lambda model: model.name)
each_macro = pytest.mark.parametrize("macro", PROJECT.macros, ids=lambda macro: macro.name)
each_suite = pytest.mark.parametrize("suite", PROJECT.suites, ids=lambda suite: suite.model)


def layer(model: Model) -> str:
    return Path(model.file).parts[1]


def refs(sql: str) -> set[str]:
    return set(re.findall(r"ref\('(\w+)'\)", sql))


def is_landing(model: Model) -> bool:
    return "source(" in model.sql


@each_model
def test_a_models_name_has_its_layer(model: Model) -> None:
    assert model.name.startswith(LAYERS[layer(model)])


@each_model
def test_a_model_and_its_columns_are_described(model: Model) -> None:
    """Descriptions are sentences; counts and dates have a unit."""
    assert model.description.endswith(".")
    for column in model.columns:
        assert column.description.endswith("."), column.name
        assert "double" not in column.type and "float" not in column.type, column.name
        if MEASURED.match(column.type) and column.name != "items":
            assert column.unit, f"{column.name} has no unit"


@pytest.mark.parametrize("noun", [*PROJECT.sources, *PROJECT.seeds], ids=lambda noun: noun.name)
def test_sources_and_seeds_are_described(noun: object) -> None:
    assert noun.description.endswith(".")  # type: ignore[attr-defined]
    assert all(column.description for column in noun.columns)  # type: ignore[attr-defined]


@each_model
def test_a_model_declares_its_grain_and_its_worst_cost(model: Model) -> None:
    worst = {"staging": ("append", "merge"), "facts": ("merge",), "marts": ("merge", "keys")}[layer(model)]

    if model.config.materialized != "view":  # a view stores nothing that has either
        assert model.grain and model.config.at_worst in worst


def inputs(name: str) -> set[str]:
    """Return the inputs of a model as tests name them; () for a seed or a source."""
    sql = MODELS[name].sql if name in MODELS else ""
    sources = re.findall(r"source\('(\w+)', '(\w+)'\)", sql)
    return {f"ref('{ref}')" for ref in refs(sql)} | {f"source('{a}', '{b}')" for a, b in sources}


def is_fed(name: str, given: set[str]) -> bool:
    """Return whether an input has rows: given ones, or those that its model computes from given ones."""
    return name in given or any(is_fed(above, given) for above in inputs(name[5:-2]))


@each_model
def test_a_model_has_unit_tests_that_give_every_input(model: Model) -> None:
    """An input that a test forgets would silently be empty; a test of a CTE omits inputs that the CTE doesn't read."""
    assert model.unit_tests
    for test in model.unit_tests:
        given = {given.input for given in test.given}
        forgotten = {name for name in inputs(model.name) if not is_fed(name, given)}
        assert not forgotten or (test.cte and given), (test.name, forgotten)


@each_model
def test_a_model_is_tested_batch_by_batch(model: Model) -> None:
    assert any(test.steps for test in model.unit_tests)


@each_macro
def test_a_macro_has_unit_tests(macro: Macro) -> None:
    assert macro.unit_tests


def test_every_form_of_a_unit_test_has_an_example() -> None:
    """The project is the manual: each way of writing rows, and each way of testing a part of a model."""
    tests = PROJECT.unit_tests
    text = "".join(file.read_text() for file in (ROOT / "models").rglob("*.yml"))

    assert set(re.findall(r"format: (\w+)", text)) >= {"csv", "sql", "lines"}
    assert re.search(r"^ +fixture: \w+", text, re.MULTILINE)
    assert any(test.cte for test in tests)
    assert any(test.vars for test in tests)
    assert any(test.macros for test in tests)
    assert any(test.expect.quarantined for test in tests)


@pytest.mark.slow
def test_every_unit_test_holds() -> None:
    queries = {query.name: query for query in parse.project(render.project(PROJECT), PROJECT)}
    own = Queries(PROJECT, queries)
    tests = [(test, own.of(test)[test.model]) for test in PROJECT.unit_tests]

    bad = [result for result in unit_tests.run(PROJECT, queries, tests) if result.status != "pass"]

    assert not bad, "\n".join(map(str, bad))


def test_nothing_is_an_orphan() -> None:
    """Every seed and model has a reader, except the marts, which people read; every source is landed."""
    read = set().union(*(refs(model.sql) for model in PROJECT.models))
    # The trend chart reads its fact directly.
    for_people = {model.name for model in PROJECT.models if layer(model) == "marts"} | {"fct_restaurant_hours"}
    landed = "".join(model.sql for model in PROJECT.models if is_landing(model))

    assert read | for_people == {*MODELS, *(seed.name for seed in PROJECT.seeds)}
    assert all(f"source('{source.group}', '{source.name}')" in landed for source in PROJECT.sources)


@each_model
def test_layers_are_read_downwards(model: Model) -> None:
    seeds = {seed.name for seed in PROJECT.seeds}
    downwards = ("staging", "facts", "marts")
    allowed = set(downwards[: downwards.index(layer(model)) + 1])

    assert {layer(MODELS[name]) for name in refs(model.sql) - seeds} <= allowed
    assert not is_landing(model) or layer(model) == "staging"


@each_macro
def test_a_macro_is_used(macro: Macro) -> None:
    assert any(re.search(rf"\b{macro.name}\(", model.sql) for model in PROJECT.models)


@each_macro
def test_a_macros_comment_shows_a_call_and_its_output(macro: Macro) -> None:
    comment = re.match(r"\{#-(.*?)-#\}", macro.text, re.DOTALL)
    assert comment is not None
    call, _, output = comment[1].partition("\ngives\n")
    code = "\n".join(line for line in call.splitlines() if line.startswith("    "))
    module = jinja2.Environment(undefined=jinja2.StrictUndefined).from_string(macro.text).module

    made = jinja2.Environment().from_string(code).render({macro.name: getattr(module, macro.name)})

    assert textwrap.dedent(made).strip() == textwrap.dedent(output).strip()


def test_every_table_has_expectations() -> None:
    """A view has none: its rows are checked where they are stored."""
    tables = {model.name for model in PROJECT.models if model.config.materialized == "table"}

    assert {suite.model for suite in PROJECT.suites} == tables


@each_suite
def test_expectations_make_sense(suite: Suite) -> None:
    """Types, arguments and columns exist, and each has a description."""
    model = MODELS[suite.model]

    assert suite.expectations
    assert not problems(suite, model, lands=is_landing(model))
    assert all(expectation.description.endswith(".") for expectation in suite.expectations)
    for expectation in suite.expectations:
        stops = expectation.on_fail in ("fail", "quarantine")
        assert stops == (expectation.severity == "critical"), expectation.type


def test_the_windows_are_the_expected_ones() -> None:
    suite = next(suite for suite in PROJECT.suites if suite.model == "restaurant_windows")
    sets = [e.kwargs["value_set"] for e in suite.expectations if e.kwargs.get("column") == "window_hours"]

    assert sets == [PROJECT.vars["window_hours"]]


def test_the_map_names_every_model() -> None:
    text = (ROOT / "models" / "README.md").read_text(encoding="utf-8")

    assert [name for name in MODELS if name not in text] == []
