"""The command line of what may be wrong with rows: checks, drift, quarantine. Shell: the terminal."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from sqlrun.cli.options import ENV, PROFILE, SELECT, report_errors, selection, together, utc_now


@click.command()
@selection
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


REASON = click.option("--reason", default="", metavar="TEXT", help="Those with this reason alone, as `list` says it.")


@click.group("quarantine")
def quarantine() -> None:
    """Lines that were set aside: a queue that nothing leaves without a record."""


@quarantine.command("list")
@SELECT
@PROFILE
@ENV
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
@click.pass_obj
@report_errors
def list_command(root: Path, select: tuple[str, ...], profile: str | None, env: str | None, as_json: bool) -> None:
    """Count the lines in quarantine by model and reason: waiting, replayed, discarded, and since when."""
    from sqlrun.commands.quarantine import list_queues

    sys.exit(list_queues(root, select, profile, env, as_json))


@quarantine.command("show")
@click.argument("model")
@PROFILE
@ENV
@REASON
@click.option("--limit", type=click.IntRange(0), default=20, show_default=True, help="How many lines; 0 is all.")
@click.option("--raw", is_flag=True, help="Show text and columns of a model with columns tagged pii, too.")
@click.option("--discarded", is_flag=True, help="Show those that were discarded, too.")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
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
    """Show the lines of MODEL that wait: id, reason, tick, file, number of the line, text."""
    from sqlrun.commands.quarantine import show_lines

    sys.exit(show_lines(root, model, profile, env, reason, limit, raw, discarded, as_json))


IDS = click.option("--id", "ids", multiple=True, metavar="ID", help="A line, by its id. May be given more than once.")
ALL = click.option("--all", "every", is_flag=True, help="All lines of the model that wait.")
lines_of_model = together(PROFILE, ENV, IDS, REASON, ALL)


@quarantine.command("discard")
@click.argument("model")
@lines_of_model
@click.option("--because", required=True, metavar="TEXT", help="Why: it stays on record, with who and when.")
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
    """Let lines of MODEL wait no longer. They stay in the table; who discarded them, when and why stays on record."""
    from sqlrun.commands.quarantine import Choice, discard_lines

    sys.exit(discard_lines(root, model, profile, env, Choice(ids, reason, every), because, utc_now()))


@quarantine.command("replay")
@click.argument("model")
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
    """Have the next build judge lines of MODEL again, after a fix: good ones come in, once; others wait on."""
    from sqlrun.commands.quarantine import Choice, replay_lines

    sys.exit(replay_lines(root, model, profile, env, Choice(ids, reason, every), utc_now()))


COMMANDS = (check, drift, quarantine)
