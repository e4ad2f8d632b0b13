"""Google Cloud Storage: fake-gcs-server, built by Go into the user's cache. Shell: processes, the network.

`python -m tests.support.servers.gcs` builds it. It has Google's JSON API, but hardly anything of the XML API, which
the libraries use. A proxy before it translates each request; the emulator alone decides about conditional writes.
"""

from __future__ import annotations

import http.client
import json
import re
import sys
import urllib.request
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit
from xml.sax.saxutils import escape

from tests.support.servers import emulator, go_programs
from tests.support.servers.s3_proxy import LONGEST, Proxy

VERSION = "1.56.1"
MODULE = "github.com/fsouza/fake-gcs-server"
BUCKET = "lake"
CONDITION = "x-goog-if-generation-match"
# A client's headers that a download needs; the emulator has no use for the others.
RANGED = {"range", "if-match", "if-none-match"}
PART = re.compile(rb"<PartNumber>(\d+)</PartNumber>")
# Status, headers and body.
Answer = tuple[int, list[tuple[str, str]], bytes]


def program() -> Path:
    """Return the emulator's program; a test is skipped where there is none."""
    return go_programs.program(MODULE, VERSION)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request of the XML API; its condition is empty or a generation, 0 for no object."""

    method: str
    bucket: str
    name: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        """Return the object's path in the JSON API."""
        return f"/storage/v1/b/{self.bucket}/o/{quote(self.name, safe='')}"

    @property
    def condition(self) -> dict[str, str]:
        """Return the condition as a parameter of the JSON API."""
        return {"ifGenerationMatch": self.headers[CONDITION]} if CONDITION in self.headers else {}


@dataclass(slots=True)
class _Uploads:
    """Parts of large objects, until they are complete."""

    parts: dict[str, dict[int, bytes]] = field(default_factory=dict)
    numbers: count[int] = field(default_factory=count)

    def begun(self) -> str:
        """Return the id of a new upload."""
        upload = str(next(self.numbers))
        self.parts[upload] = {}
        return upload

    def whole(self, upload: str, wanted: bytes) -> bytes:
        """Return the parts that a client names, in its order."""
        parts = self.parts.pop(upload)
        return b"".join(parts[int(number)] for number in PART.findall(wanted))


class _Translated(Proxy):
    """The proxy: it asks the JSON API what a client asks the XML API."""

    def __init__(self, upstream: str, port: int) -> None:
        super().__init__(upstream, port)
        self._uploads = _Uploads()

    def forwarded(self, handler: BaseHTTPRequestHandler, body: bytes, unconditional: bool) -> Answer:
        """Return the answer to a request, as the XML API words it."""
        url = urlsplit(handler.path)
        bucket, _, name = url.path.lstrip("/").partition("/")
        query = {key: values[0] for key, values in parse_qs(url.query, keep_blank_values=True).items()}
        headers = {key.lower(): value for key, value in handler.headers.items()}
        asked = _Asked(handler.command, bucket, unquote(name), query, headers, body)
        status, answered, content = self._answer(asked)
        if status == 404 and b"NoSuchUpload" not in content:
            there, *_ = self._ask("GET", f"/storage/v1/b/{bucket}")
            return _failed(status, "NoSuchBucket" if there == 404 else "NoSuchKey")
        return _failed(status, "PreconditionFailed") if status == 412 else (status, answered, content)

    def _answer(self, asked: _Asked) -> Answer:
        match asked.method:
            case "GET" if not asked.name:
                return self._listed(asked)
            case "GET" | "HEAD":
                ranged = {key: value for key, value in asked.headers.items() if key in RANGED}
                return self._ask(asked.method, f"/download{asked.path}", headers=ranged)
            case "PUT" | "POST" if asked.query.get("uploadId") not in {None, *self._uploads.parts}:
                return _failed(404, "NoSuchUpload")
            case "PUT" if "uploadId" in asked.query:
                number = int(asked.query["partNumber"])
                self._uploads.parts[asked.query["uploadId"]][number] = asked.body
                return 200, [("ETag", f'"{number}"')], b""
            case "PUT" if "x-goog-copy-source" in asked.headers:
                return self._copied(asked)
            case "PUT":
                return self._uploaded(asked, asked.body)
            case "POST" if "uploads" in asked.query:
                upload = f"<UploadId>{self._uploads.begun()}</UploadId>"
                return _xml("InitiateMultipartUploadResult", f"{_fields(asked)}{upload}")
            case "POST" if "uploadId" in asked.query:
                status, headers, content = self._uploaded(
                    asked, self._uploads.whole(asked.query["uploadId"], asked.body)
                )
                if status != 200:
                    return status, headers, content
                tag = f"<ETag>{escape(dict(headers)['ETag'])}</ETag>"
                answer = _xml("CompleteMultipartUploadResult", f"{_fields(asked)}{tag}")
                return answer[0], [*headers, *answer[1]], answer[2]
            case "DELETE" if "uploadId" in asked.query:
                self._uploads.parts.pop(asked.query["uploadId"], None)
                return 204, [], b""
            case "DELETE":
                status, headers, content = self._ask("DELETE", asked.path)
                return (204, [], b"") if status == 200 else (status, headers, content)
        return _failed(501, "NotImplemented")

    def _uploaded(self, asked: _Asked, body: bytes) -> Answer:
        query = urlencode({"uploadType": "media", "name": asked.name, **asked.condition}, quote_via=quote)
        kind = {"Content-Type": asked.headers.get("content-type", "application/octet-stream")}
        status, headers, content = self._ask(
            "POST", f"/upload/storage/v1/b/{asked.bucket}/o?{query}", body=body, headers=kind
        )
        if status != 200:
            return status, headers, content
        made = json.loads(content)
        return 200, [("ETag", _tag(made)), ("x-goog-generation", str(made["generation"]))], b""

    def _copied(self, asked: _Asked) -> Answer:
        if asked.condition:
            return _failed(501, "NotImplemented")  # the emulator would ignore it
        source, _, name = unquote(asked.headers["x-goog-copy-source"]).partition("/")
        target = f"/b/{asked.bucket}/o/{quote(asked.name, safe='')}"
        path = f"/storage/v1/b/{source}/o/{quote(name, safe='')}/rewriteTo{target}"
        status, headers, content = self._ask("POST", path, body=b"{}", headers={"Content-Type": "application/json"})
        return _xml("CopyObjectResult", "") if status == 200 else (status, headers, content)

    def _listed(self, asked: _Asked) -> Answer:
        names = {
            "prefix": "prefix", "delimiter": "delimiter", "start-after": "startOffset", "max-keys": "maxResults",
            "continuation-token": "pageToken",
        }  # fmt: skip
        query = urlencode({names[key]: value for key, value in asked.query.items() if key in names}, quote_via=quote)
        status, headers, content = self._ask("GET", f"/storage/v1/b/{asked.bucket}/o?{query}")
        if status != 200:
            return status, headers, content
        found, after = json.loads(content), asked.query.get("start-after", "")
        token = found.get("nextPageToken", "")
        # The JSON API's list begins with the name itself.
        items = [item for item in found.get("items", []) if item["name"] > after]
        parts = [_item(item) for item in items]
        for prefix in found.get("prefixes", []):
            parts.append(f"<CommonPrefixes><Prefix>{escape(prefix)}</Prefix></CommonPrefixes>")
        if token:
            parts.append(f"<NextContinuationToken>{escape(token)}</NextContinuationToken>")
        return _xml("ListBucketResult", "".join(parts))

    def _ask(self, method: str, path: str, *, body: bytes = b"", headers: dict[str, str] | None = None) -> Answer:
        connection = http.client.HTTPConnection(self._upstream, timeout=LONGEST)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()


def _tag(item: dict[str, Any]) -> str:
    """Return an object's tag with the quotes that it has in the answer to a download."""
    return f'"{item["etag"].strip(chr(34))}"'


def _item(item: dict[str, Any]) -> str:
    return (
        f"<Contents><Key>{escape(item['name'])}</Key><Generation>{item['generation']}</Generation>"
        f"<LastModified>{item['updated']}</LastModified><ETag>{escape(_tag(item))}</ETag>"
        f"<Size>{item['size']}</Size></Contents>"
    )


def _fields(asked: _Asked) -> str:
    return f"<Bucket>{escape(asked.bucket)}</Bucket><Key>{escape(asked.name)}</Key>"


def _xml(name: str, inner: str, status: int = 200) -> Answer:
    text = f'<?xml version="1.0" encoding="UTF-8"?><{name}>{inner}</{name}>'
    return status, [("Content-Type", "application/xml; charset=UTF-8")], text.encode()


def _failed(status: int, code: str) -> Answer:
    return _xml("Error", f"<Code>{code}</Code><Message>{code}</Message>", status)


class Gcs(emulator.Emulator):
    """The emulator with one bucket in memory; its variables take the place of a profile's options."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "tests.support.servers.gcs")

    def command(self) -> list[str]:
        """Return the emulator's command line."""
        return [
            str(program()), "-scheme", "http", "-host", "127.0.0.1", "-port", str(self.upstream), "-backend", "memory",
            "-log-level", "error",
        ]  # fmt: skip

    @property
    def endpoint(self) -> str:
        """Return the store's address."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables that clients read: a service account that asks for no token, as for all emulators."""
        account = {"client_email": "", "private_key": "", "private_key_id": "", "disable_oauth": True}
        return {
            "GOOGLE_BASE_URL": self.endpoint, "GOOGLE_ALLOW_HTTP": "true",
            "GOOGLE_SERVICE_ACCOUNT_KEY": json.dumps(account),
        }  # fmt: skip

    def prepare(self) -> None:
        """Create the bucket in the running emulator."""
        urllib.request.urlopen(
            urllib.request.Request(
                f"http://127.0.0.1:{self.upstream}/storage/v1/b?project=tests", json.dumps({"name": BUCKET}).encode(),
                {"Content-Type": "application/json"},
            )
        ).close()  # fmt: skip

    def warehouse(self, root: Path) -> str:
        """Return the warehouse of a test's folder."""
        return warehouse(root)


def warehouse(root: Path) -> str:
    """Return the warehouse of a test's folder, with a blank and a letter outside ASCII in its prefix."""
    return f"gs://{BUCKET}/wär häuser/{str(root).strip('/')}/warehouse"


@cache
def shared() -> None:
    """Start an emulator of this process."""
    emulator.shared("gcs", Gcs)


if __name__ == "__main__":
    match sys.argv[1:]:
        case [upstream, port]:
            _Translated(f"http://127.0.0.1:{upstream}", int(port)).serve()
        case _:
            print(go_programs.built(MODULE, VERSION)[1] or "fake-gcs-server is built.")
