"""The commands for the warehouse: published ticks, environments, the doctor. Shell: the terminal."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from sqlrun.cli import completion
from sqlrun.cli.options import ENV, PROFILE, SAMPLE, Selecting, alternative, report_errors, selection, utc_now
from sqlrun.errors import UsageError


@click.command()
@click.argument("model", shell_complete=completion.models)
@PROFILE
@ENV
@click.option("--where", default="", help="Condition in SQL, as in \"site_id = 's1'\".")
@click.option(
    "--limit", type=click.IntRange(0), default=20, show_default=True, help="Maximum number of rows; 0 is all."
)
@click.option("--tick", type=click.IntRange(1), help="Show this published tick. Default: the newest.")
@click.option(
    "--output", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True, help="Format."
)
@click.option("--types", is_flag=True, help="Show the columns and their types instead of rows.")
@click.pass_obj
@report_errors
def show(
    root: Path,
    model: str,
    profile: str | None,
    env: str | None,
    where: str,
    limit: int,
    tick: int | None,
    types: bool,
    output: str,
) -> None:
    """Show rows of MODEL at the published tick.

    A view's are those of its present query over the tick's tables. MODEL__quarantine shows quarantined lines,
    MODEL__rescued fields that no source declares. On a terminal the table fits its width, and the last lines name what
    was cut.
    """
    from sqlrun.commands.ticks import show_rows, show_types

    if types:
        sys.exit(show_types(root, model, profile, env, output, tick))
    sys.exit(show_rows(root, model, profile, env, where, limit, output, tick))


@click.command()
@PROFILE
@ENV
@click.option("--tick", type=click.IntRange(1), help="Use this published tick. Default: the newest.")
@click.option(
    "--dialect",
    type=click.Choice(["spark", "spark-catalog", "spark-tables", "duckdb", "duckdb-delta"]),
    default="spark",
    show_default=True,
    help="Views or a catalog for Spark, tables of another catalog, or views of DuckDB: over files, or by `delta_scan`.",
)
@click.pass_obj
@report_errors
def views(root: Path, profile: str | None, env: str | None, tick: int | None, dialect: str) -> None:
    """Print SQL for a view of each table, all at one tick.

    spark-catalog and spark-tables follow the newest tick.
    """
    from sqlrun.commands.ticks import print_views

    sys.exit(print_views(root, profile, env, tick, dialect))


@click.command(cls=Selecting)
@selection
@SAMPLE
@click.option("--full-refresh", is_flag=True, help="Plan to build the selected models from scratch.")
@click.option("--sql", "statements", is_flag=True, help="Show how the query of each rebuilt table changed.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
@report_errors
def plan(
    root: Path,
    select: tuple[str, ...],
    exclude: tuple[str, ...],
    state: Path | None,
    profile: str | None,
    env: str | None,
    sample: str | None,
    full_refresh: bool,
    statements: bool,
    as_json: bool,
) -> None:
    """Show what the next build rebuilds, and its pending input."""
    from sqlrun.commands.ticks import plan_edits

    sys.exit(
        plan_edits(
            root,
            select,
            exclude,
            state,
            profile,
            env,
            full_refresh,
            as_json,
            utc_now(),
            statements=statements,
            sample=sample,
        )
    )


@click.command()
@PROFILE
@ENV
@click.option(
    "--limit", type=click.IntRange(0), default=20, show_default=True, help="Maximum number of ticks; 0 is all."
)
@click.pass_obj
@report_errors
def ticks(root: Path, profile: str | None, env: str | None, limit: int) -> None:
    """List ticks, newest first: status, rows, checks, seconds."""
    from sqlrun.commands.ticks import list_ticks

    sys.exit(list_ticks(root, profile, env, limit))


@click.command()
@click.argument("model", required=False, shell_complete=completion.models)
@PROFILE
@ENV
@click.option("--against", metavar="NAME", help="Compare with this environment's tables, or with `prod`, production's.")
@click.option(
    "--from", "before", type=click.IntRange(1),
    help="Compare from this published tick. Default: the one before --to; with --against the newest.",
)  # fmt: skip
@click.option("--to", "after", type=click.IntRange(1), help="Compare to this published tick. Default: the newest.")
@click.option(
    "--limit", type=click.IntRange(0), default=20, show_default=True, help="Maximum number of rows; 0 is all."
)
@click.option(
    "--output", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True, help="Format."
)
@click.pass_obj
@report_errors
def diff(
    root: Path,
    model: str | None,
    profile: str | None,
    env: str | None,
    against: str | None,
    before: int | None,
    after: int | None,
    limit: int,
    output: str,
) -> None:
    """Show rows of MODEL that came or left between two ticks.

    With --against, compare all tables of two environments, or MODEL's in detail.
    """
    from sqlrun.commands.ticks import diff_environments, diff_ticks

    if against is not None:
        sys.exit(diff_environments(root, model, profile, env, against, before, after, limit, output))
    if model is None:
        raise UsageError("name a model, or an environment to compare with: --against NAME")
    sys.exit(diff_ticks(root, model, profile, env, before, after, limit, output))


@click.command(cls=Selecting)
@selection
@click.option("--tick", type=click.IntRange(1), help="Verify this published tick. Default: the newest.")
@click.option(
    "--limit",
    type=click.IntRange(0),
    default=5,
    show_default=True,
    help="Maximum number of differing rows to show; 0 is all.",
)
@alternative(
    ("checksums",), "--sample", type=click.FloatRange(0, 100, min_open=True), metavar="PERCENT",
    help="Compare rows of this share of keys; a table without a grain is compared in full.",
)  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the sample: another seed, other keys.")
@alternative(
    ("sample",), "--checksums", is_flag=True, help="Compare only checksums, which shows corrupt and duplicate writes."
)
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
    """Compare each table with its query, run in full by DuckDB."""
    from sqlrun.commands.ticks import verify_tables

    sys.exit(verify_tables(root, select, exclude, profile, env, options))


@click.command()
@PROFILE
@ENV
@click.option(
    "--keep-ticks", "keep", type=click.IntRange(1),
    help="Number of ticks to retain. Default: `keep_ticks` of the profile.",
)  # fmt: skip
@click.pass_obj
@report_errors
def vacuum(root: Path, profile: str | None, env: str | None, keep: int | None) -> None:
    """Compact small files, and delete files that no tick needs.

    Readers see the same rows. Files of retained ticks stay.
    """
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
@click.option("--to", type=click.IntRange(1), required=True, help="Published tick to restore.")
@click.pass_obj
@report_errors
def rollback(root: Path, profile: str | None, env: str | None, to: int) -> None:
    """Publish an earlier tick again, as a new tick."""
    from sqlrun.commands.ticks import roll_back

    sys.exit(roll_back(root, profile, env, to, utc_now()))


@click.command(cls=Selecting)
@selection
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
    help="File to write. Default: target/history.html.",
)  # fmt: skip
@click.pass_obj
@report_errors
def history(
    root: Path,
    select: tuple[str, ...],
    exclude: tuple[str, ...],
    state: Path | None,
    profile: str | None,
    env: str | None,
    out: Path | None,
) -> None:
    """Write a page of past ticks: checks, sources, costs."""
    from sqlrun.commands.history import history_command

    sys.exit(history_command(root, select, exclude, state, profile, env, out, utc_now))


@click.group("env")
def environments() -> None:
    """List and drop environments.

    `sqlrun build --env NAME` creates one.
    """


@environments.command("list")
@PROFILE
@click.pass_obj
@report_errors
def list_command(root: Path, profile: str | None) -> None:
    """List environments: newest tick, its time, own and shared tables."""
    from sqlrun.commands.environments import list_environments

    sys.exit(list_environments(root, profile))


@environments.command("drop")
@click.argument("name")
@PROFILE
@click.pass_obj
@report_errors
def drop_command(root: Path, name: str, profile: str | None) -> None:
    """Delete the environment NAME: its ticks, and tables that only it shows."""
    from sqlrun.commands.environments import drop_environment

    sys.exit(drop_environment(root, name, profile, utc_now()))


@click.command()
@PROFILE
@click.option("--repair", is_flag=True, help="Move corrupt files that were never published aside, as a build does.")
@click.pass_obj
@report_errors
def doctor(root: Path, profile: str | None, repair: bool) -> None:
    """Find corrupt files in the warehouse, and say what to do."""
    from sqlrun.commands.doctor import examine_warehouse

    sys.exit(examine_warehouse(root, profile, repair, utc_now()))


COMMANDS = (show, views, plan, ticks, diff, verify, vacuum, rollback, history, environments, doctor, maintain)
