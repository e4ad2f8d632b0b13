"""Servers built by Go into the user's cache. Shell: processes, files, the network."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.servers.jars import LONGEST, cached


def built(module: str, version: str) -> tuple[Path, str]:
    """Return a module's program, which the first caller builds, and why it can't be built."""
    name = re.sub(r"/v\d+$", "", module).rpartition("/")[2]
    found = cached(f"{name}-{version}") / name
    if found.exists():
        return found, ""
    go = shutil.which("go")
    if go is None:
        return found, f"no {name}, nor Go to build it: `apt-get install golang`"
    found.parent.mkdir(parents=True, exist_ok=True)
    with (found.parent / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not found.exists():
            folder = found.parent / "built"
            environment = {**os.environ, "GOBIN": str(folder)}
            try:
                subprocess.run(
                    [go, "install", f"{module}@v{version}"], env=environment, capture_output=True, text=True,
                    timeout=LONGEST, check=True, stdin=subprocess.DEVNULL,
                )  # fmt: skip
            except (OSError, subprocess.SubprocessError) as error:
                return found, f"{name} can't be built: {getattr(error, 'stderr', '') or error}"[-400:]
            (folder / name).rename(found)
    return found, ""


def program(module: str, version: str) -> Path:
    """Return a module's program; a test is skipped where there is none."""
    found, why = built(module, version)
    if why:
        pytest.skip(why)
    return found
