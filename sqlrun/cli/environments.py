"""The command line of environments: listed, dropped. Shell: the terminal."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from sqlrun.cli.options import PROFILE, report_errors, utc_now


@click.group("env")
def environments() -> None:
    """Environments of the warehouse: `sqlrun build --env NAME` makes one."""


@environments.command("list")
@PROFILE
@click.pass_obj
@report_errors
def list_command(root: Path, profile: str | None) -> None:
    """List environments: newest tick, its time, and how many tables are their own and shared with production."""
    from sqlrun.commands.environments import list_environments

    sys.exit(list_environments(root, profile))


@environments.command("drop")
@click.argument("name")
@PROFILE
@click.pass_obj
@report_errors
def drop_command(root: Path, name: str, profile: str | None) -> None:
    """Delete the environment NAME: its ticks, and its tables that nobody else shows."""
    from sqlrun.commands.environments import drop_environment

    sys.exit(drop_environment(root, name, profile, utc_now()))


COMMANDS = (environments,)
