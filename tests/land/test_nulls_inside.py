"""Columns that may be NULL inside: fields and elements may lack a value, but not have a wrong one."""

from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sqlrun.engine_api import Engine
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.errors import ProjectError
from sqlrun.project import Column
from tests.support import shops
from tests.support.projects import Site, prepared
from tests.support.script import START

BUYER = "struct<id:bigint{},name:string,at:struct<zip:string,no:int>>"
ITEMS = "array<struct<dish:string{},price:decimal(10,2)>>"
FILES = {
    "models/_sources.yml": """\
sources:
  - name: shop
    tables:
      - name: log
        description: It.
        path: data/orders
        columns:
          - {{name: id, data_type: bigint, description: It., nulls: false}}
          - {{name: buyer, data_type: "{buyer}", description: It.{inside}}}
          - {{name: items, data_type: "{items}", description: It.{inside}}}
          - {{name: words, data_type: array<string>, description: It.{inside}}}
""",
    "models/orders.sql": "select id, buyer, items, words, buyer.at.no as no from {{{{ source('shop', 'log') }}}}\n",
    "models/orders.yml": """\
models:
  - name: orders
    description: It.
    grain: [id]
    columns:
      - {{name: id, data_type: bigint, description: It.}}
      - {{name: buyer, data_type: "{plain_buyer}", description: It.}}
      - {{name: items, data_type: "{plain_items}", description: It.}}
      - {{name: words, data_type: array<string>, description: It.}}
      - {{name: no, data_type: int, description: It.}}
""",
    "models/dishes.sql": """\
select item.dish, count(*) as n, count(item.price) as priced, sum(item.price) as total
from (select explode(items) as item from {{{{ ref('orders') }}}})
group by item.dish
""",
    "models/dishes.yml": """\
models:
  - name: dishes
    description: It.
    grain: [dish]
    columns:
      - {{name: dish, data_type: string, description: It.}}
      - {{name: n, data_type: bigint, description: It.}}
      - {{name: priced, data_type: bigint, description: It.}}
      - {{name: total, data_type: "decimal(20,2)", description: It.}}
""",
    "profiles/duckdb.yml": "engine: duckdb\nwarehouse: warehouse\n",
    "pyproject.toml": '[tool.sqlrun]\nname = "shop"\nprofile = "duckdb"\n',
}
BO = {"id": 7, "name": "Bo", "at": {"zip": "0150", "no": 3}}
# A line without its id, and the values or the reason that it gets.
LINES: tuple[tuple[dict[str, Any], dict[str, Any] | str], ...] = (
    ({"buyer": BO, "items": [{"dish": "pizza", "price": 9.5}], "words": ["a"]}, {"no": 3}),
    ({}, {"buyer": None, "items": None, "words": None}),
    ({"buyer": None, "items": None, "words": None}, {"buyer": None, "items": None, "words": None}),
    ({"buyer": {"id": 7}}, {"buyer": {"id": 7, "name": None, "at": None}, "no": None}),
    ({"buyer": {"id": 7, "at": {}}}, {"buyer": {"id": 7, "name": None, "at": {"zip": None, "no": None}}}),
    ({"buyer": {"id": 7, "at": {"no": None, "zip": "1"}}}, {
        "buyer": {"id": 7, "name": None, "at": {"zip": "1", "no": None}},
    }),
    ({"buyer": {"name": "Bo"}}, "buyer.id: missing"),
    ({"buyer": {}}, "buyer.id: missing"),
    ({"buyer": {"id": 7, "at": {"no": "x"}}}, "buyer.at.no: not of type int"),
    ({"buyer": {"id": 7, "at": 5}}, "not a JSON object"),
    ({"items": []}, {"items": []}),
    ({"items": [{"dish": "pizza"}, None, {"dish": "soup", "price": None}]}, {
        "items": [{"dish": "pizza", "price": None}, None, {"dish": "soup", "price": None}],
    }),
    ({"items": [{"dish": "pizza", "price": 9.5}, {"price": 1}]}, "items[].dish: missing"),
    ({"items": [{"dish": "pizza"}, {"dish": "soup", "price": "much"}]}, "items[].price: not of type decimal(10, 2)"),
    ({"words": [None, "b"]}, {"words": [None, "b"]}),
    ({"words": [{"a": 1}]}, "words[]: not of type string"),
)  # fmt: skip


def site(folder: Path, engine: Engine, inside: str = ", nulls_inside: true", required: str = " not null") -> Site:
    types = {"buyer": BUYER.format(required), "items": ITEMS.format(required)}
    plain = {"plain_buyer": BUYER.format(""), "plain_items": ITEMS.format("")}
    for path, text in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text.format(inside=inside, **types, **plain))
    (folder / "data/orders").mkdir(parents=True)
    return Site(folder, engine)


def test_values_inside_may_be_missing(tmp_path: Path) -> None:
    holds(site(tmp_path, DuckDBEngine()))


def holds(made: Site) -> None:
    """Land the lines in two ticks, and compare rows, reasons, and a table over the elements."""
    for number, lines in enumerate((LINES[::2], LINES[1::2])):
        texts = [json.dumps({"id": LINES.index(line), **line[0]}) for line in lines]
        (made.root / "data/orders" / f"{number}.jsonl").write_text("".join(f"{text}\n" for text in texts))
        result = made.tick(START)
        assert result.published, [node.message for node in result.nodes]

    rows = {row["id"]: row for row in made.rows("orders")}
    for number, (line, seen) in enumerate(LINES):
        assert (number in rows) == (not isinstance(seen, str)), line
        if not isinstance(seen, str):
            assert {name: rows[number][name] for name in seen} == seen
    assert Counter(shops.waiting(made)) == Counter(seen for _, seen in LINES if isinstance(seen, str))
    assert sorted(made.rows("dishes"), key=lambda row: row["dish"] or "") == [
        {"dish": None, "n": 1, "priced": 0, "total": None},
        {"dish": "pizza", "n": 2, "priced": 1, "total": Decimal("9.50")},
        {"dish": "soup", "n": 1, "priced": 0, "total": None},
    ]


def test_without_the_key_every_field_is_required(tmp_path: Path) -> None:
    made = site(tmp_path, DuckDBEngine(), "", "")
    (tmp_path / "data/orders/0.jsonl").write_text('{"id":1,"buyer":{"id":7}}\n{"id":2,"words":["a"]}\n')
    assert made.tick(START).published
    assert [row["id"] for row in made.rows("orders")] == [2]
    assert shops.waiting(made) == {"buyer.name: missing": 1}


def test_the_type_of_the_column_is_without_its_requirements(tmp_path: Path) -> None:
    site(tmp_path, DuckDBEngine())
    column = source_column(tmp_path, "buyer")
    assert column.type == BUYER.format("") and column.inside == BUYER.format(" not null")
    assert source_column(tmp_path, "words").inside == "array<string>"


def source_column(folder: Path, name: str) -> Column:
    (source,) = prepared(folder).project.sources
    return next(column for column in source.columns if column.name == name)


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        ((", nulls_inside: true", ""), "SR110", "`not null` inside of the type of `buyer` has no effect without"),
        (("It., nulls: false", "It., nulls_inside: true"), "SR102", "`nulls_inside` has no effect on the type bigint"),
        (("array<string>", '"array<string not null>"'), "SR309", "unknown type `array<string not null>`"),
    ],
)
def test_a_declaration_without_effect_is_refused(
    tmp_path: Path, change: tuple[str, str], code: str, message: str
) -> None:
    site(tmp_path, DuckDBEngine())
    path = tmp_path / "models/_sources.yml"
    path.write_text(path.read_text().replace(*change))
    with pytest.raises(ProjectError) as caught:
        prepared(tmp_path)
    assert any(code == p.code and message in p.message for p in caught.value.problems), caught.value.problems
