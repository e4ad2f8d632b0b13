"""Builds in a real daemon, compared with the same builds without it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sqlrun.daemon import protocol
from sqlrun.publish.ledger import Ledger
from sqlrun.publish.reader import tick_of
from sqlrun.storage.lock import hold
from tests.support import shops
from tests.support.projects import ROOT, now
from tests.support.waiting import HUNG

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not protocol.is_supported(), reason="needs Linux")]


class Shell:
    """A project's folder, and commands typed there; without a locale, as in a container."""

    def __init__(self, root: Path, runtime: Path) -> None:
        self.root, self.runtime = root, runtime

    def begin(self, *arguments: str, alone: bool = False, **more: str) -> subprocess.Popen[str]:
        own = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "XDG_RUNTIME_DIR": str(self.runtime)}
        own["XDG_CACHE_HOME"] = str(self.runtime / "cache")
        command = [sys.executable, "-m", "sqlrun", *(["--no-server"] if alone else []), *arguments]
        return subprocess.Popen(
            command, cwd=self.root, env=own | more, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )  # fmt: skip

    def run(self, *arguments: str, alone: bool = False, **more: str) -> tuple[int, str]:
        process = self.begin(*arguments, alone=alone, **more)
        out, _ = process.communicate(timeout=HUNG)
        return process.returncode, out

    @property
    def served(self) -> int:
        found = re.search(r"commands +(\d+) so far", self.run("up", "--status")[1])
        assert found
        return int(found[1])


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    folder = tmp_path_factory.mktemp("warm")
    made = Shell(shops.project(folder / "project"), folder / "run")
    made.runtime.mkdir()
    code, said = made.run("up")
    assert code == 0, said
    yield made
    assert made.run("down") == (0, "The daemon has ended.\n")


def plain(text: str) -> str:
    """Return output without the differences between any two runs: times, seconds, and the order of two threads."""
    return "\n".join(sorted(re.sub(r"\d\d:\d\d(:\d\d)?|\d+\.\d+ ?s(econds)?|\.+", "-", text).splitlines()))


def put(root: Path, name: str, count: int = 2) -> None:
    lines = [json.dumps(shops.sale(f"{name}-{index}")) for index in range(count)]
    (root / "data" / "orders" / f"{name}.jsonl").write_text("\n".join(lines) + "\n")


@pytest.mark.long
def test_output_and_exit_codes_are_the_same(shell: Shell, tmp_path: Path) -> None:
    other = Shell(tmp_path / "project", tmp_path)
    shutil.copytree(shell.root, other.root)
    for each in (shell, other):
        put(each.root, "first")
    before = shell.served
    lines = (
        ["build"], ["build"], ["show", "by_shop", "--output", "csv"], ["verify"], ["check"], ["test"],
        ["ls"], ["explain", "by_shop"], ["show", "nothing"], ["build", "--as-of", "never"], ["plan"], ["doctor"],
        ["build", "--nonsense"],
    )  # fmt: skip
    for line in lines:
        code, said = shell.run(*line)
        same, words = other.run(*line, alone=True)
        assert (code, plain(said.replace(str(shell.root), str(other.root)))) == (same, plain(words)), line
    assert shell.served == before + len(lines)


def test_the_warehouse_is_locked_as_without_the_daemon(shell: Shell) -> None:
    with hold(str(shell.root / "warehouse"), now()):
        code, said = shell.run("build")

    assert code == 75
    assert f"pid {os.getpid()}" in said


def test_a_profile_reads_its_clients_variables(shell: Shell) -> None:
    (shell.root / "profiles" / "named.yml").write_text("engine: duckdb\nwarehouse: ${WHERE}\n")

    assert shell.run("build", "--profile", "named", WHERE="warehouse-a")[0] == 0
    assert (shell.root / "warehouse-a" / "_sqlrun").is_dir()
    code, said = shell.run("build", "--profile", "named")
    assert (code, "WHERE" in said) == (2, True)


def test_an_edit_takes_effect(shell: Shell) -> None:
    file = shell.root / "models" / "by_shop.sql"
    text = file.read_text()
    try:
        file.write_text(text.replace("sum(amount)", "sum(amont)"))
        code, said = shell.run("ls")
        assert (code, "amont" in said) == (2, True)
    finally:
        file.write_text(text)
    assert shell.run("ls")[0] == 0


@pytest.mark.parametrize("after", [0.0, 0.1, 0.2, 0.3, 0.5])
def test_a_killed_client_is_like_any_crash(shell: Shell, after: float) -> None:
    """The build dies with it, the lock is free, and the next build continues."""
    put(shell.root, f"killed-{after}", 50)
    with shell.begin("build", "--skip-tests") as client:
        time.sleep(0.1 + after)
        client.send_signal(signal.SIGKILL)
    code, said = shell.run("build", "--skip-tests", "--wait")

    assert code == 0, said
    assert shell.run("verify")[0] == 0
    shown = shell.run("show", "by_shop", "--output", "csv")[1]
    landed = sum(len(file.read_text().splitlines()) for file in (shell.root / "data" / "orders").iterdir())
    assert f",{landed}" in shown.replace("\r", "")


@pytest.mark.long
def test_up_again_changes_nothing(shell: Shell) -> None:
    first, second = shell.run("up")[1], shell.run("up")[1]

    assert first.splitlines()[0] == second.splitlines()[0]


@pytest.mark.long
def test_a_build_dies_with_a_killed_daemon(shell: Shell) -> None:
    """Then commands run alone, and `up` starts another daemon."""
    found = re.search(r"pid (\d+)", shell.run("up", "--status")[1])
    assert found
    put(shell.root, "last", 50)
    with shell.begin("build", "--skip-tests") as client:
        time.sleep(0.3)
        os.kill(int(found[1]), signal.SIGKILL)
        client.wait(20)
    assert client.returncode in (0, 1)  # it may have been done
    code, said = shell.run("build", "--skip-tests")

    assert code == 0
    assert said.startswith("sqlrun: without the daemon: it is gone")
    assert shell.run("verify", alone=True)[0] == 0
    assert shell.run("up")[0] == 0
    assert tick_of(Ledger(str(shell.root / "warehouse"), "small")).tick > 0
