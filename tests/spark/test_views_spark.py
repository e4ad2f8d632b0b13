"""`sqlrun.views`: Spark's views of all tables at one tick, which a later tick doesn't move."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import sqlrun
from sqlrun.cli.main import main
from sqlrun.engines.duckdb.engine import DuckDBEngine
from tests.support.projects import Site, copy_project
from tests.support.script import FIVE, START, order

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]


def seen(session: Any, name: str) -> Counter[str]:
    return Counter(str(row.asDict(recursive=True)) for row in session.table(name).collect())


def test_views_show_one_tick_until_they_are_created_again(small_session: Any, tmp_path: Path) -> None:
    """Landing tables without what was set aside, marts, seeds; a tick that was given is shown, too."""
    site = Site(copy_project(tmp_path), DuckDBEngine())
    site.write("1.jsonl", [order("1", START - FIVE), order("2", START - FIVE), "broken"])
    assert site.tick(START).published
    for statement in sqlrun.views(site.warehouse):
        small_session.sql(statement)
    shown = {name: seen(small_session, name) for name in site.everything()}
    assert {name: sum(rows.values()) for name, rows in shown.items()} == {
        name: sum(rows.values()) for name, rows in site.everything().items()
    }
    assert shown["stg_order_events"].total() == 2
    assert {row["total_sales"] for row in small_session.table("restaurant_windows").collect()} == {
        row["total_sales"] for row in site.rows("restaurant_windows")
    }

    site.write("2.jsonl", [order("3", START)])
    assert site.tick(START + FIVE).published

    assert {name: seen(small_session, name) for name in shown} == shown
    for statement in sqlrun.views(site.warehouse):
        small_session.sql(statement)
    assert seen(small_session, "stg_order_events").total() == 3
    for statement in sqlrun.views(site.warehouse, tick=1):
        small_session.sql(statement)
    assert {name: seen(small_session, name) for name in shown} == shown


def test_the_command_prints_what_spark_can_run(small_session: Any, tmp_path: Path, monkeypatch: Any) -> None:
    root = copy_project(tmp_path)
    monkeypatch.chdir(root)
    (root / "data" / "orders" / "1.jsonl").write_text(order("1", START - FIVE) + "\n")
    built = CliRunner().invoke(
        main, ["build", "--profile", "duckdb", "--as-of", f"{START:%Y-%m-%dT%H:%M}", "--skip-tests"]
    )
    assert built.exit_code == 0, built.output

    said = CliRunner().invoke(main, ["views", "--profile", "duckdb"])

    assert said.exit_code == 0, said.output
    for statement in said.stdout.strip().rstrip(";").split(";\n"):
        small_session.sql(statement)
    assert seen(small_session, "stg_orders").total() == 1
