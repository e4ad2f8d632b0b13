"""A schema registry with Confluent's API: schemas by id and by subject. Shell: the network.

An id belongs to one schema forever, so a process asks for it once. Confluent's own client isn't used: it would load
more libraries than this module has lines.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, quote, unquote, urlsplit

from sqlrun.errors import SourceError

if TYPE_CHECKING:
    from sqlrun.project import Connection

TIMEOUT = 10.0  # seconds for one answer
PAUSES = (0.2, 1.0)  # seconds before the second and the third attempt
MOST_BYTES = 16 * 1024 * 1024  # of an answer
DEEPEST = 16  # references of references
# Answers that may be better a moment later.
PASSING = (429, 500, 502, 503, 504)
NOT_FOUND = 404
# Codes of Confluent's API in an answer 404: neither the subject, nor the version, nor the schema, nor a setting exists.
UNKNOWN = (40401, 40402, 40403, 40408)
MEDIA = "application/vnd.schemaregistry.v1+json, application/json"
# Schemas by the registry's address and their ids, oldest first; the number is bounded.
MOST_SCHEMAS = 10_000
_KNOWN: dict[tuple[str, int], Schema] = {}


@dataclass(frozen=True, slots=True)
class Schema:
    """A registered schema. `kind`: AVRO, PROTOBUF or JSON.

    `references`: the texts of the schemas that it refers to, by its names for them, each after its own references.
    """

    id: int
    kind: str
    text: str
    references: Mapping[str, str] = field(default_factory=dict)


class MissingReferenceError(Exception):
    """A schema refers to one that the registry doesn't have."""


@dataclass(frozen=True, slots=True)
class Registry:
    """The registry of a connection; `name` is the connection's name in the profile. `Connection` has its address."""

    name: str
    connection: Connection

    @property
    def key(self) -> str:
        """Return a key by which registries differ; it may contain secrets."""
        return self.connection.registry

    def schema(self, number: int) -> Schema | None:
        """Return the schema with an id; None if the registry has none.

        Raises: SourceError (SR751) if it doesn't answer or refuses; MissingReferenceError.
        """
        key = self.key, number
        found = _KNOWN.get(key)
        if found is None:
            answer = self._ask(f"/schemas/ids/{number}")
            if answer is None:
                return None
            found = self._schema(number, answer)
            while len(_KNOWN) >= MOST_SCHEMAS:
                del _KNOWN[next(iter(_KNOWN))]
            _KNOWN[key] = found
        return found

    def newest(self, subject: str) -> Schema | None:
        """Return the newest schema of a subject; None if it has none.

        Raises: as `schema`.
        """
        answer = self._ask(f"/subjects/{quote(subject, safe='')}/versions/latest")
        return None if answer is None else self._schema(int(answer.get("id", 0)), answer)

    def compatibility(self, subject: str) -> str:
        """Return the subject's compatibility level, or the registry's if it has none of its own; "" if unknown.

        Raises: SourceError (SR751).
        """
        for path in (f"/config/{quote(subject, safe='')}", "/config"):
            answer = self._ask(path)
            if answer is not None:
                return str(answer.get("compatibilityLevel", ""))
        return ""

    def _schema(self, number: int, answer: Mapping[str, Any]) -> Schema:
        references: dict[str, str] = {}
        self._refer(answer, references, ())
        return Schema(number, str(answer.get("schemaType") or "AVRO").upper(), _text(answer), references)

    def _refer(self, answer: Mapping[str, Any], found: dict[str, str], above: tuple[str, ...]) -> None:
        """Add the schemas that one refers to, each after its own."""
        for one in answer.get("references") or ():
            name, subject, version = str(one.get("name")), str(one.get("subject")), one.get("version")
            if name in found:
                continue
            if name in above or len(above) >= DEEPEST:
                raise MissingReferenceError(f"`{name}` refers to itself, or through more than {DEEPEST} schemas")
            other = self._ask(f"/subjects/{quote(subject, safe='')}/versions/{quote(str(version), safe='')}")
            if other is None:
                raise MissingReferenceError(f"the registry lacks version {version} of the subject `{subject}`")
            self._refer(other, found, (*above, name))
            found[name] = _text(other)

    def _ask(self, path: str) -> dict[str, Any] | None:
        """Return the registry's answer; None if what is asked for doesn't exist.

        Raises: SourceError (SR751).
        """
        addresses = [one.strip().rstrip("/") for one in self.connection.registry.split(",") if one.strip()]
        reason = ""
        for pause in (0.0, *PAUSES):
            time.sleep(pause)
            # Several addresses are those of one registry.
            for address in addresses:
                try:
                    return self._answer(urlsplit(address), path)
                except _PassingError as error:
                    reason = str(error)
        raise self._failed(reason)

    def _answer(self, address: SplitResult, path: str) -> dict[str, Any] | None:
        if address.scheme not in ("http", "https") or not address.hostname:
            raise self._failed("`registry` isn't an address that begins with http:// or https://")
        netloc = address.netloc.rpartition("@")[2]
        request = urllib.request.Request(f"{address.scheme}://{netloc}{address.path}{path}")
        request.add_header("Accept", MEDIA)
        login = self._login(address)
        if login:
            request.add_header("Authorization", f"Basic {login}")
        place = f"{address.scheme}://{netloc}{address.path}"
        try:
            with self._opener(address.scheme).open(request, timeout=TIMEOUT) as answer:
                data = answer.read(MOST_BYTES + 1)
        except urllib.error.HTTPError as error:
            self._refused(place, error)
            return None
        except (urllib.error.URLError, http.client.HTTPException, OSError, ValueError) as error:
            cause = error.reason if isinstance(error, urllib.error.URLError) else error
            if isinstance(cause, ssl.SSLCertVerificationError):
                raise self._failed(f"{place}: its certificate isn't trusted: {cause.verify_message}") from error
            if isinstance(cause, _RedirectError):
                raise self._failed(f"{place}: {cause}") from error
            raise _PassingError(f"{place}: {cause}") from error
        found = _json(data)
        if found is None:
            raise self._failed(f"{place} isn't a schema registry: {path} returned no JSON object")
        return found

    def _refused(self, place: str, error: urllib.error.HTTPError) -> None:
        """Return nothing for what doesn't exist; raise for any other answer that is an error."""
        with error:
            answer = _json(error.read(MOST_BYTES)) or {}
        said = str(answer.get("message") or error.reason)[:300]
        if error.code == NOT_FOUND and answer.get("error_code") in UNKNOWN:
            return
        if error.code in PASSING:
            raise _PassingError(f"{place}: {error.code} {said}") from error
        if error.code in (401, 403):
            raise self._failed(f"{place} refuses the user or the password: {error.code} {said}") from error
        if error.code == NOT_FOUND:
            said = f"{said}. Confluent's API may be under another path, as /apis/ccompat/v7 is for Apicurio"
        raise self._failed(f"{place}: {error.code} {said}") from error

    def _login(self, address: SplitResult) -> str:
        """Return the user and the password, of the connection or the address, as HTTP's basic authentication."""
        one = self.connection
        name, password = one.registry_username, one.registry_password
        if not name and address.username:
            name, password = unquote(address.username), unquote(address.password or "")
        return base64.b64encode(f"{name}:{password}".encode()).decode() if name else ""

    def _opener(self, scheme: str) -> urllib.request.OpenerDirector:
        one = self.connection
        if scheme == "http":
            return urllib.request.build_opener(_SameServer())
        try:
            context = ssl.create_default_context()
            if one.ca_file:
                context.load_verify_locations(one.ca_file)
            if one.certificate_file:
                context.load_cert_chain(one.certificate_file, one.key_file or None, one.key_password or None)
        except (OSError, ssl.SSLError) as error:
            raise self._failed(f"`ca_file`, `certificate_file` or `key_file` can't be read: {error}") from error
        return urllib.request.build_opener(urllib.request.HTTPSHandler(context=context), _SameServer())

    def _failed(self, reason: str) -> SourceError:
        return SourceError(
            f"SR751 the schema registry of the connection `{self.name}` can't be used: {reason}. Check that it runs, "
            "and `registry`, `registry_username`, `registry_password` and `ca_file` of the connection in the profile. "
            "No message is lost: the next build lands them"
        )


class _PassingError(Exception):
    """The registry didn't answer, or not now."""


class _RedirectError(OSError):
    """The registry refers to another server, which must not get the password."""


class _SameServer(urllib.request.HTTPRedirectHandler):
    """Follow a redirect only to the same server."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        """Return the next request. Raises: _RedirectError."""
        here, there = urlsplit(req.full_url), urlsplit(newurl)
        if (here.scheme, here.netloc) != (there.scheme, there.netloc):
            raise _RedirectError(f"it redirects to another server, {there.scheme}://{there.hostname}")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _json(data: bytes) -> dict[str, Any] | None:
    if len(data) > MOST_BYTES:
        return None
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _text(answer: Mapping[str, Any]) -> str:
    return str(answer.get("schema", ""))
