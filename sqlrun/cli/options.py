"""Options that commands share, and how a command reports its errors. Shell: the terminal, the clock."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from functools import wraps
from pathlib import Path
from typing import Any, NoReturn

import click
from click.shell_completion import CompletionItem

from sqlrun.cli import completion
from sqlrun.errors import SqlrunError, UsageError, first_line
from sqlrun.runtime.alternative_option import Alternative
from sqlrun.runtime.streams import GONE

CHOICE = "Select by name, stg_*, +name, name+, folder, or a method such as tag:x."


def alternative(excludes: tuple[str, ...], *names: str, **settings: Any) -> Callable[..., Any]:
    """Return an option that can't be combined with others, which wins over their variables."""
    return click.option(*names, cls=Alternative, excludes=excludes, **settings)


def select_option(text: str) -> Callable[..., Any]:
    """Return the option `--select` with a help text."""
    return alternative(
        ("selector",),
        "--select",
        "-s",
        "select",
        multiple=True,
        metavar="SELECTOR...",
        shell_complete=completion.selectors,
        help=text,
    )


SELECT = select_option(CHOICE)
FOLDER = click.Path(file_okay=False, path_type=Path)
EXCLUDE = alternative(
    ("selector",),
    "--exclude",
    multiple=True,
    metavar="SELECTOR...",
    shell_complete=completion.selectors,
    help="Leave out what this selects.",
)
STATE = click.option(
    "--state",
    type=FOLDER,
    metavar="DIR",
    help="Compare with the artifacts in this folder: for state:, result: and source_status:.",
)
# Options with several values, and where the name of `--selector` is until all options are read.
MANY, NAMED = ("--select", "-s", "--exclude"), "sqlrun.selector"


def _named(context: click.Context, _: click.Parameter, name: str | None) -> None:
    context.meta[NAMED] = name


def override(text: str) -> None:
    """Set the vars of this process. Raises: UsageError if the text isn't a mapping in YAML or JSON."""
    from sqlrun.load import settings

    settings.OVERRIDDEN.set(settings.overrides(text))


def _vars(context: click.Context, _: click.Parameter, text: str | None) -> str | None:
    if text is not None and not context.resilient_parsing:
        try:
            override(text)
        except UsageError as error:
            raise click.UsageError(str(error), context) from error
    return text


def vars_option(*, shown: bool = False) -> Callable[..., Any]:
    """Return the option `--vars`; the command itself gets its text if it is to be `shown` to it."""
    return click.option(
        "--vars", metavar="YAML", callback=_vars, expose_value=shown, help="Use these values of vars: '{name: value}'."
    )


SELECTOR = alternative(
    ("select", "exclude"),
    "--selector",
    metavar="NAME",
    expose_value=False,
    callback=_named,
    shell_complete=completion.named_selectors,
    help="Select by a name of selectors.yml.",
)
ENV = click.option(
    "--env", metavar="NAME", envvar="SQLRUN_ENV", help="Use this environment of the warehouse. Default: production."
)
SAMPLE = click.option(
    "--sample", metavar="TIME", help="With --env: land only events of the last TIME, as in --sample 3h."
)
PROFILE = click.option(
    "--profile",
    "--target",
    "-t",
    "profile",
    metavar="NAME",
    envvar="SQLRUN_PROFILE",
    shell_complete=completion.profiles,
    help="Use profiles/NAME.yml. Default: the project's profile.",
)


def together(*options: Callable[..., Any]) -> Callable[..., Any]:
    """Return a decorator that adds options, which `--help` lists in this order."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return add


of_selection = (SELECT, EXCLUDE, SELECTOR, STATE)
selection = together(*of_selection, vars_option(), PROFILE, ENV)


class Selecting(click.Command):
    """A command whose `--select` and `--exclude` take several values, as dbt's do. It has no arguments."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse arguments; a named selector becomes a value of `--select`."""
        left = super().parse_args(ctx, spread(args))
        if name := ctx.meta.pop(NAMED, None):
            if ctx.params["select"] or ctx.params["exclude"]:
                raise click.UsageError("--selector excludes --select and --exclude: write them into the selector", ctx)
            ctx.params["select"] = (f"selector:{name}",)
        return left

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return completions; a word without an option is one more selector."""
        words = [] if incomplete.startswith("-") else completion.selectors(ctx, None, incomplete)
        return [*words, *super().shell_complete(ctx, incomplete)]


def spread(args: Sequence[str]) -> list[str]:
    """Return arguments in which each selector has an option of its own.

    >>> spread(["-s", "orders", "days", "--env", "ci"])
    ['-s', 'orders', '-s', 'days', '--env', 'ci']
    """
    found: list[str] = []
    option, n_values = "", 0
    for word in args:
        if word.startswith("-"):
            name, equals, _ = word.partition("=")
            option, n_values = name if name in MANY else "", len(equals)
        elif option:
            n_values += 1
            if n_values > 1:
                found.append(option)
        found.append(word)
    return found


def report_errors(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a command: print sqlrun's own errors, and exit with their code."""

    @wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except KeyboardInterrupt:
            _stopped()
        except Exception as error:
            from sqlrun.runtime.stopping import was_interrupted

            # DuckDB raises `RuntimeError: Query interrupted` if a signal arrives while it polls Python for one, and
            # other libraries wrap the interrupt. So after a signal, any error is an effect of the signal.
            if was_interrupted():
                _stopped()
            _reported(error)

    return wrapped


def _stopped() -> NoReturn:
    from sqlrun.report.console import Console
    from sqlrun.runtime.stopping import INTERRUPTED

    Console().problem(SqlrunError("interrupted"))
    sys.exit(INTERRUPTED)


def _reported(error: Exception) -> NoReturn:
    """Print an error that has a text and an exit code, and exit; raise any other error again."""
    if isinstance(error, OSError) and error.errno in GONE and not error.filename:
        sys.exit(0)  # the reader has closed the pipe
    match error:
        case SqlrunError():
            shown = error
        case OSError():
            shown = SqlrunError(_refused(error))
        case RecursionError():
            shown = UsageError("a query is nested too deeply. Split it into CTEs or models (SR301)")
        case _:
            raise error
    from sqlrun.report.console import Console

    Console().problem(shown)
    sys.exit(shown.exit_code)


def _refused(error: OSError) -> str:
    """Return the operating system's error, and how to fix it."""
    what = f"{error.filename}: {error.strerror}" if error.filename and error.strerror else first_line(error)
    return f"{what}. Published tables are unchanged. Fix this, then run the command again."


def utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(timezone.utc)
