"""The command line of the warehouse: published ticks, environments, the doctor. Shell: the terminal."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from sqlrun.cli.options import ENV, PROFILE, report_errors, selection, utc_now


@click.command()
@click.argument("model")
@PROFILE
@ENV
@click.option("--where", default="", help="A condition in SQL, as in \"restaurant_id = 'r0001'\".")
@click.option("--limit", type=click.IntRange(0), default=20, show_default=True, help="How many rows; 0 is all.")
@click.option("--tick", type=click.IntRange(1), help="As this published tick has them, instead of the newest.")
@click.option("--output", type=click.Choice(["table", "json", "csv"]), default="table")
@click.pass_obj
@report_errors
def show(
    root: Path, model: str, profile: str | None, env: str | None, where: str, limit: int, tick: int | None, output: str
) -> None:
    """Show rows of MODEL as the published tick has them.

    MODEL__quarantine shows the lines that were set aside, MODEL__rescued the fields that no source declares.
    """
    from sqlrun.commands.ticks import show_rows

    sys.exit(show_rows(root, model, profile, env, where, limit, output, tick))


@click.command()
@PROFILE
@ENV
@click.option("--tick", type=click.IntRange(1), help="Of this published tick, instead of the newest.")
@click.pass_obj
@report_errors
def views(root: Path, profile: str | None, env: str | None, tick: int | None) -> None:
    """Print Spark SQL that makes a temporary view of each table, all of them at one published tick."""
    from sqlrun.commands.ticks import print_views

    sys.exit(print_views(root, profile, env, tick))


@click.command()
@selection
@click.option("--full-refresh", is_flag=True, help="As if the selected models were to be built anew.")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
@click.pass_obj
@report_errors
def plan(
    root: Path,
    select: tuple[str, ...],
    exclude: tuple[str, ...],
    profile: str | None,
    env: str | None,
    full_refresh: bool,
    as_json: bool,
) -> None:
    """Show what the next build does to the published tables: new, rebuilt, untouched or gone, and why."""
    from sqlrun.commands.ticks import plan_edits

    sys.exit(plan_edits(root, select, exclude, profile, env, full_refresh, as_json, utc_now()))


@click.command()
@PROFILE
@ENV
@click.option("--limit", type=click.IntRange(0), default=20, show_default=True, help="How many ticks; 0 is all.")
@click.pass_obj
@report_errors
def ticks(root: Path, profile: str | None, env: str | None, limit: int) -> None:
    """List ticks, the newest first: time, whether published, rows changed, checks, seconds of all tables together."""
    from sqlrun.commands.ticks import list_ticks

    sys.exit(list_ticks(root, profile, env, limit))


@click.command()
@click.argument("model")
@PROFILE
@ENV
@click.option("--from", "before", type=click.IntRange(1), help="A published tick; the one before `--to` if not given.")
@click.option("--to", "after", type=click.IntRange(1), help="A published tick; the newest if not given.")
@click.option("--limit", type=click.IntRange(0), default=20, show_default=True, help="How many rows; 0 is all.")
@click.option("--output", type=click.Choice(["table", "json", "csv"]), default="table")
@click.pass_obj
@report_errors
def diff(
    root: Path,
    model: str,
    profile: str | None,
    env: str | None,
    before: int | None,
    after: int | None,
    limit: int,
    output: str,
) -> None:
    """Show the rows of MODEL that came and left between two published ticks."""
    from sqlrun.commands.ticks import diff_ticks

    sys.exit(diff_ticks(root, model, profile, env, before, after, limit, output))


@click.command()
@selection
@click.option("--tick", type=click.IntRange(1), help="Verify this published tick instead of the newest.")
@click.option(
    "--limit", type=click.IntRange(0), default=5, show_default=True, help="How many differing rows are shown."
)
@click.option(
    "--sample", type=click.FloatRange(0, 100, min_open=True), metavar="PERCENT",
    help="Only rows of so many of 100 keys; a table without a grain is compared whole.",
)  # fmt: skip
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Which keys --sample takes: others for another seed."
)
@click.option("--checksums", is_flag=True, help="Only add up the rows that are there: torn and doubled writes show.")
@click.pass_obj
@report_errors
def verify(
    root: Path,
    select: tuple[str, ...],
    exclude: tuple[str, ...],
    profile: str | None,
    env: str | None,
    **options: Any,
) -> None:
    """Compare every published table with its own query run in full by DuckDB, row for row."""
    from sqlrun.commands.ticks import verify_tables

    sys.exit(verify_tables(root, select, exclude, profile, env, options))


@click.command()
@PROFILE
@ENV
@click.option(
    "--keep-ticks", "keep", type=click.IntRange(1),
    help="How many ticks can still be shown, compared, verified and gone back to; else the profile's `keep_ticks`.",
)  # fmt: skip
@click.pass_obj
@report_errors
def vacuum(root: Path, profile: str | None, env: str | None, keep: int | None) -> None:
    """Compact small files and delete files that no retained tick reads; readers see the same rows."""
    from sqlrun.commands.ticks import vacuum_tables

    sys.exit(vacuum_tables(root, profile, env, keep, utc_now()))


@click.command(hidden=True, params=vacuum.params)
@click.pass_context
def maintain(context: click.Context, /, **options: Any) -> None:
    """Run `sqlrun vacuum` under its old name."""
    from sqlrun.runtime import old_names

    old_names.warn("sqlrun maintain", "sqlrun vacuum")
    context.forward(vacuum)


@click.command()
@PROFILE
@ENV
@click.option("--to", type=click.IntRange(1), required=True, help="The published tick to go back to.")
@click.pass_obj
@report_errors
def rollback(root: Path, profile: str | None, env: str | None, to: int) -> None:
    """Publish an old tick again, as a new tick; the next build takes in what has landed since."""
    from sqlrun.commands.ticks import roll_back

    sys.exit(roll_back(root, profile, env, to, utc_now()))


@click.command()
@selection
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
    help="Where to write it; target/history.html otherwise.",
)  # fmt: skip
@click.pass_obj
@report_errors
def history(
    root: Path,
    select: tuple[str, ...],
    exclude: tuple[str, ...],
    profile: str | None,
    env: str | None,
    out: Path | None,
) -> None:
    """Write past ticks as one page that opens from disk: checks, sources, quarantine and costs over time."""
    from sqlrun.commands.history import history_command

    sys.exit(history_command(root, select, exclude, profile, env, out, utc_now))


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


@click.command()
@PROFILE
@click.option("--repair", is_flag=True, help="Set aside what is not whole and was never published, as a build does.")
@click.pass_obj
@report_errors
def doctor(root: Path, profile: str | None, repair: bool) -> None:
    """Look at every file of the warehouse's logs, tables and checkpoints, and tell which are torn and what to do."""
    from sqlrun.commands.doctor import examine_warehouse

    sys.exit(examine_warehouse(root, profile, repair, utc_now()))


COMMANDS = (show, views, plan, ticks, diff, verify, vacuum, rollback, history, environments, doctor, maintain)
