"""Requests that the OpenAPI description allows, and many that it doesn't, get a described answer, never a 500."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from tests.support import clicks, ingested, served
from tests.support.served import Warehouse, bearer

pytestmark = [pytest.mark.slow, pytest.mark.long]
MANY = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), database=None)
STREAM = "/api/v1/ticks/events"
CALLERS = {
    "operator": bearer(operator=True),
    "owner": bearer("r0002"),
    "of a site": bearer("docs", claim="sites"),
    "nobody": {},
}


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """Yield a client of a server with two dashboards and the tables of lists computed on demand."""
    warehouse = Warehouse(tmp_path_factory.mktemp("warehouse"), clicks.project(tmp_path_factory.mktemp("project")))
    warehouse.publish({**clicks.rows(1), "fct_restaurant_dish_slots": [], "dishes": []})
    site, watcher = served.site(warehouse)
    watcher.look()
    with served.client(site) as asked:
        yield asked


def _hold(shown: TestClient, cases: Any, headers: dict[str, str], known: set[str]) -> None:
    @MANY
    @given(case=cases)
    def holds(case: Any) -> None:
        request = case.as_transport_kwargs(base_url="http://testserver")
        answer = shown.request(request["method"], request["url"], params=request.get("params"), headers=headers)
        assert answer.status_code < 500, (request, answer.text)
        assert str(answer.status_code) in known, (request, answer.text)

    holds()


@pytest.mark.parametrize("who", CALLERS)
@pytest.mark.parametrize("valid", [True, False], ids=["as described", "otherwise"])
def test_no_request_breaks_the_server(shown: TestClient, who: str, valid: bool) -> None:
    import schemathesis
    from schemathesis import GenerationMode

    mode = GenerationMode.POSITIVE if valid else GenerationMode.NEGATIVE
    schema = schemathesis.openapi.from_dict(shown.get("/openapi.json").json())
    described = {path: node["get"] for path, node in shown.get("/openapi.json").json()["paths"].items()}
    asked = set()
    for found in schema.get_all_operations():
        operation = found.ok()
        # A stream never ends; test_serve_access.py tests it. A route without parameters has no invalid request.
        if operation.path == STREAM or not (valid or described[operation.path]["parameters"]):
            continue
        cases = operation.as_strategy(generation_mode=mode)
        _hold(shown, cases, CALLERS[who], set(described[operation.path]["responses"]))
        asked.add(operation.path)
    assert asked


@pytest.mark.parametrize("valid", [True, False], ids=["as described", "otherwise"])
@pytest.mark.parametrize("who", ["sender", "nobody"])
def test_no_request_breaks_the_door_for_lines(tmp_path: Path, who: str, valid: bool) -> None:
    """Each answer is a described one, and only an accepted request leaves a file in the source's folder."""
    import schemathesis
    from schemathesis import GenerationMode

    root = ingested.project(tmp_path / "project")
    headers = ingested.SENDER if who == "sender" else {}
    with ingested.client(root) as door:
        described = door.get("/openapi.json").json()
        schema = schemathesis.openapi.from_dict(described)
        posts = [one.ok() for one in schema.get_all_operations() if one.ok().method.upper() == "POST"]
        (operation,) = posts
        mode = GenerationMode.POSITIVE if valid else GenerationMode.NEGATIVE
        known = set(described["paths"][operation.path]["post"]["responses"])
        accepted = 0

        @MANY
        @given(case=operation.as_strategy(generation_mode=mode))
        def holds(case: Any) -> None:
            nonlocal accepted
            # The path is the source's own in every second request: else nearly all would end there.
            request = case.as_transport_kwargs(base_url="http://testserver")
            data = request.get("data")
            content = {"content": data} if isinstance(data, bytes | str) else {"json": request.get("json", data)}
            # A header's value is bytes in Latin-1; the client would refuse a text that isn't ASCII.
            given = {
                name.encode("latin-1"): str(value).encode("latin-1", "replace")
                for name, value in (request.get("headers") or {}).items()
            }
            given |= {name.encode(): value.encode() for name, value in headers.items()}
            for url in (request["url"], f"http://testserver{ingested.PATH}"):
                answer = door.post(url, params=request.get("params"), headers=given, **content)
                assert answer.status_code < 500, (request, answer.text)
                assert str(answer.status_code) in known, (request, answer.text)
                accepted += answer.status_code == 202

        holds()
    assert len(ingested.files(root)) <= accepted and (accepted == 0 or who == "sender")


PIECES = (
    "..",
    "%2e",
    "/",
    "//",
    "\\",
    "%00",
    "%2f",
    "a",
    "r0002",
    "api",
    "v1",
    "marts",
    "static",
    "?",
    "&",
    "=",
    "limit",
    ";",
    "é",
    "%ff",
    "'",
)


@MANY
@given(st.lists(st.sampled_from(PIECES), max_size=12))
def test_no_path_breaks_the_server(shown: TestClient, pieces: list[str]) -> None:
    answer = shown.get("http://testserver/" + "".join(pieces), headers=CALLERS["owner"])

    assert answer.status_code < 500
    assert b"Traceback" not in answer.content
