"""Commands for dbt projects: their packages, their conversion. Shell: the command line."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from sqlrun.cli import completion
from sqlrun.cli.options import ENV, FOLDER, PROFILE, report_errors, vars_option


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


@click.command("run-operation")
@click.argument("macro", shell_complete=completion.macros)
@click.option("--args", "arguments", default="{}", metavar="YAML", help="Arguments of the macro: '{name: value}'.")
@vars_option()
@PROFILE
@ENV
@click.pass_obj
@report_errors
def run_operation(root: Path, macro: str, arguments: str, profile: str | None, env: str | None) -> None:
    """Run MACRO, and print what it logs and returns.

    Its queries read the tables of the newest published tick. It changes nothing: tables change by models only.
    """
    from sqlrun.commands.run_operation import run_macro

    sys.exit(run_macro(root, macro, arguments, profile, env))


COMMANDS = (deps, import_command, run_operation)
