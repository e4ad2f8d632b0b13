"""A stream of Spark's whose time is over ends within a few seconds, whatever its thread does at that moment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from sqlrun.engine_api import Landing, StoredColumn, TableSpec
from sqlrun.engines.spark.engine import SparkEngine
from sqlrun.errors import EngineError
from sqlrun.runtime import stopping
from sqlrun.sources.folder import Folder
from tests.runtime.test_stopping import SECONDS, ended, project, started
from tests.support.printed import until
from tests.support.projects import ROOT
from tests.support.waiting import HUNG

# py4j leaves the sockets of finished threads to the garbage collector.
pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.long,
]

COLUMNS = (StoredColumn("value", "string"), StoredColumn("said", "string"))
ENDLESS = "range(100000000) as a, range(100000000) as b where b.id % 7 = 9"
# Spark computes this row as it plans, in the stream's thread, and the interrupt that ends the sleep is lost.
LOST = "(select try_reflect('java.lang.Thread', 'sleep', 30000L) as lost from values (1)) as x"
QUERIES = {
    "tasks": f"select value, file as said from lines, {ENDLESS}",
    "one step": "select value, cast(levenshtein(repeat(value, 600000), repeat('ba', 40000)) as string) as said"
    " from lines",
    "interrupt lost": f"select value, coalesce(lost, file) as said from lines, {LOST}, {ENDLESS}",
}
EASY = "select value, file as said from lines"
FEW = 8.0


@pytest.fixture(scope="module", autouse=True)
def _warm(engine: SparkEngine, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The first stream of a JVM loads classes for seconds; the tests are about those that come later."""
    given = landing(tmp_path_factory.mktemp("warm"), EASY)
    engine.create(given.table)
    engine.land(given)


def landing(folder: Path, query: str) -> Landing:
    source = folder / "in"
    source.mkdir()
    (source / "a.json").write_text("ab\n" * 100)
    return Landing(
        TableSpec("t", str(folder / "t"), COLUMNS), Folder(str(source)), str(folder / "checkpoint"), query, "app"
    )


@pytest.mark.parametrize("what", QUERIES)
def test_a_stream_ends_soon_after_its_limit(
    engine: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    given = landing(tmp_path, QUERIES[what])
    engine.create(given.table)
    monkeypatch.setattr(stopping._watch, "longest", 2.0)
    began = time.monotonic()
    with pytest.raises(EngineError, match=r"SR745 the statement ran longer than .* of 2 s"):
        engine.land(given)

    assert time.monotonic() - began < 2.0 + FEW
    assert engine.head(given.table.path) == 0
    monkeypatch.undo()
    easy = Landing(given.table, given.source, given.checkpoint, EASY, "app")
    assert engine.land(easy).version == 1


def test_no_stream_begins_when_its_time_is_over(
    engine: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = landing(tmp_path, QUERIES["tasks"])
    engine.create(given.table)
    monkeypatch.setattr(stopping._watch, "longest", 0.0)
    with pytest.raises(EngineError, match="SR745"):
        engine.land(given)

    assert not (Path(given.checkpoint) / "offsets").exists()


ALONE = """\
import sys
from pathlib import Path
from sqlrun.runtime import stopping
from sqlrun.engines.spark.engine import SparkEngine
from tests.spark.test_stopping_spark import EASY, QUERIES, landing

stopping.install()
engine = SparkEngine({"spark.driver.memory": "1g"})
for name, query in (("easy", EASY), ("endless", QUERIES["tasks"])):
    folder = Path(sys.argv[1], name)
    folder.mkdir()
    given = landing(folder, query)
    engine.create(given.table)
    print(name, flush=True)
    engine.land(given)
"""


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_command_whose_stream_runs(tmp_path: Path, sent: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", ALONE, str(tmp_path)], cwd=ROOT, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        list(until(process, "endless"))
        offsets = tmp_path / "endless" / "checkpoint" / "offsets" / "0"
        while not offsets.exists() and process.poll() is None:
            time.sleep(0.05)
        began = time.monotonic()
        process.send_signal(sent)
        process.wait(60)

        assert time.monotonic() - began < SECONDS
        assert process.returncode != 0


def jvm_of(process: subprocess.Popen[str]) -> Path:
    """Return the folder below /proc of a process's JVM, as soon as Spark's script has become one."""
    while process.poll() is None:
        for children in Path(f"/proc/{process.pid}/task").glob("*/children"):
            # Threads and other children end at any time.
            with suppress(OSError):
                for child in children.read_text().split():
                    folder = Path("/proc", child)
                    is_java = (folder / "exe").readlink().name == "java"
                    if is_java and b"SparkSubmit" in (folder / "cmdline").read_bytes():
                        return folder
        time.sleep(0.02)
    raise AssertionError(f"no JVM was started: {process.communicate()[0]}")


@pytest.mark.parametrize("after", [0.0, 0.7, 2.0, 4.0, 5.5, 7.0, 8.5, 10.0])
def test_a_signal_while_spark_starts_ends_the_build_and_its_jvm(tmp_path: Path, after: float) -> None:
    """The JVM once remained, with half a gigabyte of memory. Some seconds later Py4J made an error of the signal."""
    root = project(tmp_path, **{"profiles/local.yml": "engine: spark\nwarehouse: warehouse\n"})
    with started(root, "build") as process:
        try:
            jvm = jvm_of(process)
            time.sleep(after)
            out = ended(process, signal.SIGINT)
        finally:
            process.kill()
    end = time.monotonic() + 30
    while jvm.exists() and time.monotonic() < end:
        time.sleep(0.1)
    remains = jvm.exists()
    if remains:
        os.kill(int(jvm.name), signal.SIGKILL)

    assert not remains
    assert "Stopped. This tick is not published" in out
    assert "Py4J" not in out


HANDLERS = """\
import signal
import threading

from sqlrun.engines.spark.engine import SparkEngine

found, over = {signal.getsignal(signal.SIGINT)}, threading.Event()


def watch():
    while not over.wait(0.002):
        found.add(signal.getsignal(signal.SIGINT))


watching = threading.Thread(target=watch)
watching.start()
SparkEngine().start()
over.set()
watching.join()
print(len(found))
"""


def test_the_handler_of_interrupts_stays_while_spark_starts() -> None:
    """PySpark's own talks to the JVM in the middle of another call."""
    done = subprocess.run([sys.executable, "-c", HANDLERS], cwd=ROOT, text=True, capture_output=True, timeout=HUNG)

    assert done.stdout == "1\n", done.stderr


FAILS = """\
from sqlrun.engines.spark.engine import SparkEngine
from sqlrun.errors import EngineError

for _ in range(2):
    try:
        SparkEngine({"spark.serializer": "no.such.Class"}).start()
    except EngineError as error:
        print(error)
"""


def test_a_second_start_fails_for_the_same_reason() -> None:
    """The first leaves its JVM for the second: PySpark has its connection, and makes no other one."""
    done = subprocess.run([sys.executable, "-c", FAILS], cwd=ROOT, text=True, capture_output=True, timeout=HUNG)

    assert done.stdout.splitlines() == ["Spark doesn't start: no.such.Class"] * 2, done.stderr
