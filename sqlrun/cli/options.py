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

CHOICE = "Select by name, stg_*, +name, name+, folder, tag:x, path:x or source:x."
SELECT = click.option("--select", "-s", "select", multiple=True, metavar="SELECTOR", help=CHOICE)
FOLDER = click.Path(file_okay=False, path_type=Path)
EXCLUDE = click.option("--exclude", multiple=True, metavar="SELECTOR", help="Leave out what this selects.")
ENV = click.option("--env", metavar="NAME", help="Use this environment of the warehouse. Default: production.")
PROFILE = click.option("--profile", metavar="NAME", help="Use profiles/NAME.yml. Default: the project's profile.")


def together(*options: Callable[..., Any]) -> Callable[..., Any]:
    """Return a decorator that adds options, which `--help` lists in this order."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return add


selection = together(SELECT, EXCLUDE, PROFILE, ENV)


def report_errors(function: Callable[..., Any]) -> Callable[..., Any]:
    """Turn sqlrun's own errors into their text and exit code."""

    @wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except KeyboardInterrupt:
            _stopped()
        except Exception as error:
            from sqlrun.runtime.stopping import was_interrupted

            # DuckDB says `RuntimeError: Query interrupted` where a signal comes while it asks Python for one, others
            # wrap what stops them: after a signal, whatever ends the command is the signal.
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
    """Print an error that has a text and an exit code, and exit; raise any other again."""
    if isinstance(error, OSError) and error.errno in GONE and not error.filename:
        sys.exit(0)  # the reader of our output has left
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
    """Return what the operating system refused, and what to do."""
    what = f"{error.filename}: {error.strerror}" if error.filename and error.strerror else first_line(error)
    return f"{what}. Published tables are unchanged. Fix this, then run the command again."


def utc_now() -> datetime:
    """Read the clock."""
    return datetime.now(timezone.utc)
