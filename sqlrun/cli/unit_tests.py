"""The command line of unit tests, and of skeletons of models and tests. Shell: the terminal."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from sqlrun.cli.options import CHOICE, report_errors, together


@click.group("new")
def new() -> None:
    """Write the skeleton of a model or of a unit test, with example rows from the contracts."""


@new.command("model")
@click.argument("path", metavar="FOLDER/NAME")
@click.option("--from", "read", multiple=True, metavar="NAME", help="What it reads: a model, a seed, or GROUP.TABLE.")
@click.pass_obj
@report_errors
def model_command(root: Path, path: str, read: tuple[str, ...]) -> None:
    """Write models/FOLDER/NAME.sql and .yml: a query, its contract and a unit test that passes."""
    from sqlrun.report.console import Console
    from sqlrun.unit_tests.author.scaffold import new_model

    Console().lines(new_model(root.resolve(), path, read))


@new.command("test")
@click.argument("model")
@click.option("--name", help="What the test is called; MODEL_example, with a number where it is taken, otherwise.")
@click.pass_obj
@report_errors
def test_command(root: Path, model: str, name: str | None) -> None:
    """Put a unit test into MODEL's file: a typed row for each input, and what the query makes of them."""
    from sqlrun.report.console import Console
    from sqlrun.unit_tests.author.scaffold import new_test

    Console().lines(new_test(root.resolve(), model, name))


# The options of `sqlrun test --record`.
recording = together(
    click.option("--record", metavar="MODEL", help="Write a test from published rows of MODEL; pii is masked."),
    click.option("--where", metavar="SQL", help="Which published rows --record takes: one condition on a row."),
    click.option(
        "--limit", type=click.IntRange(1, 100), default=3, show_default=True, help="How many rows --record takes."
    ),
    click.option("--name", help="What the recorded test is called; MODEL_recorded otherwise."),
    click.option("--profile", metavar="NAME", help="Where --record reads; the project's default otherwise."),
)


def record(root: Path, options: Mapping[str, Any]) -> None:
    """Carry out `sqlrun test --record`."""
    from sqlrun.report.console import Console
    from sqlrun.unit_tests.author.record import record

    Console().lines(record(root.resolve(), options))


TESTS = f"{CHOICE[:-1]}, MODEL::test, test_name:x."


@click.command("test")
@click.option("--select", "-s", "select", multiple=True, metavar="SELECTOR", help=TESTS)
@click.option("--exclude", multiple=True, metavar="SELECTOR", help="What to leave out.")
@click.option("--failed", is_flag=True, help="Run only those that failed or were errors when they last ran.")
@click.option("--watch", is_flag=True, help="Stay, and after each save run the tests that it touches, until Ctrl-C.")
@click.option(
    "--engine",
    type=click.Choice(["duckdb", "spark"]),
    default="duckdb",
    show_default=True,
    help="Who computes; what Spark says is compared with DuckDB's answer too.",
)
@click.option("--fail-fast", "-x", is_flag=True, help="Stop after the first test that doesn't pass.")
@click.option("--coverage", is_flag=True, help="Tell which columns and branches of the queries no test reaches.")
@click.option(
    "--min-coverage", metavar="PERCENT", type=click.FloatRange(0, 100), help="Fail below it; with --coverage."
)
@click.option("--junit", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Write JUnit's XML.")
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON.")
@click.option("--quiet", "-q", is_flag=True, help="Print failures alone.")
@click.option("--verbose", "-v", is_flag=True, help="Print a line for each test, not for failures alone.")
@recording
@click.pass_obj
@report_errors
def unit_tests(root: Path, **options: Any) -> None:
    """Run the unit tests of the models, on DuckDB without a JVM."""
    if options["record"]:
        return record(root, options)
    from sqlrun.unit_tests.command import run_unit_tests

    sys.exit(run_unit_tests(root, options))


COMMANDS = (unit_tests, new)
