"""The jars of the servers, and of Spark's connectors, fetched once by Maven into the user's cache. Shell: files, mvn.

`python -m tests.support.servers.jars` fetches all of them; the tests then need no network.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from sqlrun.engines.spark import jars as spark_jars

# Later ones read the parent of each pom, and that of the registry is nowhere to be had.
PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:2.8"
# Written last: it lists what the folder was made of.
COMPLETE = "complete"
# Seconds that one set of jars may take.
LONGEST = 600
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion>
<groupId>tests</groupId><artifactId>servers</artifactId><version>1</version><packaging>pom</packaging>
<dependencies>{}</dependencies>
</project>
"""
DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>%s</dependency>"
WHOLE = DEPENDENCY % ""
ALONE = DEPENDENCY % ("<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>")


class MissingError(Exception):
    """The jars can't be had; `broken` if Maven and Java are here, and the fetch failed."""

    def __init__(self, reason: str, broken: bool) -> None:
        super().__init__(reason)
        self.broken = broken


def cached(name: str) -> Path:
    """Return a folder in the user's cache, which may not exist yet."""
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    cache = named if named.is_absolute() else Path.home() / ".cache"
    return cache / "sqlrun-tests" / name


@dataclass(frozen=True, slots=True)
class Jars:
    """A folder of jars: the coordinates, with what they depend on at run time or without.

    `many`: of so many that one run of Maven fetches all of them.
    """

    name: str
    coordinates: tuple[str, ...]
    transitive: bool = False
    many: bool = False

    @property
    def wanted(self) -> str:
        """Return what a complete folder says of itself."""
        return "\n".join(self.coordinates)

    def folder(self) -> Path:
        """Return the folder, which may not exist yet."""
        return cached(self.name)

    def files(self) -> list[Path]:
        """Return the jars, sorted; fetch them if they aren't here."""
        return sorted(fetched(self).glob("*.jar"))


KAFKA = Jars("kafka-4.1.0", ("org.apache.kafka:kafka_2.13:4.1.0", "org.slf4j:slf4j-simple:1.7.36"), transitive=True)
REGISTRY = Jars("apicurio-registry-3.0.9", ("io.apicurio:apicurio-registry-app:3.0.9:tar.gz:all",))
# The coordinate of Spark's connector alone doesn't resolve: its parent asks for jars that Spark brings along.
SPARK_KAFKA = Jars(
    "spark-kafka-4.1.3",
    (
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.3",
        "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
        "org.apache.kafka:kafka-clients:3.9.1",
        "org.apache.commons:commons-pool2:2.12.1",
    ),
)
DEBEZIUM = Jars(
    "debezium-postgres-3.4.3",
    (
        "io.debezium:debezium-connector-postgres:3.4.3.Final",
        "io.debezium:debezium-embedded:3.4.3.Final",
        "org.slf4j:slf4j-simple:1.7.36",
    ),
    transitive=True,
)
# As Ivy fetches them for a profile whose warehouse is in S3.
S3A = Jars("spark-s3a-3.4.2", spark_jars.KNOWN["s3"].coordinates, many=True)
DELTA = Jars("delta-spark-4.4.0", spark_jars.coordinates(()), many=True)
ALL = (KAFKA, REGISTRY, SPARK_KAFKA, DEBEZIUM, S3A, DELTA)
ROOT = Path(__file__).parents[3]
JAVA = ROOT / "java" / "spark"


def java() -> str:
    """Return the Java that Spark takes too: JAVA_HOME comes before the PATH."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(str(Path(home) / "bin" / "java") if home else "java")
    if found is None:
        raise MissingError("no Java on this machine: `apt-get install openjdk-17-jdk-headless` has one", broken=False)
    return found


def fetched(jars: Jars) -> Path:
    """Return the folder of jars, complete; a process that finds another one fetching waits for it."""
    folder, wanted = jars.folder(), jars.wanted
    if _complete(folder, wanted):
        return folder
    java()
    maven = shutil.which("mvn")
    if maven is None:
        raise MissingError(f"{jars.name} isn't here, nor Maven to fetch it: `apt-get install maven`", broken=False)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f".{jars.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _complete(folder, wanted):
            return folder
        shutil.rmtree(folder, ignore_errors=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{jars.name}.") as made:
            half = Path(made) / "jars"
            half.mkdir()
            _fetch(maven, jars, half)
            (half / COMPLETE).write_text(wanted)
            half.rename(folder)
    return folder


def delta_storage() -> Path:
    """Return the jar of Delta's interface of log stores."""
    return next(needed(DELTA).glob("delta-storage-*.jar"))


def spark_jar() -> Path:
    """Return the jar of Spark's log store, for a test; build it from the source here if that is newer."""
    jar = ROOT / "sqlrun" / "engines" / "spark" / "sqlrun-spark.jar"
    newest = max(file.stat().st_mtime for file in (JAVA / "pom.xml", *JAVA.glob("src/**/*.java")))
    with (JAVA / "pom.xml").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not jar.is_file() or jar.stat().st_mtime < newest:
            maven = shutil.which("mvn")
            if maven is None:
                pytest.skip("the log store's jar isn't built, nor Maven here to build it: `apt-get install maven`")
            _run(maven, "-f", str(JAVA / "pom.xml"), "package")
            jar.touch()
    return jar


def needed(jars: Jars) -> Path:
    """Return the folder of jars for a test, which is skipped without them; it fails in CI, unless Maven is missing."""
    try:
        java()
        return fetched(jars)
    except MissingError as missing:
        if missing.broken and os.environ.get("CI"):
            raise
        pytest.skip(str(missing))


def _complete(folder: Path, wanted: str) -> bool:
    try:
        return (folder / COMPLETE).read_text() == wanted
    except OSError:
        return False


def _fetch(maven: str, jars: Jars, into: Path) -> None:
    if jars.transitive or jars.many:
        pom, each_one = into.with_name("pom.xml"), WHOLE if jars.transitive else ALONE
        pom.write_text(POM.format("".join(each_one.format(*each.split(":")) for each in jars.coordinates)))
        _run(
            maven, "-f", str(pom), f"{PLUGIN}:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={into}"
        )
        return
    for each in jars.coordinates:
        _run(maven, f"{PLUGIN}:copy", f"-Dartifact={each}", f"-DoutputDirectory={into}")
    for archive in into.glob("*.tar.gz"):
        with tarfile.open(archive) as opened:
            opened.extractall(into, filter="data")
        archive.unlink()


def _run(maven: str, *arguments: str) -> None:
    try:
        subprocess.run(
            [maven, "-q", "-B", *arguments], check=True, capture_output=True, text=True, timeout=LONGEST,
            stdin=subprocess.DEVNULL, cwd=tempfile.gettempdir(),
        )  # fmt: skip
    except subprocess.CalledProcessError as failed:
        wrong = [line for line in failed.stdout.splitlines() if "ERROR" in line] or [failed.stdout[-500:]]
        raise MissingError(f"mvn {' '.join(arguments)}: {wrong[0]}", broken=True) from None
    except subprocess.TimeoutExpired:
        raise MissingError(f"mvn {' '.join(arguments)} took more than {LONGEST} seconds", broken=True) from None


def main() -> int:
    """Fetch all; what can't be had is reported, and is an error only in CI."""
    failed = False
    for jars in ALL:
        if not _complete(jars.folder(), jars.wanted):
            print(f"Fetching {jars.name} into {jars.folder()}.", flush=True)
        try:
            fetched(jars)
        except MissingError as missing:
            print(f"Tests that need {jars.name} are skipped: {missing}", file=sys.stderr)
            failed |= missing.broken
    return int(failed and bool(os.environ.get("CI")))


if __name__ == "__main__":
    sys.exit(main())
