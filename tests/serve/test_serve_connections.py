"""Hostile connections and tokens: other callers still get answers, and no caller gets a 500."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import math
import random
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sqlrun.errors import UsageError
from sqlrun.runtime.rate_limits import Limits
from sqlrun.serve.access import Gatekeeper, Refused
from sqlrun.serve.app import application
from sqlrun.serve.command import server_of
from sqlrun.serve.proxies import Proxies
from tests.support import served
from tests.support.served import SECRET, Warehouse, bearer

MOST, SECONDS = 60, 1.0
OWNER = bearer("r0002")
PATH = "/api/v1/restaurants/r0002/windows"


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    made = Warehouse(tmp_path_factory.mktemp("warehouse"), served.project(tmp_path_factory.mktemp("project")))
    made.publish()
    return made


@pytest.fixture(scope="module")
def port(warehouse: Warehouse) -> Iterator[int]:
    """Yield the port of a server with few connections and a time limit of 1 second for a request."""
    site, watcher = served.site(warehouse)
    site.hosts = None
    watcher.look()
    listening = socket.create_server(("127.0.0.1", 0), backlog=512)
    server = server_of(application(site), MOST, SECONDS)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    yield int(listening.getsockname()[1])
    server.should_exit = True
    thread.join(20)


def opened(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=10)


def request(headers: dict[str, str], path: str = PATH, method: str = "GET") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def answer(one: socket.socket, sent: bytes = b"") -> bytes:
    """Send bytes, and return all bytes received until the peer closes the connection."""
    found = b""
    with suppress(ConnectionError):
        one.sendall(sent)
        while piece := one.recv(65536):
            found += piece
    return found


def asked(port: int) -> int:
    """Send an owner's request; return the status."""
    with opened(port) as one:
        found = answer(one, request({**OWNER, "Connection": "close"}))
    return int(found.split()[1])


def ended(one: socket.socket, within: float) -> bool:
    """Return whether the server closes a connection within the given seconds."""
    one.settimeout(within)
    try:
        while one.recv(65536):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        pass
    return True


FLOODS = {
    "nothing": b"",
    "a letter": b"G",
    "empty lines": b"\r\n\r\n",
    "half a request": request(OWNER)[:-2],
    "a request whose body doesn't come": request({"Content-Length": "100000"}, method="POST"),
    "chunks that don't come": request({"Transfer-Encoding": "chunked"}, method="POST") + b"5\r\nab",
}


@pytest.mark.slow
@pytest.mark.parametrize("sent", FLOODS.values(), ids=FLOODS)
def test_a_thousand_half_open_connections_lock_no_caller_out(port: int, sent: bytes) -> None:
    held = []
    for _ in range(1000):
        one = opened(port)
        with suppress(ConnectionError):
            one.sendall(sent)
        held.append(one)

    began = time.monotonic()
    statuses = [asked(port) for _ in range(5)]
    took = time.monotonic() - began

    assert statuses == [200] * 5
    assert took < 5
    assert all(ended(one, 3 * SECONDS) for one in held[-10:])
    for one in held:
        one.close()


@pytest.mark.slow
@pytest.mark.parametrize("first", [b"", request(OWNER)], ids=["at once", "behind a request"])
def test_headers_that_come_a_letter_at_a_time_are_not_waited_for(port: int, first: bytes) -> None:
    with opened(port) as one:
        one.sendall(first)
        began = time.monotonic()
        with pytest.raises(ConnectionError):
            for letter in request({**OWNER, "X-Slow": "a" * 1000}):
                one.sendall(bytes([letter]))
                time.sleep(0.05)
                assert asked(port) == 200
        assert time.monotonic() - began < SECONDS + 3


@pytest.mark.slow
def test_who_reads_nothing_is_let_go_of(port: int) -> None:
    """Many peers request a large file and read nothing; the server evicts some, and other callers don't wait."""
    held = []
    for _ in range(2 * MOST):
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        one.connect(("127.0.0.1", port))
        with suppress(ConnectionError):
            one.sendall(request({}, "/static/uplot/uPlot.iife.min.js") * 4)
        held.append(one)
        if len(held) % 30 == 0:
            assert asked(port) in (200, 503)
    for one in held:
        one.close()
    time.sleep(0.5)
    assert asked(port) == 200


@pytest.mark.slow
def test_requests_in_one_go_are_answered_in_order(port: int) -> None:
    with opened(port) as one:
        found = answer(one, request(OWNER) * 20 + request({**OWNER, "Connection": "close"}))

    assert found.count(b"HTTP/1.1 200 OK") == 21


@pytest.mark.slow
@pytest.mark.parametrize("size", [40_000, 100_000, 5_000_000])
def test_huge_headers_are_refused(port: int, size: int) -> None:
    with opened(port) as one:
        found = answer(one, request({**OWNER, "X-Large": "a" * size}))

    assert found[:12] in (b"HTTP/1.1 431", b"")
    assert asked(port) == 200


PIECES = [
    b"GET ",
    b"POST ",
    b"CONNECT ",
    b"OPTIONS * ",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    PATH.encode(),
    b"/%ff%00",
    b"/\xff",
    b"//x",
    b"http://other/",
    b"?a=%ed%a0%80",
    b" HTTP/1.1",
    b" HTTP/1.0",
    b" HTTP/9.9",
    b"\r\n",
    b"\r\n\r\n",
    b"Host: x",
    b"Authorization: Bearer \xff\xfe",
    b"Authorization: Basic x",
    b"Content-Length: -1",
    b"Content-Length: 99999999999999999999",
    b"Transfer-Encoding: chunked",
    b"FFFFFFFFFFFFFFFF\r\n",
    b"Connection: upgrade\r\nUpgrade: websocket",
    b"Upgrade: h2c",
    b"Expect: 100-continue",
    b"X-Forwarded-For: " + b"1," * 999,
    b"X-Forwarded-For: \xff",
    b"\x00",
    b"\x16\x03\x01",
    b": :",
    b"a" * 5000,
]


@pytest.mark.slow
def test_no_bytes_break_the_server(port: int, capfd: pytest.CaptureFixture[str]) -> None:
    """Random pieces of requests get a status below 500 or no answer, without a traceback; the server continues."""
    chance = random.Random(27)
    for _ in range(400):
        sent = b"".join(chance.choice(PIECES) for _ in range(chance.randrange(1, 12)))
        with opened(port) as one:
            one.settimeout(0.05)
            found = b""
            with suppress(ConnectionError, TimeoutError):
                one.sendall(sent)
                while piece := one.recv(65536):
                    found += piece
        assert b"HTTP/1.1 5" not in found, sent
        assert b"Traceback" not in found, sent
    assert asked(port) == 200
    assert "Traceback" not in capfd.readouterr().err


# ── tokens ───────────────────────────────────────────────────────────────────────────────────────────────────────


def signed(payload: str, header: str = '{"alg": "HS256", "typ": "JWT"}') -> str:
    """Return a token with any text as its payload, JSON or not, signed with the server's key."""
    parts = [base64.urlsafe_b64encode(text.encode("utf-8", "surrogatepass")).rstrip(b"=") for text in (header, payload)]
    mac = hmac.new(SECRET.key, b".".join(parts), hashlib.sha256).digest()
    return b".".join([*parts, base64.urlsafe_b64encode(mac).rstrip(b"=")]).decode("ascii")


ODD: list[Any] = [
    10**400,
    -(10**400),
    1e308,
    math.nan,
    math.inf,
    -math.inf,
    10**15,
    True,
    None,
    "",
    "1",
    "\ud800",
    "r\udfff",
    [],
    {},
    [[]],
    ["\ud800"],
    ["r0002", 1],
    {"a": 1},
    0,
    -1,
    0.5,
    "operator",
    "٣",
    ["r" * 7000],
]
CLAIMS = ("exp", "iat", "nbf", "aud", "iss", "sub", "jti", "restaurants", "scope", "crit")
SOUND = {"aud": "sqlrun", "exp": 4102444800, "restaurants": ["r0002"]}
TOKENS = [
    *(signed(json.dumps({**SOUND, name: value})) for name in CLAIMS for value in ODD),
    *(
        signed(json.dumps(SOUND), json.dumps({"alg": "HS256", name: value}))
        for name in ("alg", "kid", "typ", "crit", "b64", "zip", "jku", "jwk", "x5u")
        for value in ODD
    ),
    *(
        signed(text)
        for text in (
            "",
            "[]",
            "1",
            "null",
            "[" * 5000,
            '{"a":' * 900,
            '{"exp": 1e999999999}',
            '{"exp":' + "9" * 5000 + "}",
        )
    ),
    *(signed("{}", text) for text in ("", "[]", "1", "[" * 5000, '{"alg": ["HS256"]}')),
    "",
    ".",
    "..",
    "...",
    "a.b.c",
    "=" * 100,
    "." * 8000,
    "é.é.é",
]


@pytest.mark.parametrize("operator", [False, True])
def test_no_token_breaks_the_gatekeeper(operator: bool) -> None:
    """The tokens have a valid signature, and each odd value in each claim."""
    gatekeeper = Gatekeeper({"": SECRET}, ("restaurants",))
    for token in TOKENS:
        with suppress(Refused):
            caller = gatekeeper.caller(token, time.time())
            assert caller.owned("restaurants") == {"r0002"} or caller.operator
            json.dumps(sorted(caller.owned("restaurants"))).encode()
            "".join(caller.owned("restaurants")).encode()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)) | st.just(10**400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(CLAIMS), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.dictionaries(st.sampled_from(CLAIMS), JSON))
def test_no_claims_break_the_gatekeeper(claims: dict[str, Any]) -> None:
    for payload in ({**SOUND, **claims}, claims):
        with suppress(Refused):
            caller = Gatekeeper({"": SECRET}, ("restaurants",)).caller(signed(json.dumps(payload)), 1e9)
            "".join(caller.owned("restaurants")).encode()


@pytest.mark.long
@pytest.mark.slow
def test_no_token_gives_a_server_error(warehouse: Warehouse) -> None:
    site, watcher = served.site(warehouse)
    watcher.look()
    with served.client(site) as shown:
        for token in [*TOKENS, "r\ud800"]:
            headers = {b"authorization": b"Bearer " + token.encode("utf-8", "surrogatepass")}
            for path in (PATH, "/api/v1/restaurants", "/api/v1/marts/restaurant_windows"):
                found = shown.get(path, headers=headers)
                assert found.status_code < 500, (token, path, found.text)


# ── behind a proxy ───────────────────────────────────────────────────────────────────────────────────────────────


def test_callers_behind_a_declared_proxy_are_distinguished() -> None:
    proxies = Proxies.of(["127.0.0.1", "10.0.0.0/8", "::1"])
    said = [(b"x-forwarded-for", b"6.6.6.6, 9.9.9.9"), (b"x-forwarded-for", b" 10.1.2.3")]

    assert proxies.address("127.0.0.1", said) == "9.9.9.9"
    assert proxies.address("::ffff:127.0.0.1", said) == "9.9.9.9"
    assert proxies.address("[::1]", [(b"x-forwarded-for", b"[2001:db8::1]:443")]) == "2001:db8::1"
    # An unreadable address ends the chain at the last readable one.
    assert proxies.address("127.0.0.1", [(b"x-forwarded-for", b"6.6.6.6, nonsense, 10.1.2.3")]) == "10.1.2.3"
    assert proxies.address("127.0.0.1", []) == "127.0.0.1"


def test_only_a_declared_proxy_says_where_a_request_comes_from() -> None:
    said = [(b"x-forwarded-for", b"127.0.0.1")]

    assert Proxies.of([]).address("127.0.0.1", said) == "127.0.0.1"
    assert Proxies.of(["10.0.0.1"]).address("6.6.6.6", said) == "6.6.6.6"
    with pytest.raises(UsageError, match="no address"):
        Proxies.of(["proxy.example.com"])


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60), st.sampled_from(["127.0.0.1", "6.6.6.6", "", "testclient"]))
def test_no_header_breaks_the_reading_of_addresses(said: bytes, peer: str) -> None:
    found = Proxies.of(["127.0.0.1"]).address(peer, [(b"x-forwarded-for", said)])

    assert peer == "127.0.0.1" or found == peer


@pytest.mark.slow
@pytest.mark.parametrize("declared", [False, True])
def test_one_who_asks_without_end_locks_out_no_owner_behind_the_same_proxy(
    warehouse: Warehouse, declared: bool
) -> None:
    site, watcher = served.site(warehouse)
    watcher.look()
    site.limits = Limits(0.01, 5)  # none comes back while the requests last, however slow the machine is
    site.proxies = Proxies.of(["127.0.0.1"] if declared else [])
    with served.client(site) as shown:
        shown._transport.client = ("127.0.0.1", 1)  # type: ignore[attr-defined]
        guess = {"Authorization": "Bearer a.b.c", "X-Forwarded-For": "6.6.6.6"}
        refused = {shown.get(PATH, headers=guess).status_code for _ in range(30)}
        owners = [bearer("r0002", seconds=1000 + n) for n in range(30)]
        statuses = {
            shown.get(path, headers={**owner, "X-Forwarded-For": f"9.9.9.{n}"}).status_code
            for n, owner in enumerate(owners)
            for path in (PATH, "/", "/static/live.js")
        }
        unknown = shown.get(PATH, headers={"X-Forwarded-For": "9.9.9.9"}).status_code

    assert refused == {401, 429}
    assert statuses == {200}
    assert unknown == (401 if declared else 429)
