"""The command line of what is written to start from: models, unit tests. Shell: the terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from sqlrun.cli.options import report_errors


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


def recording(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of `sqlrun test --record` to a command."""
    for option in (
        click.option("--profile", metavar="NAME", help="Where --record reads; the project's default otherwise."),
        click.option("--name", help="What the recorded test is called; MODEL_recorded otherwise."),
        click.option(
            "--limit", type=click.IntRange(1, 100), default=3, show_default=True, help="How many rows --record takes."
        ),
        click.option("--where", metavar="SQL", help="Which published rows --record takes: one condition on a row."),
        click.option("--record", metavar="MODEL", help="Write a test from published rows of MODEL; pii is masked."),
    ):
        command = option(command)
    return command


def record(root: Path, options: Mapping[str, Any]) -> None:
    """Carry out `sqlrun test --record`."""
    from sqlrun.report.console import Console
    from sqlrun.unit_tests.author.record import record

    Console().lines(record(root.resolve(), options))


COMMANDS = (new,)
