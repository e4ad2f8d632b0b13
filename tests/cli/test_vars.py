"""--vars: other values of vars for one command."""

from __future__ import annotations

from pathlib import Path

import pytest

import sqlrun
from sqlrun.cli import as_dbt
from tests.artifacts.test_artifacts import project, read, run


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    project(
        tmp_path,
        pyproject_toml='[tool.sqlrun]\nname = "shop"\n[tool.sqlrun.vars]\nleast = 2\nshops = ["a"]\n',
        models__large_sql="select id from {{ ref('raw') }} where id >= {{ var('least') }}",
    )
    return tmp_path


def ids(root: Path, *words: str) -> list[int]:
    env = words[1] if words else None
    rows = sqlrun.published("large", str(root / "warehouse"), env=env).to_pylist()
    return sorted(row["id"] for row in rows)


@pytest.mark.slow
def test_a_build_computes_another_query(shop: Path) -> None:
    assert run(shop, "build").exit_code == 0
    assert ids(shop) == [2]

    assert run(shop, "build", "--vars", "{least: 1}").exit_code == 0
    assert ids(shop) == [1, 2]
    assert run(shop, "verify", "--vars", '{"least": 1}').exit_code == 0
    assert "large" in run(shop, "plan").output

    assert run(shop, "build").exit_code == 0
    assert ids(shop) == [2]


def test_an_environment_has_other_values_beside_production(shop: Path) -> None:
    assert run(shop, "build").exit_code == 0
    assert run(shop, "build", "--env", "ci", "--vars", "{least: 1}").exit_code == 0

    assert ids(shop) == [2]
    assert ids(shop, "--env", "ci") == [1, 2]


def test_a_retry_has_the_same_values(shop: Path) -> None:
    (shop / "expectations").mkdir()
    suite = shop / "expectations/large.yml"
    suite.write_text(
        "expectations:\n  - type: expect_table_row_count_to_equal\n    kwargs: {value: 1}\n    severity: critical\n"
        "  - type: expect_column_values_to_not_be_null\n    kwargs: {column: id}\n"
    )
    assert run(shop, "build", "--vars", "{least: 1}").exit_code == 1
    assert read(shop, "run_results.json")["args"]["vars"] == "{least: 1}"
    suite.write_text(suite.read_text().replace("value: 1", "value: 2"))

    assert run(shop, "retry").exit_code == 0
    assert ids(shop) == [1, 2]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{leest: 1}", "unknown var `leest`"),
        ("{leest: 1}", "Did you mean `least`?"),
        ("[1]", "must be a mapping"),
        ("least", "must be a mapping"),
        ("{least: [}", "isn't YAML"),
    ],
)
def test_a_mistake_is_reported(shop: Path, text: str, says: str) -> None:
    for command in ("build", "ls", "compile", "parse", "plan"):
        done = run(shop, command, "--vars", text)
        assert done.exit_code == 2
        assert says in " ".join(done.output.split())


def test_values_keep_their_types(shop: Path) -> None:
    (shop / "models/large.sql").write_text(
        "select id, {{ var('least') }} as least, '{{ var('shops')[1] }}' as shop from {{ ref('raw') }}"
    )
    done = run(shop, "parse", "--vars", "{least: 0.50, shops: [b, c d]}")

    assert done.exit_code == 0, done.output
    code = read(shop, "manifest.json")["nodes"]["model.shop.large"]["compiled_code"]
    assert "0.5 as least, 'c d' as shop" in code


def test_dbts_option_is_passed_on() -> None:
    given = ["--vars", "{least: 1}"]

    assert as_dbt.translated(["build", *given], {}).arguments == ("build", *given, "--wait")
    assert as_dbt.translated(["ls", *given], {}).arguments == ("ls", *given, "--output", "fqn")
    assert as_dbt.translated(["clean", *given], {}).arguments == ("clean",)
