"""A warm server's Spark: borrowed by one command after the other, thrown away with one that dies."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sqlrun.daemon import protocol
from tests.daemon.test_warm_builds import Shell, put
from tests.support import shops

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(not protocol.is_supported(), reason="needs Linux"),
]


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    made = Shell(shops.project(tmp_path / "project"), tmp_path / "run")
    made.runtime.mkdir()
    profile = "engine: spark\nwarehouse: warehouse\nsettings:\n  spark.driver.memory: 1g\n"
    (made.root / "profiles" / "local.yml").write_text(profile)
    yield made
    made.run("down")


def jvms(shell: Shell) -> set[int]:
    """Find the JVMs that have been born in the project's folder."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "comm").read_text() == "java\n" and (process / "cwd").resolve() == shell.root.resolve():
                found.add(int(process.name))
        except OSError:
            continue
    return found


def state(shell: Shell) -> str:
    shown = re.search(r"Spark +(.*)", shell.run("up", "--status")[1])
    assert shown
    return shown[1]


@pytest.mark.long
def test_one_jvm_serves_builds_until_one_of_them_dies(shell: Shell) -> None:
    code, said = shell.run("up")
    assert (code, "free" in state(shell)) == (0, True), said
    first = jvms(shell)
    assert len(first) == 1
    for name in ("a", "b"):
        put(shell.root, name)
        code, said = shell.run("build", "--skip-tests")
        assert (code, "another Spark" in said) == (0, False), said
    # Another warehouse at the same place: nothing that Spark remembers of the tables may show.
    assert shell.run("clean", "--warehouse")[0] == 0
    code, said = shell.run("build", "--skip-tests")
    assert (code, "OK 4 rows" in said) == (0, True), said
    assert jvms(shell) == first

    put(shell.root, "c", 30)
    with shell.begin("build", "--skip-tests", "--verbose") as client:
        assert client.stdout is not None
        for line in client.stdout:
            if "START landing" in line:
                break
        time.sleep(1)
        client.send_signal(signal.SIGKILL)
    code, said = shell.run("build", "--skip-tests", "--wait")

    assert code == 0, said
    assert shell.run("verify")[0] == 0
    assert ",34\n" in shell.run("show", "by_shop", "--output", "csv")[1].replace("\r", "")
    assert not first & jvms(shell)
    assert len(jvms(shell)) == 1
    assert shell.run("down")[0] == 0
    time.sleep(1)
    assert not jvms(shell)


@pytest.mark.long
def test_the_classes_that_the_first_one_has_loaded_are_mapped_by_the_next(shell: Shell) -> None:
    assert shell.run("up")[0] == 0
    (archive,) = (shell.runtime / "cache" / "sqlrun").glob("spark-*.jsa")
    (first,) = jvms(shell)
    assert str(archive) not in maps(first)
    made = archive.stat().st_mtime_ns
    # One that was recorded may stand in for one that maps them.
    put(shell.root, "a")
    code, said = shell.run("build", "--skip-tests")
    assert (code, "another Spark" in said) == (0, False), said
    assert shell.run("down")[0] == 0

    assert shell.run("up")[0] == 0
    (second,) = jvms(shell) - {first}
    assert str(archive) in maps(second)
    assert archive.stat().st_mtime_ns == made
    put(shell.root, "b")
    code, said = shell.run("build", "--skip-tests")
    assert (code, "another Spark" in said) == (0, False), said


def maps(process: int) -> str:
    """List what a process has mapped into its memory."""
    return Path(f"/proc/{process}/maps").read_text()
