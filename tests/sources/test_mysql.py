"""Changes that Debezium's MySQL connector sent from a MariaDB: they give the rows that the database had in the end."""

from __future__ import annotations

import json
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sqlrun.decoding import transaction_marks
from sqlrun.decoding.change_events import ChangeEvents
from sqlrun.engine_api import Engine
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.project import Changes, Column, Place
from sqlrun.sources.transaction_cut import Complete, Cut, Partition, cut
from tests.support import change_site
from tests.support.change_site import SPANS, Types
from tests.support.projects import Site

RECORDED = Path(__file__).parents[1] / "fixtures" / "debezium" / "mysql.jsonl"
AT = datetime(2026, 11, 26, 15, tzinfo=timezone.utc)
TABLES = {
    "customers": {
        "id": "int", "name": "string", "balance": "decimal(12,4)", "born": "date", "seen": "timestamp",
        "at": "timestamp", "active": "boolean", "attrs": "struct<a:int>", "kind": "string", "phone": "string",
    },
    "orders": {"id": "bigint", "customer_id": "int", "total": "decimal(18,2)"},
}  # fmt: skip
DESCRIBED = {"op": "string", "position": "string", "committed_at": "timestamp"}


def messages() -> list[dict[str, Any]]:
    return [json.loads(line) for line in RECORDED.read_text().splitlines()]


def site(folder: Path, engine: Engine) -> Site:
    """Write a project over the file of all tables: the changes of each, its current rows and its history."""
    sources, models = "", dict[str, tuple[str, str, Types]]()
    comes = {name: f", from: {name}" for name in DESCRIBED}
    for table, types in TABLES.items():
        times = ", times: {seen: microseconds}" * (table == "customers")
        cdc = f"format: debezium, key: [id], table: shop.{table}{times}"
        sources += change_site.source(table, "path: data/orders", cdc, {**types, **DESCRIBED}, comes)
        names = [name for name in types if name != "id"]
        models |= {
            f"{table}_changes": (
                f"select {', '.join((*types, *DESCRIBED))} from {{{{ source('shop', '{table}') }}}}",
                "id, position", {**types, **DESCRIBED},
            ),
            table: (
                f"{{{{ current_rows(ref('{table}_changes'), key=['id'], columns={names}) }}}}",
                "id", {**types, "position": "string"},
            ),
            f"{table}_history": (
                f"{{{{ history_rows(ref('{table}_changes'), key=['id'], columns=['{names[0]}']) }}}}",
                "id, position", {"id": types["id"], names[0]: types[names[0]], "position": "string", **SPANS},
            ),
        }  # fmt: skip
    return change_site.written(folder, engine, sources, models)


@pytest.mark.slow
def test_the_tables_are_those_of_the_database(tmp_path: Path) -> None:
    """A key changed, a row was deleted, the binlog changed its file, a table was truncated, a column came."""
    holds(site(tmp_path, DuckDBEngine()))


def holds(made: Site) -> None:
    """Land the changes in disorder, some twice, and compare the tables with those of the database."""
    lines = RECORDED.read_text().splitlines()
    for number, part in enumerate((lines[20:], lines[:12], lines[8:])):
        made.write(f"{number}.jsonl", part)
        result = made.tick(AT)
        assert result.published, [node.message for node in result.nodes]

    customers = [{name: row[name] for name in TABLES["customers"]} for row in made.rows("customers")]
    nothing = dict.fromkeys(TABLES["customers"])
    assert sorted(customers, key=lambda row: row["id"]) == [
        {
            "id": 1, "name": "Bo2", "balance": Decimal("2.0000"), "born": date(1999, 2, 28),
            "seen": datetime(2026, 5, 4, 12, 0, 0, 123456, timezone.utc),
            "at": datetime(2026, 5, 4, 12, 0, 0, 123000, timezone.utc),
            "active": True, "attrs": {"a": 1}, "kind": "guest", "phone": "+47",
        },
        # What the ALTER TABLE filled in is in no event.
        {**nothing, "id": 30, "name": "new"},
    ]  # fmt: skip
    (order,) = made.rows("orders")
    assert (order["id"], order["customer_id"], order["total"]) == (1, 1, Decimal("1234567890123456.78"))
    # MySQL's times are to the second, and all changes after the snapshot are of one: each row has its last state.
    versions = [(row["id"], row["is_current"]) for row in made.rows("customers_history")]
    assert sorted(versions) == [(1, False), (1, True), (2, False), (30, True)]
    assert [row["is_current"] for row in made.rows("orders_history")] == [True]


def looked(kept: list[dict[str, Any]]) -> Cut:
    """Return the cut of messages."""
    events = ChangeEvents(Changes("debezium", ("id",)), (Column("id", "int", "It.", Place("a")),))
    partitions = {table: Partition(f"shop.{table}", 0, 0) for table in TABLES}
    marks = []
    for number, message in enumerate(kept):
        text, table = json.dumps(message["value"]), message["topic"].rpartition(".")[2]
        if table == "transaction":
            mark = transaction_marks.mark(text)
            assert mark is not None
            marks.append((number, mark))
            continue
        one = partitions[table]
        member = None if message["value"] is None else transaction_marks.member(events, text)
        if member is not None:
            one.add(one.until, json.dumps(message["key"]).encode(), member)
        one.until += 1
    return cut(marks, partitions, Complete())


def test_transactions_of_mysql_are_taken_whole() -> None:
    found = looked(messages())
    assert found.waiting == 0 and found.complete.transaction.startswith("file=binlog.000002,pos=")
    assert found.ends["orders"] == 4

    first = next(n for n, one in enumerate(messages()) if one["topic"] == "shop.shop.orders")
    late = looked([one for n, one in enumerate(messages()) if n < first or one["topic"] != "shop.shop.orders"])
    assert late.complete.transaction == "file=binlog.000001,pos=2087"
    assert "lacks 2 of 2 events of shop.orders" in late.reason
