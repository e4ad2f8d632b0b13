"""A command ends its process at once, and nothing is lost by it: output, exit code, what is to be done at the end."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from sqlrun.__main__ import may_leave

CODE = """
import atexit, sys
from sqlrun import __main__
class Loud:
    def __del__(self): print("taken apart")
sys.kept = Loud()
atexit.register(print, "at the end")
__main__.run()
"""


def left(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", CODE, *arguments], capture_output=True, text=True)


@pytest.mark.slow
def test_all_is_said_and_done_but_nothing_is_taken_apart() -> None:
    done = left("--version")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "at the end" and done.stdout.startswith("sqlrun, version")


@pytest.mark.slow
def test_a_failure_has_its_exit_code() -> None:
    done = left("error", "SR999999")

    assert done.returncode == 2 and "SR999999" in done.stderr and "at the end" in done.stdout


def test_output_to_a_closed_pipe_is_reported() -> None:
    command = [sys.executable, "-c", "from sqlrun.__main__ import run; print('x'); run()", "--version"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        process.wait()

    assert process.returncode != 0


def test_who_waits_for_the_end_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "pyspark", raising=False)
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    try:
        assert not may_leave()
    finally:
        over.set()
        thread.join()
    monkeypatch.setitem(sys.modules, "pyspark", sys)
    assert not may_leave()
