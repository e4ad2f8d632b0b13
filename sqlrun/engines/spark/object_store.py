"""Spark's settings for a warehouse in S3: its file system, and the log store that commits without overwriting. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from sqlrun.storage import urls

LOG_STORE = "org.sqlrun.delta.ConditionalLogStore"
S3A = "spark.hadoop.fs.s3a."
FILES = "spark.hadoop.fs.s3.impl"
# Delta asks for the log store by the scheme of a table's path; tables of others may be named by the other one.
STORES = ("spark.delta.logStore.s3.impl", "spark.delta.logStore.s3a.impl")
FIXED = {FILES: "org.apache.hadoop.fs.s3a.S3AFileSystem", **dict.fromkeys(STORES, LOG_STORE)}
# How a stream writes the files of its checkpoint.
CHECKPOINTS = "spark.sql.streaming.checkpointFileManagerClass"
CHECKPOINT_FILES = "org.sqlrun.spark.ConditionalCheckpointFiles"
ANONYMOUS = "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"
# Hadoop's names of the environment's credentials.
SECRETS = {
    "AWS_ACCESS_KEY_ID": "fs.s3a.access.key",
    "AWS_SECRET_ACCESS_KEY": "fs.s3a.secret.key",
    "AWS_SESSION_TOKEN": "fs.s3a.session.token",
}


def settings(options: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Return the settings, without credentials, by a profile's `storage:` options and the environment.

    Without an endpoint it is Amazon's own, and without a region the one that the SDK finds.

    >>> settings({"endpoint": "http://store:9000"}, {})["spark.hadoop.fs.s3a.path.style.access"]
    'true'
    """
    found = dict(FIXED)
    endpoint = options.get("endpoint") or environment.get("AWS_ENDPOINT_URL")
    region = options.get("region") or environment.get("AWS_REGION")
    if endpoint:
        found[f"{S3A}endpoint"] = endpoint
        # Stores other than Amazon's seldom have a host name for each bucket.
        found[f"{S3A}path.style.access"] = str(options.get("virtual_hosted_style") != "true").lower()
        found[f"{S3A}connection.ssl.enabled"] = str(not endpoint.startswith("http://")).lower()
    if region:
        found[f"{S3A}endpoint.region"] = region
    if options.get("skip_signature") == "true":
        found[f"{S3A}aws.credentials.provider"] = ANONYMOUS
    return found


def of_checkpoint(folder: str) -> dict[str, str]:
    """Return the settings of a stream with its checkpoint in a folder.

    Spark itself renames a checkpoint's files, which on S3 is a copy that overwrites (decision 62).

    >>> of_checkpoint("/warehouse/_checkpoints/orders")
    {}
    """
    return {CHECKPOINTS: CHECKPOINT_FILES} if urls.kind_of(folder) == "s3" else {}


def secrets(given: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Return the credentials of the environment as settings of Hadoop, for Spark's settings with a warehouse in S3.

    They aren't among those settings, because the JVM's command line shows them to every user of the machine. Without
    credentials, S3A finds those of the machine; a profile that names its own way to them keeps it.
    """
    if FILES not in given or f"{S3A}aws.credentials.provider" in given:
        return {}
    return {name: environment[variable] for variable, name in SECRETS.items() if environment.get(variable)}
