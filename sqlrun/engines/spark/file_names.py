"""Names of files in Spark's scans. Pure."""

from __future__ import annotations

import unicodedata
from urllib.parse import quote, unquote, urlsplit

# What Java's URIs leave as it is, beside letters and digits.
PLAIN = "/_-!.~'()*,;:$&+=@"


def uri_of(path: str) -> str:
    """Return a file's name in Spark's scans: as Java spells it, whose URIs keep letters other than ASCII's.

    >>> uri_of("/tmp/a b%20é"), uri_of("s3://lake/a b")
    ('file:/tmp/a%20b%2520é', 's3://lake/a%20b')
    """
    scheme, found, rest = path.partition("://")
    return (f"{scheme}://" if found else "file:") + "".join(
        c if ord(c) > 127 and unicodedata.category(c) not in ("Zs", "Zl", "Zp", "Cc") else quote(c, PLAIN)
        for c in (rest if found else path)
    )


def path_of(uri: str) -> str:
    """Return the path of a file from its name in Spark's scans.

    >>> path_of("file:///tmp/a%2520b"), path_of("s3://lake/a%2520b")
    ('/tmp/a%20b', 's3://lake/a%20b')
    """
    return unquote(urlsplit(uri).path if uri.startswith("file:") else uri)
