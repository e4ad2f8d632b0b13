"""Several dashboards in one project: each answers from its own declaration, for its own tokens."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

from sqlrun.cli.main import main
from sqlrun.project import Project
from sqlrun.source_api import CompleteTo
from tests.support import clicks, served
from tests.support.served import Warehouse, bearer

pytestmark = pytest.mark.slow
OPERATOR = bearer(operator=True)
SITE, RESTAURANT = bearer("docs", claim="sites"), bearer("r0002")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return clicks.project(tmp_path_factory.mktemp("project"))


@pytest.fixture(scope="module")
def shown(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    warehouse = Warehouse(tmp_path_factory.mktemp("warehouse"), project)
    warehouse.publish(clicks.rows(1))
    yield from asked(warehouse)


def asked(warehouse: Warehouse) -> Iterator[TestClient]:
    site, watcher = served.site(warehouse)
    watcher.look()
    with served.client(site) as found:
        yield found


def with_rows(project: Project, folder: Path, **rows: list[dict[str, Any]]) -> Iterator[TestClient]:
    """Yield a client of a server with one tick, in which some tables have other rows."""
    warehouse = Warehouse(folder / "warehouse", project)
    warehouse.publish({**clicks.rows(1), **rows})
    yield from asked(warehouse)


def window(found: TestClient, site: str = "docs", hours: int = 24, headers: Any = SITE) -> Any:
    return found.get(f"/api/v1/clicks/{quote(site, safe='')}/windows?hours={hours}", headers=headers)


# ── two dashboards ───────────────────────────────────────────────────────────────────────────────────────────────


def test_each_dashboard_answers_by_its_own_declaration(shown: TestClient) -> None:
    found = window(shown).json()

    assert found["site"] == {"id": "docs", "name": None, "currency": None, "time_zone": None}
    assert (found["tick"], found["hours"], found["clicks"], found["revenue"]) == (1, 24, 101, "1.01")
    assert found["pages"][:2] == [{"page": "/0", "clicks": 10}, {"page": "/1", "clicks": 9}]
    assert [one["page"] for one in found["pages"]] == [f"/{n}" for n in range(7)]
    assert (found["before"]["clicks"], found["before"]["revenue"]) == (72, "0.72")
    assert found["last_week"]["clicks_change"] == round((101 - 72) / 72, 4)
    assert shown.get("/api/v1/restaurants/r0002/windows", headers=RESTAURANT).json()["n_orders"] == 2001


def test_an_answer_says_until_when_a_database_is_complete(project: Project, tmp_path: Path) -> None:
    """Only if a source takes whole transactions."""
    at = datetime(2026, 5, 4, 11, 58, 30, tzinfo=timezone.utc)
    complete = CompleteTo("kafka", "shop.transaction", "772", at, 40)
    warehouse = Warehouse(tmp_path / "warehouse", project, complete=complete)
    warehouse.publish(clicks.rows(1))

    for found in asked(warehouse):
        rows = found.get("/api/v1/marts/restaurant_windows?limit=1", headers=OPERATOR)
        assert window(found).json()["complete_to"] == rows.json()["complete_to"] == "2026-05-04T11:58:30Z"
        assert json.dumps(found.get("/openapi.json").json()).count('"complete_to"') == 3


def test_hours_are_made_of_slots_where_no_table_has_them(shown: TestClient) -> None:
    found = shown.get("/api/v1/clicks/docs/hours", headers=SITE).json()

    assert (found["hour_at"][0], found["hour_at"][-1]) == ("2026-04-27T12:00:00Z", "2026-05-04T12:00:00Z")
    assert (len(found["hour_at"]), set(found["clicks"]), set(found["revenue"])) == (169, {3}, {"0.03"})


def test_a_token_for_one_dashboard_shows_nothing_of_another(shown: TestClient) -> None:
    for mine, path in ((SITE, "/api/v1/restaurants"), (RESTAURANT, "/api/v1/clicks")):
        listed = shown.get(path, headers=mine).json()
        assert next(value for value in listed.values() if isinstance(value, list)) == []
    unknown = shown.get("/api/v1/clicks/nobody/windows", headers=SITE)
    tried = [
        shown.get("/api/v1/restaurants/r0002/windows", headers=SITE), window(shown, "docs", headers=RESTAURANT),
        window(shown, "shop"), shown.get("/api/v1/clicks/shop/hours", headers=SITE),
        shown.get("/api/v1/restaurants/docs/windows", headers=SITE),
        shown.get("/api/v1/restaurants/r0001/lists/top_dishes", headers=RESTAURANT),
        shown.get("/api/v1/restaurants/r0002/lists/nope", headers=RESTAURANT),
    ]  # fmt: skip
    assert {(one.status_code, one.content) for one in tried} == {(404, unknown.content)}
    assert {tuple(sorted(one.headers.items())) for one in tried} == {tuple(sorted(unknown.headers.items()))}
    # The other dashboard's marts don't reveal its rows either.
    rows = shown.get("/api/v1/marts/restaurant_windows", headers=SITE).json()["rows"]
    assert rows == [] and shown.get("/api/v1/marts/site_windows", headers=SITE).status_code == 404


def test_one_token_may_name_entities_of_both(shown: TestClient) -> None:
    from sqlrun.serve.access import token

    made = token(served.SECRET, {"sites": ["docs"], "restaurants": ["r0001"]}, False, time.time(), 60)
    both = {"Authorization": f"Bearer {made}"}

    assert window(shown, headers=both).status_code == 200
    assert shown.get("/api/v1/restaurants/r0001/windows", headers=both).status_code == 200
    assert window(shown, "r0001", headers=both).status_code == 404


def test_an_answer_that_is_known_is_not_sent_again(shown: TestClient) -> None:
    first = window(shown)
    again = window(shown, headers={**SITE, "If-None-Match": first.headers["etag"]})

    assert (again.status_code, again.content) == (304, b"")


def test_the_description_has_the_routes_of_both(shown: TestClient) -> None:
    paths = shown.get("/openapi.json").json()["paths"]

    assert {"/api/v1/clicks", "/api/v1/clicks/{site}/windows", "/api/v1/clicks/{site}/hours"} <= paths.keys()
    assert {"/api/v1/restaurants/{restaurant}/lists/{list}"} <= paths.keys()
    assert "/api/v1/clicks/{site}/lists/{list}" not in paths
    names = [one["get"]["operationId"] for one in paths.values()]
    assert len(names) == len(set(names))
    dashboards = shown.get("/api/v1/dashboards").json()["dashboards"]
    assert [one["api"] for one in dashboards] == ["clicks", "restaurants"]


@pytest.mark.parametrize("api", ["clicks", "restaurants"])
def test_each_page_can_be_installed(shown: TestClient, api: str) -> None:
    assert shown.get(f"/{api}").content == shown.get("/").content
    found = shown.get(f"/static/{api}.webmanifest")

    assert found.headers["content-type"] == "application/manifest+json"
    assert found.json()["start_url"] == f"/{api}"
    for icon in found.json()["icons"]:
        assert shown.get(icon["src"]).headers["content-type"] == icon["type"]


# ── keys, measures and windows ───────────────────────────────────────────────────────────────────────────────────

ODD = ("a/b", "/", "a//b/windows", 'say "hi"', "o'neil; --", "😀 é", " ", "a?b#c", "\\", "x" * 900)


def test_a_key_may_be_any_text(project: Project, tmp_path: Path) -> None:
    for found in with_rows(project, tmp_path, **{k: v for k, v in clicks.rows(1, ODD).items() if k.startswith("site")}):
        for number, key in enumerate(ODD):
            mine = bearer(key, claim="sites")
            answer = window(found, key, headers=mine)
            assert (answer.status_code, answer.json().get("clicks")) == (200, (number + 1) * 100 + 1), key
            assert answer.json()["site"]["id"] == key
            hours = found.get(f"/api/v1/clicks/{quote(key, safe='')}/hours", headers=mine)
            assert hours.json()["site"]["id"] == key
            assert found.get("/api/v1/clicks", headers=mine).json()["sites"][0]["id"] == key
            assert window(found, key, headers=SITE).status_code == 404
        seen, cursor = [], ""
        while cursor is not None:
            listed = found.get(
                "/api/v1/clicks", params={"limit": 3, "cursor": cursor} if cursor else {"limit": 3}, headers=OPERATOR
            )
            seen += [one["id"] for one in listed.json()["sites"]]
            cursor = listed.json()["next"]
        assert seen == sorted(ODD)


HUGE = Decimal("9999999999999999.99")


@pytest.mark.parametrize(
    ("row", "shown_as"),
    [
        ({"clicks": None, "revenue": None}, (None, None)),
        ({"clicks": -5, "revenue": Decimal("-0.01")}, (-5, "-0.01")),
        ({"clicks": 2**63 - 1, "revenue": HUGE}, (2**63 - 1, "9999999999999999.99")),
        ({"clicks": -(2**63), "revenue": -HUGE}, (-(2**63), "-9999999999999999.99")),
        ({"clicks": 0, "revenue": Decimal("0.00")}, (0, "0.00")),
    ],
)
def test_a_measure_may_be_null_negative_or_huge(
    project: Project, tmp_path: Path, row: dict[str, Any], shown_as: tuple[Any, Any]
) -> None:
    windows = [{"window_hours": hours, "site_id": "docs", **row} for hours in (1, 24, 168)]
    slots = [{**slot, **row} for slot in clicks.rows(1)["site_slots"] if slot["site_id"] == "docs"]
    pages = [{"window_hours": 24, "site_id": "docs", "page": None, "clicks": row["clicks"]}]
    for found in with_rows(project, tmp_path, site_windows=windows, site_slots=slots, site_pages=pages):
        for hours in (1, 24, 168):
            answer = window(found, hours=hours).json()
            assert (answer["clicks"], answer["revenue"]) == shown_as
            sums = answer["before"]["clicks"], answer["before"]["revenue"]
            many = Decimal(hours)
            expected = (row["clicks"] or 0) * hours, (row["revenue"] or Decimal("0.00")) * many
            assert sums == (expected[0], f"{expected[1]:.2f}")
        assert window(found).json()["pages"] == [{"page": None, "clicks": row["clicks"]}]
        trend = found.get("/api/v1/clicks/docs/hours", headers=SITE).json()
        assert (set(trend["clicks"]), set(trend["revenue"])) == ({shown_as[0]}, {shown_as[1]})


def test_a_change_from_less_than_nothing_is_no_share(project: Project, tmp_path: Path) -> None:
    slots = [{**slot, "clicks": -1} for slot in clicks.rows(1)["site_slots"]]
    for found in with_rows(project, tmp_path, site_slots=slots):
        before = window(found).json()["before"]
        assert (before["clicks"], before["clicks_change"]) == (-24, None)
        assert before["revenue_change"] == round((1.01 - 0.72) / 0.72, 4)


def test_a_window_that_is_not_declared_is_refused_and_one_without_rows_is_zero(
    project: Project, tmp_path: Path
) -> None:
    windows = [row for row in clicks.rows(1)["site_windows"] if row["window_hours"] != 168]
    for found in with_rows(project, tmp_path, site_windows=windows, site_pages=[]):
        refused = window(found, hours=12)
        assert (refused.status_code, refused.json()["detail"]) == (400, "`hours` must be one of 1, 24, 168")
        answer = window(found, hours=168).json()
        assert (answer["clicks"], answer["revenue"], answer["pages"]) == (0, "0.00", [])


@pytest.mark.long
def test_windows_may_be_named_by_the_dashboard(tmp_path: Path) -> None:
    project = clicks.project(
        tmp_path / "project", windows="windows: {table: site_windows, hours: window_hours, of: [24]}"
    )
    for found in with_rows(project, tmp_path):
        assert window(found, hours=1).status_code == 400
        assert shown_windows(found) == [24]


def shown_windows(found: TestClient) -> list[int]:
    dashboards = found.get("/api/v1/dashboards").json()["dashboards"]
    return next(one["windows"] for one in dashboards if one["api"] == "clicks")


def test_a_dashboard_may_have_no_trend_no_list_and_names_of_its_own(tmp_path: Path) -> None:
    project = clicks.project(tmp_path / "project", entity=clicks.NAMED, trend="api: sites", lists="title: Sites")
    warehouse = Warehouse(tmp_path / "warehouse", project)
    sites = [{"site_id": "docs", "site_name": "Docs", "country": "Chile", "zone": "America/Santiago"}]
    warehouse.publish({**clicks.rows(1), "sites": sites})
    for found in asked(warehouse):
        answer = found.get("/api/v1/sites/docs/windows", headers=SITE).json()
        assert answer["site"] == {
            "id": "docs", "name": "Docs", "country": "Chile", "currency": None, "time_zone": "America/Santiago",
        }  # fmt: skip
        assert "before" not in answer and "pages" not in answer
        assert found.get("/api/v1/sites/docs/hours", headers=SITE).status_code == 404
        assert found.get("/api/v1/clicks", headers=SITE).status_code == 404


# ── all items of a list ──────────────────────────────────────────────────────────────────────────────────────────


def dish_slots(tick: int) -> list[dict[str, Any]]:
    """Return slots of 7 dishes of a restaurant: dish n has n orders in the last hour, and one right before it."""
    as_of = served.as_of_tick(tick)
    row = {"restaurant_id": "r0002", "n_lines": 1}
    found = []
    for number in range(1, 8):
        one = {**row, "dish_id": f"d{number:03d}", "sales": Decimal(number) * 10}
        found.append({**one, "quantity": number, "slot_date": as_of.date(), "slot_at": as_of})
        past = as_of - timedelta(hours=1)
        found.append({**one, "quantity": 1, "slot_date": past.date(), "slot_at": past})
    return found


def test_all_items_are_added_up_on_demand_with_their_money(project: Project, tmp_path: Path) -> None:
    dishes = [{"dish_id": "d007", "dish_name": "Soup", "category": "soup"}]
    path = "/api/v1/restaurants/r0002/lists/top_dishes"
    others = [{**row, "restaurant_id": "r0001", "dish_id": "secret"} for row in dish_slots(1)]
    for found in with_rows(project, tmp_path, fct_restaurant_dish_slots=[*dish_slots(1), *others], dishes=dishes):
        hour = found.get(f"{path}?hours=1", headers=RESTAURANT)
        assert hour.json()["top_dishes"][:2] == [
            {"dish_id": "d007", "dish_name": "Soup", "quantity": 7, "sales": "70.00"},
            {"dish_id": "d006", "dish_name": None, "quantity": 6, "sales": "60.00"},
        ]
        assert len(hour.json()["top_dishes"]) == 7 and "secret" not in hour.text
        assert (hour.json()["tick"], hour.json()["restaurant"]["id"]) == (1, "r0002")
        # The short window excludes the slot at its start; the longer window includes it.
        assert found.get(path, headers=RESTAURANT).json()["top_dishes"][0]["quantity"] == 8
        known = {**RESTAURANT, "If-None-Match": hour.headers["etag"]}
        assert found.get(f"{path}?hours=1", headers=known).status_code == 304
        assert found.get(f"{path}?hours=2", headers=RESTAURANT).status_code == 400


def test_a_list_whose_tables_a_tick_lacks_has_no_more(shown: TestClient) -> None:
    found = shown.get("/api/v1/restaurants/r0002/lists/top_dishes", headers=RESTAURANT)

    assert (found.status_code, found.content) == (404, shown.get("/nope", headers=RESTAURANT).content)


# ── tokens ───────────────────────────────────────────────────────────────────────────────────────────────────────


def run(root: str, *arguments: str) -> Any:
    key = {"SQLRUN_SERVE_KEY": served.SECRET.key.decode()}
    return CliRunner().invoke(main, ["--project-dir", root, "serve", "token", *arguments], env=key)


def claims(text: str) -> Any:
    middle = text.strip().split(".")[1]
    return json.loads(base64.urlsafe_b64decode(middle + "=" * (-len(middle) % 4)))


def test_a_token_names_keys_by_their_entity(project: Project) -> None:
    found = claims(run(project.root, "--site", "docs", "--restaurant=r1", "--site", "a b", "--hours", "1").output)

    assert (found["sites"], found["restaurants"]) == (["docs", "a b"], ["r1"])
    assert "scope" not in found


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--shop", "x"], "there is no option `--shop`. This project's entities: --restaurant, --site"),
        (["docs"], "there is no option `docs`"),
        (["--site"], "`--site` needs a KEY"),
        ([], "name at least one key (--restaurant KEY, --site KEY; repeatable), or --operator"),
    ],
)
def test_a_token_for_what_there_is_not_is_refused(project: Project, arguments: list[str], message: str) -> None:
    found = run(project.root, *arguments)

    assert found.exit_code == 2
    assert message in " ".join(found.output.split())


# ── types ────────────────────────────────────────────────────────────────────────────────────────────────────────

SHOPS = """exposures:
  - name: shops
    type: dashboard
    description: It.
    owner: {name: We}
    depends_on: [ref('shop_windows')]
    config:
      dashboard:
        entity: {key: shop, label: shop_name, place: name, currency: currency}
        windows: {table: shop_windows, hours: hours, of: [1]}
        measures:
          - {column: share, format: percent}
          - {column: wait, format: seconds}
          - {column: exact}
          - {column: small, name: other_name}
        lists: [{column: best, item: item, value: mass, money: paid}]
        trend: {hours: {table: shop_hours, at: at}, slots: {table: shop_hours, at: at}}
"""
COLUMNS = {
    "shop_windows": (
        "hours int", "shop bigint", "shop_name string", "name string", "currency string", "share double", "wait float",
        "exact decimal(38,10)", "small tinyint", "best array<struct<item:int,mass:double,paid:decimal(20,4)>>",
    ),
    "shop_hours": (
        "shop bigint", "at timestamp", "share double", "wait float", "exact decimal(38,10)", "small tinyint",
    ),
}  # fmt: skip


def shops(folder: Path) -> Project:
    files = {"models/shops/_exposures.yml": SHOPS}
    for name, columns in COLUMNS.items():
        pairs = [column.partition(" ")[::2] for column in columns]
        listed = [f"      - {{name: {c}, data_type: '{kind}', description: It.}}" for c, kind in pairs]
        head = ["models:", f"  - name: {name}", "    description: A row.", "    columns:"]
        files[f"models/shops/{name}.yml"] = "\n".join([*head, *listed]) + "\n"
        files[f"models/shops/{name}.sql"] = "select " + ", ".join(f"cast(null as {k}) as {c}" for c, k in pairs)
    return served.project(folder, **files)


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), float("-inf"), None])
def test_numbers_of_every_type_are_written_and_those_that_are_none_are_null(tmp_path: Path, odd: float | None) -> None:
    big = Decimal("1234567890123456789012345678.0123456789")
    best = [{"item": 7, "mass": odd, "paid": Decimal("0.0000")}, {"item": 8, "mass": 1.5, "paid": Decimal("12.3456")}]
    row = {"hours": 1, "shop_name": "One", "name": "Porto", "currency": None, "small": -128, "best": best, "exact": big}
    windows = [
        {**row, "shop": 12, "share": odd, "wait": odd},
        {**row, "shop": -3, "share": 0.25, "wait": 1.5},
        {**row, "shop": None, "share": 1.0, "wait": 1.0},
    ]
    at = served.as_of_tick(1).replace(minute=0)
    hours = [
        {"shop": 12, "at": at - timedelta(hours=n), "share": odd, "wait": odd, "exact": big / 1000, "small": 127}
        for n in range(400)
    ]
    warehouse = Warehouse(tmp_path / "warehouse", shops(tmp_path / "project"))
    warehouse.publish({**served.rows(1), "shop_windows": windows, "shop_hours": hours})
    for found in asked(warehouse):
        # Keys are texts, in the order of texts, as in tokens.
        mine = bearer("12", claim="shops")
        listed = found.get("/api/v1/shops", headers=OPERATOR).json()["shops"]
        assert [one["id"] for one in listed] == ["-3", "12"]
        assert listed[0] == {"id": "-3", "name": "One", "place": "Porto", "currency": None, "time_zone": None}
        answer = json.loads(found.get("/api/v1/shops/12/windows", headers=mine).content, parse_constant=_refused)
        assert (answer["share"], answer["wait"], answer["other_name"]) == (None, None, -128)
        assert answer["exact"] == "1234567890123456789012345678.0123456789"
        assert answer["best"][0] == {"item": 7, "mass": None, "paid": "0.0000"}
        assert answer["best"][1] == {"item": 8, "mass": 1.5, "paid": "12.3456"}
        assert answer["before"]["wait"] is None or odd is None
        assert answer["before"]["other_name"] == 127
        trend = json.loads(found.get("/api/v1/shops/12/hours", headers=mine).content, parse_constant=_refused)
        assert set(trend["wait"]) == {None} and set(trend["other_name"]) == {127}
        assert "share" not in trend
        other = found.get("/api/v1/shops/-3/windows", headers=OPERATOR).json()
        assert (other["share"], other["wait"]) == (0.25, 1.5)


def _refused(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")
