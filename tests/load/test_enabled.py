"""A model that isn't enabled is no part of the project, wherever that is said; words for tools change no result."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from sqlrun import pipeline, project_files
from sqlrun.cli.main import main
from sqlrun.errors import ProjectError
from sqlrun.runtime.disk_cache import Cache
from tests.support import broken

SQL = {"models/a.sql": "select 1 as n\n", "models/later/b.sql": "select n from {{ ref('a') }}\n"}
OFF = {
    "config()": {"models/later/b.sql": "{{ config(enabled=false) }} select n from {{ ref('a') }}\n"},
    "a var": {"models/later/b.sql": "{{ config(enabled=var('with_b', false)) }} select n from {{ ref('nothing') }}\n"},
    "the contract": {"models/later/b.yml": "models:\n  - {name: b, config: {enabled: false}}\n"},
    "the folder": {"pyproject.toml": '[tool.sqlrun]\nname = "x"\n[tool.sqlrun.models.later]\nenabled = false\n'},
}


@pytest.mark.parametrize("place", OFF)
def test_a_model_that_is_not_enabled_is_not_there(tmp_path: Path, place: str) -> None:
    """Nor are its expectations, SQL checks and unit tests; the cache knows it, too."""
    tests = "unit_tests:\n  - name: t\n    model: b\n    given: []\n    expect: {rows: [{n: 1}]}\n"
    files = {
        **SQL,
        **OFF[place],
        "expectations/later/b.yml": "expectations:\n  - {type: expect_column_to_exist, kwargs: {column: n}}\n",
        "expectations/one.sql": "select * from {{ ref('b') }} where n > 1\n",
        "models/tests.yml": tests,
    }
    root = broken.write(tmp_path, files)

    for _ in range(2):
        prepared = pipeline.prepare(root, Cache.of(root))
        assert prepared.names == ("a",) and prepared.project.disabled == ("b",)
        assert prepared.project.unit_tests == () and prepared.project.suites == ()


def test_config_comes_last(tmp_path: Path) -> None:
    """As in dbt: the query enables what its folder disables."""
    sql = {"models/later/b.sql": "{{ config(enabled=true) }} select n from {{ ref('a') }}\n"}
    root = broken.write(tmp_path, {**SQL, **OFF["the folder"], **sql})

    assert pipeline.prepare(root).names == ("a", "b")


def test_a_ref_to_it_is_an_error(tmp_path: Path) -> None:
    root = broken.write(tmp_path, {**SQL, "models/a.sql": "{{ config(enabled=false) }} select 1 as n\n"})

    with pytest.raises(ProjectError) as caught:
        pipeline.prepare(root)
    assert "SR202 models/later/b.sql:1:23  the model `a` isn't enabled" in str(caught.value)


def test_one_of_two_models_of_a_name_may_be_enabled(tmp_path: Path) -> None:
    """A folder of variants has one that counts."""
    off = {"models/later/a.sql": "{{ config(enabled=false) }} select 2 as n\n", "models/later/b.sql": "select 3 as n\n"}
    found = project_files.project(broken.write(tmp_path, {**SQL, **off}))

    assert {model.file for model in found.models} == {"models/a.sql", "models/later/b.sql"}
    assert found.disabled == ()


def test_words_of_folders_contracts_and_queries_add_up(tmp_path: Path) -> None:
    """`meta` by its keys; of any other word, the last one counts. None of them makes another table."""
    settings = '[tool.sqlrun]\nname = "x"\n[tool.sqlrun.models.later]\nmeta = {team = "a", tier = 1}\ngroup = "all"\n'
    root = broken.write(tmp_path, {**SQL, "pyproject.toml": settings})
    before = pipeline.prepare(root).workspace.prints
    sql = "{{ config(meta={'team': 'c'}, alias='bee', access='private') }} select n from {{ ref('a') }}\n"
    contract = (
        "models:\n  - name: b\n    meta: {cost: 1.5, since: 2026-01-01}\n    group: sales\n    docs: {show: false}\n"
    )
    files = {
        "models/later/b.sql": sql,
        "models/later/b.yml": contract,
        "profiles/local.yml": "engine: duckdb\nwarehouse: w\n",
    }
    broken.write(root, {"pyproject.toml": settings, **files})

    prepared = pipeline.prepare(root)

    config = prepared.queries[1].rendered.config
    assert json.loads(config.meta) == {"team": "c", "tier": 1, "cost": 1.5, "since": "2026-01-01"}
    assert (config.group, config.access, config.alias, config.docs) == ("sales", "private", "bee", '{"show": false}')
    assert prepared.workspace.prints == before
    shown = CliRunner().invoke(main, ["--project-dir", str(root), "explain", "b"]).output
    assert "group      sales" in shown and "alias      bee" in shown and '"team": "c"' in shown
    about = json.loads(CliRunner().invoke(main, ["--project-dir", str(root), "explain", "b", "--json"]).output)
    assert about["meta"]["tier"] == 1 and about["access"] == "private"


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"models/a.yml": "models:\n  - {name: a, meta: [1]}\n"}, "SR103 models/a.yml:2:21  `meta` must be a mapping"),
        ({"models/a.sql": "{{ config(meta='x') }} select 1 as n"}, "config `meta` must be a mapping"),
        ({"models/a.sql": "{{ config(enabled='yes') }} select 1 as n"}, "invalid config `enabled`: `yes`"),
        ({"models/a.sql": "{{ config(access='open') }} select 1 as n"}, "Choose one of: protected, private, public"),
    ],
)
def test_another_form_is_an_error(tmp_path: Path, files: dict[str, str], said: str) -> None:
    with pytest.raises(ProjectError) as caught:
        pipeline.prepare(broken.write(tmp_path, {**SQL, **files}))
    assert said in str(caught.value)
