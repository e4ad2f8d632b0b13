"""`sqlrun lsp`: check that its library is installed, then serve one editor. Shell: standard input and output."""

from __future__ import annotations

from importlib.util import find_spec

from sqlrun.errors import UsageError

LIBRARIES = ("pygls", "lsprotocol")


def serve() -> int:
    """Run `sqlrun lsp` and return its exit code.

    Raises: UsageError with the command that installs what is missing.
    """
    missing = [name for name in LIBRARIES if find_spec(name) is None]
    if missing:
        raise UsageError(f"`sqlrun lsp` needs {', '.join(missing)}. Install them: pip install 'sqlrun[lsp]'")
    from sqlrun.language_server.server import run

    return run()
