"""The ordering platform of `examples/shop_cdc`: order events written to a Postgres, and what its tables must be.

Triggers write every change down, with its transaction, into a schema that no connector reads.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

from sqlrun.engine_api import Engine
from sqlrun.project import Connection
from tests.support import oracle
from tests.support.databases import micros
from tests.support.projects import ROOT, Site
from tests.support.servers.kafka import Broker
from tests.support.servers.postgres import Postgres

EXAMPLE = ROOT / "examples" / "shop_cdc"
KEYS = {"customers": ("customer_id",), "orders": ("order_id",), "order_items": ("order_id", "line")}
CHANGES = {"customers": "customer_changes", "orders": "order_changes", "order_items": "order_item_changes"}
AUDIT = """
create schema audit;
create table audit.changes (seq bigserial, txid bigint, name text, op text, key jsonb, row jsonb);
create function audit.write() returns trigger language plpgsql as $$ begin
    insert into audit.changes (txid, name, op, row) values (
        pg_current_xact_id()::text::bigint, tg_table_name, tg_op,
        case tg_op when 'DELETE' then to_jsonb(old) else to_jsonb(new) end
    );
    return null;
end $$;
"""
TRIGGER = (
    "create trigger audited after insert or update or delete on {0} for each row execute function audit.write();\n"
)
AUDITED = """
select txid, name, op, row, (extract(epoch from pg_xact_commit_timestamp(xmin)) * 1000000)::bigint as at
from audit.changes order by seq
"""
# A second reader of the database's log: its transactions in the order of their commits.
WITNESS = "select pg_create_logical_replication_slot('witness', 'test_decoding')"
COMMITTED = """
select xid::text::bigint as txid from pg_logical_slot_peek_changes('witness', null, null) where data like 'COMMIT%'
"""


def created(postgres: Postgres) -> None:
    """Create the platform's tables and the triggers, a table of marks that no source reads, and the second reader."""
    triggers = "".join(TRIGGER.format(name) for name in KEYS)
    postgres.run(f"{(EXAMPLE / 'schema.sql').read_text()} create table marks (id int primary key); {AUDIT} {triggers}")
    postgres.rows(WITNESS)


def site(folder: Path, engine: Engine, broker: Broker, prefix: str) -> Site:
    """Copy the example over the topics of a broker that begin with a prefix."""
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("target", "warehouse"))
    profile = folder / "profiles/duckdb.yml"
    text = profile.read_text().replace("warehouse/duckdb", "warehouse").replace("${KAFKA_BOOTSTRAP}", broker.address)
    profile.write_text(text)
    sources = folder / "models/staging/_sources.yml"
    declared = sources.read_text()
    assert "topic: shop." in declared and "transactions: shop.transaction" in declared
    for word in ("topic: shop.", "transactions: shop."):
        declared = declared.replace(word, word.replace("shop", prefix))
    sources.write_text(declared)
    return Site(folder, engine, connections={"kafka": Connection(broker.address)})


class Platform:
    """Writes the newest state of each order to the tables, one transaction for each event, and others between them.

    With `pause`, a transaction lasts up to so many seconds, so that those of several sessions overlap. `orders` are
    those of all sessions, which lock each other's rows.
    """

    def __init__(self, postgres: Postgres, seed: int, pause: float = 0, orders: list[str] | None = None) -> None:
        self.postgres, self.random, self.pause = postgres, Random(seed), pause
        self.orders = orders
        self.newest: dict[str, tuple[int, str]] = {}

    def write(self, lines: Iterable[str]) -> None:
        """Apply the events of some lines; the platform refuses broken ones."""
        statements = []
        for line in lines:
            try:
                event = oracle.parse(line)
            except oracle.Broken:
                continue
            if (event.version, event.event_id) > self.newest.get(event.order_id, (-1, "")):
                self.newest[event.order_id] = event.version, event.event_id
                statements.append(self._transaction(event))
                if self.random.random() < 0.2:
                    statements.append(self._other(event))
                if self.orders and self.random.random() < 0.3:
                    statements.append(self._conflicting(self.random.choice(self.orders)))
        text = "\n".join(statements)
        if self.pause:
            text = re.sub("commit;", lambda _: f"select pg_sleep({self.random.uniform(0, self.pause)});\ncommit;", text)
        self.postgres.run(text)
        if self.orders is not None:
            self.orders += [order for order in self.newest if self.random.random() < 0.1]

    def _transaction(self, event: oracle.OrderEvent) -> str:
        total = sum((item.quantity * item.unit_price for item in event.items), Decimal(0))
        order, customer = text(event.order_id), text(event.customer_id)
        values = (
            f"{order}, {text(event.restaurant_id)}, {customer}, {text(event.status)}, {event.version}, {total}, "
            f"{text(event.ordered_at.isoformat())}"
        )
        items = ", ".join(
            f"({order}, {number}, {text(item.dish_id)}, {item.quantity}, {item.unit_price})"
            for number, item in enumerate(event.items)
        )
        return (
            "begin;\n"
            f"insert into customers values ({customer}, 'Oslo') on conflict do nothing;\n"
            f"delete from order_items where order_id = {order};\n"
            f"insert into orders values ({values}) on conflict (order_id) do update set "
            "restaurant_id = excluded.restaurant_id, customer_id = excluded.customer_id, status = excluded.status, "
            "version = excluded.version, total = excluded.total, ordered_at = excluded.ordered_at;\n"
            f"insert into order_items values {items};\ncommit;"
        )

    def _conflicting(self, order: str) -> str:
        """Return a transaction on a row that another session may be changing; the marts stay as they are.

        It locks one row, so that no two sessions wait for each other.
        """
        city = text(f"city {self.random.randint(1, 9)}")
        return self.random.choice(
            [
                f"begin; update customers set city = {city} "
                "where customer_id = (select min(customer_id) from customers); commit;",
                f"begin; update orders set total = total + 1 where order_id = {text(order)}; "
                f"update orders set total = total - 1 where order_id = {text(order)}; commit;",
            ]
        )

    def _other(self, event: oracle.OrderEvent) -> str:
        """Return a transaction that leaves the marts as they are."""
        order, city = text(event.order_id), text(f"city {self.random.randint(1, 9)}")
        return self.random.choice(
            [
                f"update customers set city = {city} where customer_id = {text(event.customer_id)};",
                f"begin; delete from order_items where order_id = {order}; rollback;",
                f"begin; update orders set total = total + 1 where order_id = {order}; "
                f"update orders set total = total - 1 where order_id = {order}; commit;",
                f"begin; update orders set status = 'placed' where order_id = {order}; savepoint s; "
                f"delete from orders where order_id = {order}; rollback to s; "
                f"update orders set status = {text(event.status)} where order_id = {order}; commit;",
            ]
        )


def text(value: str) -> str:
    """Return a text as a literal of SQL."""
    return "'" + value.replace("'", "''") + "'"


def judged(site: Site, postgres: Postgres) -> int:
    """Compare a tick with the database after the last transaction that landed; return the number of transactions.

    Each transaction landed whole, and so did all that committed before it.
    """
    audited = postgres.rows(AUDITED)
    counts = Counter((row["txid"], row["name"]) for row in audited)
    landed = Counter[tuple[int, str]]()
    for table, model in CHANGES.items():
        key = (*KEYS[table], "position", "transaction_id")
        events = {tuple(row[name] for name in key) for row in site.rows(model) if row["op"] != "r"}
        landed.update((int(event[-1]), table) for event in events)
    written = {row["txid"] for row in audited}
    order = [row["txid"] for row in postgres.rows(COMMITTED) if row["txid"] in written]
    place = {txid: number for number, txid in enumerate(order)}
    taken = {txid for txid, _ in landed}
    first = {*order[: len(taken)]}
    assert taken == first, (sorted(taken - first), sorted(first - taken))
    wanted = Counter({key: count for key, count in counts.items() if key[0] in taken})
    assert landed == wanted, (landed - wanted, wanted - landed)
    rows: dict[str, dict[tuple[Any, ...], Any]] = {name: {} for name in KEYS}
    history: list[tuple[Any, ...]] = []
    changes = [row for row in audited if row["txid"] in taken]
    for change in sorted(changes, key=lambda row: place[row["txid"]]):
        key = tuple(change["row"][name] for name in KEYS[change["name"]])
        before = rows[change["name"]].pop(key, None)
        # what a transaction replaces itself never was
        if change["name"] == "orders" and before is not None and before[1] != change["at"]:
            history.append((*key, before[0]["status"], cents(before[0]["total"]), before[1], change["at"]))
        if change["op"] != "DELETE":
            rows[change["name"]][key] = change["row"], change["at"]
    for name, found in rows.items():
        assert {key: plain(row) for key, (row, _) in found.items()} == {
            tuple(row[part] for part in KEYS[name]): plain(row) for row in site.rows(name)
        }, name
    history += [(*key, row["status"], cents(row["total"]), at, None) for key, (row, at) in rows["orders"].items()]
    versions = [
        (row["order_id"], row["status"], cents(row["total"]), micros(row["valid_from"]), micros(row["valid_to"]))
        for row in site.rows("order_history")
    ]
    assert sorted(versions, key=str) == sorted(history, key=str)
    assert all(row["is_balanced"] for row in site.rows("order_balances"))
    return len(taken)


def plain(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row's values in one form, as the database and as sqlrun have them, without its position."""
    found = {name: value for name, value in row.items() if name != "position"}
    for name in found.keys() & {"total", "unit_price"}:
        found[name] = cents(found[name])
    if "ordered_at" in found:
        at = found["ordered_at"]
        found["ordered_at"] = micros(datetime.fromisoformat(at) if isinstance(at, str) else at)
    return found


def cents(value: Any) -> int:
    return int(Decimal(str(value)) * 100)


def windows(site: Site) -> dict[tuple[int, str], tuple[Any, ...]]:
    """Return the mart's rows, by window and restaurant: orders, sales in cents, and the best dishes."""
    return {
        (row["window_hours"], row["restaurant_id"]): (
            row["n_orders"], cents(row["total_sales"]),
            [(dish["dish_rank"], dish["dish_id"], dish["quantity"]) for dish in row["top_dishes"]],
        )
        for row in site.rows("restaurant_windows")
    }  # fmt: skip


def expected_windows(lines: Iterable[str], as_of: datetime) -> dict[tuple[int, str], tuple[Any, ...]]:
    """Return the same by plain Python."""
    return {
        key: (row["n_orders"], cents(row["total_sales"]), [tuple(dish) for dish in row["top_dishes"]])
        for key, row in oracle.mart(lines, as_of).items()
    }


def connector() -> dict[str, str]:
    """Return the settings of the example's connector, without those of a server."""
    lines = (EXAMPLE / "connector.properties").read_text().splitlines()
    found = dict(line.split("=", 1) for line in lines)
    return {key: value for key, value in found.items() if not key.startswith("database.") and key != "topic.prefix"}
