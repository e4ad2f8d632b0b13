"""A larger dbt project: sources over seeds, packages, variants of macros, tests of models, a semantic layer."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner, Result

import sqlrun
from sqlrun.cli.main import main
from tests.support import dbt_shop

pytestmark = [pytest.mark.slow, pytest.mark.long]

# The marts in DuckDB's SQL, over the files of the seeds.
MONEY = "cast(round({0} / 100.0, 2) as decimal(16, 2))"
ITEMS = f"""
select i.id, i.order_id, i.sku, date_trunc('day', o.ordered_at) as ordered_at, p.name,
    {MONEY.format("p.price")} as price, p.type = 'bun', p.type = 'beverage', s.cost
from items i left join orders o on i.order_id = o.id left join products p on i.sku = p.sku
left join (select sku, {MONEY.format("sum(cost)")} as cost from supplies group by sku) s on i.sku = s.sku
"""
ORDERS = f"""
select o.id, o.store_id, o.customer, o.subtotal, o.tax_paid, o.order_total, {MONEY.format("o.subtotal")},
    {MONEY.format("o.tax_paid")}, {MONEY.format("o.order_total")}, date_trunc('day', o.ordered_at), x.cost, x.price,
    x.n_buns, x.n_drinks, x.n, x.n_buns > 0, x.n_drinks > 0,
    row_number() over (partition by o.customer order by date_trunc('day', o.ordered_at), o.id)
from orders o left join (
    select order_id, sum(cost) as cost, sum(price) as price, count(*) filter (where sku like 'BUN%') as n_buns,
        count(*) filter (where sku like 'TEA%') as n_drinks, count(*) as n
    from ({ITEMS}) group by order_id
) x on o.id = x.order_id
"""
CUSTOMERS = f"""
select c.id, c.name, count(distinct o.id) filter (where o.id is not null), min(date_trunc('day', o.ordered_at)),
    max(date_trunc('day', o.ordered_at)), {MONEY.format("sum(o.subtotal)")}, {MONEY.format("sum(o.tax_paid)")},
    {MONEY.format("sum(o.order_total)")}, if(count(o.id) > 1, 'returning', 'new')
from customers c left join orders o on o.customer = c.id group by c.id, c.name
"""
SUPPLIES = f"select md5(id || '-' || sku), id, sku, name, {MONEY.format('cost')}, perishable from supplies"


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def expected(out: Path, query: str) -> list[tuple[Any, ...]]:
    """Return the rows of a query over the seeds."""
    connection = duckdb.connect()
    for name in ("customers", "stores", "orders", "items", "products", "supplies"):
        connection.execute(f"create view {name} as from '{out}/seeds/shop-data/raw_{name}.csv'")
    rows = connection.execute(query).fetchall()
    return sorted(tuple(None if value == 0 and place == 2 and len(row) == 9 and query is CUSTOMERS else value
                        for place, value in enumerate(row)) for row in rows)  # fmt: skip


def published(out: Path, table: str) -> list[tuple[Any, ...]]:
    rows = sqlrun.published(table, str(out / "warehouse/duckdb")).to_pylist()
    return sorted(tuple(_plain(value) for value in row.values()) for row in rows)


def _plain(value: Any) -> Any:
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value


def edited(folder: Path) -> tuple[Path, Result]:
    """Import the project, and make the only edit that is left: an order without ties."""
    out = folder / "out"
    done = run("import-dbt", dbt_shop.write(folder / "dbt"), "--write", out)
    file = out / "models" / "marts" / "orders.sql"
    file.write_text(file.read_text().replace("order by ordered_at asc", "order by ordered_at asc, order_id"))
    return out, done


def test_a_larger_project_builds_after_one_edit(tmp_path: Path) -> None:
    """dbt runs the same 27 data tests and 3 unit tests; the rows are those of DuckDB's own SQL."""
    out, done = edited(tmp_path)

    assert done.exit_code == 1
    problems = re.findall(r"^(SR\d+) (\S+?):", done.output, re.MULTILINE)
    assert problems == [("SR502", "models/marts/orders.sql")]
    for word in ("semantic_models", "metrics", "saved_queries"):
        assert f"models/marts/customers.yml: `{word}` has no equal, and was left out" in done.output
    for said in (
        "packages.yml: dbt_utils: its macros and tests come with sqlrun",
        "macros/cents_to_dollars.sql: other adapters' macros were left out: postgres__cents_to_dollars, "
        "bigquery__cents_to_dollars",
        "macros/generate_schema_name.sql: `generate_schema_name` was left out",
        "analyses/best_days.sql: a view, which is compiled and never stored",
        "source shop.raw_orders: it is the seed raw_orders, so models read ref('raw_orders')",
        "dbt_project.yml: seeds/shop-data: `enabled` was left out",
    ):
        assert said in done.output
    assert "threads: 3" in (out / "profiles" / "duckdb.yml").read_text()

    built = run("--project-dir", out, "build")

    assert built.exit_code == 0, built.output
    assert "Found 14 models, 1 view, 6 seeds, 27 checks, 3 unit tests" in built.output
    compare(out)
    days = [row[0] for row in published(out, "metricflow_time_spine")]
    today = days[-1]
    assert isinstance(today, date) and days == [today - timedelta(days=n) for n in range(3650, -1, -1)]


def compare(out: Path) -> None:
    """Compare the marts with the same queries in DuckDB's SQL."""
    for table, query in (
        ("order_items", ITEMS),
        ("orders", ORDERS),
        ("customers", CUSTOMERS),
        ("supplies", SUPPLIES),
    ):
        found = [tuple(float(v) if isinstance(v, Decimal) else v for v in row) for row in published(out, table)]
        wanted = [tuple(float(v) if isinstance(v, Decimal) else v for v in row) for row in expected(out, query)]
        assert found == wanted, table


def test_its_tables_are_updated_and_its_tests_fail(tmp_path: Path) -> None:
    """A new order changes the marts; one that breaks a test of a package publishes nothing."""
    out, _ = edited(tmp_path)
    assert run("--project-dir", out, "build").exit_code == 0
    seeds = out / "seeds" / "shop-data"

    def add(table: str, line: str) -> None:
        file = seeds / f"raw_{table}.csv"
        file.write_text(file.read_text() + line + "\n")

    add("orders", "o4,c3,2026-03-03T10:05:00,s1,800,40,840")
    add("items", "i7,o4,TEA-001")
    add("items", "i8,o4,TEA-001")
    assert run("--project-dir", out, "build").exit_code == 0
    compare(out)
    assert run("--project-dir", out, "verify").exit_code == 0

    add("orders", "o5,c3,2026-03-04T10:05:00,s1,800,40,841")
    add("items", "i9,o6,TEA-001")
    built = run("--project-dir", out, "build")
    assert built.exit_code == 1
    assert "FAIL 1 stg_orders__expression_is_true stg_orders" in built.output
    assert "not published" in built.output
