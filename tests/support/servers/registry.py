"""A schema registry: Apicurio, asked by its Confluent API. Shell: processes, files, the network."""

from __future__ import annotations

import http.client
import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from tests.support.servers import jars
from tests.support.servers.process import SMALL, Process, StartError, free_port

API = "/apis/ccompat/v7"
Kind = Literal["AVRO", "PROTOBUF", "JSON"]
ATTEMPTS = 3


def framed(number: int, payload: bytes) -> bytes:
    """Return a message's value as Confluent's serializers write it: a zero, the schema's id, the payload.

    A payload of Protobuf begins with the indexes of its message type: a zero for the first type of the schema.
    """
    return struct.pack(">bI", 0, number) + payload


class RefusedError(Exception):
    """The registry answered with an error: `status` is HTTP's, `answer` its JSON."""

    def __init__(self, status: int, answer: Any) -> None:
        super().__init__(f"{status}: {answer}")
        self.status = status
        self.answer = answer


class Registry:
    """A registry with its schemas in a folder: they, and their ids, outlast a restart."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = 0
        self._jars = jars.fetched(jars.REGISTRY)
        self._process: Process | None = None

    @property
    def url(self) -> str:
        """Return the URL that a Confluent client is given."""
        return f"http://127.0.0.1:{self.port}{API}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start the registry: the first time empty and on a free port, then with the same schemas and port."""
        if self._process is not None:
            self._process.start(self._answers)
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        for attempt in range(1, ATTEMPTS + 1):
            self.port = free_port()
            made = Process(self._command(), self.folder / "registry.log")
            try:
                made.start(self._answers)
            except StartError as failed:
                # Another process took the port meanwhile.
                if attempt == ATTEMPTS or "already" not in str(failed):
                    raise
            else:
                self._process = made
                return

    def stop(self) -> None:
        """Stop the registry; its schemas stay."""
        if self._process is not None:
            self._process.stop()

    def kill(self) -> None:
        """Kill the registry as `kill -9` does."""
        if self._process is not None:
            self._process.kill()

    def register(self, subject: str, schema: str, kind: Kind = "AVRO", references: Sequence[Any] = ()) -> int:
        """Register a schema's text as the newest version of a subject, and return its id.

        The registry looks at the text too: JSON must have a `$schema`.
        A reference is `{"name": …, "subject": …, "version": …}`: how the schema names another one, and which it is.
        """
        body = {"schema": schema, "schemaType": kind, "references": list(references)}
        return int(self._ask("POST", f"/subjects/{quote(subject, safe='')}/versions", body)["id"])

    def schema(self, number: int) -> str:
        """Return the text of a schema by its id."""
        return str(self._ask("GET", f"/schemas/ids/{number}")["schema"])

    def versions(self, subject: str) -> list[int]:
        """Return the versions of a subject, oldest first."""
        return sorted(self._ask("GET", f"/subjects/{quote(subject, safe='')}/versions"))

    def require(self, subject: str, compatibility: str) -> None:
        """Have the registry refuse versions of a subject that aren't compatible: BACKWARD, FORWARD, FULL, NONE."""
        self._ask("PUT", f"/config/{quote(subject, safe='')}", {"compatibility": compatibility})

    def _command(self) -> list[str]:
        # Without a delay of 0 a schema is on disk half a second after its id was returned.
        database = f"jdbc:h2:file:{self.folder / 'schemas'};WRITE_DELAY=0"
        settings = {
            "quarkus.http.host": "127.0.0.1",
            "quarkus.http.port": str(self.port),
            "quarkus.log.level": "WARN",
            "apicurio.storage.kind": "sql",
            "apicurio.storage.sql.kind": "h2",
            "apicurio.datasource.url": database,
        }
        (program,) = self._jars.glob("*-runner.jar")
        return [jars.java(), "-Xmx320m", *SMALL, *(f"-D{k}={v}" for k, v in settings.items()), "-jar", str(program)]

    def _answers(self) -> bool:
        try:
            self._ask("GET", "/subjects")
        except (OSError, http.client.HTTPException, RefusedError):
            return False
        return True

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            headers = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
            connection.request(method, API + path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        read = json.loads(text) if text else None
        if answer.status >= 300:
            raise RefusedError(answer.status, read)
        return read
