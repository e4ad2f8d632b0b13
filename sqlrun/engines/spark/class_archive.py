"""Classes that a JVM has loaded, in a file that the next one maps instead of loading them. Shell: files, the JDK.

Java calls it application class-data sharing (JEP 310, JEP 350). A JVM looks for itself whether such a file was made by
the same Java from the same jars, and does without it where it wasn't.
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

# Seconds that writing one may take.
LONGEST = 120
# Has a JVM remember what `keep` writes down.
RECORDING = "-XX:+RecordDynamicDumpInfo"


def folder(environment: Mapping[str, str]) -> Path:
    """Return where files of the user's lie that can be made anew (XDG Base Directory Specification).

    >>> folder({"HOME": "/home/ann", "XDG_CACHE_HOME": "not/absolute"})
    PosixPath('/home/ann/.cache/sqlrun')
    """
    named = Path(environment.get("XDG_CACHE_HOME", ""))
    return (named if named.is_absolute() else Path(environment.get("HOME", "~")).expanduser() / ".cache") / "sqlrun"


def file_of(java: str, jars: Path, options: str, environment: Mapping[str, str]) -> Path:
    """Return where the classes lie that a Java has loaded from a folder of jars with some options."""
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
    """Write the options of a JVM that maps a file where there is one, and else may record for it.

    Options are parted at blanks, so a path that has any isn't used.
    """
    if re.search(r"[\s\"']", str(file)):
        return ""
    if file.is_file():
        return f"-XX:SharedArchiveFile={file} -XX:+VerifySharedSpaces -Xlog:cds=off -Xlog:cds+dynamic=off"
    return RECORDING if record else ""


def keep(java: str, pid: int, file: Path) -> bool:
    """Write down what a JVM has loaded that was started to record it; False where that can't be done.

    Nothing is lost then but some seconds of each start. Files of other Javas and other jars go.
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
