"""The command line of sources that changed. Shell: the terminal."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from sqlrun.cli.options import PROFILE, report_errors


@click.command()
@PROFILE
@click.option("--write", is_flag=True, help="Edit `_sources.yml` as each source's on_schema_change says.")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
@click.pass_obj
@report_errors
def drift(root: Path, profile: str | None, write: bool, as_json: bool) -> None:
    """Show how the lines that have landed differ from what their sources declare."""
    from sqlrun.commands.drift import drift_command

    sys.exit(drift_command(root, profile, write, as_json))


COMMANDS = (drift,)
