"""The jars that Spark needs beside its own: Delta's, and those of the profile's connectors. Shell: files.

Jars come from the Ivy cache if they are there: offline, and seconds faster than resolving them.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sqlrun.errors import EngineError

# Setting with the names of connectors, words with commas.
CONNECTORS = "spark.sqlrun.connectors"
PATHS, COORDINATES, EXCLUDED = "spark.jars", "spark.jars.packages", "spark.jars.excludes"
# The log store for warehouses in S3, and the catalog for readers.
OWN = Path(__file__).with_name("sqlrun-spark.jar")
DELTA = "io.delta:delta-spark_4.1_2.13:4.4.0"
SDK = "software.amazon.awssdk:{}:2.29.52"
# What the modules of the SDK depend on, and Spark lacks; all of it as one bundle is 642 MB.
SDK_MODULES = (
    "annotations", "apache-client", "arns", "auth", "aws-core", "aws-query-protocol", "aws-xml-protocol", "checksums",
    "checksums-spi", "crt-core", "endpoints-spi", "http-auth", "http-auth-aws", "http-auth-aws-eventstream",
    "http-auth-spi", "http-client-spi", "identity-spi", "json-utils", "metrics-spi", "netty-nio-client", "profiles",
    "protocol-core", "regions", "retries", "retries-spi", "s3", "s3-transfer-manager", "sdk-core", "sts",
    "third-party-jackson-core", "utils",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Connector:
    """The jars of a connector.

    `named`: a profile that names such a jar itself gets no other. `resolved`: the coordinates that Ivy resolves if the
    jars aren't in its cache, without `excluded`. `own`: a jar of this package.
    """

    named: str
    coordinates: tuple[str, ...]
    resolved: tuple[str, ...]
    excluded: tuple[str, ...] = ()
    own: Path | None = None


# The coordinate of Spark's Kafka connector alone doesn't name all that it needs.
_KAFKA = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.3",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.1.3",
    "org.apache.kafka:kafka-clients:3.9.1",
    "org.apache.commons:commons-pool2:2.12.1",
)
_S3A = "org.apache.hadoop:hadoop-aws:3.4.2"
_DELTA = Connector("delta-spark", (DELTA, "io.delta:delta-storage:4.4.0"), (DELTA,))
KNOWN = {
    "kafka": Connector("spark-sql-kafka", _KAFKA, _KAFKA),
    "s3": Connector(
        "hadoop-aws",
        (
            _S3A,
            "software.amazon.eventstream:eventstream:1.0.1",
            "org.reactivestreams:reactive-streams:1.0.4",
            *(SDK.format(name) for name in SDK_MODULES),
        ),
        (_S3A, *(SDK.format(name) for name in ("s3", "s3-transfer-manager", "sts"))),
        ("software.amazon.awssdk:bundle",),
        OWN,
    ),
}


def settings(given: Mapping[str, str]) -> dict[str, str]:
    """Return the settings for Delta's and the connectors' jars, beside those of the profile.

    Raises: EngineError (SR810) for a warehouse in S3 if this installation lacks the jar with the log store.
    """
    own = {key: given[key].split(",") for key in (PATHS, COORDINATES, EXCLUDED) if given.get(key)}
    named = ",".join(itertools.chain(own.get(PATHS, ()), own.get(COORDINATES, ())))
    chosen = [KNOWN[name] for name in words(given) if name in KNOWN]
    ours = [str(require_own(one.own, "Spark can't write a warehouse in S3")) for one in chosen if one.own is not None]
    wanted = [_DELTA, *(one for one in chosen if one.named not in named)]
    files = [_file(each) for one in wanted for each in one.coordinates]
    for folder in (Path.home() / ".ivy2.5.2" / "jars", Path.home() / ".ivy2" / "jars"):
        if all((folder / file).is_file() for file in files):
            return _listed(own | {PATHS: [*(str(folder / file) for file in files), *ours, *own.get(PATHS, ())]})
    found = own | {COORDINATES: [*(each for one in wanted for each in one.resolved), *own.get(COORDINATES, ())]}
    excluded = [each for one in wanted for each in one.excluded]
    if ours:
        found[PATHS] = [*ours, *own.get(PATHS, ())]
    if excluded:
        found[EXCLUDED] = [*excluded, *own.get(EXCLUDED, ())]
    return _listed(found)


def words(given: Mapping[str, str]) -> list[str]:
    """Return the names of the connectors that a profile's settings ask for.

    >>> words({"spark.sqlrun.connectors": "kafka,s3"}), words({})
    (['kafka', 's3'], [])
    """
    return [name for name in given.get(CONNECTORS, "").split(",") if name]


def coordinates(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the coordinates of Delta's jars and of connectors, for those who put them on a cluster themselves."""
    return tuple(each for one in (_DELTA, *(KNOWN[name] for name in names)) for each in one.coordinates)


def require_own(jar: Path, without: str) -> Path:
    """Return the jar that belongs to this package. `without`: what isn't possible without it.

    Raises: EngineError (SR810) if this installation lacks it.
    """
    if not jar.is_file():
        raise EngineError(
            f"SR810 {without}: this installation lacks the jar that sqlrun adds to Spark ({jar}). Install a released "
            "wheel of sqlrun; or install Maven, then sqlrun again (in a checkout: `make build`)"
        )
    return jar


def _file(coordinate: str) -> str:
    """Return a jar's name in the Ivy cache.

    >>> _file("io.delta:delta-storage:4.4.0")
    'io.delta_delta-storage-4.4.0.jar'
    """
    return f"{'-'.join(coordinate.replace(':', '_', 1).rsplit(':', 1))}.jar"


def _listed(settings: Mapping[str, list[str]]) -> dict[str, str]:
    return {key: ",".join(values) for key, values in settings.items()}
