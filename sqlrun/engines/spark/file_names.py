"""Names of files in Spark's scans. Shell: Spark."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote, urlsplit


def uri_of(session: Any, path: str) -> str:
    """Return a file's name in Spark's scans."""
    jvm = session.sparkContext._jvm
    return str(jvm.org.apache.hadoop.fs.Path(jvm.java.io.File(path).toURI()).toUri().toString())


def path_of(uri: str) -> str:
    """Return the path of a file from its name in Spark's scans.

    >>> path_of("file:///tmp/a%2520b")
    '/tmp/a%20b'
    """
    return unquote(urlsplit(uri).path)
