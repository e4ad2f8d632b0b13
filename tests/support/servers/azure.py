"""Azure's Blob storage: the emulator Azurite, installed by npm into the user's cache. Shell: processes, the network.

`python -m tests.support.servers.azure` installs it. Azurite ignores the parameter `startFrom` of a list, which Azure
has; a proxy before it applies that. Without it delta-rs takes the first version of a log for the one that it asked for.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import shutil
import sys
import urllib.request
from datetime import datetime, timezone
from email.utils import format_datetime
from functools import cache
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit
from xml.sax.saxutils import unescape

from tests.support.servers import emulator, go_programs
from tests.support.servers.jars import cached
from tests.support.servers.s3_proxy import Proxy

VERSION = "3.37.0"
# The account and the key that every emulator of Azure has.
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
CONTAINER = "lake"
BLOB = re.compile(rb"<Blob><Name>(.*?)</Name>.*?</Blob>", re.DOTALL)


def installed() -> tuple[Path, str]:
    """Return the folder of the emulator's programs, which the first caller installs, and why it can't be installed."""
    folder = cached(f"azurite-{VERSION}")
    found, made = folder / "modules", folder / "made"
    npm = shutil.which("npm")
    if npm is None or found.exists():
        return found, "" if found.exists() else "no Azurite, nor npm to install it: `apt-get install npm`"
    command = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(made), f"azurite@{VERSION}"]
    return go_programs.once(found, made, command, {}, "Azurite can't be installed")


def program() -> Path:
    """Return the emulator's program; a test is skipped where there is none."""
    return go_programs.or_skip(*installed()) / "node_modules" / ".bin" / "azurite-blob"


class _StartFrom(Proxy):
    """The proxy: it leaves the names before `startFrom` out of a list."""

    def forwarded(self, handler: BaseHTTPRequestHandler, body: bytes, unconditional: bool) -> Any:
        status, headers, content = super().forwarded(handler, body, unconditional)
        start = parse_qs(urlsplit(handler.path).query).get("startFrom")
        if start and status == 200:
            content = BLOB.sub(lambda blob: blob[0] if unescape(blob[1].decode()) >= start[0] else b"", content)
        return status, headers, content


class Azure(emulator.Emulator):
    """The emulator with one container; its variables take the place of a profile's options."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "tests.support.servers.azure")

    def command(self) -> list[str]:
        """Return the emulator's command line."""
        return [
            str(program()), "--blobHost", "127.0.0.1", "--blobPort", str(self.upstream), "--location", str(self.folder),
            "--silent", "--skipApiVersionCheck", "--disableTelemetry",
        ]  # fmt: skip

    @property
    def endpoint(self) -> str:
        """Return the account's address."""
        return f"http://127.0.0.1:{self.port}/{ACCOUNT}"

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables that clients read."""
        return {
            "AZURE_STORAGE_ENDPOINT": self.endpoint, "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
            "AZURE_STORAGE_ACCOUNT_KEY": KEY, "AZURE_ALLOW_HTTP": "true",
        }  # fmt: skip

    def prepare(self) -> None:
        """Create the container in the running emulator."""
        urllib.request.urlopen(_creation(self.upstream)).close()

    def warehouse(self, root: Path) -> str:
        """Return the warehouse of a test's folder."""
        return warehouse(root)


def warehouse(root: Path) -> str:
    """Return the warehouse of a test's folder, with a blank and a letter outside ASCII in its prefix."""
    return f"az://{CONTAINER}/wär häuser/{str(root).strip('/')}/warehouse"


def _creation(port: int) -> urllib.request.Request:
    """Return a signed request that creates the container."""
    path, date = f"/{ACCOUNT}/{CONTAINER}", format_datetime(datetime.now(timezone.utc), usegmt=True)
    headers = {"x-ms-date": date, "x-ms-version": "2023-11-03"}
    fields = "".join(f"{name}:{value}\n" for name, value in headers.items())
    signed = f"PUT{chr(10) * 12}{fields}/{ACCOUNT}{path}\nrestype:container"
    signature = hmac.new(base64.b64decode(KEY), signed.encode(), hashlib.sha256).digest()
    headers["Authorization"] = f"SharedKey {ACCOUNT}:{base64.b64encode(signature).decode()}"
    return urllib.request.Request(f"http://127.0.0.1:{port}{path}?restype=container", method="PUT", headers=headers)


@cache
def shared() -> None:
    """Start an emulator of this process."""
    emulator.shared("azure", Azure)


if __name__ == "__main__":
    match sys.argv[1:]:
        case [upstream, port]:
            _StartFrom(f"http://127.0.0.1:{upstream}", int(port)).serve()
        case _:
            print(installed()[1] or "Azurite is installed.")
