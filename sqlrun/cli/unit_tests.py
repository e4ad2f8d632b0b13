"""The commands for unit tests, and for skeletons of models and tests. Shell: the terminal."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from sqlrun.cli import completion
from sqlrun.cli.options import (
    CHOICE,
    EXCLUDE,
    SELECTOR,
    STATE,
    Selecting,
    alternative,
    report_errors,
    select_option,
    together,
    vars_option,
)


@click.group("new")
def new() -> None:
    """Write the skeleton of a model or a unit test, or a contract."""


@new.command("model")
@click.argument("path", metavar="FOLDER/NAME")
@click.option(
    "--from", "read", multiple=True, metavar="NAME", help="Input of the model: a model, a seed, or GROUP.TABLE."
)
@click.pass_obj
@report_errors
def model_command(root: Path, path: str, read: tuple[str, ...]) -> None:
    """Write models/FOLDER/NAME.sql and .yml, with a unit test that passes."""
    from sqlrun.report.console import Console
    from sqlrun.unit_tests.author.scaffold import new_model

    Console().lines(new_model(root.resolve(), path, read))


@new.command("test")
@click.argument("model", shell_complete=completion.models)
@click.option("--name", help="Name of the test. Default: MODEL_example, with a number if it is taken.")
@click.pass_obj
@report_errors
def test_command(root: Path, model: str, name: str | None) -> None:
    """Add a unit test to MODEL: a row for each input, and the result."""
    from sqlrun.report.console import Console
    from sqlrun.unit_tests.author.scaffold import new_test

    Console().lines(new_test(root.resolve(), model, name))


@new.command("contract")
@click.argument("models", nargs=-1, metavar="[MODEL]...", shell_complete=completion.models)
@click.option("--all", "every", is_flag=True, help="Complete the contracts of all models.")
@click.option("--write", is_flag=True, help="Write the files. Default: print them.")
@click.pass_obj
@report_errors
def contract_command(root: Path, models: tuple[str, ...], every: bool, write: bool) -> None:
    """Complete a contract: names, types and grain that follow from the query."""
    from sqlrun.report.console import Console
    from sqlrun.scaffold.contracts import write_contracts

    Console().lines(write_contracts(root.resolve(), models, every, write))


# The options of `sqlrun test --record`.
recording = together(
    click.option(
        "--record", metavar="MODEL", help="Write a test from published rows of MODEL; columns tagged pii are masked."
    ),
    click.option("--where", metavar="SQL", help="Condition on the published rows that --record takes."),
    click.option(
        "--limit",
        type=click.IntRange(1, 100),
        default=3,
        show_default=True,
        help="Maximum number of rows that --record takes.",
    ),
    click.option("--name", help="Name of the recorded test. Default: MODEL_recorded."),
    click.option(
        "--profile",
        metavar="NAME",
        envvar="SQLRUN_PROFILE",
        help="Profile that --record reads. Default: the project's profile.",
    ),
)


def record(root: Path, options: Mapping[str, Any]) -> None:
    """Run `sqlrun test --record`."""
    from sqlrun.report.console import Console
    from sqlrun.unit_tests.author.record import record

    Console().lines(record(root.resolve(), options))


# Options of `sqlrun test` for a run that ends.
ENDING = ("failed", "junit", "as_json", "coverage", "min_coverage")
TESTS = f"{CHOICE[:-1]}, MODEL::test, test_name:x."


@click.command("test", cls=Selecting)
@select_option(TESTS)
@EXCLUDE
@SELECTOR
@STATE
@vars_option()
@alternative(
    ("watch",), "--failed", is_flag=True, help="Run only tests that failed or ended in an error when they last ran."
)
@alternative(ENDING, "--watch", is_flag=True, help="After each save run the affected tests, until Ctrl-C.")
@click.option(
    "--engine",
    type=click.Choice(["duckdb", "spark"]),
    default="duckdb",
    show_default=True,
    help="Engine that computes; results of Spark are also compared with those of DuckDB.",
)
@click.option("--fail-fast", "-x", is_flag=True, help="Stop after the first test that fails.")
@alternative(("watch",), "--coverage", is_flag=True, help="List columns and branches of queries that no test reaches.")
@alternative(
    ("watch",),
    "--min-coverage",
    metavar="PERCENT",
    type=click.FloatRange(0, 100),
    help="Fail if the coverage is lower.",
)
@alternative(
    ("watch",),
    "--junit",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write JUnit XML to this file.",
)
@alternative(("watch",), "--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--quiet", "-q", is_flag=True, help="Print only failures.")
@click.option("--verbose", "-v", is_flag=True, help="Print a line for each test.")
@recording
@click.pass_obj
@report_errors
def unit_tests(root: Path, **options: Any) -> None:
    """Run unit tests, on DuckDB without a JVM."""
    if options["record"]:
        return record(root, options)
    from sqlrun.unit_tests.command import run_unit_tests

    sys.exit(run_unit_tests(root, options))


COMMANDS = (unit_tests, new)
