"""Tab in bash, zsh and fish: commands, options and the project's names."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from sqlrun.cli import completion
from sqlrun.cli.main import main
from tests.artifacts.test_artifacts import project


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    project(
        tmp_path,
        models__staging__orders_sql="select id from {{ ref('raw') }}",
        models__days_sql="select id from {{ ref('orders') }}",
        profiles__prod_yml="engine: duckdb\nwarehouse: warehouse\n",
        selectors_yml="selectors:\n  - {name: nightly, definition: days}\n  - name: new\n    definition: days\n",
    )
    monkeypatch.chdir(tmp_path / "models")
    return tmp_path


def completed(*words: str) -> list[str]:
    found = ShellComplete(main, {}, "sqlrun", completion.VARIABLE).get_completions(list(words[:-1]), words[-1])
    return [item.value for item in found]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("buil",), ["build"]),
        (("build", "-s", "o"), ["orders"]),
        (("build", "-s", "orders", "d"), ["days"]),
        (("build", "--exclude", "r"), ["raw"]),
        (("ls", "-s", "+d"), ["+days"]),
        (("ls", "-s", "tag:hot,2+o"), ["tag:hot,2+orders"]),
        (("test", "-s", "@d"), ["@days"]),
        (("show", "da"), ["days"]),
        (("lineage", ""), ["days", "orders"]),
        (("quarantine", "show", "o"), ["orders"]),
        (("build", "--profile", ""), ["local", "prod"]),
        (("build", "--selector", "n"), ["new", "nightly"]),
        (("build", "--stat"), ["--state"]),
        (("completion", "f"), ["fish"]),
        (("build", "-s", "zz"), []),
    ],
)
def test_words(shop: Path, words: tuple[str, ...], found: list[str]) -> None:
    assert completed(*words) == found


def test_the_folder_of_another_project(shop: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    project(other, models__weeks_sql="select 1 as n")

    assert completed("--project-dir", str(other), "build", "-s", "w") == ["weeks"]


def test_a_folder_without_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert completed("build", "-s", "") == completed("build", "--selector", "") == []


@pytest.mark.slow
@pytest.mark.parametrize("shell", completion.SHELLS)
def test_the_script_completes_in_the_shell(shell: str, shop: Path) -> None:
    """Each shell reads its script; bash also presses Tab."""
    command = [sys.executable, "-m", "sqlrun", "completion", shell]
    script = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert completion.VARIABLE in script
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} isn't installed")
    if shell != "bash":
        subprocess.run([shell, "-n"], input=script, text=True, check=True)
        return
    press = 'COMP_WORDS=(sqlrun build -s o); COMP_CWORD=3; _sqlrun_completion sqlrun; echo "${COMPREPLY[@]}"'
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", f"{script}\n{press}"], capture_output=True, text=True, env={**os.environ, "PATH": path}
    )
    assert done.stdout.strip() == "orders"
