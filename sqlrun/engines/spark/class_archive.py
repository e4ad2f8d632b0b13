"""Archive of a JVM's loaded classes, which the next JVM maps instead of loading them. Shell: files, the JDK.

Java calls it application class-data sharing (JEP 310, JEP 350). A JVM checks whether the same Java made the archive
from the same jars, and ignores it otherwise.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

# Maximum number of seconds for writing an archive.
LONGEST = 120
# Option that makes a JVM record its classes for `keep`.
RECORDING = "-XX:+RecordDynamicDumpInfo"


def folder(environment: Mapping[str, str]) -> Path:
    """Return the user's cache folder for sqlrun (XDG Base Directory Specification).

    >>> folder({"HOME": "/home/ann", "XDG_CACHE_HOME": "not/absolute"})
    PosixPath('/home/ann/.cache/sqlrun')
    """
    named = Path(environment.get("XDG_CACHE_HOME", ""))
    return (named if named.is_absolute() else Path(environment.get("HOME", "~")).expanduser() / ".cache") / "sqlrun"


def file_of(java: str, jars: Path, options: str, environment: Mapping[str, str]) -> Path:
    """Return the archive's path for a Java, a folder of jars and some options."""
    home = Path(os.path.realpath(java)).parent.parent
    parts = [str(home), _moment(home / "lib" / "modules"), str(jars), _moment(jars), options]
    key = hashlib.blake2b(json.dumps(parts).encode(), digest_size=12).hexdigest()
    return folder(environment) / f"spark-{key}.jsa"


def _moment(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def options_for(file: Path, *, record: bool) -> str:
    """Return the options of a JVM that maps the archive if it exists; else, with `record`, of one that records it.

    Options are separated by blanks, so a path that contains any isn't used.
    """
    if re.search(r"[\s\"']", str(file)):
        return ""
    if file.is_file():
        return f"-XX:SharedArchiveFile={file} -XX:+VerifySharedSpaces -Xlog:cds=off -Xlog:cds+dynamic=off"
    return RECORDING if record else ""


def keep(java: str, pid: int, file: Path) -> bool:
    """Write the archive of a JVM that was started to record it; return False on failure.

    Without an archive each start takes some seconds longer. Archives of other Javas and other jars are deleted.
    """
    tool = Path(os.path.realpath(java)).with_name("jcmd")
    half = file.with_name(f".{file.name}.{pid}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        command = [str(tool), str(pid), "VM.cds", "dynamic_dump", str(half)]
        subprocess.run(command, check=True, capture_output=True, timeout=LONGEST)
        half.replace(file)
    except (OSError, subprocess.SubprocessError):
        return False
    finally:
        half.unlink(missing_ok=True)
    for other in file.parent.glob("spark-*.jsa"):
        if other != file:
            with contextlib.suppress(OSError):
                other.unlink()
    return True
