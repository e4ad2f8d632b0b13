"""The command line of the warm server: up, down. Shell: the terminal."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from sqlrun.cli.options import PROFILE, report_errors


@click.command()
@PROFILE
@click.option("--idle", metavar="STEP", default="1h", show_default=True, help="End after so long without a command.")
@click.option("--status", "look", is_flag=True, help="Only tell whether a server runs (exit code 0; else 1), and how.")
@click.pass_obj
@report_errors
def up(root: Path, profile: str | None, idle: str, look: bool) -> None:
    """Keep libraries loaded and Spark started for this project's commands, which find the server by themselves.

    Each command still runs in a process of its own, with the same output and exit code. `--no-server` before a command,
    or SQLRUN_NO_SERVER=1, goes without. Linux only.
    """
    from sqlrun.daemon import switch
    from sqlrun.run.session import step_of

    sys.exit(switch.up(root, profile, step_of(idle).total_seconds(), look=look))


@click.command()
@click.pass_obj
@report_errors
def down(root: Path) -> None:
    """End the server that `sqlrun up` started, after the commands that it runs."""
    from sqlrun.daemon import switch

    sys.exit(switch.down(root))


COMMANDS = (up, down)
