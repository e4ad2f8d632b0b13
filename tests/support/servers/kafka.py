"""A Kafka broker in one process: KRaft, on free ports of 127.0.0.1, with data of its own. Shell: processes, files."""

from __future__ import annotations

import base64
import secrets
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tests.support.servers import archive, jars
from tests.support.servers.certificate import PASSWORD, Certificate
from tests.support.servers.process import SMALL, Process, StartError, free_port, tied

# Everything with one replica, and what a broker does every few seconds or minutes at once.
SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "auto.create.topics.enable": "false",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "num.network.threads": "2",
    "num.io.threads": "4",
    "num.partitions": "1",
    # After a kill the controller lets the broker in once its old session ended: 9 seconds by default.
    "broker.session.timeout.ms": "1500",
    "broker.heartbeat.interval.ms": "100",
    # Retention and compaction look for work at once and often; they delete files a moment later.
    # Messages with fixed timestamps, years old, must stay; a test that wants retention sets it for its topic.
    "log.retention.ms": "-1",
    "log.initial.task.delay.ms": "100",
    "log.retention.check.interval.ms": "200",
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.dedupe.buffer.size": "4194304",
    "log.segment.delete.delay.ms": "100",
}
ATTEMPTS = 3


class Broker:
    """A broker; `address` needs no password, and `admin` is a client that administrates it.

    With `users`, names and passwords, clients of `sasl_address` must log in (PLAIN). With `tls` clients of
    `tls_address` must trust `certificate`; with both there is `sasl_tls_address` too.
    """

    def __init__(
        self,
        folder: Path,
        *,
        users: Mapping[str, str] | None = None,
        tls: bool = False,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.users = dict(users or {})
        self.certificate = Certificate.made(folder / "certificate") if tls else None
        self._settings = dict(settings or {})
        self._listeners = ["PLAINTEXT", "CONTROLLER", *["SASL_PLAINTEXT"] * bool(users), *["SSL"] * tls]
        if users and tls:
            self._listeners.append("SASL_SSL")
        self._ports: dict[str, int] = {}
        self._jars = jars.fetched(jars.KAFKA)
        self._archive = folder / "classes.jsa"
        self._process = Process([], folder / "kafka.log")

    @property
    def address(self) -> str:
        return self._address("PLAINTEXT")

    @property
    def sasl_address(self) -> str:
        return self._address("SASL_PLAINTEXT")

    @property
    def tls_address(self) -> str:
        return self._address("SSL")

    @property
    def sasl_tls_address(self) -> str:
        return self._address("SASL_SSL")

    @property
    def pid(self) -> int:
        return self._process.pid

    def start(self) -> None:
        """Start the broker: the first time with empty data on free ports, then with the same data and ports."""
        main = self._java("kafka.Kafka", *archive.recording(self._archive))
        self._process.command = [*main, str(self.folder / "server.properties")]
        if self._ports:
            self._process.start(self._answers)
            return
        for attempt in range(1, ATTEMPTS + 1):
            self._configure()
            try:
                self._process.start(self._answers)
                return
            except StartError as failed:
                # Another process took a port meanwhile.
                if attempt == ATTEMPTS or "BindException" not in str(failed):
                    raise

    def stop(self) -> None:
        """Stop the broker; its data stays."""
        self._process.stop()
        archive.keep(self._archive)

    def kill(self) -> None:
        """Kill the broker as `kill -9` does; its data stays."""
        self._process.kill()

    def pause(self) -> None:
        """Suspend the broker: it accepts connections, and answers nothing."""
        self._process.pause()

    def resume(self) -> None:
        """Resume a suspended broker."""
        self._process.resume()

    def _address(self, listener: str) -> str:
        return f"127.0.0.1:{self._ports[listener]}"

    def _java(self, main: str, *more: str) -> list[str]:
        options = ("-Xmx320m", *SMALL, "-Dorg.slf4j.simpleLogger.defaultLogLevel=error")
        return [jars.java(), *options, *archive.mapping(), *more, "-cp", f"{self._jars}/*", main]

    def _answers(self) -> bool:
        try:
            self.admin.list_topics(timeout=0.5)
        except KafkaException:
            return False
        return True

    def _configure(self) -> None:
        """Choose ports, write the configuration, and format the data folder if there is none."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._ports = {listener: free_port() for listener in self._listeners}
        file = self.folder / "server.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in self._properties().items()))
        # One client for all starts: a client that nothing holds cancels what it was asked for.
        self.admin = AdminClient(
            {
                "bootstrap.servers": self.address,
                "log_level": 0,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 50,
            }
        )
        if not (self.folder / "data" / "meta.properties").exists():
            cluster = base64.urlsafe_b64encode(b"test" + secrets.token_bytes(12)).decode().rstrip("=")
            command = [*self._java("kafka.tools.StorageTool"), "format", "-t", cluster, "-c", str(file)]
            subprocess.run(tied(command), check=True, capture_output=True)

    def _properties(self) -> dict[str, Any]:
        addresses = {name: f"{name}://{self._address(name)}" for name in self._listeners}
        controller = addresses.pop("CONTROLLER")
        protocols = {name: "PLAINTEXT" if name == "CONTROLLER" else name for name in self._listeners}
        made = SETTINGS | {
            "controller.quorum.voters": f"1@{self._address('CONTROLLER')}",
            "listeners": ",".join([*addresses.values(), controller]),
            "advertised.listeners": ",".join(addresses.values()),
            "listener.security.protocol.map": ",".join(f"{name}:{used}" for name, used in protocols.items()),
            "log.dirs": str(self.folder / "data"),
        }
        if self.users:
            known = " ".join(f'user_{name}="{password}"' for name, password in self.users.items())
            login = f"org.apache.kafka.common.security.plain.PlainLoginModule required {known};"
            made["sasl.enabled.mechanisms"] = "PLAIN"
            made |= {f"listener.name.{name}.plain.sasl.jaas.config": login for name in ("sasl_plaintext", "sasl_ssl")}
        if self.certificate:
            made |= {
                "ssl.keystore.type": "PKCS12",
                "ssl.keystore.location": str(self.certificate.keystore),
                "ssl.keystore.password": PASSWORD,
                "ssl.key.password": PASSWORD,
            }
        return made | self._settings
