"""Virtual environments for rivals, from the public registries. Shell: processes, package installs."""

from __future__ import annotations

import re
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

# A native parser that the installation downloads from outside the registry; no benchmark loads it.
LEFT_OUT = "dbt-core-experimental-parser"
REQUIRED = """
import importlib.metadata as m, sys
left_out = tuple(sys.argv[1:])
needed = [r for name in left_out[1:] for r in m.requires(name) or ()]
print(*(r for r in needed if "extra ==" not in r and not r.startswith(left_out)), sep="\\n")
"""
VERSIONS = """
import importlib.metadata as m, sys
print(*(f"{name}={m.version(name)}" for name in sys.argv[1:]), sep="\\n")
"""
MADE = ".installed"
OWN = sys.executable


def installed(folder: Path, requirements: Sequence[str]) -> Path:
    """Create a virtual environment with these packages unless it exists, and return its Python."""
    python = folder / "bin" / "python"
    if not is_made(folder, requirements):
        venv.create(folder, with_pip=True, clear=True)
        pip(python, *without_extra_parser(python, requirements))
        (folder / MADE).write_text("\n".join(requirements))
    return python


def is_made(folder: Path, requirements: Sequence[str]) -> bool:
    """Return whether an environment with these packages exists."""
    note = folder / MADE
    return note.is_file() and note.read_text() == "\n".join(requirements)


def without_extra_parser(python: Path, requirements: Sequence[str]) -> list[str]:
    """Install dbt alone if it is required, and return its requirements without the unavailable package."""
    alone = [r for r in requirements if r.startswith("dbt-")]
    if not alone:
        return list(requirements)
    pip(python, "--no-deps", *alone)
    names = [re.split(r"[=<>~]", r)[0] for r in alone]
    done = subprocess.run([python, "-c", REQUIRED, LEFT_OUT, *names], capture_output=True, text=True, check=True)
    return [*done.stdout.split("\n")[:-1], *(r for r in requirements if r not in alone)]


def listed(file: Path) -> list[str]:
    """Return the lines of a requirements file."""
    lines = (line.partition("#")[0].strip() for line in file.read_text().splitlines())
    return [line for line in lines if line]


def pip(python: Path, *arguments: str) -> None:
    """Install packages; pip's warnings about a working package (dbt-core without its extra parser) are hidden."""
    command = [python, "-m", "pip", "install", "--quiet", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"pip can't install {' '.join(arguments)}:\n{done.stderr}")


def versions(python: Path, packages: Sequence[str]) -> dict[str, str]:
    """Return the versions of packages in an environment."""
    done = subprocess.run([python, "-c", VERSIONS, *packages], capture_output=True, text=True, check=True)
    return dict(line.split("=", 1) for line in done.stdout.split())


def version_of(python: Path, package: str) -> str:
    """Return the version of a package in an environment."""
    return versions(python, [package])[package]
