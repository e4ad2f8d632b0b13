"""The door for lines: what it takes, what it rejects, who may use it, and how many files it writes."""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from sqlrun.errors import LockedError
from sqlrun.serve.access import INGEST
from sqlrun.serve.ingest import intake as intake_module
from sqlrun.serve.ingest import lines as lines_module
from sqlrun.serve.ingest.opening import Settings
from tests.support import ingested, served
from tests.support.ingested import JSON, NDJSON, PATH, SENDER, files, lines
from tests.support.served import SECRET, VALID, bearer

OPERATOR = bearer(operator=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return ingested.project(tmp_path / "project")


@pytest.fixture
def asked(root: Path) -> Iterator[TestClient]:
    with ingested.client(root) as found:
        yield found


def post(asked: TestClient, body: bytes | str, kind: dict[str, str] = JSON, path: str = PATH, **headers: str) -> Any:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return asked.post(path, content=body, headers={**SENDER, **kind, **named})


# ── bodies ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("kind", "body", "written"),
    [
        (NDJSON, '{"a": 1.10}\n{"b":"ä"}\n', ['{"a": 1.10}', '{"b":"ä"}']),
        (NDJSON, '\ufeff{"a":1}\r\n\r\n  {"b":2}\t\r{"c":3}', ['{"a":1}', '{"b":2}', '{"c":3}']),
        (NDJSON, '{"a":"\u2028"}\n', ['{"a":"\u2028"}']),
        (JSON, '{"a": 123456789012345678901234567890.10}', ['{"a": 123456789012345678901234567890.10}']),
        (JSON, '\n{"a":\n [1,\r\n2]}\n', ['{"a":  [1, 2]}']),
        (JSON, '[{"a":1},\n\n{"b":"]"} ]', ['{"a":1}', '{"b":"]"}']),
        (JSON, '{"a":1}\n{"b":2}', ['{"a":1}', '{"b":2}']),
        (JSON, '{"a":"\\u0000\\n"}', ['{"a":"\\u0000\\n"}']),
        ({"Content-Type": "application/cloudevents+json; charset=UTF-8"}, '{"a":1}', ['{"a":1}']),
        (JSON, '{"a":' + "9" * 100_000 + "}", ['{"a":' + "9" * 100_000 + "}"]),
    ],
)  # fmt: skip
def test_lines_are_written_as_they_were_sent(
    asked: TestClient, root: Path, kind: dict[str, str], body: str, written: list[str]
) -> None:
    found = post(asked, body.encode(), kind)

    assert (found.status_code, found.json()["lines"]) == (202, len(written))
    assert lines(root) == written
    assert [file.name for file in files(root)] == [found.json()["file"]]
    assert ingested.hidden(root) == []


@pytest.mark.parametrize(
    ("kind", "body", "message"),
    [
        (NDJSON, b'{"a":1}\n\n{"a":', "line 3: not JSON"),
        (NDJSON, b'{"a":1}\r\r{"a":', "line 3: not JSON"),
        (NDJSON, b'{"a":1}\n[{"a":2}]', "line 2: JSON, but not an object"),
        (NDJSON, b'{"a":1} {"b":2}', "line 1: more text"),
        (NDJSON, b'{"a":\n1}', "line 1: not JSON"),
        (NDJSON, b'{"a":1}\n{"a":"\xff"}', "line 2: not UTF-8"),
        (NDJSON, b'{"a":"\x00"}', "line 1: not JSON"),
        (NDJSON, b"\x00" * 100, "line 1: not JSON"),
        (NDJSON, b'{"a":NaN}', "line 1: `NaN` isn't JSON"),
        (NDJSON, "{'a': 1}".encode("utf-16"), "line 1: not UTF-8"),
        (JSON, b"", "no JSON object"),
        (JSON, b" \n ", "no JSON object"),
        (JSON, b"[]", "no JSON object"),
        (JSON, b"17", "line 1: JSON, but not an object"),
        (JSON, b'[{"a":1},\n{"b":2},\n]', "line 3: not JSON"),
        (JSON, b'[{"a":1}\n{"b":2}]', "line 2: an item of the array"),
        (JSON, b'[{"a":1},\n 2]', "line 2: JSON, but not an object"),
        (JSON, b'[{"a":1}]\n[{"a":1}]', "line 2: more text"),
        (JSON, b'[{"a":1}', "line 1: an item"),
        (JSON, b'{"a":' * 100_000, "nested too deeply"),
        (JSON, b"[" * 100_000, "nested too deeply"),
        (JSON, b'{"a":01}', "line 1: not JSON"),
    ],
)
def test_a_body_that_is_not_json_is_refused_with_its_line_and_nothing_is_written(
    asked: TestClient, root: Path, kind: dict[str, str], body: bytes, message: str
) -> None:
    found = post(asked, body, kind)

    assert (found.status_code, found.headers["content-type"]) == (400, "application/problem+json")
    assert message in found.json()["detail"]
    assert files(root) == []


def test_a_line_that_no_field_fits_is_the_landings_matter(asked: TestClient, root: Path) -> None:
    assert post(asked, '{"nothing": "declared"}').status_code == 202
    assert lines(root) == ['{"nothing": "declared"}']


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ({"Content-Type": "application/json; charset=latin-1"}, 415),
        ({"Content-Type": ""}, 415),
        ({**JSON, "Content-Encoding": "gzip"}, 415),
        ({**JSON, "Content-Encoding": "deflate, gzip"}, 415),
        ({**JSON, "Idempotency-Key": ""}, 400),
        ({**JSON, "Idempotency-Key": "k" * 256}, 400),
        ({**JSON, "Idempotency-Key": "a\tb"}, 400),
    ],
)
def test_a_header_that_cannot_be_respected_is_refused(
    asked: TestClient, root: Path, headers: dict[str, str], status: int
) -> None:
    bomb = gzip.compress(b"\x00" * 10_000_000)
    body = bomb if "Content-Encoding" in headers else b'{"a":1}'

    assert asked.post(PATH, content=body, headers={**SENDER, **headers}).status_code == status
    assert files(root) == []


def test_what_is_too_large_is_refused_with_and_without_a_length(
    asked: TestClient, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    big = b'{"a":"' + b"x" * ingested.PLAIN.most_bytes + b'"}'
    monkeypatch.setattr(lines_module, "MOST_LINES", 3)

    assert post(asked, big).status_code == 413
    assert asked.post(PATH, content=iter([big[:9], big[9:]]), headers={**SENDER, **JSON}).status_code == 413
    assert post(asked, '{"a":1}\n' * 4, NDJSON).status_code == 413
    assert files(root) == []
    assert post(asked, '{"a":1}\n' * 3, NDJSON).status_code == 202


def test_bodies_in_memory_have_a_limit_and_leave_it(asked: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake_module, "MOST_IN_MEMORY", 100)
    for _ in range(2):
        found = post(asked, '{"a":"' + "x" * 200 + '"}')
        assert (found.status_code, found.headers["retry-after"]) == (503, "1")
        assert post(asked, '{"a":1}').status_code == 202


# ── idempotency keys ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_key_again_writes_nothing_also_after_a_restart_and_without_the_file(root: Path) -> None:
    with ingested.client(root) as asked:
        first = post(asked, '{"a":1}', Idempotency_Key="k")
        again = post(asked, '{"a":1}', Idempotency_Key="k")
        assert "idempotent-replayed" not in first.headers
        assert (again.status_code, again.content, again.headers["idempotent-replayed"]) == (202, first.content, "true")
        assert post(asked, '{"a":2}', Idempotency_Key="k").status_code == 422
        assert post(asked, '{"a":1}', Idempotency_Key="K").status_code == 202
    assert len(files(root)) == 2
    for file in files(root):
        file.unlink()
    with ingested.client(root) as asked:
        assert post(asked, '{"a":1}', Idempotency_Key="k").content == first.content
        assert post(asked, '{"a":2}', Idempotency_Key="k").status_code == 422
    assert files(root) == []


def test_without_a_key_the_same_body_is_written_again(asked: TestClient, root: Path) -> None:
    for _ in range(2):
        assert post(asked, '{"a":1}').status_code == 202
    assert lines(root) == ['{"a":1}'] * 2


def test_a_rejected_body_does_not_use_up_its_key(asked: TestClient, root: Path) -> None:
    assert post(asked, '{"a":', Idempotency_Key="k").status_code == 400
    assert post(asked, '{"a":1}', Idempotency_Key="k").status_code == 202


def test_requests_that_race_with_one_key_write_once(root: Path) -> None:
    """They wait for one file together, so one group has both bodies and their repetitions."""
    slow = Settings(rate=0, most_bytes=1000, every=0.5)
    with ingested.client(root, slow) as asked:
        for door in asked.app.site.intake.doors.values():  # type: ignore[attr-defined]
            door._pace.left = 0.0
        answers: list[tuple[int, bytes]] = []

        def send(body: str) -> None:
            found = post(asked, body, Idempotency_Key="k")
            answers.append((found.status_code, found.content))

        threads = [threading.Thread(target=send, args=(body,)) for body in ['{"a":1}', '{"a":2}'] * 6]
        for each in threads:
            each.start()
        for each in threads:
            each.join()

    assert sorted(status for status, _ in answers) == [202] * 6 + [422] * 6
    assert len({body for status, body in answers if status == 202}) == 1
    assert lines(root) in (['{"a":1}'], ['{"a":2}'])


def test_keys_are_forgotten_after_thirty_days(root: Path) -> None:
    at = [ingested.now()]
    with ingested.client(root, clock=lambda: at[0]) as asked:
        post(asked, '{"a":1}', Idempotency_Key="k")
        at[0] += ingested.timedelta(days=29)
        assert "idempotent-replayed" in post(asked, '{"a":1}', Idempotency_Key="k").headers
        at[0] += ingested.timedelta(days=2)
        assert "idempotent-replayed" not in post(asked, '{"a":1}', Idempotency_Key="k").headers


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_many_requests_at_once_become_few_files(root: Path) -> None:
    slow = Settings(rate=0, most_bytes=1000, every=0.3)
    with ingested.client(root, slow) as asked:
        for door in asked.app.site.intake.doors.values():  # type: ignore[attr-defined]
            door._pace.left = 0.0
        began = time.monotonic()

        def send(number: int) -> None:
            for part in range(5):
                body = json.dumps({"n": number * 5 + part})
                assert post(asked, body, Idempotency_Key=body).status_code == 202

        threads = [threading.Thread(target=send, args=(number,)) for number in range(16)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        seconds = time.monotonic() - began

    assert sorted(json.loads(line)["n"] for line in lines(root)) == list(range(80))
    assert len(files(root)) <= 2 + seconds / slow.every
    assert [file.name for file in files(root)] == [
        file.name for file in sorted(files(root), key=lambda file: file.stat().st_mtime_ns)
    ]


def test_a_clock_that_goes_back_does_not_put_a_file_before_an_older_one(root: Path) -> None:
    at = [ingested.now()]
    with ingested.client(root, clock=lambda: at[0]) as asked:
        names = [post(asked, '{"a":1}').json()["file"]]
        at[0] -= ingested.timedelta(hours=1)
        names.append(post(asked, '{"a":2}').json()["file"])

    assert sorted(names) == names


def test_waiting_requests_are_written_when_the_server_stops(root: Path) -> None:
    slow = Settings(rate=0, most_bytes=1000, every=60)
    with ingested.client(root, slow) as asked:
        intake = asked.app.site.intake  # type: ignore[attr-defined]
        intake.doors["shops.sales"]._pace.left = 0.0
        sent: list[int] = []
        thread = threading.Thread(target=lambda: sent.append(post(asked, '{"a":1}').status_code))
        thread.start()
        while not intake.doors["shops.sales"]._queue:
            time.sleep(0.01)
        asked.portal.call(intake.hurry)  # type: ignore[union-attr]
        thread.join(10)

    assert (sent, lines(root)) == ([202], ['{"a":1}'])


def test_a_second_server_does_not_start_on_the_same_folder(asked: TestClient, root: Path) -> None:
    post(asked, '{"a":1}')

    with pytest.raises(LockedError, match="another `sqlrun serve --ingest` writes to"):
        ingested.site(root)


# ── who ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def signed(**claims: Any) -> dict[str, str]:
    import jwt

    return {"Authorization": f"Bearer {jwt.encode({'exp': time.time() + VALID, **claims}, SECRET.key, 'HS256')}"}


MINE = {"sources": ["shops.sales"]}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Cookie": SENDER["Authorization"]}, 401),
        ({"Cookie": f"token={SENDER['Authorization'][7:]}"}, 401),
        ({"Authorization": "Basic dTpw"}, 401),
        (OPERATOR, 401),
        (bearer("shops.sales", claim="sources"), 401),
        (signed(aud="sqlrun", scope="operator", **MINE), 401),
        (signed(aud=["sqlrun", INGEST], scope="operator", **MINE), 401),
        (signed(aud=INGEST), 401),
        (signed(aud=INGEST, sources="shops.sales"), 401),
        (ingested.bearer("shops.sales", seconds=-1), 401),
        (signed(aud=INGEST, scope="operator", sources=["shops.other"]), 404),
        (signed(aud=INGEST, scope="operator"), 404),
        (ingested.bearer("shops"), 404),
        (ingested.bearer("*"), 404),
    ],
)
def test_only_a_token_for_the_source_writes(
    asked: TestClient, root: Path, headers: dict[str, str], status: int
) -> None:
    assert asked.post(PATH, content='{"a":1}', headers={**JSON, **headers}).status_code == status
    assert files(root) == []


def test_a_source_that_is_anothers_and_one_that_there_is_not_are_the_same_bytes(asked: TestClient) -> None:
    other = ingested.bearer("shops.nothing", "nothing.sales")
    answers = [
        asked.post(path, content='{"a":1}', headers={**JSON, **other})
        for path in (PATH, "/api/v1/ingest/shops/nothing", "/api/v1/ingest/nothing/sales", "/api/v1/ingest/a/b")
    ]

    assert {found.status_code for found in answers} == {404}
    assert len({(found.content, tuple(sorted(found.headers.items()))) for found in answers}) == 1


@pytest.mark.parametrize(
    "path",
    ["shops/sales/", "shops/sales/x", "shops//sales", "shops", "", "shops/..%2f..%2fetc", "%2e%2e/%2e%2e/etc/passwd",
     "shops/sales%00", "Shops/sales", "shops%2fsales/", "shops.sales/", "data/orders", "shops/sales.jsonl"],
)  # fmt: skip
def test_paths_of_no_source_lead_nowhere(asked: TestClient, root: Path, path: str) -> None:
    before = sorted(root.rglob("*"))

    assert post(asked, '{"a":1}', path=f"/api/v1/ingest/{path}").status_code == 404
    assert sorted(root.rglob("*")) == before


def test_a_token_for_ingest_reads_nothing(asked: TestClient) -> None:
    for path in ("/api/v1/freshness", "/api/v1/health", "/metrics", "/api/v1/marts/by_shop", "/api/v1/ticks/events"):
        assert asked.get(path, headers=SENDER).status_code == 401, path
    assert asked.get(PATH, headers=SENDER).status_code == 405


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_no_page_of_another_origin_gets_permission(asked: TestClient, method: str) -> None:
    headers = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    found = asked.request(method, PATH, headers=headers)

    assert (found.status_code, found.headers["allow"]) == (405, "POST")
    assert not [name for name in found.headers if name.startswith("access-control")]
    assert post(asked, '{"a":1}', Host="evil.example").status_code == 421


def test_a_token_has_a_rate(root: Path) -> None:
    with ingested.client(root, Settings(rate=0.4, most_bytes=1000, every=0)) as asked:
        answers = [post(asked, '{"a":1}') for _ in range(4)]

    assert [found.status_code for found in answers] == [202, 202, 429, 429]
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 3


def test_a_query_is_refused(asked: TestClient) -> None:
    assert post(asked, '{"a":1}', path=f"{PATH}?token=x").status_code == 400


def test_without_the_option_there_is_no_route(root: Path) -> None:
    site = ingested.site(root)
    site.intake = None
    with served.client(site) as asked:
        assert post(asked, '{"a":1}').status_code == 405
        assert asked.get(PATH, headers=OPERATOR).status_code == 404
        assert "post" not in json.dumps(asked.get("/openapi.json").json()["paths"])


def test_the_description_has_the_route_and_every_status(asked: TestClient) -> None:
    described = asked.get("/openapi.json").json()["paths"]["/api/v1/ingest/{group}/{name}"]["post"]

    assert {"202", "400", "401", "404", "413", "415", "422", "429", "503", "507"} <= described["responses"].keys()
    assert [one["name"] for one in described["parameters"]] == ["group", "name", "Idempotency-Key"]


def test_metrics_count_lines_files_and_refusals(asked: TestClient) -> None:
    for key in ("a", "a", "b"):
        post(asked, '{"a":1}\n{"a":2}\n', NDJSON, Idempotency_Key=key)
    post(asked, "{", NDJSON)
    asked.post(PATH, content="{}", headers=JSON)
    text = asked.get("/metrics", headers=OPERATOR).text

    assert 'sqlrun_ingest_requests_total{outcome="written",source="shops.sales"} 2.0' in text
    assert 'sqlrun_ingest_requests_total{outcome="repeated",source="shops.sales"} 1.0' in text
    assert 'sqlrun_ingest_lines_total{source="shops.sales"} 4.0' in text
    assert 'sqlrun_ingest_bytes_total{source="shops.sales"} 32.0' in text
    assert 'sqlrun_ingest_files_total{folder="data/orders"} 2.0' in text
    assert 'sqlrun_ingest_refused_total{reason="lines"} 1.0' in text
    assert 'sqlrun_ingest_refused_total{reason="token"} 1.0' in text
