"""`sqlrun lsp`: check that its library is installed, then serve one editor. Shell: standard input and output."""

from __future__ import annotations

from sqlrun.runtime import packages


def serve() -> int:
    """Run `sqlrun lsp` and return its exit code.

    Raises: UsageError (SR133) with the command that installs what is missing.
    """
    packages.require("`sqlrun lsp`", "lsp")
    from sqlrun.language_server.server import run

    return run()
