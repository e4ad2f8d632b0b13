"""Variables of the environment are defaults of options."""

from __future__ import annotations

import re
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


@pytest.mark.parametrize(
    ("line", "variable", "value"),
    [
        ("simulate --hours 1", "SQLRUN_PROFILE", "duckdb"),
        ("simulate --hours 1", "SQLRUN_SIMULATE_TOPIC", "orders"),
        ("simulate --hours 1", "SQLRUN_SIMULATE_ORDERS", "5"),
        ("simulate --hours 1 --to 2026-11-21", "SQLRUN_SIMULATE_LIVE", "1"),
        ("ls --selector hot", "SQLRUN_LS_SELECT", "days"),
        ("ls --exclude days", "SQLRUN_LS_SELECTOR", "hot"),
        ("init new --example unknown", "SQLRUN_INIT_DATA", "rows.csv"),
        ("build --quiet", "SQLRUN_BUILD_VERBOSE", "1"),
        ("build --as-of 2026-11-21", "SQLRUN_BUILD_EVERY", "5m"),
        ("explain days --short", "SQLRUN_EXPLAIN_AS_JSON", "1"),
        ("test --junit file.xml", "SQLRUN_TEST_WATCH", "1"),
        ("verify --checksums", "SQLRUN_VERIFY_SAMPLE", "5"),
        ("quarantine replay days --id 1", "SQLRUN_QUARANTINE_REPLAY_EVERY", "1"),
    ],
)
def test_a_variable_excludes_no_option_of_the_command_line(
    line: str, variable: str, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest of an error may be what it likes: the folder has no project."""
    monkeypatch.chdir(tmp_path)
    found = CliRunner().invoke(main, line.split(), env={variable: value})

    excluding = re.compile(r"combined|requires|excludes? |Use one of|select lines by one|leave out --sample")
    assert not excluding.search(found.output + found.stderr), found.output


def test_variables_and_options_of_one_origin_exclude_each_other() -> None:
    runner = CliRunner()
    lines = ["simulate --hours 1 --orders 5", "simulate --live --to 2026-11-21", "simulate --profile duckdb"]

    assert all(runner.invoke(main, line.split()).exit_code == 2 for line in lines)
    both = {"SQLRUN_SIMULATE_HOURS": "1", "SQLRUN_SIMULATE_ORDERS": "5"}
    assert runner.invoke(main, ["simulate"], env=both).exit_code == 2
