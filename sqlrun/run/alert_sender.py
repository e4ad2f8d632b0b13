"""Delivery of alerts to a webhook and a command, once each. Shell: the network, processes, a file beside the ledger.

Alerts are sent after a tick. A failed delivery is reported in a line and repeated after the next tick with the same
result. Deliveries are recorded afterwards: a power failure in between sends an alert twice, but never loses it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from sqlrun.events import TickResult
from sqlrun.project import Alerts
from sqlrun.publish.environment_paths import system_folder
from sqlrun.report.findings import About
from sqlrun.run import alerts
from sqlrun.run.alerts import Broken, UnsentError
from sqlrun.storage.factory import storage_of

NAME = "alerts.json"
TRIES = 3
# Seconds between tries; a slow response to one try leaves time for another.
WAITS = (0.5, 2.0)
LONGEST_TRY = 10.0


def path_of(warehouse: str, env: str = "") -> str:
    """Return the path of the record of delivered alerts of a warehouse's environment."""
    return f"{warehouse}/{system_folder(env)}/{NAME}"


def send(
    to: Alerts,
    root: Path,
    warehouse: str,
    result: TickResult,
    about: About,
    tables: tuple[str, ...],
    say: Callable[[str], None],
) -> None:
    """Alert the profile's receivers if a tick broke or healed the project; `tables` are all of the project's.

    The caller holds the warehouse's lock, because two builds at once would send the same alert. `say` gets one line for
    each failure.
    """
    ways: dict[str, Callable[[str, float], None]] = {}
    if to.webhook:
        ways["webhook"] = lambda text, seconds: _post(to.webhook, text, seconds)
    if to.command:
        ways["command"] = lambda text, seconds: _run(to.command, text, seconds, root)
    if not ways:
        return
    file = path_of(warehouse, about.env)
    before = _read(file)
    after = dict(before)
    for way, deliver in ways.items():
        state = alerts.change(result, before.get(way), tables)
        if state is None:
            if not result.published:
                after[way] = alerts.still_broken(before[way], result)
            continue
        why = _delivered(deliver, alerts.payload(state, result, about, before.get(way)), to.timeout)
        if why:
            say(f"The alert to the {_name(way, to)} was not delivered; sqlrun tries again after the next tick: {why}")
        elif state == "broken":
            after[way] = alerts.broken(result)
        else:
            del after[way]
    if after != before:
        try:
            storage_of(file).put(file, alerts.to_json(after).encode(), synced=True)
        except OSError as error:
            say(f"sqlrun can't record which alerts it sent, and may send them again: {error.strerror or error}")


def _name(way: str, to: Alerts) -> str:
    """Return a receiver's name without secrets: a webhook's path and a command's arguments can have some."""
    if way == "webhook":
        parts = urlsplit(to.webhook)
        return f"webhook at {parts.scheme}://{parts.hostname}/…"
    return f"command {PurePosixPath(to.command[0]).name}"


def _read(file: str) -> dict[str, Broken]:
    """Return the delivered alerts by receiver; empty if unreadable, because a repeated alert is better than none."""
    try:
        return alerts.from_json(storage_of(file).text(file))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _delivered(deliver: Callable[[str, float], None], text: str, seconds: float) -> str:
    """Deliver with up to three tries within `seconds`; return the last error, "" on success."""
    end, why = time.monotonic() + seconds, ""
    for number in range(TRIES):
        left = end - time.monotonic()
        if left <= 0:
            break
        try:
            _in_time(deliver, text, min(left, LONGEST_TRY))
            return ""
        except UnsentError as error:
            why = f"{error} (try {number + 1} of {TRIES})" if error.again else str(error)
            if not error.again:
                break
        if number < len(WAITS):
            time.sleep(max(0.0, min(WAITS[number], end - time.monotonic())))
    return why


def _in_time(deliver: Callable[[str, float], None], text: str, seconds: float) -> None:
    """Deliver in a thread that can be abandoned: DNS may hang, and a response may arrive byte by byte."""
    found: list[BaseException | None] = []

    def work() -> None:
        try:
            deliver(text, seconds)
            found.append(None)
        except Exception as error:  # a library's own error may quote the address, so only its class is reported
            found.append(error)

    thread = threading.Thread(target=work, name="sqlrun-alert", daemon=True)
    thread.start()
    thread.join(seconds + 0.5)
    if not found:
        raise UnsentError(f"no answer within {seconds:.0f} s")
    match found[0]:
        case None:
            return
        case UnsentError():
            raise found[0]
        case error:
            raise UnsentError(type(error).__name__)


def _post(address: str, text: str, seconds: float) -> None:
    from sqlrun.run import webhook  # the import takes a tenth of a build without changes

    webhook.post(address, text, seconds)


def _run(command: tuple[str, ...], text: str, seconds: float, root: Path) -> None:
    """Run a command without a shell, with `text` as its input; kill it and its children on timeout."""
    try:
        process = subprocess.Popen(
            command,
            cwd=root,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise UnsentError(f"it can't be started: {getattr(error, 'strerror', None) or type(error).__name__}") from None
    try:
        process.communicate(text.encode(), timeout=seconds)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise UnsentError(f"it didn't end within {seconds:.0f} s, and sqlrun killed it") from None
    if process.returncode:
        raise UnsentError(f"it ended with exit code {process.returncode}")
