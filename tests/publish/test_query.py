"""`sqlrun.query`: Spark SQL over the tables of one tick, which finds no other file."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sqlrun
from sqlrun.errors import EngineError, ProjectError, UsageError
from sqlrun.publish import query_text, reader
from sqlrun.runtime import arrow_rows
from tests.support import foreign_writers as others
from tests.support.projects import Site

pytestmark = pytest.mark.slow
NOON = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)
TABLES = {
    "shops": {"shop": "string", "city": "string"},
    "sales": {"id": "string", "shop": "string", "amount": "decimal(9,2)", "n": "int"},
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Return a project with two ticks."""
    made = others.opened(others.project(tmp_path_factory.mktemp("query") / "shops"))
    for number in range(2):
        others.arrive(made, number)
        others.build(made, number)
    yield made
    made.engine.close()


@pytest.mark.long
def test_all_tables_are_of_one_tick_even_if_another_one_is_published_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = others.opened(others.project(tmp_path / "shops"))
    others.arrive(site, 0)
    others.build(site, 0)
    first = site.everything()
    read = query_text.read

    def meanwhile(*args: Any) -> query_text.Readable:
        others.arrive(site, 1)
        others.build(site, 1)
        return read(*args)

    with monkeypatch.context() as patched:
        patched.setattr(query_text, "read", meanwhile)
        found = sqlrun.query(
            "select f.shop, f.slot_at, f.sales, f.total, (select count(*) from stg_sales) as n from fct_slots as f",
            site.warehouse,
        )

    assert found.tick == 1 and site.everything()["fct_slots"] != first["fct_slots"]
    rows = arrow_rows.plain(found.arrow())
    assert {row.pop("n") for row in rows} == {sum(first["stg_sales"].values())}
    assert Counter(map(str, rows)) == first["fct_slots"]
    assert sqlrun.query("select * from fct_slots", site.warehouse).tick == 2
    site.engine.close()


def test_rows_come_as_arrow_pandas_and_polars(site: Site) -> None:
    found = sqlrun.query(
        "select s.city, count(*) as n, sum(l.amount) as total, current_timestamp() as at\n"
        "from stg_sales as l join shops as s on l.shop = s.shop group by s.city order by s.city desc",
        site.warehouse,
    )

    rows = [(row["city"], row["n"], row["total"]) for row in found.arrow().to_pylist()]
    expected = [(row["city"], row["sales"], row["total"]) for row in site.rows("by_city")]
    assert rows == sorted(expected, reverse=True) and len(rows) == 2
    assert found.arrow().schema.field("n").type == pa.int64()
    assert found.arrow()["at"][0].as_py() == others.at(1) == found.as_of
    assert [tuple(row)[:3] for row in found.pandas().itertuples(index=False)] == rows
    assert [tuple(row)[:3] for row in found.polars().iter_rows()] == rows


def test_polars_is_optional(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    found = sqlrun.query("select shop from shops", site.warehouse)
    monkeypatch.setitem(sys.modules, "polars", None)

    with pytest.raises(UsageError, match="pip install polars"):
        found.polars()


def test_an_earlier_tick_an_environment_and_a_project_can_be_chosen(site: Site) -> None:
    sales = "select id, version, shop, amount, sold_at from stg_sales"
    for tick in (1, 2):
        rows = arrow_rows.plain(sqlrun.query(sales, site.warehouse, tick).arrow())
        assert Counter(map(str, rows)) == site.everything(tick)["stg_sales"]
    others.build(site, 1, "--env", "dev")

    assert sqlrun.query(sales, project=str(site.root), env="dev").arrow().num_rows == len(site.rows("stg_sales"))
    with pytest.raises(UsageError, match="tick 9 was never published"):
        sqlrun.query(sales, site.warehouse, 9)


def test_numbers_have_sparks_types_and_columns_without_a_name_their_text(site: Site) -> None:
    found = sqlrun.query(
        "select count(*), sum(sales) as sold, sum(total), avg(total) as mean, row_number() over (order by shop) as r\n"
        "from fct_slots group by shop",
        site.warehouse,
    )

    assert found.arrow().schema.names == ["COUNT(*)", "sold", "SUM(total)", "mean", "r"]
    assert list(map(str, found.arrow().schema.types)) == [
        "int64", "int64", "decimal128(29, 2)", "decimal128(23, 6)", "int32",
    ]  # fmt: skip


def test_ctes_hide_tables_and_may_have_their_names() -> None:
    text = "with shops as (select shop from shops), s as (select * from shops) select s.shop from s, sales"

    made = query_text.read(text, TABLES, NOON)

    assert made.tables == ("shops", "sales")
    assert [name for name, _ in made.columns] == ["shop"]


@pytest.mark.parametrize(
    ("text", "code", "place", "message"),
    [
        ("select *\nfrom sails", "SR303", "query:2:6", "unknown table `sails`"),
        ("select 1 from parquet.`/etc/passwd`", "SR303", "query:1:23", "unknown table `parquet"),
        ("select 1 from main.shops", "SR303", "query:1:20", "unknown table `main.shops`"),
        ("select 1 from ref.shops", "SR303", "query:1:19", "unknown table `ref.shops`"),
        ("select 1 from '/etc/passwd'", "SR30", "query:1", ""),
        ("select 1 from shops, lateral (select 1 from sails)", "SR303", "query:1:45", "unknown table `sails`"),
        ("select (select max(id) from sails) from shops", "SR303", "query:1:29", "unknown table `sails`"),
        ("select 1 from dear", "SR303", "query:1:15", "Views aren't among them, because no tick stores their rows."),
        ("select * from read_text('/etc/passwd')", "SR305", "query:1:15", "unknown function read_text()"),
        ("select * from range(3)", "SR305", "query:1:15", "function range() isn't allowed"),
        ("select read_files('/etc/passwd') from shops", "SR305", "query:1:8", "read_files()"),
        ("select shopp from shops", "SR304", "query:1:8", "unknown column `shopp`"),
        ("select 1 from shops; drop table shops", "SR302", "query:1:22", "2 statements"),
        ("attach '/etc/passwd'", "SR30", "query:1", ""),
        ("copy shops to '/tmp/x'", "SR302", "query:1:1", "COPY"),
        ("pragma database_list", "SR30", "query:1", ""),
        ("set enable_external_access = true", "SR302", "query:1:1", "SET"),
        ("select rand() from shops", "SR501", "query:1:8", "rand() isn't deterministic"),
        ("select date 'today' from shops", "SR501", "query:1:", "isn't the time of the tick"),
        ("select shop from", "SR301", "query:1", "syntax error"),
        ("select shop, city as shop from shops", "SR308", "query:1", "shop"),
        ("select cast('2' * amount as int) + upper(shop) as x\nfrom sales", "SR310", "query:1:19", "DuckDB can't run"),
        ("", "SR302", "query:1:1", "no query"),
    ],
)  # fmt: skip
def test_a_wrong_query_is_an_error_with_its_place(text: str, code: str, place: str, message: str) -> None:
    with pytest.raises(ProjectError) as caught:
        query_text.read(text, TABLES, NOON)

    first = caught.value.problems[0]
    assert first.code.startswith(code) and str(first.place).startswith(place)
    assert message in f"{first.message}. {first.hint}"


def test_carets_stand_below_the_wrong_word() -> None:
    with pytest.raises(ProjectError) as caught:
        query_text.read("select s.shop, l.amont from shops as s join sales as l on s.shop = l.shop", TABLES, NOON)

    assert str(caught.value).split("\n")[:4] == [
        "SR304 query:1:18  unknown column `l.amont`",
        "  1 | select s.shop, l.amont from shops as s join sales as l on s.shop = l.shop",
        "    |                  ^^^^^",
        "  Columns of l: id, shop, amount, n. Did you mean `amount`?",
    ]


@pytest.mark.parametrize(
    "sql",
    [
        "select * from read_text('{file}')",
        "select * from read_csv('{file}')",
        "select * from '{file}'",
        "copy (select 1) to '{file}'",
        "attach '{file}' as other",
        "set enable_external_access = true",
        "set allowed_directories = ['/']",
        "install httpfs",
    ],
)
def test_a_text_that_passed_the_check_would_find_no_other_file(site: Site, tmp_path: Path, sql: str) -> None:
    """A second barrier: DuckDB opens the warehouse's files alone, and its configuration is locked."""
    file = tmp_path / "secret.csv"
    file.write_text("a\n1\n")

    with pytest.raises(EngineError):
        reader.query(sql.format(file=file), [], folder=site.warehouse)
    assert file.read_text() == "a\n1\n"


def test_decimals_are_computed_as_on_spark(site: Site) -> None:
    found = sqlrun.query("select sum(total) / 7 as x from by_city", site.warehouse).arrow().to_pylist()

    total = sum(row["total"] for row in site.rows("by_city"))
    assert found == [{"x": (Decimal(total) / 7).quantize(Decimal("1e-6"))}]


class WithoutPandas:
    def to_pandas(self) -> None:
        raise ModuleNotFoundError("No module named 'pandas'")  # as PyArrow does in a plain install


def test_pandas_is_optional(site: Site) -> None:
    found = replace(sqlrun.query("select shop from shops", site.warehouse), table=WithoutPandas())

    with pytest.raises(UsageError, match=r"SR133 .*pandas.*pip install 'sqlrun\[gx\]'"):
        found.pandas()
