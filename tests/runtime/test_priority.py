"""Priorities of threads and of services."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading

import pytest

from sqlrun.runtime import priority
from sqlrun.runtime.priority import AUTOGROUP, LAST, lower_thread

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="priorities of Linux")
SHOWN = (
    "from sqlrun.runtime import priority as p; before = p.AUTOGROUP.read_text(); p.apply_nice_to_session(); "
    "print(before, p.AUTOGROUP.read_text())"
)


@pytest.mark.parametrize(("by", "lower"), [(0, 0), (5, 5), (30, LAST)])
def test_a_thread_lowers_its_own_priority_alone(by: int, lower: int) -> None:
    found: list[int] = []

    def work() -> None:
        before = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
        lower_thread(by)
        found.extend((before, os.getpriority(os.PRIO_PROCESS, threading.get_native_id())))

    own = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

    assert found == [own, min(LAST, own + lower)]
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == own


def nice_of_session(nice: int, *, leads: bool) -> list[int]:
    """Return the nice value of a process's autogroup before and after."""
    inside = SHOWN if leads else f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SHOWN!r}])"
    command = ["nice", "-n", str(nice - os.getpriority(os.PRIO_PROCESS, 0)), sys.executable, "-c", inside]
    done = subprocess.run(command, start_new_session=True, capture_output=True, text=True, check=True)
    return [int(number) for number in re.findall(r"nice (\d+)", done.stdout)]


@pytest.mark.skipif(not AUTOGROUP.exists(), reason="a kernel without autogroups")
@pytest.mark.parametrize(("nice", "leads", "after"), [(7, True, 7), (7, False, 0), (0, True, 0)])
def test_the_nice_value_of_a_service_counts_for_its_session(nice: int, leads: bool, after: int) -> None:
    if nice < os.getpriority(os.PRIO_PROCESS, 0):
        pytest.skip("a nice test run")
    assert nice_of_session(nice, leads=leads) == [0, after]


def test_a_kernel_without_autogroups_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Missing:
        def write_text(self, text: str) -> None:
            raise FileNotFoundError(text)

    monkeypatch.setattr(os, "getsid", lambda _: os.getpid())
    monkeypatch.setattr(os, "getpriority", lambda *_: 3)
    monkeypatch.setattr(priority, "AUTOGROUP", Missing())

    priority.apply_nice_to_session()
