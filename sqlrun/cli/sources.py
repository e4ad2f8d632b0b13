"""The commands for sources: the accounting of their lines, and their losses. Shell: the terminal."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from sqlrun.cli.options import ENV, PROFILE, report_errors, utc_now


@click.group("source")
def source() -> None:
    """Account for the lines of sources, and accept losses."""


@source.command("audit")
@click.argument("source", required=False)
@PROFILE
@ENV
@click.option("--ticks", type=click.IntRange(1), metavar="N", help="Only the newest N ticks. Default: all.")
@click.option("--parts", is_flag=True, help="One row for each file or partition.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
@report_errors
def audit_command(
    root: Path, source: str | None, profile: str | None, env: str | None, ticks: int | None, parts: bool, as_json: bool
) -> None:
    """Add up the lines of SOURCE by what became of them.

    Exit code 1 if a line is unexplained.
    """
    from sqlrun.commands.sources import audit_sources

    sys.exit(audit_sources(root, source, profile, env, ticks or 0, parts, as_json))


@source.command("freshness")
@click.argument("source", required=False)
@PROFILE
@ENV
@click.pass_obj
@report_errors
def freshness_command(root: Path, source: str | None, profile: str | None, env: str | None) -> None:
    """Compare the newest event of SOURCE with its limits.

    The limits are `freshness` of its landing model. Exit code 1 if an event is too old for an error limit, or there is
    none. It writes target/sources.json, in dbt's form.
    """
    from sqlrun.commands.freshness import source_freshness

    sys.exit(source_freshness(root, source, profile, env, utc_now()))


@source.command("accept-loss")
@click.argument("source")
@PROFILE
@ENV
@click.option("--yes", is_flag=True, help="Record the losses. Default: list them.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
@report_errors
def accept_loss_command(
    root: Path, source: str, profile: str | None, env: str | None, yes: bool, as_json: bool
) -> None:
    """List lost lines of SOURCE; --yes records the loss.

    Lost lines are lines that the source no longer has and that never landed. After the record the next build goes on.
    """
    from sqlrun.commands.sources import accept_losses

    sys.exit(accept_losses(root, source, profile, env, utc_now(), yes, as_json))


COMMANDS = (source,)
