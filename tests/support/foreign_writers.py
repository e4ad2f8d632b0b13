"""A small project with a table of each kind, and changes by other writers through delta-rs."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import pyarrow as pa
from click.testing import CliRunner, Result
from deltalake import DeltaTable, write_deltalake

from sqlrun.cli.main import main
from sqlrun.engine_api import Engine
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.publish.ledger import Ledger
from tests.run.test_machine import GRAIN, QUERIES, SOURCES, Stop, stopping
from tests.run.test_power_loss import lines
from tests.support import broken
from tests.support.projects import Site
from tests.support.script import FIVE, START
from tests.support.whole import differences

SEED = """\
seeds:
  - name: shops
    description: The shops.
    grain: [shop]
    columns:
      - {name: shop, data_type: string, description: The shop., nulls: false}
      - {name: city, data_type: string, description: Where., nulls: false}
"""
CITIES = {
    "by_city": (
        "select s.city, count(*) as sales, sum(l.amount) as total from {{ ref('stg_sales') }} as l\n"
        "join {{ ref('shops') }} as s on l.shop = s.shop group by s.city",
        ("city string", "sales bigint", "total decimal(19,2)"),
    ),
    "best_slot": (
        "select shop, slot_at, total from (\n"
        "    select shop, date_trunc('hour', sold_at) as slot_at, sum(amount) as total\n"
        "    from {{ ref('stg_sales') }} group by shop, date_trunc('hour', sold_at)\n"
        ") as slots\nqualify row_number() over (partition by shop order by total desc, slot_at) = 1",
        ("shop string", "slot_at timestamp", "total decimal(19,2)"),
    ),
    "all_lines": ("select id, version, shop, amount from {{ ref('stg_lines') }}", QUERIES["stg_lines"][1][:4]),
}
PROFILES = {name: f"engine: {name}\nwarehouse: warehouse\n" for name in ("duckdb", "spark", "auto")}
# Tables by kind: landing, append-only, merge, full rewrite by key, hidden state, seed.
KINDS = ("stg_lines", "all_lines", "stg_sales", "fct_slots", "mart_best", "best_slot__state_1", "shops")
BOOKS = ("receipts", "checks", "measures")


def project(folder: Path) -> Path:
    files = {
        "models/_sources.yml": SOURCES,
        "seeds/shops.csv": "shop,city\nx,Aa\ny,Bb\nz,Aa\n",
        "seeds/shops.yml": SEED,
    }
    extra = {**GRAIN, "all_lines": "    repeats: true"}
    for name, (sql, columns) in (QUERIES | CITIES).items():
        files[f"models/{name}.sql"] = sql + "\n"
        files[f"models/{name}.yml"] = broken.contract(name, *columns, extra=extra.get(name, ""))
    files |= {f"profiles/{name}.yml": text for name, text in PROFILES.items()}
    files["pyproject.toml"] = '[tool.sqlrun]\nname = "small"\nprofile = "duckdb"\n'
    (folder / "data" / "orders").mkdir(parents=True)
    return broken.write(folder, files)


def at(number: int) -> datetime:
    return START + number * FIVE


def opened(folder: Path, engine: Engine | None = None) -> Site:
    return Site(folder, engine or DuckDBEngine())


def arrive(site: Site, number: int) -> None:
    site.write(f"{number}.jsonl", lines(number))


def command(site: Site, *words: str, code: int | None = 0, profile: str = "duckdb") -> str:
    """Run a command as a user does; return its output in one line."""
    found: Result = CliRunner().invoke(main, ["--project-dir", str(site.root), *words, "--profile", profile])
    assert code is None or found.exit_code == code, found.output
    assert found.exception is None or isinstance(found.exception, SystemExit), found.exception
    return " ".join(found.output.split())


def build(site: Site, number: int, *options: str, code: int = 0, profile: str = "duckdb") -> str:
    words = ("--as-of", at(number).strftime("%Y-%m-%dT%H:%M"), *options)
    return command(site, "build", "--skip-tests", *words, code=code, profile=profile)


def cut_short(site: Site, number: int) -> None:
    """Run a tick that dies before it is published: every table is ahead of its published version."""
    with suppress(Stop), stopping(Ledger, "publish", 1, after=False):
        site.tick(at(number))


def path_of(site: Site, name: str) -> str:
    if name in (*BOOKS, "ledger", "quarantine"):
        return f"{site.warehouse}/_sqlrun/{name}"
    published = site.ledger.read().published
    assert published is not None
    return f"{site.warehouse}/{published.tables[name].path}"


def true(site: Site, number: int, lines: int) -> None:
    """Require that each table equals its query, every line is there once, and checksums and doctor agree."""
    assert differences(site, at(number)) == {}
    assert len(site.rows("stg_lines")) == lines
    command(site, "verify")
    command(site, "verify", "--checksums")
    assert "All are intact" in command(site, "doctor")


def _some(table: DeltaTable, rows: int) -> pa.Table:
    return pa.table(table.scan().read_all()).slice(0, rows)


def _insert(table: DeltaTable) -> None:
    write_deltalake(table, _some(table, 1), mode="append")


def _update(table: DeltaTable) -> None:
    column = next(f.name for f in table.schema().fields if str(f.type.type) in ("string", "long", "integer"))
    table.update(updates={column: "'9'"})


def _merge(table: DeltaTable) -> None:
    column = table.schema().fields[0].name
    source = _some(table, 2)
    table.merge(source, f"s.{column} = t.{column}", source_alias="s", target_alias="t").when_matched_delete().execute()


def _overwrite(table: DeltaTable) -> None:
    write_deltalake(table, _some(table, 1), mode="overwrite")


def _reshape(table: DeltaTable) -> None:
    rows = pa.table(table.scan().read_all())
    rows = rows.append_column("note", pa.array(["x"] * len(rows), pa.string()))
    write_deltalake(table, rows, mode="overwrite", schema_mode="overwrite")


def _property(table: DeltaTable) -> None:
    table.alter.set_table_properties({"delta.enableChangeDataFeed": "false"})


def _vacuum(table: DeltaTable) -> None:
    table.vacuum(0, dry_run=False, enforce_retention_duration=False)


CHANGES: dict[str, Callable[[DeltaTable], object]] = {
    "insert": _insert,
    "delete": lambda table: table.delete(f"{table.schema().fields[0].name} is not null"),
    "update": _update,
    "merge": _merge,
    "overwrite": _overwrite,
    "reshape": _reshape,
    "property": _property,
    "restore": lambda table: table.restore(0),
}
HARMLESS: dict[str, Callable[[DeltaTable], object]] = {
    "optimize": lambda table: table.optimize.compact(),
    "z-order": lambda table: table.optimize.z_order([table.schema().fields[0].name]),
    "vacuum": _vacuum,
    "checkpoint": lambda table: table.create_checkpoint(),
}


def newest(path: str) -> dict[str, object]:
    """Return the commit information of a table's latest commit."""
    log = sorted((Path(path) / "_delta_log").glob("*.json"))[-1]
    found: dict[str, object] = next(
        a["commitInfo"] for a in map(json.loads, log.read_text().split("\n")[:-1]) if "commitInfo" in a
    )
    return found
