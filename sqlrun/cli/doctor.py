"""The command line of the doctor. Shell: the terminal."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from sqlrun.cli.options import PROFILE, report_errors, utc_now


@click.command()
@PROFILE
@click.option("--repair", is_flag=True, help="Set aside what is not whole and was never published, as a build does.")
@click.pass_obj
@report_errors
def doctor(root: Path, profile: str | None, repair: bool) -> None:
    """Look at every file of the warehouse's logs, tables and checkpoints, and tell which are torn and what to do."""
    from sqlrun.commands.doctor import examine_warehouse

    sys.exit(examine_warehouse(root, profile, repair, utc_now()))


COMMANDS = (doctor,)
