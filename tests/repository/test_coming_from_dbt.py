"""docs/reference/dbt.md says of each word of dbt what the code does with it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sqlrun.cli import as_dbt
from sqlrun.cli.main import main
from sqlrun.errors import ProjectError, UsageError
from sqlrun.graph import selectors
from sqlrun.load import built_in_macros, contract
from sqlrun.pipeline import prepare
from tests.support.projects import ROOT, prepared

PAGE = (ROOT / "docs" / "reference" / "dbt.md").read_text()
STATUSES = {"same", "other", "ignored", "refused"}


def rows(section: str) -> dict[str, str]:
    """Return the status of each word of a section's table."""
    text = PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    found: dict[str, str] = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if len(cells) >= 2 and cells[0].startswith("`"):
            for word in re.findall(r"`([^`]+)`", cells[0]):
                assert word not in found, word
                found[word] = cells[1]
    assert found and set(found.values()) <= STATUSES, section
    return found


def is_refused(*words: str) -> bool:
    try:
        as_dbt.translated(words, {})
    except UsageError:
        return True
    return False


def test_commands() -> None:
    found = rows("Commands")
    known = {" ".join(name) for name in as_dbt.COMMANDS}

    # These ask people something, or show it to them: no program runs them for dbt.
    by_hand = {"init", "show", "docs serve"}
    assert {word for word in found if found[word] != "refused"} - by_hand == known
    assert {word.split()[0] for word in by_hand} <= set(main.commands)
    for word in found.keys() - by_hand:
        assert is_refused(*word.split()) == (found[word] == "refused"), word
    empty = {" ".join(name) for name, arguments in as_dbt.COMMANDS.items() if not arguments}
    assert empty == {word for word in found if found[word] == "ignored"}


def test_options() -> None:
    found = rows("Options")
    known = {*as_dbt.MANY, *as_dbt.ONE, *as_dbt.NOTHING, *as_dbt.FLAGS, "--no-defer"}

    assert {word for word, status in found.items() if status != "refused"} == known
    assert found.pop("--args") == "same"
    assert is_refused("build", "--args", "{}") and not is_refused("run-operation", "m", "--args", "{a: 1}")
    for word, status in found.items():
        values = {"--vars": ["{}"], "--threads": ["2"], "--sample": ["3 hours"]}.get(
            word, ["x"] if word in as_dbt.ONE else []
        )
        assert is_refused("build", word, *values) == (status == "refused"), word
        if status == "ignored":
            assert as_dbt.translated(["build", word, *values], {}) == as_dbt.translated(["build"], {}), word
        elif status == "same" and word not in ("--output", "--output-keys"):
            example = "json" if word == "--log-format" else "seed" if word.startswith("--resource-type") else "x"
            values = values if word == "--threads" else [example] if word in (*as_dbt.MANY, *as_dbt.ONE) else []
            assert as_dbt.translated(["build", word, *values], {}) != as_dbt.translated(["build"], {}), word
    assert {f"--no-{word[2:]}" for word in as_dbt.NOTHING if is_refused("build", f"--no-{word[2:]}")} == set()


def test_selectors() -> None:
    found = rows("Selectors")
    graph = prepared(ROOT).graph

    assert {word.rstrip(":") for word, status in found.items() if status == "same"} == set(selectors.METHODS)
    for word, status in found.items():
        if status == "refused":
            with pytest.raises(UsageError, match=f"unknown selector method `{word}`"):
                selectors.select(graph, (f"{word}x",))


@pytest.mark.parametrize(
    ("section", "known"),
    [
        ("Keys of models", contract.MODEL_KEYS),
        ("Keys of columns", contract.COLUMN_KEYS),
        ("Keys of `config`", contract.CONFIG_KEYS),
    ],
)
def test_keys(section: str, known: tuple[str, ...]) -> None:
    found = rows(section)
    of_columns = {"tests", "data_tests", "constraints"} if section == "Keys of models" else set()

    assert {word for word, status in found.items() if status != "refused"} - of_columns <= set(known)
    assert {word for word, status in found.items() if status == "refused"} & set(known) == set()
    assert of_columns <= set(contract.COLUMN_KEYS)


def test_macros_of_packages() -> None:
    """The page lists each macro that comes along, but for those that only other macros call."""
    text = PAGE.partition("\n## Macros of packages\n")[2].partition("|---|")[2]
    listed = set()
    for line in text.splitlines():
        package, *names = re.findall(r"`([^`]+)`", line) or [""]
        listed |= {(package, f"test_{name}" if "| tests |" in line else name) for name in names}
    inner = {"also", "only", "outside", "values_list"}

    assert listed == {(m.package, m.name) for m in built_in_macros.beside(()) if m.package and m.name not in inner}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "status"), rows("Names in Jinja").items())
def test_names_in_jinja(name: str, status: str, tmp_path: Path) -> None:
    calls = {
        "ref": "select * from {{ ref('raw') }}",
        "source": "select * from {{ source('shop', 'orders') }}",
        "config": "{{ config(tags=['a']) }} select * from {{ ref('raw') }}",
        "var": "select {{ var('days') }} as days from {{ ref('raw') }}",
        "log": "select id{{ log('a') }} from {{ ref('raw') }}",
        "print": "select id{{ print('a') }} from {{ ref('raw') }}",
        "return": "select {{ given('id') }} as id from {{ ref('raw') }}",
        "exceptions": "select id{{ exceptions.warn('a') }} from {{ ref('raw') }}",
        "adapter": "select {{ adapter.quote('id') }} from {{ ref('raw') }}",
        "target": "select id, '{{ target.type }}' as kind from {{ ref('raw') }}",
        "env_var": "select id, '{{ env_var('SHOP_OF_DBT', 'a') }}' as shop from {{ ref('raw') }}",
        "dbt": "select {{ dbt.cast('id', dbt.type_string()) }} as id from {{ ref('raw') }}",
        "dbt_utils": "select {{ dbt_utils.star(ref('raw')) }} from {{ ref('raw') }}",
        "dbt_date": "select id, {{ dbt_date.today() }} as day from {{ ref('raw') }}",
        "dbt_expectations": "{{ dbt_expectations.test_expect_column_values_to_be_null(ref('raw'), 'id') }}",
    }
    files = {
        "pyproject.toml": '[tool.sqlrun]\nname = "shop"\nenv_vars = ["SHOP_OF_DBT"]\n[tool.sqlrun.vars]\ndays = 7\n',
        "macros/given.sql": "{% macro given(name) %}{{ return(name) }}{% endmacro %}\n",
        "profiles/local.yml": "engine: duckdb\nwarehouse: warehouse\n",
        "seeds/raw.csv": "id\n1\n",
        "seeds/raw.yml": "seeds:\n  - {name: raw, grain: [id], columns: [{name: id, data_type: int}]}\n",
        "models/_sources.yml": "sources:\n  - name: shop\n    tables:\n      - name: orders\n        format: json\n"
        "        path: data\n        columns: [{name: id, data_type: string}]\n",
        "models/m.sql": calls.get(name, f"select '{{{{ {name} }}}}' as x, id from {{{{ ref('raw') }}}}"),
    }
    for file, text in files.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
    (tmp_path / "data").mkdir()

    if status == "refused":
        with pytest.raises(ProjectError):
            prepare(tmp_path)
    else:
        prepare(tmp_path)
