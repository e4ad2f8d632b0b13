"""Suites of ticks, crashes and cases with their warehouses on an object store, each in a process of its own.

`STORE=s3` puts the warehouse of each test on an S3-compatible server, `STORE=azure` and `STORE=gcs` on
emulators of Azure and Google Cloud Storage. Tests marked `disk` change files of a warehouse behind its back.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.crash.__main__ import STORES
from tests.support.projects import ROOT
from tests.support.waiting import HUNG

pytestmark = [pytest.mark.servers]
SUITES = {
    "ticks": ("tests/run/test_ticks.py", "-m", "not long"),
    "cases": ("tests/incremental/test_cases_on_delta.py", "--share", "1/12"),
    "random events": ("tests/run/test_machine.py",),
    "a reader": ("tests/run/test_hammered.py",),
    "three days": ("tests/run/test_three_days.py",),
}


def passed(*arguments: str, store: str = "s3") -> str:
    """Run tests with their warehouses on a server, which ends with their process; return what pytest prints."""
    STORES[store].program()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=ROOT, env={**os.environ, "STORE": store}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize("store", ["s3", "azure", "gcs"])
def test_a_tick_is_published_on_a_store(store: str) -> None:
    passed("tests/run/test_ticks.py", "-k", "seed", store=store)


@pytest.mark.long
@pytest.mark.parametrize("name", SUITES)
def test_a_suite_passes_on_a_store(name: str) -> None:
    passed(*SUITES[name])


@pytest.mark.long
@pytest.mark.parametrize("store", ["azure", "gcs"])
def test_ticks_on_an_emulator(store: str) -> None:
    passed(*SUITES["ticks"], store=store)


@pytest.mark.long
@pytest.mark.parametrize("store", ["s3", "gcs"])
def test_builds_that_are_killed_on_a_store(store: str) -> None:
    """The next build takes the lock of a dead process over, and publishes what the killed one didn't."""
    STORES[store].program()
    command = [sys.executable, "-m", "tests.crash", "--store", store, "--kills", "5", "--ticks", "10"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=HUNG, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
