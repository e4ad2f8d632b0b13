"""The command line of unit tests. Shell: the terminal."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from sqlrun.cli.new import record, recording
from sqlrun.cli.options import CHOICE, report_errors

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
@recording
@click.pass_obj
@report_errors
def unit_tests(root: Path, **options: Any) -> None:
    """Run the unit tests of the models, on DuckDB without a JVM."""
    if options["record"]:
        return record(root, options)
    from sqlrun.unit_tests.command import run_unit_tests

    sys.exit(run_unit_tests(root, options))


COMMANDS = (unit_tests,)
