"""Servers that a command builds or installs once, into the user's cache. Shell: processes, files, the network."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
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
    made = found.parent / "built" / name
    command = [go, "install", f"{module}@v{version}"]
    return once(found, made, command, {"GOBIN": str(made.parent)}, f"{name} can't be built")


def once(found: Path, made: Path, command: Sequence[str], variables: Mapping[str, str], fault: str) -> tuple[Path, str]:
    """Return a path in the cache, and why it can't be there: the first caller's command makes it at another place."""
    found.parent.mkdir(parents=True, exist_ok=True)
    with (found.parent / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not found.exists():
            try:
                subprocess.run(
                    command, env={**os.environ, **variables}, capture_output=True, text=True, timeout=LONGEST,
                    check=True, stdin=subprocess.DEVNULL,
                )  # fmt: skip
            except (OSError, subprocess.SubprocessError) as error:
                return found, f"{fault}: {getattr(error, 'stderr', '') or error}"[-400:]
            made.rename(found)
    return found, ""


def program(module: str, version: str) -> Path:
    """Return a module's program; a test is skipped where there is none."""
    return or_skip(*built(module, version))


def or_skip(found: Path, why: str) -> Path:
    """Return a program; skip the test if there is a reason why it isn't there."""
    if why:
        pytest.skip(why)
    return found
