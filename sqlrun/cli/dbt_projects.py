"""Commands for dbt projects: their packages, their conversion. Shell: the command line."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from sqlrun.cli.options import FOLDER, report_errors


@click.command()
@click.argument("folder", metavar="[DIR]", type=FOLDER, required=False)
@click.option(
    "--upgrade", is_flag=True, help="Move to the commits that tags and branches name now. Default: the lock's."
)
@click.pass_obj
@report_errors
def deps(root: Path, folder: Path | None, upgrade: bool) -> None:
    """Fetch packages of a dbt project from git.

    It reads packages.yml of DIR, by default of this folder, writes dbt_packages/, and pins each commit in
    package-lock.yml. Then `sqlrun import-dbt` makes them a part of the project.
    """
    from sqlrun.packages.deps import fetch_all
    from sqlrun.report.console import Console

    Console().lines(fetch_all(root if folder is None else folder, upgrade=upgrade))


@click.command("import-dbt")
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option("--write", "out", type=FOLDER, metavar="FOLDER", help="Write the project here. Default: report only.")
@report_errors
def import_command(folder: Path, out: Path | None) -> None:
    """Convert a dbt project, and report what changed."""
    from sqlrun.report.console import Console
    from sqlrun.scaffold.import_dbt import import_dbt

    lines, is_valid = import_dbt(folder, out)
    Console().lines(lines)
    sys.exit(0 if is_valid else 1)


COMMANDS = (deps, import_command)
