"""Completions, definitions and hovers out of an index, also in texts that are half typed."""

from __future__ import annotations

import pytest

from sqlrun.language_server import answers, tables
from sqlrun.language_server.index import Index
from sqlrun.language_server.looking import Looker
from tests.language_server.project import DAYS, FILES, written

SOURCES = """sources:
  - name: shop
    description: The shop.
    tables:
      - name: events
        description: All events.
        format: json
        path: data
        columns:
          - {name: id, data_type: string, description: The number.}
"""


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    root = written(tmp_path_factory.mktemp("shop"))
    look = Looker(root).look({"models/_sources.yml": SOURCES, "models/days.sql": DAYS})
    return Index(templates=look.templates, origins=look.origins).with_nouns(look.nouns.values())


def offered(text: str, index: Index) -> list[str]:
    """Return the labels at the `|` of a text."""
    offset = text.index("|")
    return [offer.label for offer in answers.offers(text.replace("|", "", 1), offset, index)[1]]


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("select 1 from {{ ref('or|", ["orders", "raw_orders"]),
        ('select 1 from {{ ref("d|") }}', ["days", "orders", "raw_orders"]),
        ("select 1 from {{ source('|", ["shop"]),
        ("select 1 from {{ source('shop', 'e|') }}", ["events"]),
        ("select 1 from {{ source('other', '|') }}", []),
        ("select {{ doub|", ["doubled"]),
        ("select {{ dbt_utils.group|", ["group_by"]),
        ("select o.| from {{ ref('orders') }} as o", ["id", "total"]),
        ("select o.t| from {{ ref('orders') }} o where 'from x' = 1", ["total"]),
        (DAYS.replace("o.id,", "o.t|,"), ["total"]),
        ("with a as (select id as number, max(total) as most from {{ ref('orders') }})\nselect a.| from a",
         ["number", "most"]),
        ("with a as (select id from {{ ref('orders') }}), b as (select a.* from a)\nselect b.| from b", ["id"]),
        ("with a as (select * from a) select a.| from a", []),
        ("select tot| from {{ ref('orders') }}", ["total"]),
        ("select x.| from {{ ref('orders') }} as o", []),
        ("select e.| from {{ source('shop', 'events') }} as e", ["id"]),
        ("😀 {{ ref('da|", ["days"]),
        ("|", []),
    ],
)  # fmt: skip
def test_what_is_offered(text: str, labels: list[str], index: Index) -> None:
    assert offered(text, index) == labels


def test_what_replaces_the_word(index: Index) -> None:
    here, found, is_part = answers.offers("from {{ ref('ord') }}", 16, index)

    assert (here.start, here.end, found[0].label, is_part) == (13, 16, "orders", False)
    assert answers.offers("select o", 8, index, is_sql=False)[1] == []


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("select 1 from {{ ref('or|ders') }}", "models/orders.sql:1:1"),
        ("select 1 from {{ source('shop', 'ev|ents') }}", "models/_sources.yml:5:9"),
        ("select o.to|tal from {{ ref('orders') }} as o", "models/orders.yml:7:9"),
        ("select to|tal from {{ ref('orders') }}", "models/orders.yml:7:9"),
        ("select {{ dou|bled(1) }}", "macros/doubled.sql:1:1"),
        ("select {{ dbt_utils.gro|up_by(1) }}", "sqlrun/load/macros/packages/dbt_utils.sql"),
        ("select 1 from {{ ref('unkn|own') }}", "None"),
        ("select n|othing from {{ ref('orders') }}", "None"),
    ],
)
def test_where_it_is_defined(text: str, place: str, index: Index) -> None:
    offset = text.index("|")
    found = answers.place(answers.found(text.replace("|", ""), offset, index))

    assert str(found).startswith(place)


def test_what_is_shown_of_a_thing(index: Index) -> None:
    def shown(text: str) -> str:
        return answers.hover(answers.found(text.replace("|", ""), text.index("|"), index), index)

    assert shown("from {{ ref('or|ders') }}").startswith("**orders** (model)\n\nAll orders.\n\nstrategy: `")
    assert "grain: `id`" in shown("from {{ ref('or|ders') }}")
    assert shown("select tot|al from {{ ref('orders') }}") == (
        "**total** `decimal(9,2) (euro)`\n\nWhat is paid.\n\nfrom `orders`\n\n"
        "computed from `raw_orders.total` by `cast(raw_orders.total as decimal(9, 2))`"
    )
    assert shown("{{ dou|bled(1) }}") == "`doubled(x)`"
    assert shown("zz|z") == ""


def test_a_column_of_a_contract_is_found_in_its_file(index: Index) -> None:
    text = FILES["models/orders.yml"]
    found = answers.found(text, text.index("total"), index, "models/orders.yml")

    assert str(answers.place(found)) == "models/orders.yml:7:9"


def test_a_huge_text_has_no_parts() -> None:
    assert tables.parts("select 1\n" * 200_000) == []
