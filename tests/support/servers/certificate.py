"""A certificate that signs itself, made by the JDK's keytool. Shell: files, processes."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.support.servers import jars

PASSWORD = "changeit"


@dataclass(frozen=True, slots=True)
class Certificate:
    """A server's key with its certificate (`keystore`), and the certificate that a client trusts (`authority`)."""

    keystore: Path
    authority: Path

    @classmethod
    def made(cls, folder: Path, names: str = "ip:127.0.0.1,dns:localhost") -> Certificate:
        """Make a certificate for the names of a server; each call makes another one."""
        folder.mkdir(parents=True)
        made = cls(folder / "key.p12", folder / "authority.pem")
        tool = Path(jars.java()).resolve().with_name("keytool")
        store = ["-keystore", str(made.keystore), "-storetype", "PKCS12", "-storepass", PASSWORD, "-alias", "server"]
        key = ["-keyalg", "EC", "-groupname", "secp256r1", "-validity", "30", "-dname", "CN=localhost"]
        extensions = ["-ext", f"san={names}", "-ext", "bc:c=ca:true"]
        _run(str(tool), "-genkeypair", *store, *key, *extensions)
        _run(str(tool), "-exportcert", *store, "-rfc", "-file", str(made.authority))
        return made


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL)
