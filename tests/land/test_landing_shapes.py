"""Queries over a source: any order of filters and computed columns lands, and each line is one row or none."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.errors import ProjectError
from sqlrun.system_tables import intake
from tests.support import shops
from tests.support.projects import Site, prepared
from tests.support.script import START
from tests.support.shops import sale

SOURCE = "{{ source('shops', 'sales') }}"
LANDED = [
    f"select id, shop, amount, guest from {SOURCE} where shop = 'ada'",
    f"with named as (select id, upper(shop) as name, amount, guest from {SOURCE})\n"
    "select id, lower(name) as shop, amount, guest from named where name = 'ADA'",
    f"with large as (select id, shop, amount * 2 as twice, guest from {SOURCE} where amount > 2),\n"
    "named as (select id, upper(shop) as name, twice, guest from large where twice < 1000)\n"
    "select id, lower(name) as shop, cast(twice / 2 as decimal(10, 2)) as amount, guest from named where name = 'ADA'",
]
REFUSED = [
    f"select id, shop, amount, guest from {SOURCE}\nunion all\nselect id, shop, amount, guest from {SOURCE}",
    f"select concat(id, n) as id, shop, amount, guest from {SOURCE} lateral view explode(array('1', '2')) t as n",
    f"select distinct id, shop, amount, guest from {SOURCE}",
    f"select id, shop, amount, guest from {SOURCE} where id in (select id from {SOURCE})",
]


def project(folder: Path, query: str) -> Path:
    made = shops.project(folder)
    (made / f"models/{shops.NAME}.sql").write_text(f"{query}\n")
    return made


@pytest.mark.parametrize("query", LANDED)
def test_filters_and_computed_columns_alternate(tmp_path: Path, query: str) -> None:
    """The rows are those of the query, and what its filters leave out is counted as dropped."""
    site = Site(project(tmp_path, query), DuckDBEngine())
    shops.send(site, "a.json", sale("a", "ada", "3.00"), sale("b", "bob", "4.00"), sale("c", "ada", "5.00"))

    assert site.tick(START).published
    assert sorted((row["id"], row["shop"], int(row["amount"])) for row in site.rows(shops.NAME)) == [
        ("a", "ada", 3),
        ("c", "ada", 5),
    ]
    (batch,) = intake.read(site.warehouse, "")
    assert (batch["read"], batch["landed"], batch["dropped"], batch["unexplained"]) == (3, 2, 1, 0)


@pytest.mark.parametrize("query", REFUSED)
def test_what_makes_several_rows_of_a_line_is_refused(tmp_path: Path, query: str) -> None:
    with pytest.raises(ProjectError, match="SR531"):
        prepared(project(tmp_path, query))
