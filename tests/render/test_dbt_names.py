"""dbt's names in templates: what works gives the same text in every environment, and all else is an error."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sqlrun import pipeline
from sqlrun.errors import ProjectError
from sqlrun.load import built_in_macros
from sqlrun.project import Macro, Model, Project
from sqlrun.render import render
from tests.support import broken


def project(*macros: str, adapter: str = "spark", target: dict[str, object] | None = None, **values: object) -> Project:
    """Return a project of one model with macros by their texts."""
    made = tuple(Macro(text.split("macro ")[1].split("(")[0], f"macros/{n}.sql", text) for n, text in enumerate(macros))
    model = Model.of_text("orders", "models/orders.sql", "select 1")
    found = Project("/p", "shop", "local", values, (model,), (), (), made, (), adapter_type=adapter)
    return replace(found, built_in=built_in_macros.beside(made), target=target or {})


def text(template: str, *macros: str, **more: object) -> str:
    return render.check(project(*macros, **more), Model.of_text("m", "m.sql", template))[0].sql  # type: ignore[arg-type]


def refused(template: str, *macros: str, **more: object) -> str:
    with pytest.raises(ProjectError) as caught:
        text(template, *macros, **more)
    return str(caught.value)


def test_return_is_the_value_of_a_macro() -> None:
    """Of any type, of one call alone, and without the rest of the macro's text."""
    listed = (
        "{% macro listed(n) %}text{% if n == 0 %}{{ return([]) }}{% endif %}"
        "{{ return(listed(n - 1) + [n]) }}{% endmacro %}"
    )

    assert text("{% for n in listed(3) %}{{ n }};{% endfor %}", listed) == "1;2;3;"
    assert text("{{ empty() is none }}", "{% macro empty() %}{{ return() }}{% endmacro %}") == "True"
    assert "return() is outside of a macro" in refused("{{ return(1) }}")


def test_what_dbt_logs_is_no_text() -> None:
    assert text("{{ log('a', info=true) }}{{ print('b') }}{% do exceptions.warn('c') %}{% do log('d') %}1") == "1"


def test_a_macros_own_error_is_reported_where_it_is_called() -> None:
    found = refused(
        "a\n{{ strict(1) }}", "{% macro strict(x) %}{{ exceptions.raise_compiler_error('no ' ~ x) }}{% endmacro %}"
    )

    assert "SR201" in found and "no 1" in found and "Called from m.sql:2" in found


@pytest.mark.parametrize(("adapter", "expected"), [("spark", "of spark"), ("databricks", "of databricks")])
def test_dispatch_finds_the_macro_of_the_adapter(adapter: str, expected: str) -> None:
    macros = [
        "{% macro money() %}{{ return(adapter.dispatch('money')()) }}{% endmacro %}",
        "{% macro default__money() %}of all{% endmacro %}",
        "{% macro spark__money() %}of spark{% endmacro %}",
        "{% macro databricks__money() %}of databricks{% endmacro %}",
        "{% macro duckdb__money() %}of duckdb{% endmacro %}",
    ]

    assert text("{{ money() }}", *macros, adapter=adapter) == expected
    assert text("{{ money() }}", *macros[:2], macros[-1], adapter=adapter) == "of all"
    assert "there is no macro `spark__money` or `default__money`" in refused("{{ money() }}", macros[0], macros[-1])


def test_dispatch_finds_a_macro_of_a_package_unless_the_project_has_its_own() -> None:
    call = "{{ adapter.dispatch('safe_divide', 'dbt_utils')('a', 'b') }}"

    assert text(call) == "(a) / nullif((b), 0)"
    assert text(call, "{% macro default__safe_divide(a, b) %}mine{% endmacro %}") == "mine"


def test_the_target_is_the_same_for_all() -> None:
    assert text("{{ target.type }} {{ target.get('name', 'x') }}", adapter="databricks") == "databricks x"
    assert text("{{ target.name }}", target={"name": "prod"}) == "prod"
    assert "[tool.sqlrun.target] name" in refused("{{ target.name }}")


def test_a_list_grows_in_one_model_alone() -> None:
    """Neither a var nor what a macro's file sets carries a change to the next model."""
    remembered = "{% set seen = [] %}{% macro remembered(x) %}{% do seen.append(x) %}{{ seen | length }}{% endmacro %}"
    counted = "{% set ns = namespace(n=0) %}{% macro counted() %}{% set ns.n = ns.n + 1 %}{{ ns.n }}{% endmacro %}"
    sql = (
        "select {{ remembered('a') }}{{ remembered('b') }}{{ counted() }}"
        "{% do var('days').append(3) %}{{ var('days') | length }}"
    )
    models = tuple(Model.of_text(name, f"models/{name}.sql", sql) for name in ("a", "b", "c"))
    made = replace(project(days=[1]), models=models)
    made = replace(
        made, macros=(Macro("remembered", "macros/r.sql", remembered), Macro("counted", "macros/c.sql", counted))
    )

    assert [one.sql for one in render.project(made)] == ["select 1211"] * 3
    assert made.vars == {"days": [1]}


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("{{ dbt_utils.get_column_values(ref('orders'), 'a') }}", "Write the values as a list"),
        ("{{ dbt_utils.union_relations([ref('orders')]) }}", "UNION ALL"),
        ("{{ dbt_utils.sttar(ref('orders')) }}", "Did you mean `star`?"),
        ("{{ dbt_utils.star(ref('orders'), prefix='o_') }}", "list them, each with its alias"),
        ("{{ dbt.any_value('a') }}", "depends on the order in which rows are read"),
        ("{{ dbt.listagg('a', \"','\", 'order by b') }}", "order by a"),
        ("{{ dbt.datediff('a', 'b', 'fortnight') }}", "`fortnight`"),
        ("{{ dbt_date.get_base_dates() }}", "n_dateparts"),
        ("{{ adapter.get_columns_in_relation(ref('orders')) }}", "compiling a project runs no SQL"),
        ("{{ adapter.truncate_relation(ref('orders')) }}", "Only adapter.dispatch() and adapter.quote()"),
        ("{% set found = run_query('select 1') %}", "compiling a project runs no SQL"),
        ("{% call statement('x') %}select 1{% endcall %}", "compiling a project runs no SQL"),
        ("{% if execute %}{% endif %}", "compiling a project runs no SQL"),
        ("{% if not execute %}{% endif %}", "compiling a project runs no SQL"),
        ("{% for node in graph.nodes.values() %}{% endfor %}", "a template sees no project"),
        ("{{ run_started_at.strftime('%Y') }}", "current_timestamp()"),
        ("{{ ref('other', 'orders') }}", "`other` in ref() is another package"),
        ("{{ env_var('HOME') }}", 'env_vars = ["HOME"]'),
    ],
)
def test_what_asks_a_database_or_a_run_is_an_error(call: str, said: str) -> None:
    assert said in refused(call)


def test_ref_takes_the_projects_own_name() -> None:
    assert text("{{ ref('shop', 'orders') }}") == "`ref`.`orders`"


def test_declared_variables_are_a_part_of_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another value is another table; a variable that isn't declared stays unread."""
    files = {
        "pyproject.toml": '[tool.sqlrun]\nname = "shop"\nenv_vars = ["FIRST_DAY", "LIMIT"]\n',
        "models/m.sql": "select '{{ env_var('FIRST_DAY') }}' as day, {{ env_var('LIMIT', '7') }} as n\n",
    }
    root = broken.write(tmp_path, files)
    monkeypatch.setenv("FIRST_DAY", "2026-01-01")

    def made() -> tuple[str, str]:
        prepared = pipeline.prepare(root)
        return prepared.queries[0].rendered.sql, prepared.workspace.prints["m"]

    first = made()
    assert first[0] == "select '2026-01-01' as day, 7 as n\n"
    monkeypatch.setenv("FIRST_DAY", "2026-02-01")
    second = made()
    assert second[0].startswith("select '2026-02-01'") and second[1] != first[1]
    monkeypatch.delenv("FIRST_DAY")
    with pytest.raises(ProjectError, match="the variable `FIRST_DAY` isn't set"):
        made()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("env_vars = [1]", "SR103 pyproject.toml:3:1  `env_vars` must be a list of names"),
        ('env_vars = ["DBT_ENV_SECRET_KEY"]', "`env_vars` can't have the secret `DBT_ENV_SECRET_KEY`"),
        ('target = {type = "duckdb"}', "`type` of `target` can't be set"),
        ("target = {name = [1]}", "`name` of `target` must be a text or a number"),
    ],
)
def test_a_setting_of_another_form_is_an_error(tmp_path: Path, settings: str, said: str) -> None:
    root = broken.write(tmp_path, {"pyproject.toml": f'[tool.sqlrun]\nname = "shop"\n{settings}\n'})

    with pytest.raises(ProjectError) as caught:
        pipeline.prepare(root)
    assert said in str(caught.value)
