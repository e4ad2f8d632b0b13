"""A server for the files of a site, for this machine alone. Shell: the network, files."""

from __future__ import annotations

from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from sqlrun.docs_site.site_files import PAGE
from sqlrun.errors import UsageError

HOST = "127.0.0.1"
NAMES = ("127.0.0.1", "localhost")


class _Handler(SimpleHTTPRequestHandler):
    """Answers GET and HEAD for files. A folder isn't listed, and a page of another name can't read the answers."""

    server_version, sys_version = "sqlrun", ""

    def send_head(self) -> Any:
        """Send the head of an answer, unless the request names another host."""
        if self.headers.get("Host", "").rpartition(":")[0] not in NAMES:
            self.send_error(421, "Misdirected Request")
            return None
        return super().send_head()

    def list_directory(self, path: Any) -> None:
        """Refuse a list of a folder's files."""
        self.send_error(404, "File not found")

    def end_headers(self) -> None:
        """Add the headers of every answer. A file whose name has the hash of its content never changes."""
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("X-Frame-Options", "DENY")
        self.send_header("Cache-Control", "max-age=31536000, immutable" if "/files/" in self.path else "no-cache")
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Write no log."""


def serve(folder: Path, port: int) -> ThreadingHTTPServer:
    """Return a server of a folder's files that listens on 127.0.0.1; `port` 0 takes a free one.

    Raises: UsageError if there is no site, or the port is in use.
    """
    if not (folder / PAGE).is_file():
        raise UsageError(f"there is no {folder.parent.name}/{folder.name}/{PAGE}. Write it: sqlrun docs generate")
    try:
        return _Server((HOST, port), partial(_Handler, directory=str(folder)))
    except OSError as error:
        reason = error.strerror or error
        raise UsageError(f"can't listen on {HOST}:{port}: {reason}. Name another port: --port NUMBER") from error


class _Server(ThreadingHTTPServer):
    daemon_threads = True
