"""The command line: arguments in, text and exit code out. Shell: the terminal, the clock, the engines."""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from pathlib import Path
from typing import Any

import click

from sqlrun.cli import completion, dbt_projects, quality, servers, sources, ticks, unit_tests
from sqlrun.cli.options import (
    ENV,
    EXCLUDE,
    FOLDER,
    PROFILE,
    SAMPLE,
    SELECT,
    SELECTOR,
    STATE,
    Selecting,
    alternative,
    of_selection,
    override,
    report_errors,
    together,
    utc_now,
    vars_option,
)
from sqlrun.simulate.command import command as simulate_command
from sqlrun.version import __version__

# Thresholds of Python's cyclic garbage collector. Nearly all objects of a project stay alive, and each collection
# traverses them.
GARBAGE = (200_000, 10, 10)


class CommandLine(click.Group):
    """Handles a signal inside click as in a command; click itself would print `Aborted!` and exit with 1."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Run the command of the arguments, and exit."""
        try:
            # What a command sets for itself, such as other vars, ends with it.
            run: Callable[[], Any] = partial(super().main, *args, **{**options, "standalone_mode": False})
            code = copy_context().run(run)
        except click.Abort:
            raise KeyboardInterrupt from None
        except click.ClickException as error:
            error.show()
            sys.exit(error.exit_code)
        sys.exit(code if isinstance(code, int) else 0)


# The variable of an option is SQLRUN_COMMAND_OPTION, such as SQLRUN_BUILD_THREADS.
SETTINGS = {"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "SQLRUN"}


@click.group(cls=CommandLine, context_settings=SETTINGS)
@click.version_option(__version__, prog_name="sqlrun")
# No variable: the daemon of a folder is found before the options are read.
@click.option("--project-dir", type=FOLDER, default=".", allow_from_autoenv=False, help="Folder of the project.")
@click.option("--no-cache", is_flag=True, help="Ignore target/cache.jsonl: read and compile everything again.")
@click.option("--no-server", is_flag=True, help="Run the command in this process, even if the daemon runs.")
@click.pass_context
def main(context: click.Context, project_dir: Path, no_cache: bool, no_server: bool) -> None:
    """Write the query over all of history; sqlrun keeps its answer true every tick, at the cost of what changed.

    NO_COLOR=1 or TERM=dumb turns colors and progress off: every fact is also text. SQLRUN_PROFILE and SQLRUN_ENV are
    defaults of --profile and --env; SQLRUN_COMMAND_OPTION, such as SQLRUN_BUILD_THREADS, is that of any other option.
    """
    del project_dir, no_server  # `daemon/entry.py` has evaluated the second
    gc.set_threshold(*GARBAGE)
    atexit.register(leave)
    from sqlrun.runtime import old_names
    from sqlrun.runtime.disk_cache import WANTED

    old_names.begin()
    context.obj = completion.root_of(context)
    WANTED.set(not no_cache)


def leave() -> None:
    """Skip Python's last garbage collection, unless a loaded library, such as DuckDB, counts unfreed objects."""
    from sqlrun.runtime.fork import THREADED

    if not any(name in sys.modules for name in THREADED):
        gc.freeze()


building = together(
    *of_selection,
    vars_option(shown=True),
    PROFILE,
    ENV,
    SAMPLE,
    click.option(
        "--defer",
        is_flag=True,
        help="With --env: read what isn't selected from production, and say from where. Fail without it.",
    ),
    alternative(("every", "replay"), "--as-of", metavar="TIME", help="Time of the tick, ISO in UTC. Default: now."),
    alternative(
        ("as_of", "replay"),
        "--every",
        metavar="STEP",
        help="Tick on the clock until SIGINT or SIGTERM, as in --every 5m.",
    ),
    alternative(
        ("as_of", "every"),
        "--replay",
        nargs=2,
        metavar="FROM TO",
        help="Tick from one time of history to another.",
    ),
    click.option(
        "--step", default="5m", show_default=True, help="Distance of ticks with --replay; now is rounded down to it."
    ),
    click.option(
        "--full-refresh",
        is_flag=True,
        help="Build the selected models from scratch; readers see the old tables until then.",
    ),
    click.option(
        "--accept-lost-files", is_flag=True, help="Land although files of a source are gone, and lose their lines."
    ),
    click.option(
        "--accept-unexplained-lines", is_flag=True, help="Publish although lines of a source are not accounted for."
    ),
    click.option("--threads", type=click.IntRange(1, 256), help="Number of models to maintain at once."),
    click.option("--skip-tests", is_flag=True, help="Skip the unit tests of the selected models."),
    click.option("--fail-fast", "-x", is_flag=True, help="Begin no further table after a failure."),
    click.option("--receipts", is_flag=True, help="Print the cost of each table."),
    click.option("--wait", is_flag=True, help="Wait for another build that holds the warehouse. Default: fail."),
    alternative(("verbose",), "--quiet", "-q", is_flag=True, help="Print only failures."),
    click.option(
        "--log-format",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="json: print each event as a line of JSON, in dbt's form.",
    ),
    alternative(
        ("quiet",), "--verbose", "-v", is_flag=True, help="Print every step of every tick, even if nothing is new."
    ),
)


@main.command(cls=Selecting)
@building
@click.pass_obj
@report_errors
def build(root: Path, **options: Any) -> None:
    """Land new lines, maintain and check models, publish the tick."""
    from sqlrun.commands.build import build_command

    sys.exit(build_command(root, options, utc_now))


@main.command(cls=Selecting)
@building
@click.pass_context
@report_errors
def run(context: click.Context, **options: Any) -> None:
    """Build without unit tests: dbt's name of build --skip-tests."""
    context.invoke(build, **{**options, "skip_tests": True})


@main.command()
@click.pass_context
@report_errors
def retry(context: click.Context) -> None:
    """Run the last build again, if its tick was not published.

    It has the same selection and options, except options that accept a loss.
    """
    from sqlrun.commands.retry import last_build
    from sqlrun.report.console import Console

    options = last_build(context.obj)
    if options and (given := options.get("vars")):
        override(given)
    if options is None:
        Console().lines(["The last build published its tick: there is nothing to retry."])
    else:
        context.invoke(build, **options)


@main.command("init")
@click.argument("folder", metavar="[DIR]", type=FOLDER, default=".")
@alternative(
    ("example",),
    "--from",
    "data",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Land the JSON, CSV, Parquet or Avro files at PATH: their columns and types are inferred.",
)
@alternative(
    ("data",),
    "--example",
    metavar="NAME",
    help="Write a complete example with sample orders. An unknown name shows the known ones.",
)
@report_errors
def init_command(folder: Path, data: Path | None, example: str | None) -> None:
    """Write a new project that builds without Java into DIR."""
    from sqlrun.report.console import Console
    from sqlrun.scaffold.command import init

    if data is not None and example is not None:
        raise click.UsageError("--from and --example can't be combined.")
    lines = init(folder, data, example)
    if example is not None:
        from sqlrun.scaffold.examples import ORDERS
        from sqlrun.simulate.command import write_sample

        write_sample(folder / ORDERS)
    Console().lines(lines)


@main.command("schema")
@click.pass_obj
@report_errors
def schema_command(root: Path) -> None:
    """Write JSON schemas of the YAML files for editors."""
    from sqlrun.report.console import Console
    from sqlrun.scaffold.command import write_schemas

    Console().lines(write_schemas(root))


@main.command("format")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--check", is_flag=True, help="Write nothing. Exit code 1 if a file isn't formatted.")
@click.option("--diff", is_flag=True, help="Write nothing, and print what would change. Exit code as with --check.")
@click.pass_obj
@report_errors
def format_command(root: Path, paths: tuple[Path, ...], check: bool, diff: bool) -> None:
    """Format SQL files, or those at PATHS, by sqlfmt."""
    from sqlrun.commands.formatting import format_files

    sys.exit(format_files(root, paths, check=check, diff=diff))


@main.command("lint")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.pass_obj
@report_errors
def lint_command(root: Path, paths: tuple[Path, ...]) -> None:
    """Report mistakes of the project and SQL that isn't formatted.

    It writes nothing: parse and format --check in one command. PATHS narrow the SQL files.
    """
    from sqlrun.commands.formatting import format_files

    sys.exit(format_files(root, paths, check=True, diff=False))


@main.command("compile", cls=Selecting)
@SELECT
@EXCLUDE
@SELECTOR
@STATE
@vars_option()
@PROFILE
@click.pass_obj
@report_errors
def compile_command(
    root: Path, select: tuple[str, ...], exclude: tuple[str, ...], state: Path | None, profile: str | None
) -> None:
    """Check the project, and write the SQL of models to target/."""
    from sqlrun.commands.build import write_compiled

    sys.exit(write_compiled(root, select, exclude, state, profile, utc_now()))


@main.command("completion")
@click.argument("shell", type=click.Choice(completion.SHELLS))
def completion_command(shell: str) -> None:
    """Print a script that completes commands and names in SHELL.

    For bash, write this line into ~/.bashrc: eval "$(sqlrun completion bash)"
    """
    click.echo(completion.script(shell, main))


@main.command("parse")
@vars_option()
@click.pass_obj
@report_errors
def parse_command(root: Path) -> None:
    """Check the project, and write target/manifest.json."""
    from sqlrun.commands.artifacts import parse

    sys.exit(parse(root, utc_now()))


@main.group()
def docs() -> None:
    """Write the documentation of the project, or serve it."""


@docs.command("generate")
@vars_option()
@PROFILE
@ENV
@click.pass_obj
@report_errors
def generate_command(root: Path, profile: str | None, env: str | None) -> None:
    """Write target/docs/, manifest.json and catalog.json.

    Open target/docs/index.html in a browser. The two other files, in target/, are for tools that read dbt's artifacts.
    """
    from sqlrun.commands.docs import generate_docs

    sys.exit(generate_docs(root, profile, env, utc_now()))


@docs.command("serve")
@click.option("--port", type=click.IntRange(1, 65535), default=8788, show_default=True, help="Port to listen on.")
@click.pass_obj
@report_errors
def serve_docs_command(root: Path, port: int) -> None:
    """Serve target/docs/ on 127.0.0.1, for this machine alone."""
    from sqlrun.commands.docs import serve_docs

    sys.exit(serve_docs(root, port))


@main.command()
@click.argument("model", shell_complete=completion.models)
@vars_option()
@PROFILE
@alternative(("short",), "--sql", "statements", is_flag=True, help="Print the statement of each table as well.")
@alternative(
    ("statements", "as_json"), "--short", is_flag=True, help="Print only strategy, reason, cost and number of checks."
)
@alternative(("short",), "--json", "as_json", is_flag=True, help="Print JSON, with the statement of each table.")
@click.pass_obj
@report_errors
def explain(root: Path, model: str, profile: str | None, statements: bool, short: bool, as_json: bool) -> None:
    """Explain how MODEL is maintained: strategy, cost, checks."""
    from sqlrun.commands.build import explain_model

    sys.exit(explain_model(root, model, profile, as_json, utc_now(), statements=statements, short=short))


@main.command()
@click.argument("column", metavar="MODEL[.COLUMN]", shell_complete=completion.models)
@click.option("--up", "direction", flag_value="up", help="Show what the column is made of. Default for a model.")
@click.option(
    "--down", "direction", flag_value="down", help="Show what is made of the column. Default for a seed or a source."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
@report_errors
def lineage(root: Path, column: str, direction: str | None, as_json: bool) -> None:
    """Trace a column, or all columns of a model, up or down.

    Write a source's column as GROUP.TABLE.COLUMN. The output separates values from what decides about rows: filters,
    joins, groups.
    """
    from sqlrun.commands.build import show_lineage

    sys.exit(show_lineage(root, column, direction, as_json))


@main.command("error")
@click.argument("code", nargs=-1)
@report_errors
def error_command(code: tuple[str, ...]) -> None:
    """Explain an error CODE such as SR304, and how to fix it.

    Without CODE, list all codes.
    """
    from sqlrun.commands.error_page import listed, page
    from sqlrun.report.console import Console

    pages = (line for number, each in enumerate(code) for line in (*([""] if number else []), *page(each)))
    Console().lines(pages if code else listed())


@main.command("ls", cls=Selecting)
@SELECT
@EXCLUDE
@SELECTOR
@STATE
@vars_option()
@click.option(
    "--output",
    type=click.Choice(["text", "json", "fqn", "manifest"]),
    default="text",
    show_default=True,
    help="fqn: names with project and folders. manifest: each node of dbt's manifest as a line of JSON.",
)
@click.option("--keys", default="", metavar="NAMES", help="With --output manifest: print these keys alone.")
@click.pass_obj
@report_errors
def list_command(
    root: Path, select: tuple[str, ...], exclude: tuple[str, ...], state: Path | None, output: str, keys: str
) -> None:
    """List models, seeds and sources in graph order."""
    if output in ("fqn", "manifest"):
        from sqlrun.commands.artifacts import list_manifest

        sys.exit(list_manifest(root, select, exclude, state, keys.split() if output == "manifest" else None, utc_now()))
    from sqlrun.commands.build import list_nodes

    sys.exit(list_nodes(root, select, exclude, state, output))


# dbt's other name of the command.
main.add_command(list_command, "list")


@main.command()
@PROFILE
@click.pass_obj
@report_errors
def debug(root: Path, profile: str | None) -> None:
    """Print versions and the profile, and test the warehouse."""
    from sqlrun.commands.debug import debug_command

    sys.exit(debug_command(root, profile))


@main.command()
@click.option("--warehouse", is_flag=True, help="Delete the tables, ledger and checkpoints of the profile, too.")
@PROFILE
@click.pass_obj
@report_errors
def clean(root: Path, warehouse: bool, profile: str | None) -> None:
    """Delete target/, and with --warehouse all tables."""
    from sqlrun.commands.clean import clean_up

    sys.exit(clean_up(root, warehouse, profile, utc_now()))


GROUPS = (dbt_projects, ticks, unit_tests, quality, sources, servers)
COMMANDS = tuple(command for group in GROUPS for command in group.COMMANDS)
assert simulate_command.callback is not None
# It may not import the command line, which is above it.
simulate_command.callback = report_errors(simulate_command.callback)
for command in (*COMMANDS, simulate_command):
    main.add_command(command)
