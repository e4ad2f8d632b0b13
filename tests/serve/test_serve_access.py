"""The rows that a token may see, and attempts to read another owner's rows."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from starlette.testclient import TestClient

from sqlrun.errors import UsageError
from sqlrun.runtime.rate_limits import Limits
from sqlrun.serve.access import Gatekeeper, Refused, token
from sqlrun.serve.keys import Keys
from tests.support import served
from tests.support.served import SECRET, Warehouse, bearer

CLAIMS = ("restaurants",)
OPERATOR, OWNER = bearer(operator=True), bearer("r0002")
PRIVATE = ("/api/v1/restaurants", "/api/v1/restaurants/r0002/windows", "/api/v1/restaurants/r0002/hours",
           "/api/v1/marts/restaurant_windows", "/api/v1/freshness", "/api/v1/ticks/events", "/metrics")  # fmt: skip


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    made = Warehouse(tmp_path_factory.mktemp("warehouse"), served.project(tmp_path_factory.mktemp("project")))
    made.publish()
    return made


@pytest.fixture(scope="module")
def shown(warehouse: Warehouse) -> Iterator[TestClient]:
    site, watcher = served.site(warehouse)
    watcher.look()
    with served.client(site) as asked:
        yield asked


# ── other owners' rows ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("route", ["windows", "hours", "windows?hours=1"])
@pytest.mark.parametrize(
    "other", ["r0001", "r9999", "R0002", "r0002%20", "%2e%2e", "r0002%00", "*", "r0002,r0001", "' or 1=1 --"]
)
@pytest.mark.slow
def test_what_is_anothers_and_what_there_is_not_are_the_same_bytes(shown: TestClient, other: str, route: str) -> None:
    found = shown.get(f"/api/v1/restaurants/{other}/{route}", headers=OWNER)
    nowhere = shown.get(f"/api/v1/restaurants/nobody/{route}", headers=OWNER)

    assert found.status_code == nowhere.status_code == 404
    assert found.content == nowhere.content
    assert dict(found.headers) == dict(nowhere.headers)


def test_an_own_restaurant_that_does_not_exist_is_answered_alike(shown: TestClient) -> None:
    found = shown.get("/api/v1/restaurants/r9999/windows", headers=bearer("r9999"))

    assert found.content == shown.get("/api/v1/restaurants/r0001/windows", headers=OWNER).content


@pytest.mark.parametrize("query", ["", "?limit=1000", "?cursor=r0000", "?cursor=a", "?limit=1"])
def test_a_listing_has_the_owners_restaurants_alone(shown: TestClient, query: str) -> None:
    found = shown.get(f"/api/v1/restaurants{query}", headers=OWNER).json()

    assert [one["id"] for one in found["restaurants"]] == ["r0002"]
    assert found["next"] is None


@pytest.mark.parametrize("mart", ["restaurants", "restaurant_windows", "restaurant_customers", "fct_restaurant_hours"])
def test_a_mart_has_the_owners_rows_alone(shown: TestClient, mart: str) -> None:
    found = shown.get(f"/api/v1/marts/{mart}?limit=1000", headers=OWNER).json()["rows"]
    everything = shown.get(f"/api/v1/marts/{mart}?limit=1000", headers=OPERATOR).json()["rows"]

    assert {row["restaurant_id"] for row in found} == {"r0002"}
    assert {row["restaurant_id"] for row in everything} >= {"r0001", "r0002"}


@pytest.mark.parametrize("value", ["r0001", "r9999", "r0002' or '1'='1", "r0002') or 1=1 --", "%", "r0001;select 1"])
def test_a_filter_leads_to_nothing_of_anothers(shown: TestClient, value: str) -> None:
    found = shown.get("/api/v1/marts/restaurant_windows", params={"restaurant_id": value}, headers=OWNER)

    assert (found.status_code, found.json()["rows"], found.json()["next"]) == (200, [], None)


@pytest.mark.parametrize(
    "query",
    ["sort=n_orders", "order_by=total_sales", "restaurant_id[]=r0001", "restaurant_id=r0002&restaurant_id=r0001",
     "n_orders=1001", "where=1=1", "fields=*", "restaurant_id=", "window_hours=24 or 1=1", "window_hours=x",
     "hour_date=2026-05-04", "limit=0", "limit=1001", "limit=-1", "limit=1e9", "limit=999999999999999999999",
     "limit=٣", "cursor=!", "cursor=MTow"],
)  # fmt: skip
def test_what_a_route_does_not_take_is_refused(shown: TestClient, query: str) -> None:
    """A sort order is rejected too: it would leak other owners' numbers."""
    found = shown.get(f"/api/v1/marts/restaurant_windows?{query}", headers=OWNER)

    assert found.status_code == 400
    assert found.headers["content-type"] == "application/problem+json"


def test_a_cursor_of_an_operators_page_shows_an_owner_their_rows_alone(shown: TestClient) -> None:
    following = shown.get("/api/v1/marts/restaurant_windows?limit=1", headers=OPERATOR).json()["next"]
    found = shown.get(f"/api/v1/marts/restaurant_windows?cursor={following}", headers=OWNER).json()["rows"]

    assert {row["restaurant_id"] for row in found} == {"r0002"}


def test_anothers_mark_does_not_unlock_an_answer(shown: TestClient) -> None:
    """A 304 would reveal that the entity exists, and a cached 200 its numbers."""
    theirs = shown.get("/api/v1/restaurants/r0001/windows", headers=OPERATOR)
    listed = shown.get("/api/v1/restaurants", headers=OPERATOR)
    for mark in (theirs.headers["etag"], "*"):
        tried = shown.get("/api/v1/restaurants/r0001/windows", headers={**OWNER, "If-None-Match": mark})
        assert tried.status_code == 404
    mine = shown.get("/api/v1/restaurants", headers={**OWNER, "If-None-Match": listed.headers["etag"]})
    assert mine.status_code == 200


def test_packed_answers_of_one_are_not_kept_for_another(shown: TestClient) -> None:
    packed = {"Accept-Encoding": "br"}
    shown.get("/api/v1/restaurants/r0001/hours", headers={**OPERATOR, **packed})

    assert shown.get("/api/v1/restaurants/r0001/hours", headers={**OWNER, **packed}).status_code == 404


@pytest.mark.slow
def test_a_table_without_owners_is_for_operators(tmp_path: Path) -> None:
    """For an owner, it looks like a missing table."""
    text = (served.ROOT / "models" / "marts" / "_exposures.yml").read_text()
    text = text.replace("      - ref('restaurants')\n", "      - ref('restaurants')\n      - ref('dishes')\n")
    project = served.project(tmp_path / "project", **{"models/marts/_exposures.yml": text})
    warehouse = Warehouse(tmp_path / "warehouse", project)
    warehouse.publish({**served.rows(1), "dishes": [{"dish_id": "d1", "dish_name": "Soup", "category": "soup"}]})
    site, watcher = served.site(warehouse)
    watcher.look()
    with served.client(site) as asked:
        assert len(asked.get("/api/v1/marts/dishes", headers=OPERATOR).json()["rows"]) == 1
        found = asked.get("/api/v1/marts/dishes", headers=OWNER)
        assert (found.status_code, found.content) == (404, asked.get("/api/v1/marts/nope", headers=OWNER).content)


@pytest.mark.parametrize("name", ["stg_orders", "restaurant_windows__state_1", "_sqlrun", "..", "dishes", "a%2fb", '"'])
def test_only_what_an_exposure_names_is_a_mart(shown: TestClient, name: str) -> None:
    assert shown.get(f"/api/v1/marts/{name}", headers=OPERATOR).status_code == 404


@pytest.mark.slow
def test_events_hold_no_row_and_end_with_the_token(shown: TestClient) -> None:
    """The stream contains only the tick, so it is the same for every caller."""
    with shown.stream("GET", "/api/v1/ticks/events", headers=bearer("r0002", seconds=1.2)) as found:
        mine = found.read().decode()
    with shown.stream("GET", "/api/v1/ticks/events", headers=bearer("r0001", seconds=1.2)) as found:
        theirs = found.read().decode()

    assert found.headers["content-type"].startswith("text/event-stream")
    assert mine.partition("\n\n")[0] == theirs.partition("\n\n")[0]
    assert json.loads(mine.partition("data: ")[2].partition("\n")[0]) == {"tick": 1, "as_of": "2026-05-04T12:40:00Z"}
    assert "r000" not in mine + theirs


# ── tokens ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def _by_hand(header: dict[str, Any], claims: dict[str, Any], secret: bytes = SECRET.key) -> str:
    text = f"{_part(header)}.{_part(claims)}"
    signed = hmac.new(secret, text.encode(), hashlib.sha256).digest()
    return f"{text}.{base64.urlsafe_b64encode(signed).decode().rstrip('=')}"


GOOD = {"aud": "sqlrun", "exp": 4_000_000_000, "restaurants": ["r0002"]}
HS = {"alg": "HS256", "typ": "JWT"}


def _without(key: str) -> dict[str, Any]:
    return {name: value for name, value in GOOD.items() if name != key}


def test_a_token_made_by_hand_as_the_standard_says_is_believed(shown: TestClient) -> None:
    """So the rejections below are due to the defect in each token, not to how the tests build tokens."""
    headers = {"Authorization": f"Bearer {_by_hand(HS, GOOD)}"}

    assert shown.get("/api/v1/restaurants/r0002/windows", headers=headers).status_code == 200


BAD = {
    "unsigned": f"{_part({'alg': 'none', 'typ': 'JWT'})}.{_part(GOOD)}.",
    "none but signed": _by_hand({"alg": "none"}, GOOD),
    "none in capitals": f"{_part({'alg': 'NONE'})}.{_part(GOOD)}.",
    "another secret": _by_hand(HS, GOOD, b"another secret, of as many letters as"),
    "an empty secret": _by_hand(HS, GOOD, b""),
    "another algorithm": jwt.encode(GOOD, SECRET.key * 2, algorithm="HS512"),
    "signature cut off": _by_hand(HS, GOOD)[:-5],
    "no signature": _by_hand(HS, GOOD).rpartition(".")[0] + ".",
    "claims changed": ".".join([_part(HS), _part({**GOOD, "scope": "operator"}), _by_hand(HS, GOOD).split(".")[2]]),
    "expired": _by_hand(HS, {**GOOD, "exp": 1}),
    "no exp": _by_hand(HS, _without("exp")),
    "exp a text": _by_hand(HS, {**GOOD, "exp": "tomorrow"}),
    "exp true": _by_hand(HS, {**GOOD, "exp": True}),
    "exp for ever": _by_hand(HS, {**GOOD, "exp": float("inf")}),
    "no aud": _by_hand(HS, _without("aud")),
    "for another": _by_hand(HS, {**GOOD, "aud": "shop"}),
    "not yet": _by_hand(HS, {**GOOD, "nbf": 3_900_000_000}),
    "restaurants a text": _by_hand(HS, {**GOOD, "restaurants": "r0002"}),
    "restaurants of numbers": _by_hand(HS, {**GOOD, "restaurants": [2]}),
    "nobody's": _by_hand(HS, _without("restaurants")),
    "scope a list": _by_hand(HS, {**GOOD, "scope": ["operator"]}),
    "an unknown kid": _by_hand({**HS, "kid": "x"}, GOOD),
    "a kid that is a path": _by_hand({**HS, "kid": "../../dev/null"}, GOOD, b""),
    "a kid that is a list": _by_hand({**HS, "kid": [""]}, GOOD),
    "its own key": _by_hand({**HS, "jwk": {"kty": "oct", "k": "eA"}, "jku": "https://example.com"}, GOOD, b"x"),
    "crit": _by_hand({**HS, "crit": ["x"], "x": 1}, GOOD),
    "no json": "a.b.c",
    "empty parts": "..",
    "one word": "letmein",
    "very long": "a" * 9000,
}  # fmt: skip


@pytest.mark.parametrize("which", BAD)
def test_a_bad_token_is_refused_plainly(shown: TestClient, which: str) -> None:
    for path in ("/api/v1/restaurants/r0002/windows", "/metrics", "/api/v1/health"):
        found = shown.get(path, headers={"Authorization": f"Bearer {BAD[which]}"})
        assert found.status_code == 401, (which, path)
        assert found.headers["www-authenticate"] == "Bearer"
        assert BAD[which] not in found.text


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic dTpw", "bearer\ta", "Bearer é"])
def test_a_header_that_is_no_bearers_is_refused(shown: TestClient, header: str) -> None:
    assert shown.get("/api/v1/restaurants", headers={"Authorization": header.encode("latin-1")}).status_code == 401


@pytest.mark.parametrize("path", PRIVATE)
def test_without_a_token_nothing_is_answered(shown: TestClient, path: str) -> None:
    assert shown.get(path).status_code == 401


def test_what_is_for_operators_is_not_for_owners(shown: TestClient) -> None:
    assert shown.get("/metrics", headers=OWNER).status_code == 403
    assert shown.get("/metrics", headers=OPERATOR).status_code == 200


def test_a_token_that_was_believed_ends_all_the_same() -> None:
    gatekeeper, made = Gatekeeper({"": SECRET}, CLAIMS), token(SECRET, {"restaurants": ["r0001"]}, False, 1000, 60)

    assert gatekeeper.caller(made, 1059).owned("restaurants") == {"r0001"}
    with pytest.raises(Refused, match="expired"):
        gatekeeper.caller(made, 1060)


# ── keys ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _oct(kid: str, secret: bytes) -> dict[str, str]:
    return {"kty": "oct", "kid": kid, "k": base64.urlsafe_b64encode(secret).decode().rstrip("=")}


def _public(key: Any, kid: str) -> dict[str, Any]:
    algorithm = jwt.algorithms.OKPAlgorithm if isinstance(key, Ed25519PrivateKey) else jwt.algorithms.RSAAlgorithm
    return {**algorithm.to_jwk(key.public_key(), as_dict=True), "kid": kid}


def keys_file(folder: Path, *listed: dict[str, Any]) -> Path:
    file = folder / "keys.json"
    file.write_text(json.dumps({"keys": listed}))
    return file


ED, RSA = Ed25519PrivateKey.generate(), generate_private_key(65537, 2048)


def test_keys_of_each_kind_are_believed_by_their_own_algorithm_alone(tmp_path: Path) -> None:
    keys = Keys(keys_file(tmp_path, _oct("o", b"o" * 32), _public(ED, "e"), _public(RSA, "r")))
    gatekeeper, now = Gatekeeper(keys.by_id, CLAIMS), time.time()
    claims = {**GOOD, "exp": now + 60}
    good = {"o": (b"o" * 32, "HS256"), "e": (ED, "EdDSA"), "r": (RSA, "RS256")}
    for kid, (key, algorithm) in good.items():
        assert gatekeeper.caller(jwt.encode(claims, key, algorithm, {"kid": kid}), now).owned("restaurants") == {
            "r0002"
        }
        for other in good.keys() - {kid}:
            with pytest.raises(Refused):
                gatekeeper.caller(jwt.encode(claims, key, algorithm, {"kid": other}), now)
    with pytest.raises(Refused):
        gatekeeper.caller(jwt.encode(claims, RSA, "PS256", {"kid": "r"}), now)


@pytest.mark.parametrize("kid", ["e", "r"])
def test_a_public_key_is_no_secret(tmp_path: Path, kid: str) -> None:
    """The classic attack signs by HMAC with the text of the public key."""
    keys = Keys(keys_file(tmp_path, _public(ED, "e"), _public(RSA, "r")))
    public = (ED if kid == "e" else RSA).public_key()
    for encoding in (Encoding.PEM, Encoding.DER):
        text = public.public_bytes(encoding, PublicFormat.SubjectPublicKeyInfo)
        with pytest.raises(Refused):
            Gatekeeper(keys.by_id, CLAIMS).caller(_by_hand({**HS, "kid": kid}, GOOD, text), time.time())


def test_keys_are_turned_without_a_pause(tmp_path: Path) -> None:
    """While the file lists both keys, tokens of both are valid; without the old key, even its cached tokens fail."""
    old, new = _oct("old", b"o" * 32), _oct("new", b"n" * 32)
    keys = Keys(keys_file(tmp_path, old))
    gatekeeper, now = Gatekeeper(keys.by_id, CLAIMS), time.time()
    first = token(keys.signing(), {"restaurants": ["r0001"]}, False, now, 60)
    assert gatekeeper.caller(first, now)

    keys_file(tmp_path, new, old)
    assert keys.refresh()
    gatekeeper.use(keys.by_id)
    second = token(keys.signing(), {"restaurants": ["r0001"]}, False, now, 60)
    assert gatekeeper.caller(first, now) and gatekeeper.caller(second, now)

    keys_file(tmp_path, new)
    assert keys.refresh() and not keys.refresh()
    gatekeeper.use(keys.by_id)
    assert gatekeeper.caller(second, now)
    with pytest.raises(Refused):
        gatekeeper.caller(first, now)


def test_a_truncated_file_of_keys_keeps_the_last_ones(tmp_path: Path) -> None:
    file = keys_file(tmp_path, _oct("a", b"a" * 32))
    keys = Keys(file)
    file.write_text('{"keys": [')

    assert not keys.refresh()
    assert "a" in keys.by_id
    assert "no JSON Web Key Set" in keys.problem


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ({"kty": "oct", "k": "eA"}, "has no `kid`"),
        ({"kty": "oct", "kid": "a", "k": "eA"}, "fewer than 32 bytes"),
        ({"kty": "oct", "kid": "a", "k": "!!"}, "fewer than 32 bytes|can't be read"),
        ({"kty": "oct", "kid": "a"}, "can't be read as a JSON Web Key"),
        ({**_oct("a", b"x" * 32), "alg": "none"}, "must be one of oct"),
        ({**_oct("a", b"x" * 32), "alg": "RS256"}, "must be one of oct"),
        ({"kty": "EC", "kid": "a", "crv": "P-256"}, "must be one of oct"),
        (_public(generate_private_key(65537, 1024), "a"), "fewer than 2048 bits"),
        ("key", "has no `kid`"),
    ],
)
def test_a_bad_key_is_refused_and_not_shown(tmp_path: Path, node: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        Keys(keys_file(tmp_path, node))
    assert not isinstance(node, dict) or str(node.get("k", "no")) not in str(caught.value).split()


def test_two_keys_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="two of the kid `a`"):
        Keys(keys_file(tmp_path, _oct("a", b"x" * 32), _oct("a", b"y" * 32)))


def test_public_keys_sign_nothing(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can sign"):
        Keys(keys_file(tmp_path, _public(ED, "e"))).signing()


# ── the gate ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND"])
def test_nothing_is_written(shown: TestClient, method: str) -> None:
    found = shown.request(method, "/api/v1/restaurants", headers=OPERATOR)

    assert (found.status_code, found.headers["allow"]) == (405, "GET, HEAD")


def test_a_body_is_not_taken(shown: TestClient) -> None:
    assert shown.request("GET", "/api/v1/restaurants", headers=OPERATOR, content=b"x").status_code == 413


def test_long_addresses_and_headers_are_refused(shown: TestClient) -> None:
    assert shown.get("/api/v1/restaurants?cursor=" + "a" * 5000, headers=OPERATOR).status_code == 414
    assert shown.get("/api/v1/restaurants", headers={**OPERATOR, "x-a": "a" * 40_000}).status_code == 431


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "testserver.evil"])
def test_another_host_is_refused(shown: TestClient, host: str) -> None:
    """A foreign page whose name resolves to this server (DNS rebinding) can't read anything."""
    assert shown.get("/api/v1/health", headers={"Host": host}).status_code == 421


@pytest.mark.parametrize(
    "path", ["/", "/nope", "/api/v1/health", "/static/owner.js", "/api/v1/restaurants", "/openapi.json"]
)
def test_every_answer_has_the_security_headers(shown: TestClient, path: str) -> None:
    found = shown.get(path).headers

    assert found["content-security-policy"].startswith("default-src 'self'")
    assert "frame-ancestors 'none'" in found["content-security-policy"]
    assert (found["x-content-type-options"], found["referrer-policy"]) == ("nosniff", "no-referrer")
    assert "server" not in found
    assert "access-control-allow-origin" not in found


@pytest.mark.parametrize(
    "path",
    ["/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2f..%2fcli.py", "/static//etc/passwd", "/static/%00",
     "/static/....//app.py", "/static/..\\app.py", "/static/", "/api/v1/../../etc/passwd", "//etc/passwd", "/api/v1/"],
)  # fmt: skip
def test_path_tricks_lead_nowhere(shown: TestClient, path: str) -> None:
    found = shown.get(path, headers=OPERATOR)

    assert found.status_code == 404
    assert found.content == shown.get("/nope", headers=OPERATOR).content


@pytest.mark.slow
def test_too_many_requests_are_delayed(warehouse: Warehouse) -> None:
    """Each token has its own bucket; invalid tokens share the bucket of their address."""
    site, watcher = served.site(warehouse, rate=0.2)  # with the default burst, 5 times the rate, it would be 1
    site.limits = Limits(0.2, 3)
    watcher.look()
    with served.client(site) as asked:
        answers = [asked.get("/api/v1/freshness", headers=OWNER).status_code for _ in range(5)]
        assert answers == [200, 200, 200, 429, 429]
        assert asked.get("/api/v1/freshness", headers=bearer("r0001")).status_code == 200
        guesses = [asked.get("/api/v1/freshness", headers={"Authorization": f"Bearer {n}"}) for n in range(5)]
        assert [one.status_code for one in guesses] == [401, 401, 401, 429, 429]
        assert 1 <= int(guesses[-1].headers["retry-after"]) <= 5
