"""URLs of warehouses on object stores. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import quote, unquote

SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
# By the schemes that obstore and delta-rs have in common.
KINDS = {"s3": "s3", "s3a": "s3", "gs": "gcs", "az": "azure", "azure": "azure", "abfs": "azure", "abfss": "azure"}
# delta-rs decodes a `%` of a prefix twice; a URL ends its path at `?` and `#`.
FORBIDDEN = re.compile(r"[%?#\\\x00-\x1f\x7f]")
# Of a bucket, or a container with its account: more than any store allows.
BUCKET = re.compile(r"[A-Za-z0-9._@-]+")


def is_url(path: str) -> bool:
    """Return whether a path is a URL.

    >>> is_url("s3://bucket/a"), is_url("/tmp/a://b"), is_url("warehouse")
    (True, False, False)
    """
    return SCHEME.match(path) is not None


def kind_of(url: str) -> str:
    """Return the kind of an object store: s3, gcs or azure; "" for another URL."""
    found = SCHEME.match(url)
    return KINDS.get(found[1].lower(), "") if found else ""


def root_of(url: str) -> str:
    """Return the URL of a bucket.

    >>> root_of("s3://bucket/a b/c")
    's3://bucket'
    """
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}"


def normal(url: str) -> str:
    """Return a URL with its scheme in lowercase, without empty segments.

    >>> normal("S3://bucket//a b/")
    's3://bucket/a b'
    """
    scheme, _, rest = url.partition("://")
    return f"{scheme.lower()}://{'/'.join(part for part in rest.split('/') if part)}"


def fault(url: str) -> str:
    """Return what is wrong with a warehouse's URL; "" for a valid one.

    >>> fault("s3://bucket/wärehouse 1"), fault("s3:///a"), fault("s3://bucket/50%")
    ('', 'it names no bucket', 'it contains `%`')
    >>> fault("s3://my bucket/a"), fault("abfss://files@account.dfs.core.windows.net/a")
    ("a bucket's name has only letters, digits, `.`, `_` and `-`", '')
    """
    bucket = root_of(url).partition("://")[2]
    if not bucket:
        return "it names no bucket"
    path = normal(url).partition("://")[2]
    if found := FORBIDDEN.search(path):
        sign = found[0]
        return f"it contains `{sign if sign.isprintable() else f'U+{ord(sign):04X}'}`"
    if any(part in (".", "..") for part in path.split("/")):
        return "it contains a segment `.` or `..`"
    if not BUCKET.fullmatch(bucket):
        return "a bucket's name has only letters, digits, `.`, `_` and `-`"
    return ""


def escaped(url: str) -> str:
    """Return a URL as libraries parse it, with the escapes of a prefix's signs.

    >>> escaped("s3://bucket/a b")
    's3://bucket/a%20b'
    """
    root = root_of(url)
    return root + quote(url.removeprefix(root), safe="/=")


def path_of(uri: str) -> str:
    """Return the path or URL of a table from its URI in delta-rs, without escapes.

    >>> path_of("file:///tmp/a%20b/"), path_of("s3://bucket/a%20b")
    ('/tmp/a b', 's3://bucket/a b')
    """
    return unquote(uri.removeprefix("file://")).rstrip("/")


def longest(url: str, roots: Iterable[str]) -> str | None:
    """Return the longest of some URLs that contains another one; None if none does."""
    return max((root for root in roots if url == root or url.startswith(f"{root}/")), key=len, default=None)
