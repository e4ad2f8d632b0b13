"""Variables of the environment are defaults of options."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from sqlrun.cli.main import main
from sqlrun.scaffold.command import init
from tests.cli.test_help import commands

# Variables with a meaning of their own, which must be no option's.
TAKEN = {"SQLRUN_SERVE_KEY"}


def test_the_profile_and_the_environment_have_one_variable_for_all_commands() -> None:
    for path, command in commands():
        for option in command.params:
            if isinstance(option, click.Option) and option.name in ("profile", "env"):
                assert option.envvar == f"SQLRUN_{option.name.upper()}", path


def test_no_option_takes_a_variable_of_another_meaning() -> None:
    names = {
        f"SQLRUN_{path.partition(' ')[2].replace(' ', '_').replace('-', '_')}_{option.name}".upper()
        for path, command in commands()
        for option in command.params
    }

    assert not names & TAKEN


@pytest.mark.slow
def test_a_variable_is_the_default_and_an_option_wins(tmp_path: Path) -> None:
    """A profile that doesn't exist is named, wherever it was chosen."""
    init(tmp_path, None)
    line = ["--project-dir", str(tmp_path), "build"]
    runner = CliRunner()

    chosen = runner.invoke(main, line, env={"SQLRUN_PROFILE": "nothing"})
    assert chosen.exit_code == 2 and "nothing" in chosen.output
    wins = runner.invoke(main, [*line, "--profile", "duckdb"], env={"SQLRUN_PROFILE": "nothing"})
    assert wins.exit_code == 0, wins.output
    threads = runner.invoke(main, [*line, "--verbose"], env={"SQLRUN_BUILD_THREADS": "1"})
    assert "Concurrency: 1 thread" in threads.output
    wrong = runner.invoke(main, line, env={"SQLRUN_BUILD_THREADS": "many"})
    assert wrong.exit_code == 2 and "--threads" in wrong.output
