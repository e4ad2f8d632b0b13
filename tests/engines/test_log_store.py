"""What writes to S3A from Spark's JVM, called as Delta and Spark call it, behind a proxy that loses and delays answers.

The log store of Delta-Spark, and the files of a stream's checkpoint. The JVM has no session: Spark and Delta themselves
are in tests/spark/test_s3_spark.py.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from sqlrun.engines.spark import object_store
from tests.support.servers import jars, moto_s3, s3_proxy
from tests.support.servers.s3_proxy import SOUND, Fault

pytestmark = [pytest.mark.servers, pytest.mark.slow]

TAKEN = "FileAlreadyExistsException"
LOG = f"{moto_s3.BUCKET}/table/_delta_log"
OFFSETS = f"{moto_s3.BUCKET}/_checkpoints/orders/offsets"
SPARKS = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
# By default, S3A tries for many minutes.
FEW_ATTEMPTS = {
    "attempts.maximum": "2", "retry.interval": "20ms", "retry.limit": "2", "retry.throttle.interval": "20ms",
    "retry.throttle.limit": "2",
}  # fmt: skip


class Store:
    """The log store in its JVM, and the proxy between it and the server."""

    def __init__(self, jvm: Any, proxy: s3_proxy.Proxy, endpoint: str) -> None:
        self.jvm, self.proxy, self.client = jvm, proxy, moto_s3.client(endpoint)
        self.conf = jvm.org.apache.hadoop.conf.Configuration()
        settings = object_store.settings({"endpoint": proxy.endpoint, "region": moto_s3.REGION}, {})
        for key, value in settings.items():
            self.conf.set(key.removeprefix("spark.hadoop."), value)
        for key, value in object_store.secrets(settings, moto_s3.KEYS).items():
            self.conf.set(key, value)
        for key, value in FEW_ATTEMPTS.items():
            self.conf.set(f"fs.s3a.{key}", value)
        self.store = jvm.org.sqlrun.delta.ConditionalLogStore(self.conf)

    def write(self, number: int, *lines: str | None, overwrite: bool = False) -> str:
        """Write a commit; return "" or the class of Java's error."""
        from py4j.protocol import Py4JJavaError

        actions = self.jvm.java.util.ArrayList()
        for line in lines:
            actions.add(line)
        path = self.jvm.org.apache.hadoop.fs.Path(f"s3://{LOG}/{number:020}.json")
        try:
            self.store.write(path, actions.iterator(), overwrite, self.conf)
        except Py4JJavaError as error:
            return str(error.java_exception.getClass().getSimpleName())
        return ""

    def read(self, number: int) -> str | None:
        """Return the commit that the server has."""
        return self._text(f"{LOG}/{number:020}.json")

    def _text(self, path: str) -> str | None:
        key = path.partition("/")[2]
        if not self.client.list_objects_v2(Bucket=moto_s3.BUCKET, Prefix=key).get("Contents"):
            return None
        return self.client.get_object(Bucket=moto_s3.BUCKET, Key=key)["Body"].read().decode()

    def batch(self, number: int, text: str, overwrite: bool = False, manager: str = "") -> Any:
        """Begin the file of a batch as a stream does; `manager` is the class that writes it, sqlrun's by default."""
        folder = self.jvm.org.apache.hadoop.fs.Path(f"s3://{OFFSETS}")
        made = self.jvm
        for part in (manager or object_store.CHECKPOINT_FILES).split("."):
            made = getattr(made, part)
        file = made(folder, self.conf).createAtomic(self.jvm.org.apache.hadoop.fs.Path(folder, str(number)), overwrite)
        file.write(text.encode())
        return file

    def planned(self, number: int) -> str | None:
        """Return the file of a batch that the server has."""
        return self._text(f"{OFFSETS}/{number}")

    def faults(self, *faults: Fault) -> None:
        """Let the next commits meet these faults, one each."""
        waiting, lock = list(faults), threading.Lock()
        self.proxy.seen.clear()

        def fault(request: s3_proxy.Request) -> Fault:
            with lock:
                return waiting.pop(0) if waiting and (request.is_commit or is_batch(request)) else SOUND

        self.proxy.fault = fault


def is_batch(request: s3_proxy.Request) -> bool:
    return request.method == "PUT" and "/offsets/" in request.path


def closed(file: Any) -> str:
    """Close a file; return "" or the class of Java's error."""
    from py4j.protocol import Py4JJavaError

    try:
        file.close()
    except Py4JJavaError as error:
        return str(error.java_exception.getClass().getName())
    return ""


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    import pyspark
    from py4j import java_gateway, protocol
    from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

    shipped = Path(pyspark.__file__).parent / "jars"
    names = ("hadoop-client", "slf4j", "log4j", "commons", "guava", "httpc", "scala-library", "spark-")
    classes = [jars.spark_jar(), jars.delta_storage(), *jars.needed(jars.S3A).glob("*.jar")]
    classes += [file for file in shipped.glob("*.jar") if any(name in file.name for name in names)]
    port = launch_gateway(
        jarpath=str(next(shipped.glob("py4j*.jar"))), classpath=":".join(map(str, classes)), die_on_exit=True,
        javaopts=["-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Xmx256m"], java_path=jars.java(),
    )  # fmt: skip
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
    try:
        with (
            moto_s3.running() as endpoint,
            s3_proxy.before(endpoint) as proxy,
            pytest.MonkeyPatch.context() as patched,
        ):
            # A session of another test makes py4j ask that session's JVM about errors of all JVMs.
            patched.setattr(java_gateway, "get_return_value", protocol.get_return_value)
            yield Store(gateway.jvm, proxy, endpoint)
    finally:
        gateway.shutdown()


def test_a_commit_is_one_request(store):
    store.faults()

    assert store.write(1, '{"a": 1}', '{"b": 2}') == ""
    assert [(seen.method, seen.conditional, status) for seen, status in store.proxy.seen] == [("PUT", True, 200)]
    assert store.read(1) == '{"a": 1}\n{"b": 2}\n'


def test_a_commit_that_is_there_stays(store):
    store.faults()

    assert store.write(2, "mine") == ""
    assert store.write(2, "yours") == TAKEN
    assert store.write(2, "mine and more") == TAKEN
    assert store.write(2, "min") == TAKEN
    assert store.read(2) == "mine\n"
    assert store.write(2, "overwritten", overwrite=True) == ""
    assert store.read(2) == "overwritten\n"


@pytest.mark.parametrize("lost", [Fault(status=0), Fault(status=500), Fault(status=503)], ids=str)
def test_a_commit_whose_answer_is_lost_is_known_again(store, lost):
    number = 10 + (lost.status or 0)
    store.faults(lost)

    assert store.write(number, "mine") == ""
    puts = [status for seen, status in store.proxy.seen if seen.is_commit]
    assert puts == [200, 412]  # the second one is refused, because of the first
    assert store.write(number, "yours") == TAKEN
    assert store.read(number) == "mine\n"


def test_a_commit_whose_answers_are_all_lost_is_known_again(store):
    store.faults(*[Fault(status=0)] * 99)

    assert store.write(20, "mine") == ""
    assert store.read(20) == "mine\n"


def test_a_commit_that_never_arrives_is_an_error(store):
    store.faults(*[Fault(status=503, forward=False)] * 99)

    assert store.write(21, "mine") not in ("", TAKEN)
    assert store.read(21) is None


def test_another_commit_is_found_although_the_answer_is_lost(store):
    store.faults()
    store.write(22, "yours")
    store.faults(Fault(status=0), Fault(status=0))

    assert store.write(22, "mine") == TAKEN
    assert store.read(22) == "yours\n"


def test_an_undecided_commit_is_tried_again(store):
    store.faults(Fault(status=409, forward=False), Fault(status=409, forward=False))

    assert store.write(23, "mine") == ""
    assert store.read(23) == "mine\n"


def test_an_error_in_the_actions_leaves_nothing(store):
    store.faults()

    assert store.write(24, "mine", None) == "NullPointerException"
    assert store.read(24) is None and store.proxy.seen == []


def test_of_many_writers_one_wins(store):
    store.faults()
    store.proxy.fault = lambda request: Fault(seconds=0.02) if request.is_commit else SOUND
    rounds = range(100, 110)
    with ThreadPoolExecutor(4) as pool:
        answers = {n: list(pool.map(lambda w, n=n: (w, store.write(n, f"of {w}")), range(4))) for n in rounds}

    for number, answer in answers.items():
        winners = [writer for writer, error in answer if not error]
        assert len(winners) == 1 and store.read(number) == f"of {winners[0]}\n"
        assert {error for _, error in answer} == {"", TAKEN}


def test_a_file_of_a_checkpoint_is_one_request(store):
    store.faults()

    assert closed(store.batch(1, "v1\n{}")) == ""
    assert [(seen.method, seen.conditional, status) for seen, status in store.proxy.seen] == [("PUT", True, 200)]
    assert store.planned(1) == "v1\n{}"


def test_of_two_drivers_that_plan_a_batch_one_wins(store):
    """Both have seen that the batch isn't planned. With Spark's own class both succeed, and the later plan stays."""
    store.faults(Fault(seconds=0.5), Fault(seconds=0.5))
    files = {text: store.batch(2, text) for text in ("of the first", "of the second")}
    with ThreadPoolExecutor(2) as pool:
        answers = dict(zip(files, pool.map(closed, files.values()), strict=True))

    # Spark takes this class of Hadoop's for a second driver, and no other.
    assert sorted(answers.values()) == ["", "org.apache.hadoop.fs.FileAlreadyExistsException"]
    assert answers[store.planned(2)] == ""


@pytest.mark.parametrize("lost", [Fault(status=0), Fault(status=500)], ids=str)
def test_a_file_of_a_checkpoint_whose_answer_is_lost_is_known_again(store, lost):
    number = 10 + (lost.status or 0)
    store.faults(lost)

    assert closed(store.batch(number, "mine")) == ""
    assert store.planned(number) == "mine"


def test_a_file_of_a_checkpoint_is_replaced_on_request(store):
    store.faults()

    assert closed(store.batch(3, "before")) == ""
    assert closed(store.batch(3, "after", overwrite=True)) == ""
    assert store.planned(3) == "after"


def test_a_cancelled_file_of_a_checkpoint_leaves_nothing(store):
    store.faults()
    file = store.batch(4, "half")

    file.cancel()

    assert closed(file) == "" and store.planned(4) is None and store.proxy.seen == []
