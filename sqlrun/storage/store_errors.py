"""Errors of object stores: which may pass, and what they mean. Pure."""

from __future__ import annotations

import re

from sqlrun.errors import first_line
from sqlrun.storage import urls
from sqlrun.storage.store_options import VARIABLES

STATUS = re.compile(r"status code: (\d{3})")
CODE = re.compile(r"<Code>(\w+)</Code>")
# What the library says of an endpoint without TLS.
INSECURE = re.compile(r"http://\S+ .*builder error")
# What the library says of credentials that it can't read, of a token that it doesn't get for them, and of a cloud
# machine's own service, which it asks if the environment has none.
WITHOUT_CREDENTIALS = re.compile(
    r"service account file|credential error|performing token request|//169\.254\.|account must be specified",
    re.IGNORECASE,
)
# Signs of an answer that broke off, and of an upload in parts whose end is repeated after the store had carried it out.
LOST = ("response body", "IncompleteBody", "NoSuchUpload", "InvalidBlockList")
# Answers of a store that is busy, or that did not say whether it did what was asked.
PASSING = {408, 409, 429, 500, 502, 503, 504}
MISSING = {"NoSuchBucket", "ContainerNotFound"}
SKEWED = {"RequestTimeTooSkewed", "RequestExpired"}
REFUSED = {
    "AccessDenied", "ExpiredToken", "InvalidAccessKeyId", "InvalidToken", "SignatureDoesNotMatch",
    "TokenRefreshRequired", "AuthenticationFailed", "AuthorizationFailure", "InvalidAuthenticationInfo",
}  # fmt: skip
REDIRECTED = {"PermanentRedirect", "AuthorizationHeaderMalformed"}


class StoreError(OSError):
    """A request to an object store that failed, with its code and what to do."""


def passing(error: BaseException) -> bool:
    """Return whether a request may work if it is repeated; the store may have done it already."""
    found = STATUS.search(str(error))
    return found is None or int(found[1]) in PASSING


def answer_lost(error: BaseException) -> bool:
    """Return whether an answer broke off after its first line, or the store forgot an upload that it had completed."""
    return any(sign in str(error) for sign in LOST)


def no_bucket(error: Exception) -> bool:
    """Return whether an error is that of a missing bucket, which the library reports as a missing object."""
    return bool(_codes(error) & MISSING)


def explained(url: str, error: Exception) -> StoreError:
    """Return an error of the library as one of sqlrun's.

    >>> str(explained("s3://b/a", OSError("status code: 404 <Code>NoSuchBucket</Code>"))).partition(". ")[0]
    'SR791 s3://b/a: there is no such bucket'
    """
    codes, bucket = _codes(error), url.partition("://")[2].partition("/")[0]
    status = STATUS.search(str(error))
    if codes & MISSING:
        return StoreError(f"SR791 {url}: there is no such bucket. Create the bucket {bucket}, or correct the profile")
    if codes & SKEWED:
        return StoreError(
            f"SR793 {url}: the store rejects this machine's clock ({_named(codes & SKEWED)}). Set the clock, for "
            "example by NTP"
        )
    if WITHOUT_CREDENTIALS.search(str(error)) and (kind := urls.kind_of(url)):
        return StoreError(
            f"SR792 {url}: there are no valid credentials ({_short(error)}). Set {VARIABLES[kind]} in the environment"
        )
    if codes & REFUSED or (status and status[1] in ("401", "403")):
        return StoreError(
            f"SR792 {url}: the store denied access ({_named(codes) or first_line(error)}). Check the credentials in "
            "the environment, whether they have expired, and their rights to list, read, write and delete"
        )
    if codes & REDIRECTED:
        return StoreError(f"SR792 {url}: wrong region or endpoint ({_named(codes)}). Correct `region` in the profile")
    what = _named(codes) or _short(error)
    if INSECURE.search(what):
        return StoreError(
            f"SR794 {url}: the endpoint is http://, without TLS, which isn't allowed. Add `allow_http: true` to "
            "`storage` of the profile, or name an https:// endpoint"
        )
    return StoreError(f"SR794 {url}: the store can't be used: {what}. Check the endpoint and the network")


def _short(error: Exception) -> str:
    """Return the last cause of a library's error, without its debug output."""
    return str(error).partition("\n\nDebug source")[0].replace("\n", " ")[:300]


def _codes(error: Exception) -> set[str]:
    return set(CODE.findall(str(error)))


def _named(codes: set[str]) -> str:
    return ", ".join(sorted(codes))
