"""The command line of checks over whole tables. Shell: the terminal."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from sqlrun.cli.options import ENV, EXCLUDE, PROFILE, SELECT, report_errors


@click.command()
@SELECT
@EXCLUDE
@PROFILE
@ENV
@click.option("--tick", type=click.IntRange(1), help="Check this published tick instead of the newest.")
@click.option("--fail-fast", is_flag=True, help="Stop after the first table with a critical failure or an error.")
@click.option("--suggest", metavar="MODEL", help="Print a suite for MODEL that its table passes, to begin with.")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
@click.pass_obj
@report_errors
def check(
    root: Path,
    select: tuple[str, ...],
    exclude: tuple[str, ...],
    profile: str | None,
    env: str | None,
    **options: Any,
) -> None:
    """Evaluate all checks, of contracts and of expectations/, over whole published tables, without a JVM."""
    from sqlrun.commands.check import check_command

    sys.exit(check_command(root, select, exclude, profile, env, options))


COMMANDS = (check,)
