"""A command finds its project in the folder that it is run in, or above it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sqlrun.cli.main import main
from sqlrun.scaffold.command import init


def run(folder: Path, monkeypatch: pytest.MonkeyPatch, *words: str) -> Result:
    monkeypatch.chdir(folder)
    return CliRunner().invoke(main, list(words))


def test_a_folder_of_a_project_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The nearest project counts, and other tools' settings in between don't."""
    init(tmp_path, None)
    inner = tmp_path / "tools" / "inner"
    inner.mkdir(parents=True)
    (tmp_path / "tools" / "pyproject.toml").write_text("[tool.ruff]\n")

    assert "daily_sales" in run(inner, monkeypatch, "ls").output
    assert "daily_sales" in run(tmp_path / "models" / "marts", monkeypatch, "ls").output

    init(tmp_path / "other", None)
    (tmp_path / "other" / "models" / "marts" / "more.sql").write_text("select 1 as n\n")
    assert "more" in run(tmp_path / "other" / "models", monkeypatch, "ls").output
    assert "more" not in run(tmp_path, monkeypatch, "ls").output


def test_without_a_project_the_message_is_about_this_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = run(tmp_path, monkeypatch, "ls")

    assert done.exit_code == 2 and "SR100" in done.output


def test_a_named_folder_is_taken_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong --project-dir must not find another project."""
    init(tmp_path, None)

    done = run(tmp_path, monkeypatch, "--project-dir", "models", "ls")

    assert done.exit_code == 2 and "SR100" in done.output
