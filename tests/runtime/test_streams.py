"""Every command with a standard stream that is closed, full or gone: no traceback, and a sensible exit code."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import shops
from tests.support.projects import ROOT
from tests.support.waiting import HUNG

COMMANDS = (
    "build", "check", "compile", "debug", "diff by_shop", "doctor", "down", "drift", "env list", "error SR304",
    "explain by_shop", "history", "lineage by_shop", "ls", "ls --output json", "vacuum", "plan", "quarantine list",
    "show by_shop", "show by_shop --output csv", "test", "ticks", "verify", "views", "--version", "--help",
    "build --help",
"nothing", "show nothing", "new model made",
)  # fmt: skip
# The shell's redirections for each state of the streams.
WAYS = {
    "stdout closed": ">&-",
    "stderr closed": "2>&-",
    "stdin closed": "<&-",
    "all closed": "<&- >&- 2>&-",
    "both pipes have no reader": "> >(exit 0) 2> >(exit 0)",
    "a reader that leaves": "| head -c 1",
    "a full disk": ">/dev/full",
    "a full disk under both": ">/dev/full 2>/dev/full",
}
FEW = ("build", "ls", "show by_shop", "nothing", "--help")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    made = shops.site(tmp_path_factory.mktemp("project"))
    shops.send(made, "a.jsonl", shops.sale("1"), shops.sale("2", "bob"), "broken")
    assert run(made.root, "build", "").returncode == 0
    yield made.root


def run(root: Path, command: str, way: str) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SQLRUN_NO_SERVER": "1"}
    for left in root.glob("models/made*"):  # by `new model made`, which never overwrites
        left.unlink()
    whole = f"set -o pipefail; {sys.executable} -m sqlrun {command} {way}"
    return subprocess.run(
        ["bash", "-c", whole], cwd=root, env=environment, capture_output=True, timeout=HUNG, check=False
    )


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "command", [pytest.param(each, marks=[pytest.mark.long] * (each not in FEW)) for each in COMMANDS]
)
def test_no_stream_breaks_a_command(root: Path, command: str, way: str) -> None:
    plain = run(root, command, "").returncode
    done = run(root, command, WAYS[way])
    said = done.stdout + done.stderr

    assert b"Traceback" not in said, said
    assert b"Exception ignored" not in said, said
    if "full" in way and plain == 0:
        assert done.returncode in (0, 1)
    else:
        assert done.returncode == plain, said
    if way == "a full disk" and command in ("ls", "show by_shop"):
        assert done.returncode == 1
        assert b"No space left" in said


@pytest.mark.slow
def test_a_closed_stream_never_becomes_a_file_of_the_project(root: Path) -> None:
    """The next opened file takes the lowest free number: a line of the log would be written into a table."""
    assert run(root, "build --full-refresh", "<&- >&- 2>&-").returncode == 0

    for file in root.rglob("*"):
        if file.is_file() and file.suffix in (".json", ".jsonl", ".sql", ".yml"):
            assert b"Running with sqlrun" not in file.read_bytes(), file
    assert run(root, "verify", "").returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("command", [["build", "--every", "1h"], ["ls"], ["show", "by_shop"]])
def test_a_closed_terminal_ends_a_command(root: Path, command: list[str]) -> None:
    """The kernel sends SIGHUP, and each write fails from then on."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SQLRUN_NO_SERVER": "1", "TERM": "xterm"}
    log = root / "stderr.txt"
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(root)
        os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        os.execve(sys.executable, [sys.executable, "-m", "sqlrun", *command], environment)
    seen = b""
    # Python itself doesn't start on a closed terminal.
    while (b"Next tick" if command[0] == "build" else b"  ") not in seen:
        seen += os.read(terminal, 4096)
    os.close(terminal)
    signal.alarm(30)
    _, status = os.waitpid(pid, 0)
    signal.alarm(0)

    assert os.waitstatus_to_exitcode(status) in (0, 130, -signal.SIGHUP), log.read_text()
    assert "Traceback" not in log.read_text()
