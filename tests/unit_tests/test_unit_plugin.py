"""Models' unit tests as pytest items."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.support import tested

ROOT = Path(__file__).parents[2]


def ran(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run pytest with the plugin from this folder, installed or not."""
    command = [sys.executable, "-m", "pytest", "-p", "no:sqlrun", "-p", "sqlrun.unit_tests.plugin", *arguments]
    environ = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "COLUMNS": "120"}
    return subprocess.run(command, cwd=root, env=environ, capture_output=True, text=True)


def tagged(folder: Path, five: str = "5") -> Path:
    root = tested.project(folder, five)
    file = root / "models/totals.yml"
    file.write_text(file.read_text().replace("    grain:", "    config: {tags: [nightly]}\n    grain:"))
    return root


@pytest.mark.long
@pytest.mark.slow
def test_without_its_option_the_plugin_collects_and_imports_nothing(tmp_path: Path) -> None:
    root = tested.project(tmp_path)
    (root / "test_light.py").write_text(
        "import sys\n"
        "def test_light():\n"
        "    loaded = {name for name in sys.modules if name.startswith('sqlrun')}\n"
        "    assert loaded == {'sqlrun', 'sqlrun.version', 'sqlrun.unit_tests', 'sqlrun.unit_tests.plugin'}\n"
    )
    result = ran(root, "-q")

    assert result.returncode == 0, result.stdout
    assert "1 passed" in result.stdout


@pytest.mark.long
@pytest.mark.slow
def test_a_failure_shows_the_table_without_a_traceback(tmp_path: Path) -> None:
    result = ran(tagged(tmp_path, five="6"), "--sqlrun")

    assert result.returncode == 1
    assert "models/totals.yml F." in result.stdout
    assert "~  1         6 -> 5" in result.stdout
    assert "FAILED models/totals.yml::prices_are_added" in result.stdout
    assert "Traceback" not in result.stdout
    assert "plugin.py" not in result.stdout


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "outcome"),
    [
        (["-k", "prices"], "1 passed, 2 deselected"),
        (["-m", "nightly", "--strict-markers"], "2 passed, 1 deselected"),
        (["models/totals.yml::free_lines_are_left_out"], "1 passed"),
        (["-n", "2"], "3 passed"),
    ],
)
def test_pytest_selects_unit_tests_like_others(arguments: list[str], outcome: str, tmp_path: Path) -> None:
    result = ran(tagged(tmp_path), "-q", "--sqlrun", *arguments)

    assert outcome in result.stdout


@pytest.mark.long
@pytest.mark.slow
def test_last_failed_and_junit_include_unit_tests(tmp_path: Path) -> None:
    root = tagged(tmp_path, five="6")
    ran(root, "--sqlrun", "--junitxml", "out.xml")
    cases = list(ElementTree.parse(root / "out.xml").getroot().iter("testcase"))

    assert [case.get("name") for case in cases if case.find("failure") is not None] == ["prices_are_added"]
    assert "1 failed" in ran(root, "-q", "--sqlrun", "--lf").stdout


@pytest.mark.slow
def test_a_setting_works_like_the_option_and_adds_folders(tmp_path: Path) -> None:
    root = tested.project(tmp_path)
    (root / "tests").mkdir()
    (root / "tests/test_one.py").write_text("def test_one(): pass\n")
    file = root / "pyproject.toml"
    file.write_text(file.read_text() + '[tool.pytest.ini_options]\nsqlrun = true\ntestpaths = ["tests"]\n')

    assert "4 passed" in ran(root, "-q").stdout
    assert "1 passed" in ran(root, "-q", "tests").stdout


@pytest.mark.slow
def test_an_invalid_project_reports_its_problems(tmp_path: Path) -> None:
    root = tested.project(tmp_path)
    (root / "models/totals.sql").write_text("selekt 1")
    result = ran(root, "--sqlrun")

    assert result.returncode == 2
    assert "SR301 models/totals.sql:1:8  syntax error" in result.stdout
    assert "Traceback" not in result.stdout


@pytest.mark.long
@pytest.mark.slow
def test_the_summary_has_the_coverage(tmp_path: Path) -> None:
    result = ran(tested.project(tmp_path), "-q", "--sqlrun-coverage", "-n", "2")

    assert result.returncode == 0
    assert "models/totals.sql:9:15 case branch `sum(paid.price) > 10` never taken" in result.stdout
