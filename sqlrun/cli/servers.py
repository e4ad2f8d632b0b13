"""The commands for servers: `serve` and its tokens, `lsp`, `up` and `down`. Shell: the terminal."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from sqlrun.cli.options import ENV, PROFILE, report_errors, utc_now

KEYS = click.option(
    "--keys", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
    help="File with a JSON Web Key Set. Default: SQLRUN_SERVE_KEY in the environment.",
)  # fmt: skip


@click.group(invoke_without_command=True)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on; any other than this machine needs a key.",
)
@click.option("--port", type=click.IntRange(1, 65535), default=8787, show_default=True, help="Port to listen on.")
@PROFILE
@ENV
@KEYS
@click.option(
    "--allow-host", multiple=True, metavar="NAME", help="Accept this host name, which a proxy on this machine sends."
)
@click.option(
    "--trusted-proxy", multiple=True, metavar="ADDRESS",
    help="Trust X-Forwarded-For of proxies at this address or network.",
)  # fmt: skip
@click.option(
    "--rate", type=click.FloatRange(0), default=20, show_default=True,
    help="Requests a second for each token, with bursts of five times as many; 0 is no limit.",
)  # fmt: skip
@click.option(
    "--stale-after", metavar="TIME", default="15m", show_default=True, help="Age at which a tick counts as stale."
)
@click.option("--no-access-log", is_flag=True, help="Write no access log.")
@click.option(
    "--ingest", is_flag=True, help="Accept JSON lines for sources by POST, with tokens of `serve token --ingest`."
)
@click.option(
    "--ingest-rate", type=click.FloatRange(0), default=100, show_default=True,
    help="Ingest requests a second for each token, with bursts of five times as many; 0 is no limit.",
)  # fmt: skip
@click.option(
    "--ingest-body", type=click.IntRange(1, 64), default=10, show_default=True, metavar="MB",
    help="Maximum size of an ingest request's body.",
)  # fmt: skip
@click.option(
    "--ingest-every", type=click.FloatRange(0, 60), default=1, show_default=True, metavar="SECONDS",
    help="Mean time between two files of a source, after a burst of 60 files; 0 is no limit.",
)  # fmt: skip
@click.pass_context
@report_errors
def serve(context: click.Context, **options: Any) -> None:
    """Serve published ticks over HTTP: the dashboard and its API.

    With --ingest, also take lines for sources.
    """
    if context.invoked_subcommand is None:
        from sqlrun.serve.command import serve_command

        sys.exit(serve_command(context.obj, options, utc_now))


@serve.command(context_settings={"ignore_unknown_options": True})
@click.argument("owners", nargs=-1, type=click.UNPROCESSED, metavar="[--ENTITY KEY]...")
@click.option("--operator", is_flag=True, help="Grant access to all entities and to the operator's pages.")
@click.option(
    "--ingest", "sources", multiple=True, metavar="GROUP.NAME",
    help="Grant sending lines to this source, and nothing else; repeatable.",
)  # fmt: skip
@click.option(
    "--hours",
    type=click.FloatRange(0, 8784, min_open=True),
    default=12,
    show_default=True,
    help="Lifetime of the token in hours.",
)
@KEYS
@click.pass_obj
@report_errors
def token(
    root: Path,
    owners: tuple[str, ...],
    operator: bool,
    sources: tuple[str, ...],
    hours: float,
    keys: Path | None,
) -> None:
    """Print a signed token for local use; send it as `Authorization: Bearer TOKEN`.

    Name each key by the entity of its dashboard: `--site s1 --site s2` for a dashboard over sites.
    """
    from sqlrun.serve.command import print_token

    sys.exit(print_token(root, owners, operator, sources, hours, keys))


@click.command()
@PROFILE
@click.option("--idle", metavar="STEP", default="1h", show_default=True, help="End after this time without a command.")
@click.option("--status", "look", is_flag=True, help="Print the state of the daemon; exit with 0 if it runs, 1 if not.")
@click.pass_obj
@report_errors
def up(root: Path, profile: str | None, idle: str, look: bool) -> None:
    """Start the daemon, which keeps libraries and Spark loaded.

    Commands of this project use the daemon automatically. Each still runs in a process of its own, with the same
    output and exit code. To run without it, write `--no-server` before a command or set SQLRUN_NO_SERVER=1. Linux only.
    """
    from sqlrun.daemon import control
    from sqlrun.run.session import step_of

    sys.exit(control.up(root, profile, step_of(idle).total_seconds(), look=look))


@click.command()
@click.pass_obj
@report_errors
def down(root: Path) -> None:
    """Stop the daemon, after its running commands."""
    from sqlrun.daemon import control

    sys.exit(control.down(root))


@click.command()
@report_errors
def lsp() -> None:
    """Serve an editor over stdin and stdout: the language server."""
    from sqlrun.language_server.command import serve as serve_editor

    sys.exit(serve_editor())


COMMANDS = (serve, lsp, up, down)
