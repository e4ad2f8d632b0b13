"""Options that commands share, and how a command reports its errors. Shell: the terminal, the clock."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import datetime, timezone
from functools import wraps
from pathlib import Path
from typing import Any, NoReturn

import click

from sqlrun.errors import SqlrunError, UsageError, first_line
from sqlrun.runtime.streams import GONE

CHOICE = "Select by name, stg_*, +name, name+, folder, or a method such as tag:x."
SELECT = click.option("--select", "-s", "select", multiple=True, metavar="SELECTOR", help=CHOICE)
FOLDER = click.Path(file_okay=False, path_type=Path)
EXCLUDE = click.option("--exclude", multiple=True, metavar="SELECTOR", help="Leave out what this selects.")
ENV = click.option(
    "--env", metavar="NAME", envvar="SQLRUN_ENV", help="Use this environment of the warehouse. Default: production."
)
PROFILE = click.option(
    "--profile", metavar="NAME", envvar="SQLRUN_PROFILE", help="Use profiles/NAME.yml. Default: the project's profile."
)


def together(*options: Callable[..., Any]) -> Callable[..., Any]:
    """Return a decorator that adds options, which `--help` lists in this order."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return add


selection = together(SELECT, EXCLUDE, PROFILE, ENV)


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
