"""A signal ends a command within two seconds, wherever it is, and every statement has a time limit."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import duckdb
import pytest

from sqlrun.cli import main
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.errors import EngineError
from sqlrun.publish.ledger import Ledger
from sqlrun.runtime import stopping
from tests.support import broken, shops
from tests.support.printed import until
from tests.support.projects import ROOT
from tests.support.waiting import HUNG

pytestmark = [pytest.mark.slow, pytest.mark.long]

# Tolerance in addition to the two seconds, for a machine that is busy with other tests.
SECONDS = 2.0 + float(os.environ.get("SQLRUN_SLOWER", "3"))
ENDLESS = """\
select a.id, count(*) as n from {{ ref('stg_sales') }} as a
join {{ ref('stg_sales') }} as b on a.amount + b.amount >= 0
join {{ ref('stg_sales') }} as c on a.amount + c.amount > b.amount - 1000
group by a.id
"""
# One step of DuckDB that takes half a minute and ignores interrupts.
DEAF = "select levenshtein(repeat('ab', 40000), repeat('ba', 40000))"
FOREVER = "select count(*) from range(100000000) as a, range(100000000) as b where a.range * b.range % 7 = 3"


def project(folder: Path, profile: str = "", rows: int = 8_000, **files: str) -> Path:
    """Write a project with a model that runs forever."""
    root = shops.project(folder)
    contract = broken.contract("huge", "id string", "n bigint", extra="    grain: [id]")
    given = {"models/huge.sql": ENDLESS, "models/huge.yml": contract}
    given["profiles/local.yml"] = f"engine: duckdb\nwarehouse: warehouse\n{profile}"
    broken.write(root, {**given, **files})
    line = '{{"id": "s{}", "shop": "ada", "amount": "1.00", "guest": "g"}}\n'
    (root / "data" / "orders" / "a.jsonl").write_text("".join(map(line.format, range(rows))))
    return root


def started(root: Path, *command: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SQLRUN_NO_SERVER": "1"}
    return subprocess.Popen(
        [sys.executable, "-u", "-m", "sqlrun", *command],
        cwd=root, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def ended(process: subprocess.Popen[str], *signals: signal.Signals) -> str:
    """Send signals; require an end in time, by 130 and without a traceback; return the output."""
    began = time.monotonic()
    for number in signals:
        process.send_signal(number)
        time.sleep(0.05)
    out, _ = process.communicate(timeout=60)
    took = time.monotonic() - began

    assert process.returncode == 130, out
    assert took < SECONDS, out
    assert "Traceback" not in out
    return out


@pytest.mark.slow
@pytest.mark.parametrize("signals", [(signal.SIGINT,), (signal.SIGTERM,), (signal.SIGHUP,), (signal.SIGTERM,) * 2])
def test_an_endless_statement_does_not_delay_the_end(tmp_path: Path, signals: tuple[signal.Signals, ...]) -> None:
    root = project(tmp_path)
    process = started(root, "build", "--every", "10m", "--verbose")
    list(until(process, "START merge model huge"))
    time.sleep(1)

    out = ended(process, *signals)

    assert "Stopped. This tick is not published" in out
    assert Ledger(str(root / "warehouse"), "small").read().published is None


@pytest.mark.slow
def test_the_next_build_rolls_back_a_stopped_one(tmp_path: Path) -> None:
    root = project(tmp_path)
    process = started(root, "build", "--verbose")
    list(until(process, "START merge model huge"))
    ended(process, signal.SIGTERM, signal.SIGTERM)
    (root / "models" / "huge.sql").unlink()
    (root / "models" / "huge.yml").unlink()

    again = started(root, "build")
    out, _ = again.communicate(timeout=HUNG)

    assert again.returncode == 0, out
    assert "OK landed stg_sales" in out or "Nothing new" in out


@pytest.mark.slow
def test_a_timeout_names_the_model_and_the_setting(tmp_path: Path) -> None:
    root = project(tmp_path, "statement_timeout: 6\n")
    process = started(root, "build")
    out, _ = process.communicate(timeout=60)

    assert process.returncode == 1
    assert "Error in merge model huge" in out
    assert "SR745 the statement ran longer than the profile's `statement_timeout` of 6 s" in out
    assert "Traceback" not in out


@pytest.mark.slow
def test_a_waiting_build_ends_on_a_signal(tmp_path: Path) -> None:
    root = project(tmp_path)
    lock = root / "warehouse" / "_sqlrun" / "lock"
    lock.parent.mkdir(parents=True)
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        process = started(root, "build", "--wait")
        list(until(process, "Waiting for it to end"))

        ended(process, signal.SIGTERM)


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_endless_check_is_abandoned(tmp_path: Path, sent: signal.Signals) -> None:
    """Its query runs in DuckDB, in a thread of the checks."""
    suite = (
        "expectations:\n  - type: unexpected_rows_expectation\n    kwargs:\n      unexpected_rows_query: >-\n"
        "        select a.id from {batch} as a join {batch} as b on a.amount + b.amount > 1 join {batch} as c"
        " on b.amount + c.amount < 0 and a.amount * c.amount > b.amount\n"
    )
    root = project(tmp_path, **{"expectations/by_shop.yml": "expectations: []\n", "expectations/stg_sales.yml": suite})
    for name in ("sql", "yml"):
        (root / "models" / f"huge.{name}").unlink()
    process = started(root, "build", "--verbose")
    list(until(process, "START landing"))
    time.sleep(4)

    ended(process, sent)


@pytest.mark.slow
@pytest.mark.parametrize("after", [0.05, 0.15, 0.3, 0.6, 1.0, 1.5, 2.5])
def test_a_signal_at_any_moment_ends_a_command(tmp_path: Path, after: float) -> None:
    """During Python's start the signal itself ends it; in both cases it prints at most a line."""
    root = project(tmp_path)
    for command in (("build",), ("verify",), ("compile",)):
        process = started(root, *command)
        time.sleep(after)
        if process.poll() is None:
            began = time.monotonic()
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=60)

            assert time.monotonic() - began < SECONDS
            # A command that had ended before the signal has its own code.
            # Before the first line of sqlrun, Python itself prints where it was.
            begins = "_get_module_details" in out or ("Traceback" in out and "/sqlrun/" not in out)
            if not begins:
                assert process.returncode in (130, -signal.SIGINT, 0, 2), out
                assert "Traceback" not in out, out
        process.communicate()


def test_a_signal_outside_of_a_command_ends_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """While click parses arguments, or exits."""

    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(main.main, "make_context", stopped)
    with pytest.raises(KeyboardInterrupt):
        main.main(["ls"])


OUTSIDE = """\
import sys
sys.argv = ["sqlrun", "--version"]
from sqlrun.__main__ import run

def wait(*given, **more):
    import time
    print("waits", flush=True)
    time.sleep(60)

if sys.stdin.readline() == "reads":
    from sqlrun.cli import main
    main.main.make_context = wait
else:
    import atexit
    atexit.register(wait)
run()
"""


@pytest.mark.slow
@pytest.mark.parametrize("where", ["reads", "leaves"])
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_before_or_after_a_command_prints_one_line(where: str, sent: signal.Signals) -> None:
    """As in the daemon, see `test_warm.py`."""
    with subprocess.Popen(
        [sys.executable, "-c", OUTSIDE], cwd=ROOT, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdin and process.stderr
        process.stdin.write(where)
        process.stdin.close()
        list(until(process, "waits"))
        process.send_signal(sent)

        assert process.wait(10) == 130
        assert process.stderr.read().strip() == "sqlrun: interrupted"


LOST = """\
import os, signal, sys, weakref
from sqlrun.__main__ import run
from sqlrun.commands import build

class Thing:
    pass

def lose(*given, **more):
    thing = Thing()
    kept = weakref.ref(thing, lambda _: [os.kill(os.getpid(), number), *range(1000)])
    del thing
    import time
    time.sleep(60)

number = signal.Signals[sys.argv.pop()]
build.list_nodes = lose
run()
"""


@pytest.mark.parametrize("sent", ["SIGINT", "SIGTERM"])
def test_a_signal_in_a_callback_that_loses_exceptions_ends_a_command(sent: str) -> None:
    """Python prints such an exception with a traceback and continues. Each import has such a callback."""
    began = time.monotonic()
    found = subprocess.run(
        [sys.executable, "-c", LOST, "ls", sent], cwd=ROOT, text=True, capture_output=True, check=False
    )

    assert (found.returncode, found.stdout) == (130, "")
    assert found.stderr.strip() == "sqlrun: interrupted"
    assert time.monotonic() - began < SECONDS


SWALLOWED = """\
import os, signal, sys
from sqlrun.cli.main import main
from sqlrun.__main__ import run
from sqlrun.commands import build
from sqlrun.errors import EngineError

ERRORS = {"library": RuntimeError("Query interrupted"), "engine": EngineError("interrupted"), "file": OSError("broken")}

def swallow(*given, **more):
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except KeyboardInterrupt:
        raise ERRORS[name] from None

name = sys.argv.pop()
build.list_nodes = swallow
run()
"""


@pytest.mark.parametrize("raised", ["library", "engine", "file"])
def test_a_librarys_error_for_a_signal_is_no_error(raised: str) -> None:
    """DuckDB raises a RuntimeError, `Query interrupted`, if a signal arrives while it asks Python for one."""
    found = subprocess.run(
        [sys.executable, "-c", SWALLOWED, "ls", raised], cwd=ROOT, text=True, capture_output=True, check=False
    )

    assert found.returncode == 130, found.stderr
    assert "interrupted" in found.stderr + found.stdout and "Traceback" not in found.stderr


LATE = """\
import select, signal, threading, time, types
from contextlib import suppress
from sqlrun.runtime import stopping

read = threading.Event()

def late(*given):
    found = select.select(*given)
    read.wait()
    return found

stopping.select = types.SimpleNamespace(select=late)
with suppress(KeyboardInterrupt), stopping.graceful(threading.Event(), 60, print, "killed"):
    for _ in range(2):
        signal.raise_signal(signal.SIGINT)
read.set()
time.sleep(2 * stopping.PATIENCE)
print("goes on")
"""


def test_signals_of_a_finished_command_are_forgotten_although_they_are_read_late() -> None:
    """On a busy machine, the thread that reads them may run only after the command has ended."""
    found = subprocess.run([sys.executable, "-c", LATE], cwd=ROOT, text=True, capture_output=True, check=False)

    assert (found.returncode, found.stdout) == (0, "SIGINT\ngoes on\n"), found.stderr


DEAD = """\
import sys, threading, time
from sqlrun.runtime import stopping
stopping.install()
import duckdb
connection = duckdb.connect()
print("begins", flush=True)
with stopping.limited(connection.interrupt):
    connection.execute(sys.argv[1])
"""


@pytest.mark.slow
@pytest.mark.parametrize("statement", [DEAF, FOREVER], ids=["deaf", "endless"])
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_unresponsive_library_is_killed(statement: str, sent: signal.Signals) -> None:
    """The main thread is within DuckDB, where Python runs no signal handlers."""
    process = subprocess.Popen(
        [sys.executable, "-c", DEAD, statement], cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    list(until(process, "begins"))
    time.sleep(1)
    began = time.monotonic()
    process.send_signal(sent)
    process.communicate(timeout=60)

    assert time.monotonic() - began < SECONDS
    assert process.returncode != 0


def test_a_statement_is_stopped_at_its_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stopping._watch, "longest", 0.3)
    engine = DuckDBEngine()
    began = time.monotonic()
    with pytest.raises(EngineError, match="SR745 the statement ran longer"):
        engine.query(FOREVER, ())
    assert time.monotonic() - began < 5
    # A late interrupt doesn't hit the session's next statement.
    assert engine.query("select 1 as a", ()).to_pylist() == [{"a": 1}]
    engine.close()


def test_many_statements_have_their_own_limits() -> None:
    """Eight in parallel, some of them over in time, none of the others hit."""
    root = duckdb.connect()
    said: list[str] = []

    def run(seconds: float, statement: str) -> None:
        session = root.cursor()
        with stopping.limited(session.interrupt, seconds) as limit:
            try:
                session.execute(statement).fetchall()
                said.append("done")
            except duckdb.InterruptException:
                said.append("over" if limit.over else "hit")

    jobs = [(0.2 + 0.1 * number, FOREVER) for number in range(4)] + [
        (60.0, "select sum(range) from range(3000000)")
    ] * 4
    threads = [threading.Thread(target=run, args=job) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert sorted(said) == ["done"] * 4 + ["over"] * 4
    assert not stopping._watch.running


def test_a_fork_gets_only_its_own_signals() -> None:
    """A byte written by a child would be a second signal for its parent."""
    with stopping.limited(lambda: None, 60):
        process = os.fork()
        if process == 0:
            os._exit(0 if stopping._watch.running == set() and not stopping._watch.started else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
    assert stopping._watch.handled == stopping._watch.heard == 0
