"""The commands for the quality of rows: checks, drift, quarantine. Shell: the terminal."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from sqlrun.cli import completion
from sqlrun.cli.options import ENV, PROFILE, SELECT, Selecting, alternative, report_errors, selection, together, utc_now


@click.command(cls=Selecting)
@selection
@click.option("--tick", type=click.IntRange(1), help="Check this published tick. Default: the newest.")
@click.option("--fail-fast", is_flag=True, help="Stop after the first table that has a critical failure or an error.")
@click.option("--suggest", metavar="MODEL", help="Print a first suite for MODEL, which its table passes.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
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
    """Evaluate all checks on published tables, without a JVM."""
    from sqlrun.commands.check import check_command

    sys.exit(check_command(root, select, exclude, profile, env, options))


@click.command()
@PROFILE
@click.option("--write", is_flag=True, help="Edit `_sources.yml` as `on_schema_change` of each source says.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
@report_errors
def drift(root: Path, profile: str | None, write: bool, as_json: bool) -> None:
    """Compare landed lines with the declared columns of sources."""
    from sqlrun.commands.drift import drift_command

    sys.exit(drift_command(root, profile, write, as_json))


REASON = alternative(
    ("ids", "every"), "--reason", default="", metavar="TEXT", help="Select lines with this reason, as `list` prints it."
)


@click.group("quarantine")
def quarantine() -> None:
    """List, show, replay and discard quarantined lines."""


@quarantine.command("list", cls=Selecting)
@SELECT
@PROFILE
@ENV
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
@report_errors
def list_command(root: Path, select: tuple[str, ...], profile: str | None, env: str | None, as_json: bool) -> None:
    """Count quarantined lines by model and reason: pending, replayed, discarded."""
    from sqlrun.commands.quarantine import list_queues

    sys.exit(list_queues(root, select, profile, env, as_json))


@quarantine.command("show")
@click.argument("model", shell_complete=completion.models)
@PROFILE
@ENV
@REASON
@click.option(
    "--limit", type=click.IntRange(0), default=20, show_default=True, help="Maximum number of lines; 0 is all."
)
@click.option("--raw", is_flag=True, help="Show text and values of a model that has columns tagged pii.")
@click.option("--discarded", is_flag=True, help="Show discarded lines, too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
@report_errors
def show_command(
    root: Path,
    model: str,
    profile: str | None,
    env: str | None,
    reason: str,
    limit: int,
    raw: bool,
    discarded: bool,
    as_json: bool,
) -> None:
    """Show pending lines of MODEL: id, reason, tick, file, line number, text."""
    from sqlrun.commands.quarantine import show_lines

    sys.exit(show_lines(root, model, profile, env, reason, limit, raw, discarded, as_json))


IDS = alternative(("reason", "every"), "--id", "ids", multiple=True, metavar="ID", help="Select a line by its id.")
ALL = alternative(("ids", "reason"), "--all", "every", is_flag=True, help="Select all pending lines of the model.")
lines_of_model = together(PROFILE, ENV, IDS, REASON, ALL)


@quarantine.command("discard")
@click.argument("model", shell_complete=completion.models)
@lines_of_model
@click.option("--because", required=True, metavar="TEXT", help="Reason to record, with your name and the time.")
@click.pass_obj
@report_errors
def discard_command(
    root: Path,
    model: str,
    profile: str | None,
    env: str | None,
    ids: tuple[str, ...],
    reason: str,
    every: bool,
    because: str,
) -> None:
    """Discard quarantined lines of MODEL, and record who did it, when and why."""
    from sqlrun.commands.quarantine import Choice, discard_lines

    sys.exit(discard_lines(root, model, profile, env, Choice(ids, reason, every), because, utc_now()))


@quarantine.command("replay")
@click.argument("model", shell_complete=completion.models)
@lines_of_model
@click.pass_obj
@report_errors
def replay_command(
    root: Path,
    model: str,
    profile: str | None,
    env: str | None,
    ids: tuple[str, ...],
    reason: str,
    every: bool,
) -> None:
    """Let the next build evaluate quarantined lines of MODEL again, after a fix."""
    from sqlrun.commands.quarantine import Choice, replay_lines

    sys.exit(replay_lines(root, model, profile, env, Choice(ids, reason, every), utc_now()))


COMMANDS = (check, drift, quarantine)
