"""A small project whose landing quarantines lines, and its marts' expected rows, computed from the lines alone."""

from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from sqlrun.cli.main import main
from sqlrun.engine_api import Engine
from sqlrun.engines.duckdb.engine import DuckDBEngine
from tests.support import broken
from tests.support.projects import Site

NAME = "stg_sales"
SOURCES = """\
sources:
  - name: shops
    description: What shops say.
    tables:
      - name: sales
        description: Sales.
        format: json
        path: data/orders
        columns:
          - {name: id, data_type: string, description: The sale., nulls: false}
          - {name: shop, data_type: string, description: Where.}
          - {name: amount, data_type: "decimal(10,2)", description: How much., unit: EUR}
          - {name: guest, data_type: string, description: Who., TAGS}
"""
SUITE = """\
expectations:
  - type: expect_column_values_to_be_in_set
    kwargs: {column: shop, value_set: [ada, bob]}
    on_fail: quarantine
    description: There are two shops.
  - type: expect_column_values_to_be_between
    kwargs: {column: amount, min_value: 0}
    on_fail: quarantine
"""
UNKNOWN, NEGATIVE = "shop: There are two shops.", "amount: expect_column_values_to_be_between"
QUERY = "select id, shop, amount, guest from {{ source('shops', 'sales') }} where id <> 'test'\n"
SUMS = "select shop, sum(amount) as total, count(*) as n from {{ ref('stg_sales') }} group by shop\n"
FILE = "expectations/stg_sales.yml"


def project(folder: Path, *, pii: bool = False, suite: str = SUITE) -> Path:
    """Write the project: landed sales, their sum by shop, and the latest sale of each."""
    (folder / "data" / "orders").mkdir(parents=True)
    tags = "tags: [pii]" if pii else "unit: name"
    contract = broken.contract(
        NAME, "id string", "shop string", "amount decimal(10,2)", "guest string", extra="    repeats: true"
    )
    if pii:
        contract = contract.replace("name: guest, data_type: 'string'", "name: guest, tags: [pii], data_type: 'string'")
    files = {
        "models/_sources.yml": SOURCES.replace("TAGS", tags),
        "models/stg_sales.sql": QUERY,
        "models/stg_sales.yml": contract,
        "models/by_shop.sql": SUMS,
        "models/by_shop.yml": broken.contract(
            "by_shop", "shop string", "total decimal(20,2)", "n bigint", extra="    grain: [shop]"
        ),
        FILE: suite,
        "profiles/local.yml": "engine: duckdb\nwarehouse: warehouse\n",
        "pyproject.toml": '[tool.sqlrun]\nname = "small"\nprofile = "local"\n',
    }
    return broken.write(folder, files)


def site(folder: Path, engine: Engine | None = None, **options: Any) -> Site:
    """Return the project with an engine."""
    return Site(project(folder, **options), engine or DuckDBEngine())


def sale(id: str, shop: str = "ada", amount: str = "1.00", guest: str = "Ada Guest") -> dict[str, str]:
    """Return one sale."""
    return {"id": id, "shop": shop, "amount": amount, "guest": guest}


def send(made: Site, name: str, *lines: dict[str, str] | str) -> None:
    """Write a file of sales."""
    made.write(name, [line if isinstance(line, str) else json.dumps(line) for line in lines])


def sums(*sales: dict[str, str]) -> dict[str, tuple[Decimal, int]]:
    """Return the expected rows of `by_shop` for sales."""
    counts = Counter(each["shop"] for each in sales)
    totals: dict[str, Decimal] = {}
    for each in sales:
        totals[each["shop"]] = totals.get(each["shop"], Decimal(0)) + Decimal(each["amount"])
    return {shop: (totals[shop], counts[shop]) for shop in counts}


def by_shop(made: Site) -> dict[str, tuple[Decimal, int]]:
    """Return the actual rows of `by_shop`."""
    return {row["shop"]: (row["total"], row["n"]) for row in made.rows("by_shop")}


def edit(made: Site, old: str, new: str, file: str = FILE) -> Site:
    """Edit the project, as an analyst does, and load it again."""
    path = made.root / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    return Site(made.root, made.engine, made.env)


def run(made: Site, *words: str, code: int = 0) -> str:
    """Run a command of sqlrun on the project; return its output."""
    result: Result = CliRunner().invoke(main, ["--project-dir", str(made.root), *words])
    assert result.exit_code == code, result.output
    return result.output


def quarantine_rows(made: Site, *words: str) -> list[dict[str, Any]]:
    """Return the parsed output of a quarantine command with --json."""
    found = json.loads(run(made, "quarantine", *words, "--json"))
    rows: list[dict[str, Any]] = found["queues"] if "list" in words else found
    return rows


def discards(made: Site) -> list[dict[str, Any]]:
    """Return the discards: who, what and why."""
    found: list[dict[str, Any]] = json.loads(run(made, "quarantine", "list", "--json"))["discarded"]
    return found


def waiting(made: Site) -> dict[str, int]:
    """Return the number of pending lines, by reason."""
    return {row["reason"]: row["waiting"] for row in quarantine_rows(made, "list") if row["waiting"]}
