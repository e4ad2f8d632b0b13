"""The projects in examples/: they compile, their unit tests pass, and they say what they promise."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sqlrun.cli.main import main
from tests.support.projects import ROOT

pytestmark = pytest.mark.slow

EXAMPLES = sorted(path.parent for path in (ROOT / "examples").glob("*/pyproject.toml"))


@pytest.fixture
def example(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KAFKA_BOOTSTRAP", "127.0.0.1:9092")
    folder = tmp_path / request.param.name
    shutil.copytree(request.param, folder, ignore=shutil.ignore_patterns("target", "warehouse"))
    return folder


def command(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["--project-dir", str(folder), *arguments])


@pytest.mark.parametrize("example", EXAMPLES, ids=[path.name for path in EXAMPLES], indirect=True)
def test_an_example_compiles_for_each_of_its_profiles(example: Path) -> None:
    profiles = sorted(file.stem for file in (example / "profiles").glob("*.yml"))
    assert profiles
    for profile in profiles:
        found = command(example, "compile", "--profile", profile)
        assert found.exit_code == 0 and "Nothing was run" in found.output, found.output


@pytest.mark.parametrize("example", EXAMPLES, ids=[path.name for path in EXAMPLES], indirect=True)
def test_the_unit_tests_of_an_example_pass(example: Path) -> None:
    found = command(example, "test")
    assert found.exit_code == 0 and "FAIL=0 ERROR=0" in found.output and "PASS=0" not in found.output, found.output


@pytest.mark.parametrize("example", EXAMPLES, ids=[path.name for path in EXAMPLES], indirect=True)
def test_an_example_has_the_macros_of_the_reference_project(example: Path) -> None:
    """It stands alone, so that it has copies: each is that of the reference project, where there is one."""
    for macro in (example / "macros").glob("*.sql"):
        assert macro.read_text() == (ROOT / "macros" / macro.name).read_text(), macro.name


@pytest.mark.parametrize("example", [ROOT / "examples/shop_cdc"], indirect=True)
def test_the_shop_takes_whole_transactions_and_keeps_its_tables_by_merges(example: Path) -> None:
    explained = command(example, "explain", "order_item_changes")
    assert "order      whole transactions, by the marks of the topic shop.transaction" in explained.output
    found = command(example, "explain", "orders", "--json")
    assert json.loads(found.output)["strategy"] == "merge", found.output
    declared = example / "models/staging/_sources.yml"
    declared.write_text(declared.read_text().replace(", transactions: shop.transaction", ""))
    assert "order      ordered per key only" in command(example, "explain", "order_changes").output
