"""Spark's settings for a warehouse in S3: its file system, and the log store that commits without overwriting. Pure."""

from __future__ import annotations

from collections.abc import Mapping

SCHEME = "s3://"
LOG_STORE = "org.sqlrun.delta.ConditionalLogStore"
S3A = "spark.hadoop.fs.s3a."
FILES = "spark.hadoop.fs.s3.impl"
# Delta asks for the log store by the scheme of a table's path; tables of others may be named by the other one.
STORES = ("spark.delta.logStore.s3.impl", "spark.delta.logStore.s3a.impl")
FIXED = {FILES: "org.apache.hadoop.fs.s3a.S3AFileSystem", **dict.fromkeys(STORES, LOG_STORE)}
# Hadoop's names of the environment's credentials.
SECRETS = {
    "AWS_ACCESS_KEY_ID": "fs.s3a.access.key",
    "AWS_SECRET_ACCESS_KEY": "fs.s3a.secret.key",
    "AWS_SESSION_TOKEN": "fs.s3a.session.token",
}


def settings(endpoint: str = "", region: str = "") -> dict[str, str]:
    """Return the settings, without credentials; "" means Amazon's own endpoint, and the region that the SDK finds.

    >>> settings("http://store:9000")["spark.hadoop.fs.s3a.path.style.access"]
    'true'
    """
    found = dict(FIXED)
    if endpoint:
        found[f"{S3A}endpoint"] = endpoint
        # Stores other than Amazon's seldom have a host name for each bucket.
        found[f"{S3A}path.style.access"] = "true"
        found[f"{S3A}connection.ssl.enabled"] = str(not endpoint.startswith("http://")).lower()
    if region:
        found[f"{S3A}endpoint.region"] = region
    return found


def secrets(given: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Return the credentials of the environment as settings of Hadoop, for Spark's settings with a warehouse in S3.

    They aren't among those settings, because the JVM's command line shows them to every user of the machine. Without
    credentials, S3A finds those of the machine; a profile that names its own way to them keeps it.
    """
    if FILES not in given or f"{S3A}aws.credentials.provider" in given:
        return {}
    return {name: environment[variable] for variable, name in SECRETS.items() if environment.get(variable)}
