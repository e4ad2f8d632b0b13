"""What the commands' options and failures have in common. Shell: the terminal, the clock."""

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

CHOICE = "What to choose: a name, stg_*, +name, name+, a folder, tag:x, path:x, source:x."
SELECT = click.option("--select", "-s", "select", multiple=True, metavar="SELECTOR", help=CHOICE)
FOLDER = click.Path(file_okay=False, path_type=Path)
EXCLUDE = click.option("--exclude", multiple=True, metavar="SELECTOR", help="What to leave out.")
ENV = click.option("--env", metavar="NAME", help="An environment of the warehouse; production otherwise.")
PROFILE = click.option("--profile", metavar="NAME", help="profiles/NAME.yml; the project's default otherwise.")


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

    Console().problem(SqlrunError("stopped before it finished"))
    sys.exit(INTERRUPTED)


def _reported(error: Exception) -> NoReturn:
    """Print an error that has a text and an exit code, and exit; raise any other again."""
    if isinstance(error, OSError) and error.errno in GONE and not error.filename:
        sys.exit(0)  # the reader of our output has left
    match error:
        case SqlrunError():
            shown = error
        case OSError():
            shown = SqlrunError(_told(error))
        case RecursionError():
            shown = UsageError("a query is nested too deeply. Split it into CTEs or models (SR301)")
        case _:
            raise error
    from sqlrun.report.console import Console

    Console().problem(shown)
    sys.exit(shown.exit_code)


def _told(error: OSError) -> str:
    """Return what the operating system refused, and that nothing is lost."""
    what = f"{error.filename}: {error.strerror}" if error.filename and error.strerror else first_line(error)
    return f"{what}. Published data is unchanged. Fix the cause, then run the command again."


def utc_now() -> datetime:
    """Read the clock."""
    return datetime.now(timezone.utc)
