"""The log store of Delta-Spark on S3A, called as Delta calls it, behind a proxy that loses and delays answers.

A JVM with the classes of S3A alone: Delta itself is in tests/spark/test_s3_spark.py.
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
        key = f"{LOG}/{number:020}.json".partition("/")[2]
        if not self.client.list_objects_v2(Bucket=moto_s3.BUCKET, Prefix=key).get("Contents"):
            return None
        return self.client.get_object(Bucket=moto_s3.BUCKET, Key=key)["Body"].read().decode()

    def faults(self, *faults: Fault) -> None:
        """Let the next commits meet these faults, one each."""
        waiting, lock = list(faults), threading.Lock()
        self.proxy.seen.clear()

        def fault(request: s3_proxy.Request) -> Fault:
            with lock:
                return waiting.pop(0) if waiting and request.is_commit else SOUND

        self.proxy.fault = fault


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    import pyspark
    from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

    shipped = Path(pyspark.__file__).parent / "jars"
    names = ("hadoop-client", "slf4j", "log4j", "commons", "guava", "httpc")
    classes = [jars.spark_jar(), jars.delta_storage(), *jars.needed(jars.S3A).glob("*.jar")]
    classes += [file for file in shipped.glob("*.jar") if any(name in file.name for name in names)]
    port = launch_gateway(
        jarpath=str(next(shipped.glob("py4j*.jar"))), classpath=":".join(map(str, classes)), die_on_exit=True,
        javaopts=["-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Xmx256m"], java_path=jars.java(),
    )  # fmt: skip
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
    try:
        with moto_s3.running() as endpoint, s3_proxy.before(endpoint) as proxy:
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
