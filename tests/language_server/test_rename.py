"""Renaming a column: the changes of each file, the same meaning afterwards, and clear refusals."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from sqlrun import pipeline
from sqlrun.graph.nameless import nameless
from sqlrun.language_server import answers
from sqlrun.language_server.index import Index
from sqlrun.language_server.looking import Looker
from sqlrun.language_server.positions import offset_of, position_of
from sqlrun.language_server.refusal import RefusedError
from sqlrun.language_server.rename_changes import Cursor
from tests.language_server.project import FILES, ORDERS, written

ROOT = Path(__file__).parent.parent.parent
CONTRACT = FILES["models/orders.yml"]
READER = "select id, total from {{ ref('orders') }}\n"


def renamed(root: Path, file: str, place: str, name: str, unsaved: Mapping[str, str] | None = None) -> dict[str, str]:
    """Rename the column at the `|` of a text, and return the new texts of the changed files."""
    texts = dict(unsaved or {})
    text = texts.get(file) or (root / file).read_bytes().decode()
    offset = text.index(place.replace("|", "")) + place.index("|")
    found = Looker(root).rename(texts, Cursor(file, *position_of(text, offset)), name)
    changed = {}
    for one, edits in found.items():
        new = texts.get(one) or (root / one).read_bytes().decode()
        for line, character, length, word in sorted(edits, reverse=True):
            start, end = offset_of(new, (line, character)), offset_of(new, (line, character + length))
            new = new[:start] + word + new[end:]
        changed[one] = new
    return changed


def of_reader(root: Path, sql: str, more: Mapping[str, str] | None = None) -> str:
    """Return the text of a model that reads `orders`, after its column `total` has become `amount`."""
    texts = {"models/reader.sql": sql, **(more or {})}
    changed = renamed(root, "models/orders.sql", "as to|tal", "amount", texts)
    assert changed["models/orders.sql"] == ORDERS.replace("as total", "as amount")
    return changed.get("models/reader.sql", sql)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select id, total from {{ ref('orders') }}", "select id, amount as total from {{ ref('orders') }}"),
        ("select o.Total as paid from {{ ref('orders') }} o where `total` > 1 order by paid",
         "select o.amount as paid from {{ ref('orders') }} o where amount > 1 order by paid"),
        # A column of another table, an alias and a text stay.
        ("select r.total, 'total' as word, 1 as totals from {{ ref('orders') }} o "
         "join {{ ref('raw_orders') }} r on o.id = r.id and o.total = r.total -- total",
         "select r.total, 'total' as word, 1 as totals from {{ ref('orders') }} o "
         "join {{ ref('raw_orders') }} r on o.id = r.id and o.amount = r.total -- total"),
        # Stars are followed, also through several CTEs; a column with a name of its own ends the way.
        ("with a as (select * from {{ ref('orders') }}), b as (select a.*, 1 as one from a)\n"
         "select id, total as paid, sum(total) over (partition by id) as s from b where total > 0",
         "with a as (select * from {{ ref('orders') }}), b as (select a.*, 1 as one from a)\n"
         "select id, amount as paid, sum(amount) over (partition by id) as s from b where amount > 0"),
        ("with a as (select total from {{ ref('orders') }}) select total + 1 as total from a",
         "with a as (select amount as total from {{ ref('orders') }}) select total + 1 as total from a"),
        ("with a (n, total) as (select id, total from {{ ref('orders') }}) select n, total from a",
         "with a (n, total) as (select id, amount as total from {{ ref('orders') }}) select n, total from a"),
        # Names that are made of a column's name.
        ("select struct(total, id as total2).total as t from {{ ref('orders') }}",
         "select struct(amount as total, id as total2).total as t from {{ ref('orders') }}"),
        # Aliases that hide the column, and such that don't.
        ("select id, max(total) as total from {{ ref('orders') }} group by id having max(total) > 1",
         "select id, max(amount) as total from {{ ref('orders') }} group by id having max(amount) > 1"),
        ("select id from {{ ref('orders') }} o where exists "
         "(select 1 from {{ ref('raw_orders') }} r where r.total = o.total and total > 1)",
         "select id from {{ ref('orders') }} o where exists "
         "(select 1 from {{ ref('raw_orders') }} r where r.total = o.amount and total > 1)"),
        ("select total from {{ ref('orders') }} union all select total from {{ ref('raw_orders') }}",
         "select amount as total from {{ ref('orders') }} union all select total from {{ ref('raw_orders') }}"),
        # Tags of Jinja.
        ("select {{ doubled('total') }} as total from {{ ref('orders') }}",
         "select {{ doubled('amount') }} as total from {{ ref('orders') }}"),
        ("select {{ doubled('o.total') }} as a,\n  {{ doubled(\n    \"o.total\") }} as b, o.total "
         "from {{ ref('orders') }} o",
         "select {{ doubled('o.amount') }} as a,\n  {{ doubled(\n    \"o.amount\") }} as b, o.amount as total "
         "from {{ ref('orders') }} o"),
        ("select {{ doubled('o.total - r.total') }} as x from {{ ref('orders') }} o, {{ ref('raw_orders') }} r",
         "select {{ doubled('o.amount - r.total') }} as x from {{ ref('orders') }} o, {{ ref('raw_orders') }} r"),
        ("with a as (select {% for c in ['id', 'total'] %}{{ c }},{% endfor %} 1 as one from {{ ref('orders') }})\n"
         "select id, total as paid from a",
         "with a as (select {% for c in ['id', 'amount'] %}{{ c }},{% endfor %} 1 as one from {{ ref('orders') }})\n"
         "select id, amount as paid from a"),
        ("select 1 as {{ 'x' }}, '😀' as f, total, 2 as {{ 'y' }} from {{ ref('orders') }}",
         "select 1 as {{ 'x' }}, '😀' as f, amount as total, 2 as {{ 'y' }} from {{ ref('orders') }}"),
        ("-- ü\r\nselect id,\r\n  total\r\nfrom {{ ref('orders') }}\r\n",
         "-- ü\r\nselect id,\r\n  amount as total\r\nfrom {{ ref('orders') }}\r\n"),
    ],
)  # fmt: skip
def test_a_reader_takes_the_new_name_and_keeps_its_own(sql: str, expected: str, tmp_path: Path) -> None:
    assert of_reader(written(tmp_path), sql) == expected


def test_a_star_to_the_end_is_the_same_column_in_all_models(tmp_path: Path) -> None:
    root = written(tmp_path)
    (root / "models/all.sql").write_text("with a as (select * from {{ ref('orders') }}) select * from a")
    (root / "models/all.yml").write_text(CONTRACT.replace("name: orders", "name: all"))
    (root / "models/last.sql").write_text("select id, total from {{ ref('all') }}")
    expected = {
        "models/orders.sql": ORDERS.replace("as total", "as amount"),
        "models/orders.yml": CONTRACT.replace("name: total", "name: amount"),
        "models/all.yml": CONTRACT.replace("name: total", "name: amount").replace("name: orders", "name: all"),
        "models/last.sql": "select id, amount as total from {{ ref('all') }}",
    }

    assert renamed(root, "models/orders.yml", "name: |total", "amount") == expected
    assert renamed(root, "models/all.yml", "name: |total", "amount") == expected
    assert renamed(root, "models/last.sql", "tota|l", "amount") == expected


def test_a_macro_that_takes_and_gives_a_name_makes_one_column(tmp_path: Path) -> None:
    root = written(tmp_path)
    (root / "macros/picked.sql").write_text(
        "{% macro picked(table, columns) %}\nselect {{ columns | join(', ') }}\nfrom {{ table }}\n{% endmacro %}"
    )
    sql = "{{ picked(ref('orders'), ['id', 'total']) }}"
    last = "select p.total from {{ ref('picks') }} as p"
    expected = {
        "models/orders.sql": ORDERS.replace("as total", "as amount"),
        "models/orders.yml": CONTRACT.replace("name: total", "name: amount"),
        "models/picks.sql": sql.replace("total", "amount"),
        "models/last.sql": last.replace("p.total", "p.amount as total"),
    }

    for file, place in (("models/orders.yml", "name: tot|al"), ("models/last.sql", "p.|total")):
        assert renamed(root, file, place, "amount", {"models/picks.sql": sql, "models/last.sql": last}) == expected


def test_a_union_is_renamed_in_all_its_selects(tmp_path: Path) -> None:
    root = written(tmp_path)
    sql = (
        "select id as a from {{ ref('orders') }} union all (select 'x' as a union all select id from {{ ref('days') }})"
    )
    texts = {"models/both.sql": sql}

    assert renamed(root, "models/both.sql", "id as |a", "b", texts) == {"models/both.sql": sql.replace("as a", "as b")}


def test_a_column_of_a_cte_is_renamed_in_its_model_alone(tmp_path: Path) -> None:
    root = written(tmp_path)
    sql = "with a as (select id as x from {{ ref('orders') }} order by x) select a.x, count(*) as n from a group by x"
    expected = sql.replace("id as x", "id as y").replace("by x", "by y").replace("a.x", "a.y as x")

    assert renamed(root, "models/new.sql", "id as x|", "y", {"models/new.sql": sql}) == {"models/new.sql": expected}


TESTED = """models:
  - name: orders
    description: The total of total.
    grain: [id, total]
    event_time: at
    config:
      partition_by: total
    columns:
      - {name: id, data_type: string}
      - name: "total"
        data_type: int
        data_tests: [not_null]
      - {name: at, data_type: timestamp}
  - name: reader
    description: Reads.
    columns:
      - {name: id, data_type: string}
      - name: total
        data_type: int
        data_tests:
          - relationships: {arguments: {to: ref('orders'), field: total}}
unit_tests:
  - name: orders_are_read
    model: orders
    given:
      - input: ref('raw_orders')
        rows: [{id: a, total: 1}]
    expect:
      rows:
        - {id: a, 'total': 1}
  - name: readers_read
    model: reader
    given:
      - input: ref('orders')
        format: csv
        rows: |
          id,total
          total,1
    expect:
      rows:
        - {id: total, total: 1}
    then:
      - changes:
          - input: ref('orders')
            came: [{id: b, total: 2}]
        expect:
          changes: {came: [{id: b, total: 2}]}
  - name: readers_read_sql
    model: reader
    given:
      - input: ref('orders')
        format: sql
        rows: |
          select 'total' as id,
            1 as total
      - input: ref('raw_orders')
        format: csv
        fixture: rows_of_total
    expect:
      rows: []
  - name: ctes_are_read
    model: reader
    cte: o
    given:
      - input: ref('orders')
        rows: [{id: a, total: 1}]
    expect:
      columns: {id: string, total: int}
      rows: [{id: b, total: 1}]
"""
SUITE = """expectations:
  - type: expect_column_values_to_be_between
    kwargs: {column: total, min_value: 0, row_condition: 'id <> "total" and total > 0', condition_parser: spark}
    description: No total is negative.
  - type: expect_compound_columns_to_be_unique
    kwargs: {column_list: [id, total]}
  - type: unexpected_rows_expectation
    kwargs:
      unexpected_rows_query: >-
        select *
        from {batch}
        where total < 0 and id = 'total'
"""
CHECK = "-- No total is zero.\nselect id, total from {{ ref('orders') }} where total = 0\n"
EXPOSURES = """exposures:
  - name: shown
    type: dashboard
    description: The total.
    owner: {name: Shop}
    depends_on: [ref('orders'), ref('days')]
    config: {serve: {owned_by: id, keys: [total]}}
"""


@pytest.mark.slow
def test_yaml_names_the_new_column_and_no_other(tmp_path: Path) -> None:
    root = written(tmp_path)
    sql = "select id, total, timestamp '2026-01-01 00:00:00' as at from {{ ref('raw_orders') }}"
    files = {
        "models/orders.sql": sql,
        "models/orders.yml": TESTED,
        "models/reader.sql": "with o as (select * from {{ ref('orders') }})\n"
        "select o.id, o.total from o join {{ ref('days') }} d using (id)",
        "models/_exposures.yml": EXPOSURES,
        "expectations/orders.yml": SUITE,
        "expectations/none_is_zero.sql": CHECK,
        "tests/fixtures/rows_of_total.csv": "id,total\na,1\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    pipeline.prepare(root)
    changed = renamed(root, "models/orders.yml", 'name: "to|tal', "amount")

    contract = TESTED.replace("[id, total]", "[id, amount]").replace("partition_by: total", "partition_by: amount")
    contract = contract.replace('"total"', '"amount"').replace("field: total", "field: amount")
    contract = contract.replace("'total': 1}", "'amount': 1}").replace("id,total\n", "id,amount\n")
    contract = contract.replace(
        "came: [{id: b, total: 2}]\n        expect", "came: [{id: b, amount: 2}]\n        expect"
    )
    contract = contract.replace("1 as total", "1 as amount")
    of_cte = "cte: o\n    given:\n      - input: ref('orders')\n        rows: [{id: a, total: 1}]"
    contract = contract.replace(of_cte, of_cte.replace("total", "amount")).replace("total: int}", "amount: int}")
    contract = contract.replace("[{id: b, total: 1}]", "[{id: b, amount: 1}]")
    assert changed.pop("models/orders.yml") == contract
    assert changed == {
        "models/orders.sql": sql.replace("id, total", "id, total as amount"),
        "models/reader.sql": files["models/reader.sql"].replace("o.total", "o.amount as total"),
        "models/_exposures.yml": EXPOSURES.replace("[total]", "[amount]"),
        "expectations/orders.yml": SUITE.replace("column: total", "column: amount")
        .replace("total > 0", "amount > 0")
        .replace("[id, total]", "[id, amount]")
        .replace("where total", "where amount"),
        "expectations/none_is_zero.sql": CHECK.replace("id, total", "id, amount as total").replace(
            "where total", "where amount"
        ),
    }
    # At each place that names it, the same column is meant.
    for file, place in (
        ("models/orders.yml", "'to|tal': 1"),
        ("models/orders.yml", "field: tot|al"),
        ("expectations/orders.yml", "column: |total"),
        ("models/_exposures.yml", "[|total]"),
    ):
        assert renamed(root, file, place, "amount").keys() == {*changed, "models/orders.yml"}


@pytest.mark.parametrize(
    ("file", "place", "name", "why"),
    [
        ("models/orders.sql", "as to|tal", "a b", "`a b` is no plain name"),
        ("models/orders.sql", "as to|tal", "größe", "`größe` is no plain name"),
        ("models/orders.sql", "as to|tal", "_weight", "the column name `_weight` is reserved for sqlrun"),
        ("models/orders.sql", "as to|tal", "ID", "`orders` has a column `ID` already"),
        ("models/orders.sql", "as to|tal", "Total", "column names are case-insensitive"),
        ("models/orders.sql", "as to|tal", "select", "`total` can't become `select`: models/"),
        ("models/orders.sql", "|cast", "x", "`cast` is no column here"),
        ("models/orders.sql", "cast(to|tal", "x", "`total` is a column of the seed `raw_orders`"),
        ("models/events.sql", "at| ", "x", "`at` is a column of the source `shop.events`, which others write"),
        ("seeds/raw_orders.yml", "name: to|tal", "x", "`total` is a column of the seed `raw_orders`"),
        ("models/orders.yml", "description: All| ord", "x", "`All` is no column here"),
        ("macros/doubled.sql", "|x", "y", "only columns in models and in YAML files can be renamed"),
        ("models/by_macro.sql", "as nu|mber", "x", "models/by_macro.sql:1 gets `total` from a macro"),
        ("models/joined.sql", "using (to|tal", "x", "`joined` joins by USING (total). Write the join with ON"),
        ("models/two.sql", "{{ doubled('total') }}| ", "x", "there is no name at the cursor"),
    ],
)  # fmt: skip
def test_refusals(file: str, place: str, name: str, why: str, tmp_path: Path) -> None:
    root = written(tmp_path)
    texts = {
        "models/_sources.yml": "sources:\n  - name: shop\n    tables:\n      - {name: events, format: json, "
        "path: data, columns: [{name: at, data_type: string}]}\n",
        "models/events.sql": "select upper(at ) as b from {{ source('shop', 'events') }}",
        "models/by_macro.sql": "select {{ named() }} as number from {{ ref('orders') }}",
        "macros/named.sql": "{% macro named() %}total{% endmacro %}",
        "models/joined.sql": "select o.id from {{ ref('orders') }} o join {{ ref('raw_orders') }} r using (total)",
        "models/two.sql": "select {{ doubled('total') }} as x from {{ ref('orders') }}",
    }
    for odd in ("models/by_macro.sql", "models/joined.sql"):
        if file != odd:
            del texts[odd]
        else:
            file, place = "models/orders.sql", "as to|tal"
    with pytest.raises(RefusedError) as refused:
        renamed(root, file, place, name, texts)

    assert str(refused.value).startswith(why)


HISTORY = """{{ config(materialized='history', check_cols=['total', 'at']) }}
select id, total, timestamp '2026-01-01 00:00:00' as at from {{ ref('raw_orders') }}"""


def test_settings_in_a_query_name_the_new_column(tmp_path: Path) -> None:
    root = written(tmp_path)
    contract = (
        "models:\n  - name: kept\n    grain: [id, valid_from]\n    columns: [{name: id, data_type: string}, "
        "{name: total, data_type: int}, {name: at, data_type: timestamp}, {name: valid_from, data_type: timestamp}, "
        "{name: valid_to, data_type: timestamp}, {name: is_current, data_type: boolean}]\n"
    )
    texts = {"models/kept.sql": HISTORY, "models/kept.yml": contract}
    for sql in (HISTORY, HISTORY.replace("check_cols=['total', 'at']", 'updated_at="at"')):
        changed = renamed(root, "models/kept.yml", "name: |at", "seen_at", {**texts, "models/kept.sql": sql})
        query = sql.replace('"at"', '"seen_at"').replace("'at'", "'seen_at'").replace("as at", "as seen_at")
        assert changed == {"models/kept.sql": query, "models/kept.yml": contract.replace("name: at", "name: seen_at")}
    with pytest.raises(RefusedError, match="`valid_to` is a column that sqlrun adds to the history `kept`"):
        renamed(root, "models/kept.yml", "name: |valid_to", "ended_at", texts)


def test_what_can_be_renamed_is_known_at_once(tmp_path: Path) -> None:
    root = written(tmp_path)
    look = Looker(root).look({})
    index = Index(templates=look.templates).with_nouns(look.nouns.values())

    def asked(text: str, file: str = "models/new.sql") -> tuple[str, str]:
        here, why = answers.to_rename(text.replace("|", ""), text.index("|"), index, file)
        return here.word if here else "", why

    assert asked("select to|tal from {{ ref('orders') }}") == ("total", "")
    assert asked("select {{ doubled('to|tal') }} from {{ ref('orders') }}") == ("total", "")
    assert asked("select {{ dou|bled('total') }} from {{ ref('orders') }}") == ("", "")
    assert asked("select total from {{ ref('or|ders') }}") == ("", "")
    assert asked("with a as (select id as num|ber from {{ ref('orders') }}) select 1 from a") == ("number", "")
    assert asked("with a as (select id as number from {{ ref('orders') }}) sele|ct 1 from a") == ("", "")
    assert asked("- {name: to|tal}", "models/orders.yml") == ("total", "")
    assert asked("descri|ption: x", "models/orders.yml") == ("", "")
    assert asked(ORDERS.replace("cast(total", "cast(to|tal"), "models/orders.sql") == ("total", "")
    assert asked("select to|tal from {{ ref('raw_orders') }}") == (
        "", "`total` is a column of the seed `raw_orders`. Rename it in a model: `total as NAME`",
    )  # fmt: skip


@pytest.mark.slow
def test_columns_of_the_reference_project(tmp_path: Path) -> None:
    for name in ("models", "macros", "seeds", "expectations", "profiles", "tests/fixtures"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    slots, orders = "models/facts/fct_restaurant_slots", "models/staging/orders/stg_orders"
    for file, place, name, files in (
        (f"{slots}.sql", "as total_sale|s", "revenue", 8),
        (f"{orders}.yml", "- {name: ordered_|at", "placed_at", 9),
        (f"{orders}.sql", "is_can|celled", "is_void", 8),
    ):
        changed = renamed(tmp_path, file, place, name)
        assert len(changed) == files
        for one, text in changed.items():
            (tmp_path / one).write_text(text)
    tested = pipeline.prepare(tmp_path)
    assert {"placed_at", "is_void"} <= {column for query in tested.queries for column in query.columns}
    # A reason of a quarantined line begins with the column.
    events = orders.replace("stg_orders", "stg_order_events")
    contract = renamed(tmp_path, f"{events}.yml", "name: stat|us", "state")[f"{events}.yml"]
    assert '{_reason: "state: The platform' in contract
    with pytest.raises(RefusedError, match=r"_exposures.yml:18:19 names `restaurant_id` of several tables, also of"):
        renamed(tmp_path, f"{slots}.yml", "grain: [slot_date, slot_at, |restaurant_id]", "place_id")
    windows = "expectations/marts/restaurant_windows.yml"
    with pytest.raises(RefusedError, match=r"_exposures.yml:19:31 names `window_hours` of several tables"):
        renamed(tmp_path, windows, "column: window|_hours", "hours")


def test_a_broken_project_is_not_renamed(tmp_path: Path) -> None:
    with pytest.raises(
        RefusedError, match=r"^the project has a problem, which has to be fixed first: models/days.sql:1"
    ):
        renamed(written(tmp_path), "models/orders.sql", "as to|tal", "amount", {"models/days.sql": "selec"})


def test_queries_that_differ_in_more_than_names_differ_without_names(tmp_path: Path) -> None:
    root = written(tmp_path)
    texts = [
        "select id as a, total as b from {{ ref('orders') }}",
        "select id as c, total as d from {{ ref('orders') }}",
        "select total as a, id as b from {{ ref('orders') }}",
        "select id as a, struct(total) as b from {{ ref('orders') }}",
        "select id as a, struct(total as totl) as b from {{ ref('orders') }}",
    ]
    for number, text in enumerate(texts):
        (root / f"models/m{number}.sql").write_text(text)
    prepared = pipeline.prepare(root)
    tables = {"ref.orders": ["id", "total"]}
    found = [nameless(query.tree, tables) for query in prepared.queries if query.name.startswith("m")]

    assert [found.index(text) for text in found] == [0, 0, 2, 3, 4]
