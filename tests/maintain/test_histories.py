"""Histories of tables: each version that a tick saw, and when, by a judge in Python that shares no code with sqlrun."""

from __future__ import annotations

import copy
import json
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from random import Random
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from click.testing import CliRunner

from sqlrun.cli.main import main
from sqlrun.engine_api import Engine
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.events import TickResult
from sqlrun.operations import rollback
from sqlrun.operations.verify import verify
from sqlrun.report.console import Console
from tests.run.test_machine import Stop, stopping
from tests.support import broken
from tests.support.projects import Site

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("unchecked")]

START = datetime(2026, 11, 26, 12, tzinfo=timezone.utc)
FIVE = timedelta(minutes=5)
Row = dict[str, Any]
VERSION = "valid_from timestamp", "valid_to timestamp", "is_current boolean"
SOURCE = """
sources:
  - name: shop
    description: Orders.
    tables:
      - name: events
        description: States of an order.
        path: data/orders
        columns:
          - {name: id, data_type: bigint, description: "The order."}
          - {name: number, data_type: bigint, description: "The state."}
          - {name: status, data_type: string, description: "Its status."}
          - {name: amount, data_type: "decimal(9,2)", description: "EUR."}
          - {name: updated_at, data_type: timestamp, description: "When it changed."}
          - {name: is_gone, data_type: boolean, description: "Whether it is deleted."}
"""
EVENTS = "select id, number, status, amount, updated_at, is_gone from {{ source('shop', 'events') }}\n"
ORDERS = """
select id, status, amount, updated_at from (
    select *, row_number() over (partition by id order by number desc) as place from {{ ref('events') }}
) where place = 1 and not coalesce(is_gone, false)
"""
HISTORIES = {
    "every_history": ("select id, status, amount, updated_at from {{ ref('orders') }}", ""),
    "status_history": ("select * from {{ ref('orders') }}", ", check_cols: [status]"),
    "timed_history": ("select * from {{ ref('orders') }}", ", updated_at: updated_at"),
    "ignoring_history": ("select * from {{ ref('orders') }}", ", hard_deletes: ignore"),
    "marking_history": ("select * from {{ ref('orders') }}", ", hard_deletes: new_record"),
    "timed_marking_history": (
        "select * from {{ ref('orders') }}", ", updated_at: updated_at, hard_deletes: new_record",
    ),
    # No rule maintains a limit: the whole query runs in each tick.
    "first_history": ("select * from {{ ref('orders') }} order by id limit 3", ""),
    "recent_history": (
        "select * from {{ ref('orders') }} where updated_at > current_timestamp() - interval 20 minutes", "",
    ),
}  # fmt: skip
COLUMNS = "id bigint", "status string", "amount decimal(9,2)", "updated_at timestamp"


def project(root: Path, names: tuple[str, ...] = tuple(HISTORIES)) -> Path:
    """Write a project with histories of one table of orders."""
    files = {
        "pyproject.toml": '[tool.sqlrun]\nname = "shop"\nprofile = "duckdb"\n',
        "profiles/duckdb.yml": "engine: duckdb\nwarehouse: warehouse\n",
        "models/_sources.yml": SOURCE,
        "models/events.sql": EVENTS,
        "models/events.yml": broken.contract(
            "events", "id bigint", "number bigint", *COLUMNS[1:], "is_gone boolean", extra="    grain: [id, number]"
        ),
        "models/orders.sql": ORDERS,
        "models/orders.yml": broken.contract("orders", *COLUMNS, extra="    grain: [id]"),
    }
    for name in names:
        sql, config = HISTORIES[name]
        files |= history(name, sql, config)
    broken.write(root, files)
    (root / "data/orders").mkdir(parents=True, exist_ok=True)
    return root


def history(name: str, sql: str, config: str = "", columns: tuple[str, ...] = COLUMNS) -> dict[str, str]:
    """Return the files of a history."""
    said = f"    grain: [id, valid_from]\n    config: {{materialized: history{config}}}"
    version = (*VERSION, "is_deleted boolean") if "new_record" in config else VERSION
    text = broken.contract(name, *columns, *version, extra=said)
    return {f"models/{name}.sql": f"{sql}\n", f"models/{name}.yml": text}


@dataclass
class Judge:
    """The versions of a table's rows, by its rows after each tick."""

    tracked: tuple[str, ...] = ("status", "amount", "updated_at")
    is_timed: bool = False
    ends_deleted: bool = True
    marks_deleted: bool = False
    versions: list[Row] = field(default_factory=list)

    def see(self, rows: list[Row], now: datetime) -> None:
        """Compare the rows of a tick with the current versions."""
        there = {row["id"]: row for row in rows}
        for version in [one for one in self.versions if one["valid_to"] is None]:
            row = there.pop(version["id"], None)
            if row is None and version.get("is_deleted"):
                continue
            if row is None:
                if self.ends_deleted:
                    version["valid_to"] = max(now, version["valid_from"])
                    if version["valid_from"] == version["valid_to"]:
                        self.versions.remove(version)
                if self.marks_deleted:
                    gone = {"valid_from": version["valid_to"], "valid_to": None, "is_deleted": True}
                    self.versions.append({**version, **gone})
            elif self._is_new(row, version):
                begin = row["updated_at"] if self.is_timed else now
                if version.get("is_deleted"):
                    begin = max(begin, version["valid_from"])
                if version["valid_from"] == begin:
                    self.versions.remove(version)
                version["valid_to"] = begin
                self.versions.append({**row, "valid_from": begin, "valid_to": None})
        for row in there.values():
            begin = row["updated_at"] if self.is_timed else now
            begin = max([begin, *(one["valid_to"] for one in self.versions if one["id"] == row["id"])])
            same = [one for one in self.versions if one["id"] == row["id"] and one["valid_from"] == begin]
            for one in same:
                self.versions.remove(one)
            self.versions.append({**row, "valid_from": begin, "valid_to": None})

    def _is_new(self, row: Row, version: Row) -> bool:
        if version.get("is_deleted"):
            return True
        if self.is_timed:
            return bool(row["updated_at"] > version["valid_from"])
        return any(row[name] != version[name] for name in self.tracked)

    def expected(self) -> list[str]:
        """Return the versions as texts, sorted."""
        marks = {"is_deleted": False} if self.marks_deleted else {}
        return texts({**marks, **one, "is_current": one["valid_to"] is None} for one in self.versions)


def texts(rows: Any) -> list[str]:
    """Return rows as sorted texts."""
    return sorted(str(sorted(row.items(), key=lambda item: str(item[0]))) for row in rows)


JUDGES = {
    "every_history": lambda: Judge(),
    "status_history": lambda: Judge(("status",)),
    "timed_history": lambda: Judge(is_timed=True),
    "ignoring_history": lambda: Judge(ends_deleted=False),
    "marking_history": lambda: Judge(marks_deleted=True),
    "timed_marking_history": lambda: Judge(is_timed=True, marks_deleted=True),
    "first_history": lambda: Judge(),
    "recent_history": lambda: Judge(),
}


def seen(name: str, orders: list[Row], now: datetime) -> list[Row]:
    """Return the rows of a history's query, by those of `orders`."""
    if name == "first_history":
        return sorted(orders, key=lambda row: int(row["id"]))[:3]
    if name == "recent_history":
        return [row for row in orders if row["updated_at"] > now - timedelta(minutes=20)]
    return orders


class Shop:
    """A shop whose orders change at random, and the judges of their histories."""

    def __init__(self, root: Path, seed: int, engine: Engine) -> None:
        self.random, self.now, self.number = Random(seed), START, 0
        self.site = Site(project(root), engine)
        self.judges = {name: make() for name, make in JUDGES.items()}

    def change(self) -> None:
        """Write the states of some orders: new, changed, deleted, created again, twice in a tick, or none."""
        lines = []
        for _ in range(self.random.choice([0, 1, 1, 3, 6])):
            self.number += 1
            moment = self.now - self.random.choice([0, 1, 12]) * timedelta(minutes=1)
            row = {
                "id": self.random.randint(1, 6),
                "number": self.number,
                "status": self.random.choice(["new", "paid", "sent"]),
                "amount": self.random.choice(["1.00", "2.50", None]),
                "updated_at": f"{moment:%Y-%m-%dT%H:%M:%SZ}",
                "is_gone": self.random.random() < 0.25,
            }
            lines.append(json.dumps(row))
        self.site.write(f"{self.number:06}-{self.now:%H%M}-{self.random.random()}.jsonl", lines)

    def write(self, row: Row) -> None:
        """Write the next state of an order."""
        self.number += 1
        self.site.write(f"{self.number:06}.jsonl", [json.dumps({**row, "number": self.number})])

    def tick(self, **options: Any) -> TickResult:
        """Run a tick and judge all histories after it."""
        self.now += self.random.choice([0, 1, 1, 2]) * FIVE
        result = self.site.tick(self.now, **options)
        assert result.published, [node.message for node in result.nodes]
        self.judge()
        return result

    def judge(self) -> None:
        """Compare all histories with what the judges saw."""
        orders = self.site.rows("orders")
        for name, judge in self.judges.items():
            judge.see(seen(name, orders, self.now), self.now)
            assert texts(self.site.rows(name)) == judge.expected(), f"{name} at {self.now}"


@pytest.mark.parametrize("seed", range(3))
def test_each_tick_adds_the_versions_that_it_sees(tmp_path: Path, seed: int) -> None:
    shop = Shop(tmp_path, seed, DuckDBEngine())
    for _ in range(12):
        shop.change()
        shop.tick()
        published = shop.site.ledger.read().published
        assert published is not None
        verdicts = list(verify(shop.site.prepared.workspace, shop.site.warehouse, published, tuple(HISTORIES), 3))
        assert [one.model for one in verdicts if not one.ok] == []
        assert {one.model: (one.scope, one.uncompared) for one in verdicts} == {
            name: compared(name, shop) for name in HISTORIES
        }


def test_a_row_that_came_and_went_within_one_tick_time_has_no_version(tmp_path: Path) -> None:
    """Nor has a row whose `updated_at` is later than the tick that sees its end (decision 53)."""
    shop = Shop(tmp_path, 0, DuckDBEngine())
    soon = f"{START + timedelta(minutes=3):%Y-%m-%dT%H:%M:%SZ}"
    stays = {"id": 1, "status": "new", "amount": "1.00", "updated_at": f"{START:%Y-%m-%dT%H:%M:%SZ}", "is_gone": False}
    goes = {**stays, "id": 2, "updated_at": soon}
    for state in ([stays, goes], [{**goes, "is_gone": True}], [{**goes, "is_gone": False, "status": "paid"}]):
        for row in state:
            shop.write(row)
        assert shop.site.tick(START).published
        shop.judge()

    assert [row["status"] for row in shop.site.rows("every_history") if row["id"] == 2] == ["paid"]
    assert shop.site.tick(START + FIVE, refresh=True).published
    shop.now += FIVE
    shop.judge()
    lasting = [
        row["valid_to"] is None or row["valid_from"] < row["valid_to"] for row in shop.site.rows("every_history")
    ]
    assert all(lasting)


def test_a_rebuild_keeps_ended_versions_that_lack_a_beginning(tmp_path: Path) -> None:
    """A row without `updated_at` has a version since NULL: nothing says that it lasted no time."""
    site = Site(project(tmp_path, ("timed_history",)), DuckDBEngine())
    order = {"id": 1, "status": "new", "amount": "1.00", "updated_at": None, "is_gone": False}
    for number, row in enumerate([order, {**order, "is_gone": True}]):
        site.write(f"{number}.jsonl", [json.dumps({**row, "number": number})])
        assert site.tick(START + number * FIVE).published
    [version] = site.rows("timed_history")
    assert (version["valid_from"], version["valid_to"]) == (None, START + FIVE)

    assert site.tick(START + 2 * FIVE, refresh=True).published
    assert site.rows("timed_history") == [version]


def compared(name: str, shop: Shop) -> tuple[str, str]:
    """Return what holds of a history, and what was not compared with its query."""
    judge = shop.judges[name]
    ended = [one for one in judge.versions if one["valid_to"] is not None]
    keys = {row["id"] for row in seen(name, shop.site.rows("orders"), shop.now)}
    gone = [one for one in judge.versions if one["valid_to"] is None and one["id"] not in keys]
    columns = {"status_history": "amount, updated_at"} if not judge.is_timed else {name: "status, amount, updated_at"}
    found = [f"{len(ended)} version{'s' * (len(ended) != 1)} that ended"] if ended else []
    found += [f"{len(gone)} current version{'s' * (len(gone) != 1)} of rows that are gone"] if gone else []
    found += [f"the columns {columns[name]}"] if name in columns else []
    named = {"status_history": " in id, status"} if not judge.is_timed else {name: " in id"}
    what = (
        "the current versions equal the query" if judge.ends_deleted else "each row of the query is a current version"
    )
    return what + named.get(name, ""), ", ".join(found)


def test_verify_says_what_it_did_not_compare(tmp_path: Path) -> None:
    """A version that ended follows from no query, and a row that `hard_deletes: ignore` keeps isn't in it."""
    shop = Shop(tmp_path, 5, DuckDBEngine())
    for _ in range(8):
        shop.change()
        shop.tick()

    def run(*names: str) -> str:
        selected = [part for name in names for part in ("--select", name)]
        return CliRunner().invoke(main, ["--project-dir", str(tmp_path), "verify", *selected]).output

    scope, rest = compared("ignoring_history", shop)
    said = run("ignoring_history", "orders")
    assert f"PASS ignoring_history: {scope}" in said and f"\n  Not compared: {rest}." in said
    assert "of rows that are gone" in rest and "that ended" in rest
    assert "No table differs from its query, in what was compared of histories, at tick 8" in said
    assert "Every table equals its query at tick 8" in run("orders")


def reopened(shop: Shop) -> None:
    """Prepare the project again, after an edit."""
    shop.site = Site(shop.site.root, shop.site.engine, shop.site.env)


@pytest.mark.parametrize("nth", [1, 4, 6])
@pytest.mark.parametrize("after", [False, True])
def test_a_tick_that_dies_leaves_no_version(tmp_path: Path, nth: int, after: bool) -> None:
    """The engine dies at one of its writes. The next tick begins at the published versions."""
    shop = Shop(tmp_path, nth, DuckDBEngine())
    shop.change()
    shop.tick()
    shop.change()
    with pytest.raises(Stop), stopping(DuckDBEngine, "write", nth, after=after):
        shop.site.tick(shop.now + FIVE)
    for _ in range(3):
        shop.change()
        shop.tick()


def test_a_rollback_forgets_versions_and_later_ticks_see_others(tmp_path: Path) -> None:
    shop = Shop(tmp_path, 7, DuckDBEngine())
    for _ in range(3):
        shop.change()
        shop.tick()
    before = copy.deepcopy(shop.judges)
    published = shop.site.ledger.read().published
    assert published is not None
    for _ in range(2):
        shop.change()
        shop.tick()
    rollback.roll_back(shop.site.ledger, published.tick, datetime.now(timezone.utc), Console(quiet=True))
    shop.judges = before
    for name, judge in before.items():
        assert texts(shop.site.rows(name)) == judge.expected()

    for _ in range(3):
        shop.change()
        shop.tick()


def test_an_edit_of_what_a_history_reads_loses_no_version(tmp_path: Path) -> None:
    """Other rows of `orders` are a change like any other: the old versions stay, and those that differ end."""
    shop = Shop(tmp_path, 11, DuckDBEngine())
    for _ in range(4):
        shop.change()
        shop.tick()
    file = shop.site.root / "models/orders.sql"
    file.write_text(file.read_text().replace("select id, status,", "select id, upper(status) as status,"))
    reopened(shop)
    for _ in range(3):
        shop.change()
        shop.tick()

    versions = shop.site.rows("every_history")
    assert {row["status"] for row in versions if row["valid_to"] is None} <= {"NEW", "PAID", "SENT"}
    assert {"new", "paid", "sent"} & {row["status"] for row in versions}


def test_a_rebuild_from_the_beginning_loses_no_version(tmp_path: Path) -> None:
    shop = Shop(tmp_path, 12, DuckDBEngine())
    for _ in range(4):
        shop.change()
        shop.tick()

    shop.change()
    shop.tick(refresh=True)
    shop.change()
    shop.tick()


def test_a_new_column_is_null_in_the_versions_that_lack_it(tmp_path: Path) -> None:
    shop = Shop(tmp_path, 13, DuckDBEngine())
    for _ in range(4):
        shop.change()
        shop.tick()
    sql, config = HISTORIES["every_history"]
    files = history("every_history", sql.replace("id, status", "id, id * 2 as twice, status"), config)
    files["models/every_history.yml"] = files["models/every_history.yml"].replace(
        "    columns:\n", "    columns:\n      - {name: twice, data_type: bigint, description: Twice the number.}\n"
    )
    broken.write(shop.site.root, {"pyproject.toml": (shop.site.root / "pyproject.toml").read_text(), **files})
    reopened(shop)
    del shop.judges["every_history"]
    past = shop.site.rows("every_history")

    shop.change()
    shop.tick()

    rows = shop.site.rows("every_history")
    lacking = [row for row in rows if row["twice"] is None]
    assert len(lacking) == len(past), "every version from before the edit is there"
    assert all(row["valid_to"] is not None for row in lacking), "the new column begins a version of each row"
    assert {row["id"]: row["twice"] for row in rows if row["is_current"]} == {
        row["id"]: 2 * row["id"] for row in shop.site.rows("orders")
    }


@pytest.mark.long
@pytest.mark.parametrize("rule", ["invalidate", "ignore"])
def test_a_history_that_no_longer_marks_deletions_lacks_the_marks(tmp_path: Path, rule: str) -> None:
    """A mark is no version of a row. Without its column it would look like one."""
    shop = Shop(tmp_path, 2, DuckDBEngine())
    for number, is_gone in ((1, False), (2, False), (1, True), (2, True), (1, False)):
        order = {"status": "new", "amount": "1.00", "updated_at": f"{shop.now + FIVE:%Y-%m-%dT%H:%M:%SZ}"}
        shop.write({**order, "id": number, "is_gone": is_gone})
        shop.now += FIVE
        shop.tick()
    files = {"pyproject.toml": (tmp_path / "pyproject.toml").read_text()}
    for name in ("marking_history", "timed_marking_history"):
        marks = [row for row in shop.site.rows(name) if row["is_deleted"]]
        assert {row["is_current"] for row in marks} == {False, True}
        sql, config = HISTORIES[name]
        files |= history(name, sql, config.replace("new_record", rule))
        judge = shop.judges[name]
        judge.marks_deleted, judge.ends_deleted = False, rule == "invalidate"
        judge.versions = [one for one in judge.versions if not one.pop("is_deleted", False)]
    broken.write(tmp_path, files)
    reopened(shop)

    for _ in range(4):
        shop.change()
        shop.tick()


@pytest.mark.long
def test_a_history_that_marks_deletions_from_now_on_has_the_versions_before(tmp_path: Path) -> None:
    shop = Shop(tmp_path, 19, DuckDBEngine())
    for _ in range(4):
        shop.change()
        shop.tick()
    sql, config = HISTORIES["every_history"]
    settings = {"pyproject.toml": (tmp_path / "pyproject.toml").read_text()}
    broken.write(tmp_path, {**settings, **history("every_history", sql, f"{config}, hard_deletes: new_record")})
    reopened(shop)
    shop.judges["every_history"].marks_deleted = True

    for _ in range(4):
        shop.change()
        shop.tick()


def test_a_query_s_own_column_is_no_mark_of_a_deletion(tmp_path: Path) -> None:
    """It had the name of the mark before the history marked deletions, and has it again after that."""
    root, columns = project(tmp_path, ()), (*COLUMNS, "is_deleted boolean")
    own = history("every_history", "select *, id > 1 as is_deleted from {{ ref('orders') }}", columns=columns)
    sql, _ = HISTORIES["every_history"]
    marking = history("every_history", sql, ", hard_deletes: new_record")
    settings = {"pyproject.toml": (root / "pyproject.toml").read_text()}
    seen = []
    for number, (files, is_gone) in enumerate([(own, False), (marking, False), (marking, True), (own, False)]):
        broken.write(root, {**settings, **files})
        site = Site(root, DuckDBEngine())
        state = {"number": number, "status": "new", "amount": "1.00", "updated_at": "2026-11-26T12:00:00Z"}
        lines = [json.dumps({**state, "id": id, "is_gone": is_gone and id == 2}) for id in (1, 2)]
        site.write(f"{number}.jsonl", lines)
        assert site.tick(START + number * FIVE).published
        rows = sorted(site.rows("every_history"), key=lambda row: (row["id"], row["valid_from"]))
        seen.append([(row["id"], row["is_deleted"], row["is_current"]) for row in rows])

    assert seen == [
        [(1, False, True), (2, True, True)],
        [(1, False, True), (2, False, True)],
        [(1, False, True), (2, False, False), (2, True, True)],
        # The versions before lack the column, and so it differs.
        [(1, None, False), (1, False, True), (2, None, False), (2, True, True)],
    ]


def test_another_key_is_refused(tmp_path: Path) -> None:
    """The versions have no values of the new key."""
    shop = Shop(tmp_path, 14, DuckDBEngine())
    shop.change()
    shop.tick()
    columns = ("place bigint", *COLUMNS)
    files = history("every_history", "select id * 2 as place, * from {{ ref('orders') }}", columns=columns)
    files["models/every_history.yml"] = files["models/every_history.yml"].replace("[id, valid", "[place, valid")
    broken.write(shop.site.root, {"pyproject.toml": (shop.site.root / "pyproject.toml").read_text(), **files})
    reopened(shop)

    result = shop.site.tick(shop.now + FIVE)

    assert not result.published
    (failed,) = [node.message for node in result.nodes if node.name == "every_history"]
    assert failed is not None
    assert failed.startswith("SR557 the history every_history has the key place, valid_from")


def test_a_table_that_becomes_a_history_begins_with_its_rows(tmp_path: Path) -> None:
    shop = Shop(tmp_path, 15, DuckDBEngine())
    table = {
        "models/every_history.sql": "select * from {{ ref('orders') }}\n",
        "models/every_history.yml": broken.contract("every_history", *COLUMNS, extra="    grain: [id]"),
    }
    settings = (shop.site.root / "pyproject.toml").read_text()
    broken.write(shop.site.root, {"pyproject.toml": settings, **table})
    reopened(shop)
    judge = shop.judges.pop("every_history")
    shop.change()
    shop.tick()
    broken.write(shop.site.root, {"pyproject.toml": settings, **history("every_history", *HISTORIES["every_history"])})
    reopened(shop)
    shop.judges["every_history"] = judge

    shop.change()
    shop.tick()


def test_an_environment_goes_on_with_productions_versions(tmp_path: Path) -> None:
    """Production never takes the environment's history over: it would lack the versions of production's own ticks."""
    shop = Shop(tmp_path, 16, DuckDBEngine())
    for _ in range(3):
        shop.change()
        shop.tick()
    production, before = shop.site, copy.deepcopy(shop.judges)
    file = shop.site.root / "models/orders.sql"
    file.write_text(file.read_text().replace("select id, status,", "select id, upper(status) as status,"))
    shop.site = Site(shop.site.root, shop.site.engine, "dev")
    shop.tick()
    shop.change()
    shop.tick()

    shop.site, shop.judges = production, before
    shop.change()
    shop.tick()
    shop.site = Site(shop.site.root, shop.site.engine)
    shop.change()
    shop.tick()


def test_tables_above_a_history_follow_it(tmp_path: Path) -> None:
    shop = Shop(tmp_path, 17, DuckDBEngine())
    files = {
        "models/counts.sql": "select id, count(*) as n from {{ ref('every_history') }} group by id\n",
        "models/counts.yml": broken.contract("counts", "id bigint", "n bigint", extra="    grain: [id]"),
    }
    broken.write(shop.site.root, {"pyproject.toml": (shop.site.root / "pyproject.toml").read_text(), **files})
    reopened(shop)
    for _ in range(6):
        shop.change()
        shop.tick()

    counts = Counter(row["id"] for row in shop.site.rows("every_history"))
    assert {row["id"]: row["n"] for row in shop.site.rows("counts")} == dict(counts)


def test_a_history_of_a_table_of_others_has_a_history_of_its_own(tmp_path: Path) -> None:
    """A Delta table that others overwrite; then what the warehouse knew of its versions, and when."""
    source = SOURCE.replace("events", "dishes").replace(
        "        path: data/orders\n", "        format: delta\n        path: lake\n"
    )
    columns = source.index("        columns:")
    columns_of_dishes = '        columns:\n          - {name: id, data_type: bigint, description: "The dish."}\n'
    files = {
        "pyproject.toml": '[tool.sqlrun]\nname = "shop"\nprofile = "duckdb"\n',
        "profiles/duckdb.yml": "engine: duckdb\nwarehouse: warehouse\n",
        "models/_sources.yml": source[:columns] + columns_of_dishes,
        "models/spans.sql": "select id, valid_from as began, valid_to as ended from {{ ref('dish_history') }}\n",
        "models/spans.yml": broken.contract(
            "spans", "id bigint", "began timestamp", "ended timestamp", extra="    grain: [id, began]"
        ),
        **history("dish_history", "select id from {{ source('shop', 'dishes') }}", columns=("id bigint",)),
    }
    known = "select id, began, ended from {{ ref('spans') }}"
    files |= history("known_history", known, columns=("id bigint", "began timestamp", "ended timestamp"))
    files["models/known_history.yml"] = files["models/known_history.yml"].replace("[id, valid", "[id, began, valid")
    broken.write(tmp_path, files)

    def tick(number: int, *dishes: int) -> Site:
        deltalake.write_deltalake(tmp_path / "lake", pa.table({"id": pa.array(dishes, pa.int64())}), mode="overwrite")
        site = Site(tmp_path, DuckDBEngine())
        result = site.tick(START + number * FIVE)
        assert result.published, [node.message for node in result.nodes]
        return site

    tick(0, 1, 2)
    site = tick(1, 1, 3)

    first, then = START, START + FIVE
    versions = {(row["id"], row["valid_from"], row["valid_to"]) for row in site.rows("dish_history")}
    assert versions == {(1, first, None), (2, first, then), (3, then, None)}
    what = ("id", "began", "ended", "valid_from", "valid_to")
    assert {tuple(row[name] for name in what) for row in site.rows("known_history")} == {
        (1, first, None, first, None),
        (2, first, None, first, then),
        (2, first, then, then, None),
        (3, then, None, then, None),
    }
