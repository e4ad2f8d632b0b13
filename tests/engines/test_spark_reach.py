"""What is said of a cluster that doesn't answer or doesn't fit, before anything starts."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing
from types import SimpleNamespace

import pytest

from sqlrun.engines.spark import object_store, reach, remote
from sqlrun.engines.spark.engine import SparkEngine
from sqlrun.errors import EngineError


@pytest.fixture
def closed_port() -> int:
    """A port that nothing listens on."""
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@pytest.fixture
def open_port() -> Iterator[int]:
    """A port that accepts connections."""
    with closing(socket.socket()) as listens:
        listens.bind(("127.0.0.1", 0))
        listens.listen()
        yield int(listens.getsockname()[1])


class Server:
    """A session as the client of Spark Connect has it, with a server's version and settings."""

    def __init__(self, version: str = "4.1.3", **settings: str) -> None:
        self.version = version
        self.conf = SimpleNamespace(get=lambda key, default: {**remote.NEEDED, **settings}.get(key, default))


def start(**settings: str) -> None:
    SparkEngine(settings).start()


def test_a_server_that_isnt_there(closed_port):
    with pytest.raises(
        EngineError, match=rf"SR813 no Spark Connect server answers at 127.0.0.1:{closed_port}: .*refused"
    ):
        start(**{"spark.remote": f"sc://127.0.0.1:{closed_port}"})


def test_a_master_that_isnt_there(closed_port):
    with pytest.raises(EngineError, match=rf"SR813 no master of the Spark cluster answers at 127.0.0.1:{closed_port}"):
        start(**{"spark.master": f"spark://127.0.0.1:{closed_port}"})


def test_one_master_of_several_is_enough(closed_port, open_port):
    reach.require_master(f"spark://127.0.0.1:{closed_port},127.0.0.1:{open_port}")
    reach.require_master("yarn")


@pytest.mark.parametrize("url", ["http://host:1", "sc://", "sc://host:port", "host:15002"])
def test_an_address_that_is_none(url):
    with pytest.raises(EngineError, match="SR813 the address of Spark in the profile is wrong"):
        start(**{"spark.remote": url})


def test_a_message_doesnt_show_the_token(closed_port):
    with pytest.raises(EngineError) as caught:
        start(**{"spark.remote": f"sc://127.0.0.1:{closed_port}/;token=hush"})
    assert "hush" not in str(caught.value)


def test_settings_of_the_servers_start_are_refused():
    with pytest.raises(
        EngineError, match=r"SR812 .*the setting spark.jars.packages, which only the server's own start"
    ):
        start(**{"spark.remote": "sc://host", "spark.jars.packages": "a:b:1"})


def test_a_missing_package(monkeypatch):
    monkeypatch.setattr(remote, "PACKAGES", ("json", "no_such_package"))

    with pytest.raises(EngineError, match=r"SR811 .*no_such_package.*pip install 'sqlrun\[connect\]'"):
        start(**{"spark.remote": "sc://host"})


@pytest.mark.parametrize(
    ("server", "says"),
    [
        (Server("3.5.1"), "SR814 the Spark Connect server runs Spark 3.5.1"),
        (Server(**{"spark.sql.extensions": "org.some.Other"}), "SR814 .*spark.sql.extensions=org.some.Other"),
        (Server(), r"SR814 .*spark.delta.logStore.s3.impl=\(nothing\)"),
        (Server(**dict.fromkeys(object_store.STORES, object_store.LOG_STORE)), ""),
    ],
)
def test_a_server_that_doesnt_fit(monkeypatch, server, says):
    monkeypatch.setattr(reach, "require_server", lambda url: None)
    monkeypatch.setattr(remote, "_connected", lambda settings: server)
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    settings = {"spark.remote": "sc://host", "spark.sqlrun.connectors": "s3"}

    if not says:
        assert remote.session_of(settings) is server
        return
    with pytest.raises(EngineError, match=says):
        remote.session_of(settings)


def test_a_cluster_without_executors():
    tracker = SimpleNamespace(getExecutorInfos=lambda: ["the driver"])
    context = SimpleNamespace(statusTracker=lambda: tracker)
    settings = {"spark.master": "spark://host:7077", "spark.executor.memory": "9g"}
    conf = SimpleNamespace(get=lambda key, default=None: settings.get(key, default))
    session = SimpleNamespace(
        sparkContext=SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: context), getConf=lambda: conf)
    )

    with pytest.raises(EngineError, match=r"SR815 no executor of spark://host:7077 registered.*9g of free memory"):
        reach.await_executors(session, 0.0)
    settings["spark.dynamicAllocation.enabled"] = "true"
    reach.await_executors(session, 0.0)
