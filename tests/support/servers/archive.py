"""The classes of a broker, archived when the first one stops and mapped by the next. Shell: files.

A start takes half the time: 2.5 instead of 4.6 seconds of the processor.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from tests.support.servers import jars

QUIET = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")


def file() -> Path:
    """Return the archive's path: another Java, and the same jars fetched again, have another one."""
    home = Path(jars.java()).resolve().parent.parent
    moments = [each.stat().st_mtime_ns for each in (home, jars.KAFKA.folder() / jars.COMPLETE)]
    key = hashlib.blake2b(f"{home} {moments}".encode(), digest_size=6).hexdigest()
    return jars.KAFKA.folder().with_name(f"{jars.KAFKA.name}-{key}.jsa")


def mapping() -> list[str]:
    """Return the options of a JVM that maps the archive, if there is one."""
    return [f"-XX:SharedArchiveFile={file()}", *QUIET] if file().is_file() else []


def recording(into: Path) -> list[str]:
    """Return the options of a JVM that writes the archive into a file as it ends, if there is none."""
    return [] if file().is_file() else [f"-XX:ArchiveClassesAtExit={into}", *QUIET]


def keep(recorded: Path) -> None:
    """Move what a stopped broker wrote to where the next one looks, and delete those of other Javas."""
    if not recorded.is_file():
        return
    half = file().with_name(f".{file().name}.{os.getpid()}")
    shutil.move(recorded, half)
    half.replace(file())
    for other in file().parent.glob(f"{jars.KAFKA.name}-*.jsa"):
        if other != file():
            other.unlink(missing_ok=True)
