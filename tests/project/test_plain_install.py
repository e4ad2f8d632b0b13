"""From an empty folder: install the wheel without extras, write a project, build it, show it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COPIED = ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md")
FOLDERS = ("sqlrun", "java", "models", "macros", "seeds", "profiles", "expectations", "tests/fixtures")
NEITHER = ("pyspark", "delta", "great_expectations", "pandas")

pytestmark = [pytest.mark.long, pytest.mark.slow]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Build a wheel of a copy of the repository, install it in a fresh environment, and return its programs."""
    folder = tmp_path_factory.mktemp("plain")
    source = folder / "source"
    source.mkdir()
    for name in COPIED:
        shutil.copy(ROOT / name, source)
    for name in FOLDERS:
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "target"))
    run(folder, sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", "wheels", str(source))
    (wheel,) = (folder / "wheels").glob("sqlrun-*.whl")
    run(folder, sys.executable, "-m", "venv", "own")
    started = time.perf_counter()
    run(folder, "own/bin/python", "-m", "pip", "install", "--quiet", str(wheel))
    print(f"installed in {time.perf_counter() - started:.0f}s")
    yield folder / "own" / "bin"
    shutil.rmtree(folder)  # half a gigabyte


def run(folder: Path, *command: str) -> str:
    found = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=600, env={"PATH": "/usr/bin:/bin"}
    )
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout


def test_a_plain_install_builds_a_project(installed: Path, tmp_path: Path) -> None:
    started = time.perf_counter()
    program = str(installed / "sqlrun")
    run(tmp_path, program, "init", "shop")
    run(tmp_path / "shop", program, "build")
    shown = run(tmp_path / "shop", program, "show", "daily_sales")
    print(f"init, build and show in {time.perf_counter() - started:.1f}s")

    assert "2026-" in shown
    find = f"from importlib.util import find_spec; print([n for n in {NEITHER} if find_spec(n)])"
    assert run(tmp_path, str(installed / "python"), "-I", "-c", find).strip() == "[]"
    debug = run(tmp_path / "shop", program, "debug")
    assert "extras            none. Not installed: spark, gx" in debug and "All checks passed." in debug
    checked = run(tmp_path / "shop", program, "check")
    assert "passed" in checked


def test_a_wheel_has_the_example(installed: Path, tmp_path: Path) -> None:
    """All checks of the reference project are evaluated without Great Expectations."""
    program = str(installed / "sqlrun")
    run(tmp_path, program, "init", "demo", "--example", "restaurants")
    built = run(tmp_path / "demo", program, "build")

    assert "ERROR=0" in built
    assert "r0001" in run(tmp_path / "demo", program, "show", "restaurant_windows", "--where", "window_hours = 24")
