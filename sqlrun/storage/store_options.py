"""Options of an object store: of the profile, by one name each, as the libraries name them. Pure.

Credentials come from the environment alone, by the variables of the store's own tools; the libraries read them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

NOTHING: Mapping[str, str] = MappingProxyType({})
# The profile's keys by kind of store, with the name of each in obstore's configuration and delta-rs' options.
CONFIG: Mapping[str, Mapping[str, str]] = {
    "s3": {
        "endpoint": "aws_endpoint", "region": "aws_region",
        "virtual_hosted_style": "aws_virtual_hosted_style_request", "skip_signature": "aws_skip_signature",
    },
    "gcs": {"endpoint": "google_base_url", "skip_signature": "google_skip_signature"},
    "azure": {"endpoint": "azure_storage_endpoint", "account": "azure_storage_account_name"},
}  # fmt: skip
CLIENT = {"allow_http": "allow_http", "timeout": "timeout", "connect_timeout": "connect_timeout"}
SECRET = re.compile(r"key|secret|token|passw|credential|sas", re.IGNORECASE)
VARIABLES = {
    "s3": "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN",
    "gcs": "GOOGLE_APPLICATION_CREDENTIALS or GOOGLE_SERVICE_ACCOUNT",
    "azure": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
}


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """Options of a store, by the profile's names; the environment has the rest."""

    kind: str
    given: Mapping[str, str] = field(default_factory=dict)

    @property
    def config(self) -> dict[str, str]:
        """Return obstore's configuration."""
        known = CONFIG[self.kind]
        return {known[key]: value for key, value in self.given.items() if key in known}

    @property
    def client(self) -> dict[str, object]:
        """Return the options of obstore's HTTP client."""
        found: dict[str, object] = {CLIENT[key]: value for key, value in self.given.items() if key in CLIENT}
        if "allow_http" in found:
            found["allow_http"] = found["allow_http"] == "true"
        return found

    @property
    def of_delta(self) -> dict[str, str]:
        """Return the options of delta-rs; it needs one for each request's maximum number of tries."""
        found = {CLIENT[key]: value for key, value in self.given.items() if key in CLIENT}
        return {**self.config, **found, "max_retries": "8", "retry_timeout": "60s"}


def fault(kind: str, key: str) -> tuple[str, str]:
    """Return what is wrong with a key of a profile's options, and how to fix it; empty for a valid one.

    >>> fault("s3", "endpoint")
    ('', '')
    >>> fault("s3", "secret_access_key")[0], fault("s3", "account")[0]
    ('`secret_access_key` is a secret', 'unknown key `account`')
    """
    if key in CLIENT or key in CONFIG[kind]:
        return "", ""
    if SECRET.search(key):
        return f"`{key}` is a secret", f"Set it in the environment: {VARIABLES[kind]}."
    return f"unknown key `{key}`", f"Known keys: {', '.join([*CONFIG[kind], *CLIENT])}."
