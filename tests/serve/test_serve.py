"""The server's answers: each from one tick, in the declared form, with a clear error where there is none."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

from sqlrun.cli.main import main
from sqlrun.errors import SqlrunError, UsageError
from sqlrun.project import Project
from tests.support import served
from tests.support.marks import rest_slow
from tests.support.served import Warehouse, bearer, orders
from tests.support.waiting import wait_until

OPERATOR = bearer(operator=True)
OWNER = bearer("r0002")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return served.project(tmp_path_factory.mktemp("project"))


@pytest.fixture(scope="module")
def shown(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """Yield a client of a server with one tick, for tests that don't change it."""
    warehouse = Warehouse(tmp_path_factory.mktemp("warehouse"), project)
    warehouse.publish()
    site, watcher = served.site(warehouse)
    watcher.look()
    with served.client(site) as asked:
        yield asked


@pytest.fixture
def warehouse(project: Project, tmp_path: Path) -> Warehouse:
    return Warehouse(tmp_path / "warehouse", project)


def window(asked: TestClient, which: str = "r0002", hours: int = 24, **headers: str) -> Any:
    return asked.get(f"/api/v1/restaurants/{which}/windows?hours={hours}", headers={**OWNER, **headers})


# ── answers ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("hours", [1, 24, 168])
@pytest.mark.slow
def test_a_window_is_the_marts_row(shown: TestClient, hours: int) -> None:
    found = window(shown, hours=hours).json()

    assert (found["tick"], found["hours"], found["as_of"]) == (1, hours, "2026-05-04T12:40:00Z")
    assert (found["n_orders"], found["total_sales"]) == (2001, "20.01")
    assert found["top_dishes"] == [{"dish_rank": 1, "dish_id": "d001", "dish_name": "Soup", "quantity": 2001}]
    assert found["restaurant"] == {
        "id": "r0002", "name": "Rest 1", "city": "Öst", "currency": "EUR", "time_zone": "Atlantic/Reykjavik",
    }  # fmt: skip


@pytest.mark.parametrize(("hours", "before", "last_week"), [(1, 2, 2), (24, 48, 48), (168, 336, 336)])
def test_what_a_window_is_compared_with_is_added_up_to_the_slot(
    shown: TestClient, hours: int, before: int, last_week: int
) -> None:
    """At 12:40 a window ends within an hour whose order has the time 12:30, so full hours alone would miscount."""
    found = window(shown, hours=hours).json()

    assert found["before"]["n_orders"] == before
    assert found["last_week"]["n_orders"] == last_week
    assert found["before"]["total_sales"] == f"{before}.00"
    assert found["before"]["n_orders_change"] == round((2001 - before) / before, 4)


@pytest.mark.parametrize(
    ("slots", "counted"),
    rest_slow(
        [
            ("11:30", 4),
            ("11:40", 4),
            ("11:45", 2),
            ("11:00", 2),
            ("10:30", 0),
            ("10:40", 0),
            ("10:45", 2),
            ("10:00", 2),
        ],
        fast=1,
    ),
)
@pytest.mark.slow
def test_a_begun_hour_counts_up_to_the_minute(warehouse: Warehouse, slots: str, counted: int) -> None:
    """The span (10:40, 11:40] is the hour of 10:00 without its slots up to 10:40, plus slots from 11:00 to 11:40."""
    held = served.rows(1)
    at = served.as_of_tick(1).replace(hour=int(slots[:2]), minute=int(slots[3:]))
    held["fct_restaurant_slots"] = [
        {**held["fct_restaurant_slots"][0], "restaurant_id": "r0002", "slot_at": at, "n_orders": 2}
    ]
    warehouse.publish(held)
    site, watcher = served.site(warehouse)
    watcher.look()
    with served.client(site) as asked:
        assert window(asked, hours=1).json()["before"]["n_orders"] == counted


@pytest.mark.slow
def test_facts_that_begin_later_can_not_be_compared_with(warehouse: Warehouse) -> None:
    held = served.rows(1)
    since = served.as_of_tick(1) - timedelta(hours=60)
    held["fct_restaurant_hours"] = [row for row in held["fct_restaurant_hours"] if row["hour_at"] > since]
    warehouse.publish(held)
    site, watcher = served.site(warehouse)
    watcher.look()
    with served.client(site) as asked:
        day, week = window(asked, hours=24).json(), window(asked, hours=168).json()

    assert day["before"] is not None
    assert day["last_week"] is None
    assert week["before"] is None


@pytest.mark.slow
def test_a_restaurant_without_orders_has_zeros(warehouse: Warehouse) -> None:
    warehouse.publish({**served.rows(1, ("r0002",)), "restaurant_windows": [], "fct_restaurant_hours": []})
    site, watcher = served.site(warehouse)
    watcher.look()
    with served.client(site) as asked:
        found, hours = window(asked).json(), asked.get("/api/v1/restaurants/r0002/hours", headers=OWNER).json()

    assert (found["n_orders"], found["total_sales"], found["top_dishes"]) == (0, "0.00", [])
    assert (hours["hour_at"], hours["n_orders"], hours["total_sales"]) == ([], [], [])


def test_hours_are_those_of_a_week(shown: TestClient) -> None:
    found = shown.get("/api/v1/restaurants/r0002/hours", headers=OWNER).json()

    assert len(found["hour_at"]) == len(found["n_orders"]) == len(found["total_sales"]) == 169
    assert (found["hour_at"][0], found["hour_at"][-1]) == ("2026-04-27T12:00:00Z", "2026-05-04T12:00:00Z")
    assert set(found["n_orders"]) == {2}


@pytest.mark.slow
def test_ids_and_names_may_hold_anything(warehouse: Warehouse) -> None:
    strange = 'r "1"\\ é\u2028<script>😀'
    held = served.rows(1, (strange,))
    held["restaurants"][0]["restaurant_name"] = "O'Neil; drop table x --"
    warehouse.publish(held)
    site, watcher = served.site(warehouse)
    watcher.look()
    with served.client(site) as asked:
        from urllib.parse import quote

        mine = bearer(strange)
        found = asked.get(f"/api/v1/restaurants/{quote(strange, safe='')}/windows", headers=mine)
        listed = asked.get("/api/v1/restaurants", headers=mine).json()

    assert found.json()["restaurant"]["name"] == "O'Neil; drop table x --"
    assert listed["restaurants"][0]["id"] == strange


def test_operators_list_all_restaurants_page_by_page(shown: TestClient) -> None:
    first = shown.get("/api/v1/restaurants?limit=2", headers=OPERATOR).json()
    second = shown.get(f"/api/v1/restaurants?limit=2&cursor={first['next']}", headers=OPERATOR).json()

    assert [one["id"] for one in first["restaurants"]] == ["r0001", "r0002"]
    assert [one["id"] for one in second["restaurants"]] == ["r0003"]
    assert second["next"] is None


def test_a_marts_rows_are_asked_by_its_keys_and_come_page_by_page(shown: TestClient) -> None:
    path = "/api/v1/marts/restaurant_windows?window_hours=24&limit=2"
    first = shown.get(path, headers=OPERATOR).json()
    second = shown.get(f"{path}&cursor={first['next']}", headers=OPERATOR).json()

    assert [row["restaurant_id"] for row in first["rows"]] == ["r0001", "r0002"]
    assert [row["restaurant_id"] for row in second["rows"]] == ["r0003"]
    assert second["next"] is None
    assert first["rows"][0]["total_sales"] == "10.01"


def test_times_and_days_of_a_mart_are_texts_and_may_be_asked_by(shown: TestClient) -> None:
    path = "/api/v1/marts/fct_restaurant_hours?restaurant_id=r0001&hour_date=2026-05-04"
    found = shown.get(path, headers=OPERATOR).json()["rows"]

    assert len(found) == 13
    assert found[0]["hour_at"] == "2026-05-04T00:00:00Z"
    assert found[0]["hour_date"] == "2026-05-04"


def test_the_page_loads_nothing_from_elsewhere(shown: TestClient) -> None:
    page = shown.get("/")

    assert page.status_code == 200
    assert "default-src 'self'" in page.headers["content-security-policy"]
    assert "://" not in page.text
    for name in ("owner.js", "owner.css"):
        assert shown.get(f"/static/{name}").status_code == 200


# ── form ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_tick_that_is_known_is_not_sent_again(shown: TestClient) -> None:
    first = window(shown)
    again = window(shown, **{"If-None-Match": first.headers["etag"]})

    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    assert window(shown, **{"If-None-Match": 'W/"0-other"'}).status_code == 200
    assert first.headers["cache-control"] == "private, no-cache"
    assert "authorization" in first.headers["vary"]


@pytest.mark.parametrize("how", ["gzip", "br", "identity"])
def test_packed_answers_are_the_same_answers(shown: TestClient, how: str) -> None:
    plain = shown.get("/api/v1/restaurants/r0002/hours", headers={**OWNER, "Accept-Encoding": "identity"})
    packed = shown.get("/api/v1/restaurants/r0002/hours", headers={**OWNER, "Accept-Encoding": how})

    assert packed.headers.get("content-encoding", "identity") == how
    assert packed.json() == plain.json()
    assert packed.headers["etag"] == plain.headers["etag"]


def test_head_has_the_headers_alone(shown: TestClient) -> None:
    found = shown.head("/api/v1/restaurants/r0002/windows", headers=OWNER)

    assert (found.status_code, found.content) == (200, b"")
    assert int(found.headers["content-length"]) > 100


@pytest.mark.slow
def test_answers_have_their_tick_and_age(project: Project, warehouse: Warehouse) -> None:
    warehouse.publish()
    now = [served.as_of_tick(1) + timedelta(minutes=3)]
    site, watcher = served.site(warehouse, clock=lambda: now[0])
    watcher.look()
    with served.client(site) as asked:
        fresh = window(asked)
        now[0] += timedelta(minutes=30)
        old = window(asked)

    assert (fresh.headers["sqlrun-tick"], fresh.headers["sqlrun-age"], fresh.headers["sqlrun-stale"]) == (
        "1",
        "180",
        "false",
    )
    assert (old.headers["sqlrun-age"], old.headers["sqlrun-stale"]) == ("1980", "true")


# ── ticks ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_a_new_tick_is_shown_whole(warehouse: Warehouse) -> None:
    warehouse.publish()
    site, watcher = served.site(warehouse)
    watcher.look()
    with served.client(site) as asked:
        before = window(asked)
        warehouse.publish()
        still = window(asked).json()
        watcher.look()
        after = window(asked, **{"If-None-Match": before.headers["etag"]})

    assert still["n_orders"] == orders(1, 1)
    assert (after.status_code, after.json()["n_orders"], after.json()["tick"]) == (200, orders(1, 2), 2)


@pytest.mark.slow
def test_pages_of_a_mart_stay_in_the_tick_that_they_began_in(warehouse: Warehouse) -> None:
    warehouse.publish()
    site, watcher = served.site(warehouse)
    watcher.look()
    path = "/api/v1/marts/restaurant_windows?limit=1"
    with served.client(site) as asked:
        first = asked.get(path, headers=OPERATOR).json()
        warehouse.publish()
        watcher.look()
        asked.portal.call(lambda: None)  # type: ignore[union-attr]
        second = asked.get(f"{path}&cursor={first['next']}", headers=OPERATOR).json()
        site.recent.clear()
        gone = asked.get(f"{path}&cursor={first['next']}", headers=OPERATOR)

    assert (first["tick"], second["tick"]) == (1, 1)
    assert second["rows"][0]["n_orders"] == orders(1, 1)
    assert gone.status_code == 410


@pytest.mark.slow
def test_before_the_first_tick_answers_say_so(warehouse: Warehouse) -> None:
    site, watcher = served.site(warehouse)
    watcher.look()
    with served.client(site) as asked:
        for path in ("/api/v1/restaurants", "/api/v1/restaurants/r0002/windows", "/api/v1/restaurants/r0002/hours",
                     "/api/v1/freshness", "/api/v1/marts/restaurant_windows"):  # fmt: skip
            found = asked.get(path, headers=OWNER)
            assert (found.status_code, found.json()["title"]) == (503, "Service Unavailable"), path
            assert "no tick is published yet" in found.json()["detail"]
        health = asked.get("/api/v1/health")
        assert (health.status_code, health.json()["status"]) == (503, "unavailable")
        warehouse.publish()
        watcher.look()
        assert window(asked).status_code == 200


@pytest.mark.slow
def test_a_warehouse_that_is_away_leaves_the_last_tick(warehouse: Warehouse, tmp_path: Path) -> None:
    warehouse.publish()
    site, watcher = served.site(warehouse)
    watcher.look()
    shutil.move(warehouse.folder, tmp_path / "away")
    with served.client(site) as asked:
        with pytest.raises(SqlrunError, match="no ledger"):
            watcher.look()
        site.live.problem = "away"
        assert (window(asked).status_code, window(asked).headers["sqlrun-stale"]) == (200, "true")
        assert asked.get("/api/v1/health").json()["status"] == "stale"
        assert asked.get("/api/v1/health").json() == {"status": "stale"}
        assert "problem" not in asked.get("/api/v1/health", headers=OWNER).json()
        assert asked.get("/api/v1/health", headers=OPERATOR).json()["problem"] == "away"
        assert asked.get("/api/v1/marts/restaurant_windows", headers=OWNER).status_code == 503
        shutil.move(tmp_path / "away", warehouse.folder)
        watcher.look()
        assert window(asked).headers["sqlrun-stale"] == "false"


@pytest.mark.slow
def test_a_watcher_survives_whatever_it_meets(warehouse: Warehouse) -> None:
    """While a table is corrupt, the server shows the last good tick; then it shows the next intact one."""
    warehouse.publish()
    site, watcher = served.site(warehouse)
    watcher.look()
    warehouse.publish()
    for file in (warehouse.folder / "restaurant_windows" / "aa").glob("*.parquet"):
        file.write_bytes(b"torn")
    watcher.start()
    try:
        wait_until(lambda: site.live.problem, "no problem is met")
        assert site.live.snapshot is not None
        assert site.live.snapshot.published.tick == 1
        warehouse.publish()
        wait_until(lambda: not site.live.problem, "the problem remains")
        assert site.live.snapshot.published.tick == 3
    finally:
        watcher.stop()


@pytest.mark.parametrize(
    ("table", "column"),
    [("restaurant_windows", "total_sales"), ("fct_restaurant_hours", "hour_at"), ("fct_restaurant_slots", "n_orders")],
)
@pytest.mark.slow
def test_a_mart_without_a_column_is_refused_by_its_name(
    project: Project, tmp_path: Path, table: str, column: str
) -> None:
    warehouse = Warehouse(tmp_path / "warehouse", project, frozenset({(table, column)}))
    warehouse.publish()
    _, watcher = served.site(warehouse)

    with pytest.raises(UsageError, match=f"{table} has no column `{column}` at tick 1"):
        watcher.look()


@pytest.mark.slow
def test_a_tick_without_a_table_is_refused_by_its_name(warehouse: Warehouse) -> None:
    held = served.rows(1)
    del held["fct_restaurant_slots"]
    warehouse.publish(held)
    _, watcher = served.site(warehouse)

    with pytest.raises(UsageError, match="tick 1 has no table `fct_restaurant_slots`"):
        watcher.look()


@pytest.mark.slow
def test_known_columns_of_a_restaurant_may_be_missing(project: Project, tmp_path: Path) -> None:
    missing = {("restaurants", name) for name in ("restaurant_name", "city", "currency", "time_zone")}
    warehouse = Warehouse(tmp_path / "warehouse", project, frozenset(missing))
    warehouse.publish()
    site, watcher = served.site(warehouse)
    watcher.look()
    with served.client(site) as asked:
        assert window(asked).json()["restaurant"] == {
            "id": "r0002", "name": "Rest 1", "city": None, "currency": None, "time_zone": None,
        }  # fmt: skip


# ── the command ──────────────────────────────────────────────────────────────────────────────────────────────────


def run(*arguments: str, root: Path = served.ROOT, **env: str | None) -> Any:
    return CliRunner().invoke(
        main, ["--project-dir", str(root), "serve", *arguments], env={"SQLRUN_SERVE_KEY": None, **env}
    )


def test_others_are_not_served_without_a_key() -> None:
    found = run("--host", "0.0.0.0", "--profile", "duckdb")

    assert found.exit_code == 2
    assert "0.0.0.0 is reached by others, and there is no key" in found.output


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "env", "message"),
    [
        (["--profile", "nope"], {}, "unknown profile `nope`"),
        ([], {"SQLRUN_SERVE_KEY": "short"}, "fewer than 32 bytes"),
        (["--keys", "/nowhere.json"], {}, "the keys /nowhere.json can't be read"),
        (["--stale-after", "soon"], {}, "`soon` isn't a valid step"),
        (["--profile", "duckdb", "--env", "nope"], {}, "nope"),
        (["token"], {}, "name at least one key"),
        (["token", "--operator"], {}, "there is no key to sign with"),
    ],
)
def test_what_can_not_be_is_refused_before_anything_is_served(
    arguments: list[str], env: dict[str, str], message: str
) -> None:
    found = run(*arguments, **env)

    assert found.exit_code == 2
    assert message in found.output


def test_without_its_libraries_it_says_how_to_install_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlrun.runtime.packages.missing", lambda extra: ("no-such-package",))

    assert "pip install 'sqlrun[serve]'" in run().output


def test_the_description_lists_every_route(shown: TestClient) -> None:
    found = json.loads(shown.get("/openapi.json").content)

    assert sorted(found["paths"]) == [
        "/api/v1/dashboards", "/api/v1/freshness", "/api/v1/health", "/api/v1/marts/{mart}", "/api/v1/operator/{view}",
        "/api/v1/restaurants", "/api/v1/restaurants/{restaurant}/hours",
        "/api/v1/restaurants/{restaurant}/lists/{list}", "/api/v1/restaurants/{restaurant}/windows",
        "/api/v1/ticks/events", "/metrics",
    ]  # fmt: skip


def test_metrics_name_routes_and_no_ids(shown: TestClient) -> None:
    window(shown)
    found = shown.get("/metrics", headers=OPERATOR)

    assert 'sqlrun_requests_total{route="/api/v1/restaurants/{restaurant}/windows",status="200"}' in found.text
    assert "r0002" not in found.text


@pytest.mark.slow
def test_the_log_has_no_query_and_no_token(warehouse: Warehouse) -> None:
    lines: list[dict[str, Any]] = []
    warehouse.publish()
    site, watcher = served.site(warehouse, log=lines.append)
    watcher.look()
    with served.client(site) as asked:
        asked.get("/api/v1/restaurants?limit=2&secret=hush", headers=OWNER)
        window(asked)

    written = json.dumps(lines)
    assert [(line["path"], line["status"]) for line in lines] == [
        ("/api/v1/restaurants", 400), ("/api/v1/restaurants/r0002/windows", 200),
    ]  # fmt: skip
    assert "hush" not in written
    assert OWNER["Authorization"].split()[1] not in written
