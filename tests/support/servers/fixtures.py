"""Fixtures of servers. A test that uses one of them gets the mark `servers`, and is skipped where it can't be had."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest

from tests.support.servers import jars

if TYPE_CHECKING:
    from tests.support.servers.azure import Azure
    from tests.support.servers.gcs import Gcs
    from tests.support.servers.kafka import Broker
    from tests.support.servers.nats import Nats
    from tests.support.servers.object_stores import S3
    from tests.support.servers.postgres import Postgres
    from tests.support.servers.registry import Registry
    from tests.support.servers.unreliable import Unreliable

Server = TypeVar("Server", "S3", "Azure", "Gcs")
FIXTURES = {
    "broker",
    "own_broker",
    "secured_broker",
    "registry",
    "own_registry",
    "nats_server",
    "postgres",
    "s3_server",
    "s3",
    "through",
    "through_gcs",
    "through_azure",
    "azure_server",
    "azure",
    "gcs_server",
    "gcs",
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests before `-m` looks at their marks."""
    for item in items:
        if FIXTURES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.servers)


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker for all tests of the process: each makes topics with names of its own, and none stops it."""
    yield from _running(tmp_path_factory.mktemp("broker"))


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[Broker]:
    """A broker of one test, which may kill, pause and start it again."""
    yield from _running(tmp_path / "broker")


@pytest.fixture(scope="session")
def secured_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker with the user `reader` (password `secret`) and a certificate, for all tests of the process."""
    yield from _running(tmp_path_factory.mktemp("secured"), users={"reader": "secret"}, tls=True)


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """A schema registry for all tests of the process: each registers subjects with names of its own."""
    yield from _registered(tmp_path_factory.mktemp("registry"))


@pytest.fixture
def own_registry(tmp_path: Path) -> Iterator[Registry]:
    """A schema registry of one test, which may kill it and start it again."""
    yield from _registered(tmp_path / "registry")


@pytest.fixture
def nats_server(tmp_path: Path) -> Iterator[Nats]:
    """A NATS server of one test."""
    from tests.support.servers.nats import Nats

    made = Nats(tmp_path / "nats")
    made.start()
    try:
        yield made
    finally:
        made.stop()


@pytest.fixture
def postgres(tmp_path: Path) -> Iterator[Postgres]:
    """A Postgres server of one test, with logical decoding."""
    from tests.support.servers.postgres import Postgres

    made = Postgres(tmp_path / "postgres.log")
    try:
        made.start()
        yield made
    finally:
        made.stop()


def _running(folder: Path, users: dict[str, str] | None = None, tls: bool = False) -> Iterator[Broker]:
    jars.needed(jars.KAFKA)
    from tests.support.servers.kafka import Broker

    made = Broker(folder, users=users, tls=tls)
    made.start()
    try:
        yield made
    finally:
        made.stop()


def _registered(folder: Path) -> Iterator[Registry]:
    jars.needed(jars.REGISTRY)
    from tests.support.servers.registry import Registry

    made = Registry(folder)
    made.start()
    try:
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    """An S3-compatible server for all tests of the process: each has a prefix of its own."""
    from tests.support.servers.object_stores import S3

    yield from _served(S3(tmp_path_factory.mktemp("s3")))


@pytest.fixture
def s3(s3_server: S3, monkeypatch: pytest.MonkeyPatch) -> S3:
    """The server, with its variables in the environment, and no store opened before."""
    _reach(s3_server.environment, monkeypatch)
    return s3_server


def _served(server: Server) -> Iterator[Server]:
    """Start a server; stop it after its last test."""
    server.start()
    yield server
    server.stop()


def _reach(environment: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Have stores of this process reach a server by its variables."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sqlrun.storage.factory._stores", {})


@pytest.fixture
def through(s3: S3, monkeypatch: pytest.MonkeyPatch) -> Iterator[Unreliable]:
    """A proxy before the server `s3`, which stores of this process use."""
    from tests.support.servers.unreliable import Unreliable

    with Unreliable(s3.port) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
        yield proxy


@pytest.fixture(scope="session")
def azure_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azure]:
    """An emulator of Azure's Blob storage for all tests of the process: each has a prefix of its own."""
    from tests.support.servers.azure import Azure

    yield from _served(Azure(tmp_path_factory.mktemp("azure")))


@pytest.fixture
def azure(azure_server: Azure, monkeypatch: pytest.MonkeyPatch) -> Azure:
    """The emulator, with its variables in the environment, and no store opened before."""
    _reach(azure_server.environment, monkeypatch)
    return azure_server


@pytest.fixture(scope="session")
def gcs_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gcs]:
    """An emulator of Google Cloud Storage for all tests of the process: each has a prefix of its own."""
    from tests.support.servers.gcs import Gcs

    yield from _served(Gcs(tmp_path_factory.mktemp("gcs")))


@pytest.fixture
def gcs(gcs_server: Gcs, monkeypatch: pytest.MonkeyPatch) -> Gcs:
    """The emulator, with its variables in the environment, and no store opened before."""
    _reach(gcs_server.environment, monkeypatch)
    return gcs_server


@pytest.fixture
def through_gcs(gcs: Gcs, monkeypatch: pytest.MonkeyPatch) -> Iterator[Unreliable]:
    """A proxy before the emulator `gcs`, which stores of this process use."""
    from tests.support.servers.unreliable import Unreliable

    with Unreliable(gcs.port) as proxy:
        monkeypatch.setenv("GOOGLE_BASE_URL", proxy.endpoint)
        yield proxy


@pytest.fixture
def through_azure(azure: Azure, monkeypatch: pytest.MonkeyPatch) -> Iterator[Unreliable]:
    """A proxy before the emulator `azure`, which stores of this process use."""
    from tests.support.servers.unreliable import Unreliable

    with Unreliable(azure.port) as proxy:
        monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", azure.endpoint.replace(f":{azure.port}", f":{proxy.port}"))
        yield proxy
