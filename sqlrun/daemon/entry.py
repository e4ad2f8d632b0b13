"""Entry point: run the command in the daemon if one is up. Shell: the command line, a socket.

This module imports nothing slow: if the daemon runs the command, nothing else runs in this process.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

# Commands that the daemon may run; others keep running, need no warm process or control the daemon.
SERVED = frozenset({
    "build", "check", "compile", "diff", "docs", "doctor", "drift", "env", "explain", "history", "lineage", "list",
    "ls", "maintain", "parse", "plan", "quarantine", "retry", "rollback", "run",
    "run-operation", "show", "source", "test", "ticks",
    "vacuum", "verify", "views",
})  # fmt: skip
# Options of commands that keep running, or only print help.
ALONE = ("--every", "--watch", "--help", "-h")


def main() -> None:
    """Run the command line's command, here or in the project's daemon."""
    program = "sqlrun" if os.path.basename(sys.argv[0]) == "sqlrun" else "python -m sqlrun"  # noqa: PTH119
    root = project_of(sys.argv[1:], os.environ.get("SQLRUN_NO_SERVER", ""))
    if root is not None:
        from sqlrun.daemon.client import handed_over

        code = handed_over(root, sys.argv[1:], program)
        if code is not None:
            sys.exit(code)
    from sqlrun.cli.main import main as command_line

    command_line(prog_name=program)


def project_of(arguments: Sequence[str], refused: str = "") -> str | None:
    """Return the folder of the project whose daemon may run a command; None if none may.

    >>> project_of(["build", "--profile", "duckdb"]), project_of(["--project-dir", "shops", "ls"])
    ('.', 'shops')
    >>> project_of(["up"]), project_of(["--no-server", "build"]), project_of(["build", "--every=5m"])
    (None, None, None)
    >>> project_of(["docs", "generate"]), project_of(["docs", "serve", "--port", "8080"])
    ('.', None)
    """
    root, left = ".", list(arguments)
    while left and not refused:
        word = left.pop(0)
        if word == "--project-dir" and left:
            root = left.pop(0)
        elif word.startswith("--project-dir="):
            root = word.partition("=")[2]
        elif word != "--no-cache":
            alone = any(other == name or other.startswith(f"{name}=") for other in left for name in ALONE)
            return root if word in SERVED and not alone and not (word == "docs" and "serve" in left) else None
    return None
