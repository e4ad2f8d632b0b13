"""The command line: arguments in, text and exit code out. Shell: the terminal, the clock, the engines."""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Callable
from datetime import datetime, timezone
from functools import wraps
from pathlib import Path
from typing import Any

import click

from sqlrun import __version__
from sqlrun.cli_simulate import command as simulate_command
from sqlrun.errors import SqlrunError, UsageError

CHOICE = "What to choose: a name, stg_*, +name, name+, a folder, tag:x, path:x, source:x."
SELECT = click.option("--select", "-s", "select", multiple=True, metavar="SELECTOR", help=CHOICE)
FOLDER = click.Path(file_okay=False, path_type=Path)
EXCLUDE = click.option("--exclude", multiple=True, metavar="SELECTOR", help="What to leave out.")
# When Python looks for garbage in circles: nearly all that is made of a project stays, and each look goes through it.
GARBAGE = (200_000, 10, 10)
PROFILE = click.option("--profile", metavar="NAME", help="profiles/NAME.yml; the project's default otherwise.")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="sqlrun")
@click.option("--project-dir", type=FOLDER, default=".", help="The project's folder.")
@click.option("--no-cache", is_flag=True, help="Read and compile everything anew, whatever target/cache.jsonl knows.")
@click.pass_context
def main(context: click.Context, project_dir: Path, no_cache: bool) -> None:
    """Write the query over all of history; sqlrun keeps its answer true every tick, at the cost of what changed."""
    gc.set_threshold(*GARBAGE)
    atexit.register(leave)
    from sqlrun.cache import WANTED

    context.obj = project_dir
    WANTED.set(not no_cache)


def leave() -> None:
    """Spare Python its last look for garbage; libraries like DuckDB count what they weren't asked to give up."""
    from sqlrun.halves import THREADED

    if not any(name in sys.modules for name in THREADED):
        gc.freeze()


def fails_plainly(function: Callable[..., Any]) -> Callable[..., Any]:
    """Turn sqlrun's own errors into their text and exit code."""

    @wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except SqlrunError as error:
            from sqlrun.console import Console

            Console().problem(error)
            sys.exit(error.exit_code)
        except RecursionError:
            from sqlrun.console import Console

            Console().problem(UsageError("a query is nested too deeply: write it in CTEs, or in models (SR301)"))
            sys.exit(UsageError.exit_code)

    return wrapped


def utc_now() -> datetime:
    """Read the clock."""
    return datetime.now(timezone.utc)


@main.command()
@SELECT
@EXCLUDE
@PROFILE
@click.option("--as-of", metavar="TIME", help="Tick at this time (UTC, ISO) instead of now.")
@click.option("--every", metavar="STEP", help="Stay and tick on the clock, as in --every 5m, until SIGINT or SIGTERM.")
@click.option("--replay", nargs=2, metavar="FROM TO", help="Tick through history from one time to another.")
@click.option("--step", default="5m", show_default=True, help="The step of --replay, and what now is rounded down to.")
@click.option("--full-refresh", is_flag=True, help="Build the selected models anew, beside what readers see.")
@click.option("--threads", type=click.IntRange(1, 256), help="How many models are maintained at once.")
@click.option("--skip-tests", is_flag=True, help="Don't run the unit tests of the selected models first.")
@click.option("--receipts", is_flag=True, help="Print what each table cost.")
@click.option("--wait", is_flag=True, help="Wait for another build that holds the warehouse, instead of giving up.")
@click.option("--quiet", "-q", is_flag=True, help="Print failures alone.")
@click.pass_obj
@fails_plainly
def build(root: Path, **options: Any) -> None:
    """Land what is new, bring the models up to date, check them, publish the tick."""
    from sqlrun.commands import build_command

    sys.exit(build_command(root, options, utc_now))


@main.command("test")
@SELECT
@EXCLUDE
@click.option("--quiet", "-q", is_flag=True, help="Print failures alone.")
@click.pass_obj
@fails_plainly
def test_command(root: Path, select: tuple[str, ...], exclude: tuple[str, ...], quiet: bool) -> None:
    """Run the unit tests of the models on DuckDB, without a JVM."""
    from sqlrun.commands import run_unit_tests

    sys.exit(run_unit_tests(root, select, exclude, quiet))


@main.command("compile")
@SELECT
@EXCLUDE
@PROFILE
@click.pass_obj
@fails_plainly
def compile_command(root: Path, select: tuple[str, ...], exclude: tuple[str, ...], profile: str | None) -> None:
    """Check the whole project and write each model's SQL under target/, ready to paste."""
    from sqlrun.commands import write_compiled

    sys.exit(write_compiled(root, select, exclude, profile, utc_now()))


@main.command()
@click.argument("model")
@PROFILE
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
@click.pass_obj
@fails_plainly
def explain(root: Path, model: str, profile: str | None, as_json: bool) -> None:
    """Show how MODEL is kept: strategy, reason, what else is legal and its cost, tables, and the change's query."""
    from sqlrun.commands import explain_model

    sys.exit(explain_model(root, model, profile, as_json, utc_now()))


@main.command()
@click.argument("column", metavar="MODEL[.COLUMN]")
@click.option("--up", "direction", flag_value="up", help="What it is made of. The default for a model.")
@click.option("--down", "direction", flag_value="down", help="What is made of it. The default for a seed or a source.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
@fails_plainly
def lineage(root: Path, column: str, direction: str | None, as_json: bool) -> None:
    """Show what a column is made of through the whole graph, or what is made of it; of a model, each column.

    A source's column is GROUP.TABLE.COLUMN. Values are kept apart from what decides about rows: filters, joins, groups.
    """
    from sqlrun.commands import show_lineage

    sys.exit(show_lineage(root, column, direction, as_json))


@main.command("error")
@click.argument("code")
@fails_plainly
def error_command(code: str) -> None:
    """Tell what an error's CODE, such as SR304, means and what to do."""
    from sqlrun.console import Console
    from sqlrun.error_pages import page

    Console().lines(page(code))


@main.command("ls")
@SELECT
@EXCLUDE
@click.option("--output", type=click.Choice(["text", "json"]), default="text")
@click.pass_obj
@fails_plainly
def list_command(root: Path, select: tuple[str, ...], exclude: tuple[str, ...], output: str) -> None:
    """List models, seeds and sources in graph order."""
    from sqlrun.commands import list_nodes

    sys.exit(list_nodes(root, select, exclude, output))


@main.command()
@click.argument("model")
@PROFILE
@click.option("--where", default="", help="A condition in SQL, as in \"restaurant_id = 'r0001'\".")
@click.option("--limit", type=click.IntRange(0), default=20, show_default=True, help="How many rows; 0 is all.")
@click.option("--tick", type=click.IntRange(1), help="As this published tick has them, instead of the newest.")
@click.option("--output", type=click.Choice(["table", "json", "csv"]), default="table")
@click.pass_obj
@fails_plainly
def show(root: Path, model: str, profile: str | None, where: str, limit: int, tick: int | None, output: str) -> None:
    """Show rows of MODEL as the published tick has them; MODEL__quarantine shows what was set aside."""
    from sqlrun.commands import show_rows

    sys.exit(show_rows(root, model, profile, where, limit, output, tick))


@main.command()
@PROFILE
@click.option("--tick", type=click.IntRange(1), help="Of this published tick, instead of the newest.")
@click.pass_obj
@fails_plainly
def views(root: Path, profile: str | None, tick: int | None) -> None:
    """Print Spark SQL that makes a temporary view of each table, all of them at one published tick."""
    from sqlrun.commands import print_views

    sys.exit(print_views(root, profile, tick))


@main.command()
@SELECT
@EXCLUDE
@PROFILE
@click.option("--full-refresh", is_flag=True, help="As if the selected models were to be built anew.")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
@click.pass_obj
@fails_plainly
def plan(
    root: Path,
    select: tuple[str, ...],
    exclude: tuple[str, ...],
    profile: str | None,
    full_refresh: bool,
    as_json: bool,
) -> None:
    """Show what the next build does to the published tables: new, rebuilt, untouched or gone, and why."""
    from sqlrun.commands import plan_edits

    sys.exit(plan_edits(root, select, exclude, profile, full_refresh, as_json))


@main.command()
@PROFILE
@click.option("--limit", type=click.IntRange(0), default=20, show_default=True, help="How many ticks; 0 is all.")
@click.pass_obj
@fails_plainly
def ticks(root: Path, profile: str | None, limit: int) -> None:
    """List ticks, the newest first: time, whether it was published, rows changed, seconds of all tables together."""
    from sqlrun.commands import list_ticks

    sys.exit(list_ticks(root, profile, limit))


@main.command()
@click.argument("model")
@PROFILE
@click.option("--from", "before", type=click.IntRange(1), help="A published tick; the one before `--to` if not given.")
@click.option("--to", "after", type=click.IntRange(1), help="A published tick; the newest if not given.")
@click.option("--limit", type=click.IntRange(0), default=20, show_default=True, help="How many rows; 0 is all.")
@click.option("--output", type=click.Choice(["table", "json", "csv"]), default="table")
@click.pass_obj
@fails_plainly
def diff(
    root: Path, model: str, profile: str | None, before: int | None, after: int | None, limit: int, output: str
) -> None:
    """Show the rows of MODEL that came and left between two published ticks."""
    from sqlrun.commands import diff_ticks

    sys.exit(diff_ticks(root, model, profile, before, after, limit, output))


@main.command()
@SELECT
@EXCLUDE
@PROFILE
@click.option("--tick", type=click.IntRange(1), help="Verify this published tick instead of the newest.")
@click.option(
    "--limit", type=click.IntRange(0), default=5, show_default=True, help="How many differing rows are shown."
)
@click.pass_obj
@fails_plainly
def verify(
    root: Path, select: tuple[str, ...], exclude: tuple[str, ...], profile: str | None, tick: int | None, limit: int
) -> None:
    """Compare every published table with its own query run in full by DuckDB, row for row."""
    from sqlrun.commands import verify_tables

    sys.exit(verify_tables(root, select, exclude, profile, tick, limit))


@main.command()
@PROFILE
@click.option(
    "--keep-ticks", "keep", type=click.IntRange(1), default=2016, show_default=True,
    help="How many ticks can still be shown, compared, verified and gone back to.",
)  # fmt: skip
@click.pass_obj
@fails_plainly
def maintain(root: Path, profile: str | None, keep: int) -> None:
    """Put small files together and delete those that no kept tick needs; readers see the same rows."""
    from sqlrun.commands import maintain_tables

    sys.exit(maintain_tables(root, profile, keep, utc_now()))


@main.command()
@PROFILE
@click.option("--to", type=click.IntRange(1), required=True, help="The published tick to go back to.")
@click.pass_obj
@fails_plainly
def rollback(root: Path, profile: str | None, to: int) -> None:
    """Publish an old tick again, as a new tick; the next build takes in what has landed since."""
    from sqlrun.commands import roll_back

    sys.exit(roll_back(root, profile, to, utc_now()))


@main.command()
@PROFILE
@click.pass_obj
@fails_plainly
def debug(root: Path, profile: str | None) -> None:
    """Tell versions, Java, jars and profile, and try to read and write the warehouse."""
    from sqlrun.debug import debug_command

    sys.exit(debug_command(root, profile))


@main.command()
@click.option("--warehouse", is_flag=True, help="Delete the profile's tables, ledger and checkpoints too.")
@PROFILE
@click.pass_obj
@fails_plainly
def clean(root: Path, warehouse: bool, profile: str | None) -> None:
    """Delete target/, and with --warehouse everything that was built."""
    from sqlrun.commands import clean_up

    sys.exit(clean_up(root, warehouse, profile))


main.add_command(simulate_command)
