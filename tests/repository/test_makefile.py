"""The Makefile and the scripts in .ci/, as far as that goes without installing anything."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
REMEDY = "Install a JDK 17 or newer, for instance `apt-get install openjdk-17-jdk-headless`"


@pytest.fixture
def bare(tmp_path, monkeypatch) -> Path:
    """Leave on the PATH only a folder with the few tools that the scripts use; no Java."""
    for tool in ("bash", "env", "sed", "head", "cat"):
        (tmp_path / tool).symlink_to(str(shutil.which(tool)))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return tmp_path


def fake(path: Path, prints: str, code: int = 0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/usr/bin/env bash\ncat >&2 <<'END'\n{prints}\nEND\nexit {code}\n")
    path.chmod(0o755)


def require(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [ROOT / ".ci" / "require", *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )


@pytest.mark.parametrize(
    "prints",
    [
        'openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment (build 17.0.15+6)',
        'Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "21" 2023-09-19',
        'openjdk version "25-ea" 2025-09-16',
    ],
)
def test_java_17_and_newer_are_taken(bare, prints):
    fake(bare / "java", prints)

    assert (require("java").returncode, require("java").stderr) == (0, "")


@pytest.mark.parametrize(
    ("prints", "says"),
    [
        ('openjdk version "11.0.22" 2024-01-16', "`java` is Java 11 (11.0.22)"),
        ('java version "1.8.0_392"', "`java` is Java 8 (1.8.0_392)"),
        ('openjdk version "9"', "`java` is Java 9 (9)"),
        ("hello", "`java -version` does not say its version:\nhello"),
    ],
)
def test_an_older_java_is_refused_with_what_to_do(bare, prints, says):
    fake(bare / "java", prints)
    done = require("java")

    assert done.returncode == 1
    assert says in done.stderr and REMEDY in done.stderr


def test_no_java_is_said_with_what_to_do(bare):
    done = require("java")

    assert done.returncode == 1
    assert "no working `java` was found" in done.stderr and REMEDY in done.stderr


def test_a_java_that_does_not_run_counts_as_none(bare):
    fake(bare / "java", "Unable to locate a Java Runtime.", code=1)

    assert "no working `java` was found" in require("java").stderr


def test_java_home_comes_before_the_path_as_it_does_for_spark(bare, monkeypatch):
    fake(bare / "java", 'openjdk version "17.0.15"')
    fake(bare / "old" / "bin" / "java", 'openjdk version "11.0.22"')
    monkeypatch.setenv("JAVA_HOME", str(bare / "old"))
    done = require("java")

    assert done.returncode == 1
    assert "is Java 11" in done.stderr and f"JAVA_HOME is set to {bare / 'old'}" in done.stderr


def test_this_python_is_taken_and_a_missing_or_old_one_refused(bare):
    fake(bare / "python2.7", "Python 2.7.18", code=1)

    assert require("python", sys.executable).returncode == 0
    assert "there is no `python9`" in require("python", "python9").stderr
    assert "`python2.7` is Python 2.7.18" in require("python", "python2.7").stderr


def make(*arguments: str) -> str:
    if not shutil.which("make"):
        pytest.skip("make is not installed")
    # What an outer `make test` passes on would change what is printed.
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MAKE") and key != "MFLAGS"}
    done = subprocess.run(["make", *arguments], cwd=ROOT, capture_output=True, text=True, check=True, env=environment)
    return done.stdout


@pytest.mark.parametrize(
    ("program", "name"),
    [("chromium", "chromium"), ("chromium", "chromium-browser"), ("chromium", "google-chrome"), ("maven", "mvn")],
)
def test_a_program_that_is_there_is_taken(bare, program, name):
    fake(bare / name, "")

    found = require(program)

    assert (found.returncode, found.stdout, found.stderr) == (0, "", "")


@pytest.mark.parametrize("user", ["0", "1000"])
@pytest.mark.parametrize("program", ["chromium", "maven"])
def test_a_program_is_installed_by_root_alone(bare, program, user):
    """Whoever may not install it goes on without: the tests that need it are skipped then."""
    (bare / "id").write_text(f"#!/usr/bin/env bash\necho {user}\n")
    (bare / "apt-get").write_text(f'#!/usr/bin/env bash\necho "$@" >> {bare}/asked\n')
    for tool in ("id", "apt-get"):
        (bare / tool).chmod(0o755)

    found = require(program)

    assert found.returncode == 0
    assert (f"Installing {program}" in found.stdout) == (bare / "asked").exists() == (user == "0")
    assert ("are skipped" in found.stderr) == (user != "0")


@pytest.mark.parametrize("program", ["chromium", "maven"])
def test_a_program_that_cannot_be_installed_stops_nothing(bare, program):
    (bare / "id").write_text("#!/usr/bin/env bash\necho 0\n")
    (bare / "id").chmod(0o755)
    fake(bare / "apt-get", "no network", 100)

    found = require(program)

    assert found.returncode == 0
    assert f"Install it, for instance `apt-get install {program}`" in found.stderr


def test_make_alone_shows_every_target():
    done = make()
    phony = set(re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)[1].split())

    shown = set(re.findall(r"^  make ([a-z-]+) +[A-Z]", done, re.MULTILINE))
    assert (
        shown
        == phony - {"java", "chromium", "maven", "again"}
        == {"help", "build", "test", "test-all", "test-plain", "test-spark", "test-fast"}
        | {"mutants", "fuzz", "judge", "lines", "values", "crash", "soak", "bench", "ecosystem", "lint", "clean"}
        | {"servers"}
    )
    assert done == make("help")


@pytest.mark.parametrize(
    ("target", "commands"),
    [
        ("build", [".ci/require java", "sqlrun simulate", "sqlrun build"]),
        (
            "test",
            [
                ".ci/require java",
                ".ci/require chromium",
                ".ci/require maven",
                "python -m tests.support.servers.jars",
                'pytest -m "spark and not long"',
                'pytest -n 2 --dist worksteal --ignore=tests/spark -m "not spark and not long"',
            ],
        ),
        (
            "test-all",
            [
                "tests.support.servers.jars",
                'pytest -m "spark " --share 1/1',
                'pytest -n 2 --dist worksteal --ignore=tests/spark -m "not spark " --share 1/1',
            ],
        ),
        (
            "test-fast",
            ['pytest -n 2 --dist worksteal --ignore=tests/spark -m "not spark and not slow and not servers"'],
        ),
        ("bench", [".ci/require java", 'benchmarks.bench --sizes "20k,1m" --contenders ""', "--ticks 3"]),
        ("crash", ["python -m tests.crash --kills 100 --ticks 200 --engine duckdb", "--source files --store disk"]),
        ("lint", ["ruff check .", "ruff format --check .", "mypy"]),
    ],
)
def test_targets_run_what_they_say(target, commands):
    planned = make("--dry-run", target)

    places = [planned.find(command) for command in commands]
    assert -1 not in places
    # Java is asked for before anything is installed: better to stop after a second than after a minute.
    assert places == sorted(places)


def test_clean_leaves_the_data_alone():
    assert not re.search(r"\bdata\b", make("--dry-run", "clean"))


def test_pip_is_used_as_it_is_configured():
    assert not re.search(r"index|trusted-host|https?:", MAKEFILE)


def test_ci_runs_lint_and_all_tests():
    script = ROOT / ".ci" / "run"
    text = script.read_text(encoding="utf-8")

    assert os.access(script, os.X_OK) and os.access(ROOT / ".ci" / "require", os.X_OK)
    assert re.findall(r"^make ([a-z-]+)", text, re.MULTILINE) == ["lint", "test-all"]
    assert "export CI=true" in text


@pytest.mark.parametrize(("commit", "share"), [("c3f0", "1/8"), ("c3f1", "2/8"), ("c3f9", "2/8"), ("c3ff", "8/8")])
def test_ci_takes_an_eighth_of_the_long_tests_by_the_commit(tmp_path, commit, share):
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
    fake(tmp_path / "git", "")
    (tmp_path / "git").write_text(f"#!/usr/bin/env bash\necho {commit}\n")
    (tmp_path / "make").write_text('#!/usr/bin/env bash\necho "$@"\n')
    (tmp_path / "make").chmod(0o755)

    ran = subprocess.run(
        [tmp_path / ".ci" / "run"],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )

    assert ran.stdout.splitlines() == ["lint", f"test-all SHARE={share}"]


@pytest.mark.slow
@pytest.mark.parametrize("workers", [[], ["-n", "2"]])
def test_a_failure_is_printed_before_the_summary(tmp_path, workers):
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_configure\n")
    (tmp_path / "test_one.py").write_text("def test_it():\n    assert 1 == 2, 'of no use'\n")
    command = [sys.executable, "-m", "pytest", "-c", os.devnull, "--rootdir", tmp_path, *workers, tmp_path]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}

    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)

    progress, _, summary = ran.stdout.partition("= FAILURES =")
    assert "test_one.py::test_it failed after 0.0 s: AssertionError: of no use\n" in progress and summary


def collected(*arguments: str) -> list[str]:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "tests/run/test_ticks.py", *arguments]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [line for line in found.splitlines() if "::" in line]


@pytest.mark.slow
@pytest.mark.long
def test_the_shares_of_the_long_tests_are_all_of_them_once():
    every, short = collected(), collected("-m", "not long")
    one, other = (collected("--share", f"{number}/2") for number in (1, 2))

    assert len(short) < len(one) < len(every)
    assert sorted(one + other) == sorted(every + short)


def test_those_on_spark_are_where_their_target_looks():
    """One half leaves the folder out, the other reads it alone: a test with a wrong mark would be in neither."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    marked = {f for f in files if re.search(r"^pytestmark = (\[[^\]]*)?pytest\.mark\.spark", f.read_text(), re.M)}

    assert {f for f in files if f.parent.name == "spark"} == marked
    assert {f for f in files if "mark.spark" in f.read_text()} - {Path(__file__)} == marked
