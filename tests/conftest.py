"""What tests of several files begin with."""

from __future__ import annotations

import gc
import importlib
import os
import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING
from unittest import mock

import pytest

if TYPE_CHECKING:
    from tests.crash.lives import Lives

pytest_plugins = ["tests.support.servers.fixtures"]

# A shell has what it runs in the background ignore SIGINT, `nohup` SIGHUP; so would each command that a test starts.
for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)

# Before any process that inherits its variables.
if os.environ.get("STORE") == "s3":
    from tests.support.servers import object_stores

    object_stores.shared()
elif os.environ.get("STORE") == "azure":
    from tests.support.servers import azure

    azure.shared()
elif os.environ.get("STORE") == "gcs":
    from tests.support.servers import gcs

    gcs.shared()

# As the command line has it: nearly all that is made of a project stays, and each look for garbage goes through it.
gc.set_threshold(200_000, 10, 10)


# `make test` runs so many cases of a slow test with parameters, spread over all of them; the others are `long`.
SAMPLE = 4


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--share N/M`."""
    parser.addoption("--share", default="1/1", help="run only the N-th of M shares of the long tests, and all others")


def pytest_configure(config: pytest.Config) -> None:
    """Register the printer of failures, in the process that reports to the user."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Failures(config), "failures")


class Failures:
    """Print the cause of each failure at once: a run that is stopped before its end has no summary."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Print a failed test and the first line of its error."""
        terminal = self.config.pluginmanager.get_plugin("terminalreporter")
        if report.failed and terminal is not None:
            crash = getattr(report.longrepr, "reprcrash", None)
            cause = (crash.message if crash else report.longreprtext).strip().partition("\n")[0]
            took = f"failed after {report.duration:.1f} s"
            terminal.write_line(f"\n{report.when} of {report.nodeid} {took}: {cause[:300]}")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark most cases of slow tests as long, and leave out the other shares of the long ones.

    Raises: UsageError for a test that `make test` leaves out and `make test-fast` runs.
    """
    cases: dict[tuple[object, str], list[pytest.Item]] = {}
    for item in items:
        if hasattr(item, "callspec") and item.get_closest_marker("slow") and not item.get_closest_marker("long"):
            cases.setdefault((item.parent, item.originalname), []).append(item)
    for found in cases.values():
        sample = {round(number * (len(found) - 1) / (SAMPLE - 1)) for number in range(SAMPLE)}
        for number, item in enumerate(found):
            if number not in sample and len(found) > SAMPLE:
                item.add_marker(pytest.mark.long)
    marks = {item.nodeid: {mark.name for mark in item.iter_markers()} for item in items}
    wrong = [name for name, found in marks.items() if "long" in found and not found & {"slow", "servers", "spark"}]
    if wrong:
        raise pytest.UsageError(f"a long test has to be slow, too: {', '.join(wrong)}")
    if "STORE" in os.environ:
        for item in items:
            if item.get_closest_marker("disk"):
                item.add_marker(pytest.mark.skip(reason="it changes files of a warehouse on a disk"))
    number, shares = map(int, config.getoption("--share").split("/"))
    long = [item for item in items if "long" in marks[item.nodeid]]
    others = {id(item) for place, item in enumerate(long) if place % shares != number - 1}
    config.hook.pytest_deselected(items=[item for item in items if id(item) in others])
    items[:] = [item for item in items if id(item) not in others]


@pytest.fixture(scope="module")
def lives() -> Iterator[Lives]:
    """A warm process that builds are forked from."""
    from tests.crash.lives import Lives

    with Lives() as made:
        yield made


@pytest.fixture(scope="module")
def unchecked() -> Iterator[None]:
    """Ticks of this process check nothing: Great Expectations takes longer to import than they take."""
    # A module that takes the function by its name, and is first imported meanwhile, would keep the other one.
    for module in ("check.full_table", "check.needed_packages", "commands.check"):
        importlib.import_module(f"sqlrun.{module}")
    with mock.patch("sqlrun.check.check.expectations_of", lambda *_: ()):
        yield


@pytest.fixture(params=["copied", "marked"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Have the few rows of a test's files copied without those that are replaced, as all small files are, or marked."""
    from sqlrun.engines.delta import file_layout

    if request.param == "marked":
        monkeypatch.setattr(file_layout, "COPIED", 0)
        monkeypatch.setattr(file_layout, "MOST_DEAD", 0.99)
    return str(request.param)
