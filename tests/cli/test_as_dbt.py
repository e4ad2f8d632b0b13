"""`sqlrun-dbt`: dbt's commands and options in sqlrun's."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from sqlrun.cli import as_dbt
from sqlrun.cli.as_dbt import translated
from sqlrun.cli.main import main
from sqlrun.errors import UsageError
from tests.support.projects import ROOT

PROGRAM = (sys.executable, "-c", "from sqlrun.__main__ import run_as_dbt; run_as_dbt()")


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ("build", "build --wait"),
        ("build --defer -s state:modified+ --state prod", "build --select state:modified+ --state prod --defer --wait"),
        ("build --defer --no-defer", "build --wait"),
        ("run --sample=3hours", "build --skip-tests --sample 3h --wait"),
        ("build --sample=2d", "build --sample 2d --wait"),
        ("test -s test_type:data,orders", "check --select test_type:data,orders"),
        ("test -s orders,test_type:unit --target prod", "test --select orders,test_type:unit"),
        ("build --select fqn:*", "build --select fqn:* --wait"),
        ("build -s orders days --exclude tag:slow", "build --select 'orders days' --exclude tag:slow --wait"),
        ("build -m orders --select=days", "build --select 'orders days' --wait"),
        (
            "--no-use-colors --log-format json run --models orders",
            "build --skip-tests --select orders --wait --log-format json",
        ),
        (
            "run --full-refresh --threads 4 --target prod",
            "build --skip-tests --profile prod --wait --full-refresh --threads 4",
        ),
        ("run -f -t prod --profile shop --profiles-dir x", "build --skip-tests --profile prod --wait --full-refresh"),
        ("seed", "build --skip-tests --select fqn:*,resource_type:seed --wait"),
        (
            "snapshot -s a b",
            "build --skip-tests --select 'a,config.materialized:history b,config.materialized:history' --wait",
        ),
        ("test --select orders", "check --select orders"),
        (
            "build --resource-type model seed",
            "build --select 'fqn:*,resource_type:model fqn:*,resource_type:seed' --wait",
        ),
        ("ls", "ls --output fqn"),
        ("ls -t prod", "ls --output fqn"),
        ("parse --target prod", "parse"),
        ("retry -t prod", "retry"),
        ("compile -t prod", "compile --profile prod"),
        ("list --output json --output-keys name tags -s days", "ls --select days --output manifest --keys 'name tags'"),
        ("docs generate --no-partial-parse", "docs generate"),
        ("compile --vars {}", "compile"),
        ("deps", "deps"),
        ("run-operation m --args {a:1} -t prod", "run-operation m --args {a:1} --profile prod"),
        ("run-operation m", "run-operation m --args {}"),
    ],
)
def test_a_command_has_its_equal(words: str, arguments: str) -> None:
    assert list(translated(words.split(), {}).arguments) == shlex.split(arguments)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("rpc", "no command `rpc`. Commands: build, run"),
        ("", "no command ``"),
        ("build --args {a:1}", "`--args` is an option of run-operation"),
        ("run --empty", "no option `--empty`"),
        ("run --favor-state", "no option `--favor-state`"),
        ("test --defer", "--defer is for builds"),
        ("build --sample 3months", "`--sample 3months` isn't supported"),
        ("ls --sample 2d", "Write a length for a build"),
        ("run --target", "`--target` needs a value"),
    ],
)
def test_what_has_no_equal_is_an_error(words: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        translated(words.split(" ", 2) if "vars" in words else words.split(), {})
    assert says in str(caught.value)


@pytest.mark.parametrize("words", [*as_dbt.COMMANDS], ids=" ".join)
def test_sqlrun_has_the_options_of_each_command(words: tuple[str, ...]) -> None:
    """The translation of a command with every option is one that the command line accepts."""
    options = [
        "-s",
        "a",
        "--exclude",
        "b",
        "-t",
        "prod",
        "--threads",
        "2",
        "-f",
        "--output",
        "json",
        "--output-keys",
        "name",
    ]
    arguments = [*translated([*words, *options], {}).arguments]
    command: click.Command = main
    while arguments and isinstance(command, click.Group):
        command = command.commands[arguments.pop(0)]

    if isinstance(command, click.Group):
        assert words == ("deps",)
    else:
        command.make_parser(click.Context(command)).parse_args(arguments)


def test_the_environment_counts() -> None:
    variables = {"DBT_PROJECT_DIR": "shop", "DBT_LOG_FORMAT": "json", "DBT_TARGET_PATH": "out"}
    call = translated(["build"], variables)

    assert (call.root, call.target_path, call.arguments) == ("shop", "out", ("build", "--wait", "--log-format", "json"))
    assert translated(["parse", "--project-dir", "here"], variables).root == "here"


def test_a_folder_of_links_is_the_project_that_they_lead_to(tmp_path: Path) -> None:
    """astronomer-cosmos makes one for each task, and reads the artifacts there."""
    (tmp_path / "shop").mkdir()
    (tmp_path / "links").mkdir()
    (tmp_path / "shop" / "pyproject.toml").write_text("[tool.sqlrun]\n")
    (tmp_path / "links" / "pyproject.toml").symlink_to(tmp_path / "shop" / "pyproject.toml")
    call = translated(["parse", "--project-dir", str(tmp_path / "links")], {})

    assert (call.root, call.target_path) == (str(tmp_path / "shop"), str(tmp_path / "links" / "target"))


@pytest.mark.slow
def test_a_program_that_runs_dbt_gets_artifacts_and_json(tmp_path: Path) -> None:
    root, out = tmp_path / "cafe", tmp_path / "out"
    CliRunner().invoke(main, ["init", str(root)])
    (root / "dbt_project.yml").write_text("# for programs that look for it\nname: cafe\nversion: '1.0'\n")
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "DBT_LOG_FORMAT": "json", "DBT_TARGET_PATH": str(out)}

    def dbt(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*PROGRAM, *words], cwd=root, env=variables, capture_output=True, text=True, check=False)

    built = dbt("build", "--select", "fqn:*")
    assert built.returncode == 0, built.stderr
    names = {json.loads(line)["info"]["name"] for line in built.stdout.splitlines()}
    assert {"LogStartLine", "LogModelResult", "LogTestResult", "Note"} == names
    assert sorted(file.name for file in out.iterdir()) == ["manifest.json", "run_results.json"]
    assert dbt("docs", "generate").returncode == 0
    assert (out / "catalog.json").is_file()
    assert dbt("--version").stdout.startswith("Core:\n  - installed: 1.12.0")
    listed = dbt("ls", "--output", "json", "--output-keys", "unique_id").stdout
    assert [json.loads(line) for line in listed.splitlines()] == [
        {"unique_id": "source.cafe.raw.orders"},
        {"unique_id": "model.cafe.stg_orders"},
        {"unique_id": "model.cafe.daily_sales"},
    ]
    assert dbt("ls").stdout == "source:cafe.raw.orders\ncafe.staging.stg_orders\ncafe.marts.daily_sales\n"
    for words in ((), ("--help",), ("build", "-h")):
        assert dbt(*words).stdout.startswith("Usage: sqlrun-dbt COMMAND [OPTIONS]\n"), words
    bad = dbt("rpc")
    assert bad.returncode == 2 and "no command `rpc`" in bad.stderr


def test_a_dbt_project_file_with_settings_is_still_refused(tmp_path: Path) -> None:
    root = tmp_path / "cafe"
    CliRunner().invoke(main, ["init", str(root)])
    (root / "dbt_project.yml").write_text("name: cafe\nmodels:\n  +materialized: table\n")
    done = CliRunner().invoke(main, ["--project-dir", str(root), "parse"])

    assert done.exit_code == 2 and "SR117 dbt_project.yml:1:1" in done.output
