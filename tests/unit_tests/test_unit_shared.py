"""Unit tests split between two processes: the same results in the same order, and none is lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.waiting import HUNG

ROOT = Path(__file__).parents[2]
# A separate process, because pytest's has threads, and sqlrun doesn't fork a process with threads.
CODE = """
import os, signal, sys
from sqlrun.runtime import fork
from sqlrun.runtime.disk_cache import Cache
from sqlrun.errors import Place
from sqlrun.project import Expected, UnitTest
from sqlrun.unit_tests.run import parallel
from sqlrun.unit_tests.run.results import TestResult
parallel.FEW = 4
os.sched_getaffinity = lambda process: {0, 1}
parent, scenario, cache = os.getpid(), sys.argv[1], Cache(None)
tests = [UnitTest(f"t{n}", "m", (), Expected(), Place("m.yml")) for n in range(7)]

def run(some):
    for number, test in enumerate(some):
        mine = os.getpid() == parent
        if not mine and number == 1 and scenario == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if not mine and number == 1 and scenario == "fails":
            raise ValueError
        if not mine and scenario == "hangs":
            signal.pause()
        cache.get_or_make("text", test.name, str, lambda: test.name)
        yield TestResult(test.name, "m", test.place, "pass", 0.0, message="mine" if mine else "the fork's")

found = parallel.shared(tests, run, cache)
for result in found:
    print(result.name, result.status, result.message, sep=", ")
    if scenario == "hangs" and result.name == "t1":
        found.close()
print(sum(cache.knows("text", test.name) for test in tests))
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    print("no process is left")
"""
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks are made on Linux alone")
MINE = [f"t{n}, pass, mine" for n in range(4)]


def said(scenario: str) -> list[str]:
    command = [sys.executable, "-c", CODE, scenario]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=HUNG)
    return done.stdout.splitlines()


@pytest.mark.slow
def test_the_fork_runs_the_second_half_and_returns_its_cache_entries() -> None:
    assert said("fine") == [*MINE, *(f"t{n}, pass, the fork's" for n in (4, 5, 6)), "7", "no process is left"]


@pytest.mark.parametrize(("scenario", "why"), [("killed", "signal SIGKILL"), ("fails", "exit code 1")])
@pytest.mark.slow
def test_results_missing_from_a_dead_fork_are_errors(scenario: str, why: str) -> None:
    lost = [f"t{n}, error, the process for this test ended early ({why})" for n in (5, 6)]

    assert said(scenario) == [*MINE, "t4, pass, the fork's", *lost, "4", "no process is left"]


@pytest.mark.slow
def test_an_early_stop_leaves_no_process_behind() -> None:
    """As after Ctrl-C, and after the first failure with --fail-fast."""
    assert said("hangs") == [*MINE[:2], "2", "no process is left"]
