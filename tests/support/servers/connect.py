"""Kafka Connect in one process, with a Debezium connector for Postgres. Shell: processes, files, the network."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from tests.support.servers import jars
from tests.support.servers.kafka import Broker
from tests.support.servers.postgres import Postgres, streamed
from tests.support.servers.process import SMALL, Process, free_port

MAIN = "org.apache.kafka.connect.cli.ConnectStandalone"
NAME = "shop"


class Connect:
    """A standalone worker: it sends the changes of the database `shop` to topics of a broker, each table to its own.

    `prefix` begins the names of the topics; `settings` are the connector's, without those of the servers. After a kill
    the worker begins again where its file of offsets says.
    """

    def __init__(
        self, postgres: Postgres, broker: Broker, folder: Path, prefix: str, settings: Mapping[str, str]
    ) -> None:
        library = jars.needed(jars.DEBEZIUM)
        folder.mkdir(parents=True, exist_ok=True)
        self._port, self._offsets = free_port(), folder / "offsets"
        worker = {
            "bootstrap.servers": broker.address,
            "listeners": f"http://127.0.0.1:{self._port}",
            "key.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "key.converter.schemas.enable": "false",
            "value.converter.schemas.enable": "false",
            "offset.storage.file.filename": str(self._offsets),
            "offset.flush.interval.ms": "1000",
        }
        connector = dict(settings) | {
            "name": NAME,
            "database.hostname": "127.0.0.1",
            "database.port": str(postgres.port),
            "database.user": "postgres",
            "database.password": "none",
            "database.dbname": "shop",
            "topic.prefix": prefix,
            "poll.interval.ms": "50",
        }
        for name, found in (("worker", worker), ("connector", connector)):
            lines = "".join(f"{key}={value}\n" for key, value in found.items())
            (folder / f"{name}.properties").write_text(lines)
        files = [str(folder / "worker.properties"), str(folder / "connector.properties")]
        command = [jars.java(), *SMALL, "-Xmx320m", "-cp", f"{library}/*", MAIN, *files]
        self._process = Process(command, folder / "connect.log")

    def start(self) -> None:
        """Start the worker, and return when its task runs."""
        self._process.start(self._runs)

    def kill(self) -> None:
        """End the worker as `kill -9` does: what it isn't sure of, it sends again."""
        self._process.kill()

    def streamed(self) -> bool:
        """Return whether a change after the snapshot is marked as done; after a kill before, it takes another one."""
        return streamed(self._offsets)

    def _runs(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/connectors/{NAME}/status", timeout=5) as answer:
                found = json.load(answer)
        except (urllib.error.URLError, OSError):
            return False
        return [task["state"] for task in found["tasks"]] == ["RUNNING"]
