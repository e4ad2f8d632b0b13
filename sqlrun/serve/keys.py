"""The keys that sign tokens: one in the environment, or several in a file. Shell: environment, files.

The file is a JSON Web Key Set (RFC 7517). A key's type determines its algorithm; a token can't choose another.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlrun.errors import UsageError

if TYPE_CHECKING:
    from jwt import PyJWK

VARIABLE = "SQLRUN_SERVE_KEY"
LEAST_BYTES = 32
LEAST_RSA_BITS = 2048
ALGORITHMS = {"oct": "HS256", "RSA": "RS256", "OKP": "EdDSA"}
HOW = f"export {VARIABLE}=$(openssl rand -hex 32)"


@dataclass(frozen=True, slots=True)
class Key:
    """One key. `signs`: it can sign tokens; other keys only verify them."""

    kid: str
    algorithm: str
    key: Any
    signs: bool


class Keys:
    """The current keys. `refresh` reads a changed file again; while it is unreadable, the last keys stay valid."""

    def __init__(self, file: Path | None) -> None:
        self.file = file
        self.problem = ""
        self._stamp: tuple[int, int, int] | None = None
        self.by_id: Mapping[str, Key] = {}
        if file is not None:
            self._stamp = _stamp(file)
            self.by_id = _of_file(file)
        elif secret := os.environ.get(VARIABLE, ""):
            self.by_id = {"": _of_secret(secret)}

    def refresh(self) -> bool:
        """Read the file again if it has changed; return whether the keys were replaced."""
        if self.file is None:
            return False
        try:
            stamp = _stamp(self.file)
            if stamp == self._stamp:
                return False
            found = _of_file(self.file)
        except UsageError as error:
            self.problem = str(error)
            return False
        self._stamp, self.by_id, self.problem = stamp, found, ""
        return True

    def signing(self) -> Key:
        """Return the first key that can sign.

        Raises: UsageError if no key can.
        """
        for key in self.by_id.values():
            if key.signs:
                return key
        if self.file is not None:
            raise UsageError(f"no key of {self.file} can sign: it needs a shared secret (oct) or a private part (d)")
        raise UsageError(f"there is no key to sign with. Set one: {HOW}; or name a file of keys: --keys FILE")


def _stamp(file: Path) -> tuple[int, int, int]:
    try:
        found = file.stat()
    except OSError as error:
        raise UsageError(f"the keys {file} can't be read: {error.strerror}") from error
    return found.st_ino, found.st_mtime_ns, found.st_size


def _of_secret(secret: str) -> Key:
    if len(secret.encode()) < LEAST_BYTES:
        raise UsageError(f"{VARIABLE} has fewer than {LEAST_BYTES} bytes, so it could be guessed. {HOW}")
    return Key("", "HS256", secret.encode(), True)


def _of_file(file: Path) -> Mapping[str, Key]:
    """Return the keys of a file, by their `kid`.

    Raises: UsageError that names the wrong key without revealing any of it.
    """
    try:
        listed = json.loads(file.read_bytes())["keys"]
    except OSError as error:
        raise UsageError(f"the keys {file} can't be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f'the keys {file} are no JSON Web Key Set: {{"keys": [{{"kty": "oct", ...}}]}}') from error
    if not isinstance(listed, list) or not listed:
        raise UsageError(f"the keys {file} list no key")
    found: dict[str, Key] = {}
    for place, node in enumerate(listed, 1):
        key = _of_node(node, f"key {place} of {file}")
        if key.kid in found:
            raise UsageError(f"the keys {file} have two of the kid `{key.kid}`")
        found[key.kid] = key
    return found


def _of_node(node: Any, what: str) -> Key:
    if not isinstance(node, dict) or not isinstance(node.get("kid"), str) or not node["kid"]:
        raise UsageError(f"{what} has no `kid`, by which tokens name it")
    algorithm = ALGORITHMS.get(str(node.get("kty")))
    if algorithm is None or node.get("alg", algorithm) != algorithm:
        raise UsageError(f"{what} must be one of oct (HS256), RSA (RS256) and OKP (EdDSA, Ed25519)")
    made = _made(node, algorithm, what)
    if algorithm == "HS256" and len(made.key) < LEAST_BYTES:
        raise UsageError(f"{what} has fewer than {LEAST_BYTES} bytes, so it could be guessed")
    if algorithm == "RS256" and made.key.key_size < LEAST_RSA_BITS:
        raise UsageError(f"{what} has fewer than {LEAST_RSA_BITS} bits")
    return Key(node["kid"], algorithm, made.key, algorithm == "HS256" or "d" in node)


def _made(node: dict[str, Any], algorithm: str, what: str) -> PyJWK:
    from jwt import PyJWK
    from jwt.exceptions import PyJWTError

    try:
        return PyJWK(node, algorithm)
    except (PyJWTError, ValueError, TypeError, KeyError):
        # The library's message may contain the key.
        raise UsageError(f"{what} can't be read as a JSON Web Key") from None
