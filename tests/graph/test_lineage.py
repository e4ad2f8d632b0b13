"""Lineage of columns: expression by expression, over a small project, over the reference project."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest
import sqlglot
from click.testing import CliRunner
from sqlglot import exp
from sqlglot.optimizer.qualify import qualify

from sqlrun.cli.main import main
from sqlrun.errors import ProjectError
from sqlrun.graph.column_lineage import Found, Walk
from sqlrun.graph.lineage import Item, Lineage, Value, chosen
from sqlrun.graph.lineage_text import as_json, tree_down, tree_up
from sqlrun.pipeline import prepare
from tests.support.broken import contract, write

ROOT = Path(__file__).parents[2]
TABLES = {
    "ref": {
        "t": {
            "k": "int", "a": "int", "b": "int", "at": "timestamp", "m": "map<string,int>",
            "st": "struct<x:int,y:struct<z:int>>", "arr": "array<struct<x:int,y:int>>",
        },
        "u": {"k": "int", "c": "int", "d": "int"},
    }
}  # fmt: skip


def walk(sql: str) -> Walk:
    done = qualify(
        sqlglot.parse_one(sql, read="databricks"), schema=TABLES, dialect="databricks", quote_identifiers=False,
        identify=False, validate_qualify_columns=False, allow_partial_qualification=True,
    )  # fmt: skip
    return Walk(cast(exp.Query, done))


def values(found: Found) -> str:
    return " ".join(sorted({f"{table.name}.{column}{''.join(path)}" for table, column, path in found.values}))


def also(found: Found) -> str:
    return ", ".join(sorted({f"{clause} {table.name}.{column}" for table, column, clause in found.also}))


# The query, whose column `x` is traced; its origins; the columns that filter its rows.
CASES = [
    ("select a as x from ref.t", "t.a", ""),
    ("select a + b as x from ref.t where at is not null", "t.a t.b", "where t.at"),
    ("select 1 as x from ref.t", "", ""),
    # joins
    ("select c as x from ref.t join ref.u on t.k = u.k", "u.c", "join t.k, join u.k"),
    ("select c as x from ref.t join ref.u using (k)", "u.c", "join t.k, join u.k"),
    ("select a as x from ref.t left semi join ref.u on t.k = u.k", "t.a", "join t.k, join u.k"),
    (
        "select a as x from ref.t join (select k from ref.u where d > 1) as v on t.k = v.k",
        "t.a",
        "join t.k, join u.k, where u.d",
    ),
    # Rows of a left join's right side affect the columns of that side alone.
    (
        "select a as x, v.c from ref.t left join (select k, c from ref.u where d > 1) as v on t.k = v.k",
        "t.a",
        "join t.k, join u.k",
    ),
    (
        "select v.c as x from ref.t left join (select k, c from ref.u where d > 1) as v on t.k = v.k",
        "u.c",
        "join t.k, join u.k, where u.d",
    ),
    ("select p.a as x from ref.t as p join ref.t as q on p.k = q.b", "t.a", "join t.b, join t.k"),
    # aggregates
    ("select sum(a) as x from ref.t group by k", "t.a", "group by t.k"),
    ("select count(*) as x from ref.t group by k", "t.*", "group by t.k"),
    ("select count(*) as x from ref.t join ref.u on t.k = u.k", "t.* u.*", "join t.k, join u.k"),
    ("select sum(a) filter (where b > 1) as x from ref.t", "t.a", "filter t.b"),
    ("select k as x from ref.t group by k having max(b) > 1", "t.k", "group by t.k, having t.b"),
    ("select max_by(a, at) as x from ref.t", "t.a t.at", ""),
    ("select distinct a as x, b from ref.t", "t.a", "distinct t.a, distinct t.b"),
    ("select a as x from ref.t order by b", "t.a", ""),
    ("select a as x from ref.t order by b limit 3", "t.a", "limit t.b"),
    # window functions: the value of a ranking depends on its order
    ("select sum(a) over (partition by k order by at) as x from ref.t", "t.a", "order by t.at, partition by t.k"),
    ("select row_number() over (partition by k order by at) as x from ref.t", "t.at", "partition by t.k"),
    ("select lag(a) over w as x from ref.t window w as (partition by k)", "t.a", "window t.k"),
    ("select a as x from ref.t qualify rank() over (partition by k order by b) = 1", "t.a", "qualify t.b, qualify t.k"),
    # CTEs, subqueries
    ("with v as (select a + 1 as y from ref.t where b > 1) select y * 2 as x from v", "t.a", "where t.b"),
    ("select v.x from (select b as x, a from ref.t) as v where v.a > 1", "t.b", "where t.a"),
    (
        "with v as (select k, sum(a) as s from ref.t group by k) select p.s as x from v as p join v as q on p.k = q.s",
        "t.a",
        "group by t.k, join t.a, join t.k",
    ),
    ("select (select max(c) from ref.u where u.k = t.k) as x from ref.t", "u.c", "where t.k, where u.k"),
    ("select a as x from ref.t where k in (select c from ref.u where d > 1)", "t.a", "where t.k, where u.c, where u.d"),
    ("select a as x from ref.t where exists (select 1 from ref.u where u.k = t.k)", "t.a", "where t.k, where u.k"),
    # sets
    ("select a as x from ref.t where b = 1 union all select c from ref.u", "t.a u.c", "where t.b"),
    ("select a as x, b from ref.t union select c, d from ref.u", "t.a u.c", ""),
    ("select a as x from ref.t except select c from ref.u where d = 1", "t.a", "except u.c, except u.d"),
    ("select a as x from ref.t intersect select c from ref.u", "t.a", "intersect u.c"),
    ("select v.x from (select a as x from ref.t except select c from ref.u) as v", "t.a", "except u.c"),
    # structs, arrays, maps
    ("select st.y.z as x from ref.t", "t.st.y.z", ""),
    ("select arr[0].y as x from ref.t", "t.arr[].y", ""),
    ("select m['a'] as x from ref.t", "t.m[]", ""),
    ("select m[cast(b as string)] as x from ref.t", "t.b t.m[]", ""),
    ("select e.y as x from ref.t lateral view explode(arr) l as e", "t.arr[].y", "explode t.arr"),
    ("select n as x from ref.t lateral view posexplode(arr) l as n, e", "t.arr", "explode t.arr"),
    ("select v as x from ref.t lateral view explode(m) l as n, v", "t.m[]", "explode t.m"),
    ("select k as x from ref.t lateral view explode(arr) l as e", "t.k", "explode t.arr"),
    ("select e as x from ref.t, lateral explode(arr) as l(e)", "t.arr[]", "explode t.arr"),
    ("select v.s.p as x from (select struct(a as p, b as q) as s from ref.t) as v", "t.a", ""),
    ("select v.s as x from (select struct(a as p, b as q) as s from ref.t) as v", "t.a t.b", ""),
    ("select v.s.p as x from (select named_struct('p', st.x) as s from ref.t) as v", "t.st.x", ""),
    ("select transform(arr, e -> e.x + a) as x from ref.t", "t.a t.arr", ""),
    ("select case when a = 1 then b end as x from ref.t", "t.a t.b", ""),
]


@pytest.mark.parametrize(("sql", "made_of", "filtering"), CASES, ids=[sql for sql, _, _ in CASES])
def test_a_column_is_traced(sql: str, made_of: str, filtering: str) -> None:
    """To columns of tables, and separately to the columns that filter its rows."""
    found = walk(sql).column("x")
    decided = also(found)

    assert values(found) == made_of
    assert decided == filtering


@pytest.mark.slow
def test_a_long_query_is_traced_in_bounded_time() -> None:
    """A union of 300 over a sum of 2,000 terms, and CTEs that double their reads 40 times."""
    union = walk(" union all ".join(["select a as x from ref.t"] * 299 + ["select c from ref.u"]))
    long: exp.Expr = exp.column("a", "t")
    for _ in range(2000):
        long = exp.Add(this=long, expression=exp.column("b", "t"))
    ctes = ", ".join(f"c{n} as (select p.x + q.x as x from c{n - 1} as p, c{n - 1} as q)" for n in range(1, 41))
    doubled = walk(f"with c0 as (select a as x from ref.t), {ctes} select x from c40")
    table = exp.table_("t", db="ref", alias="t")

    assert values(union.column("x")) == "t.a u.c"
    assert values(Walk(exp.select(exp.alias_(long, "x")).from_(table)).column("x")) == "t.a t.b"
    assert values(doubled.column("x")) == "t.a"


# ── a small project ──────────────────────────────────────────────────────────────────────────────────────────────

SMALL = {
    "seeds/cities.csv": "city,country\nVienna,at\n",
    "seeds/cities.yml": contract("cities", "city string", "country string", extra="    grain: [city]").replace(
        "models:", "seeds:"
    ),
    "models/_sources.yml": (
        "sources:\n  - name: shop\n    tables:\n      - name: sales\n        path: data\n        columns:\n"
        "          - {name: id, data_type: int, description: It.}\n"
        "          - {name: city, data_type: string, description: It.}\n"
        "          - {name: price, data_type: int, description: It.}\n"
    ),
    "models/raw.sql": "select id, city, price from {{ source('shop', 'sales') }}",
    "models/raw.yml": contract("raw", "id", "city string", "price", extra="    grain: [id]"),
    "models/packed.sql": (
        "select id, struct(price as paid, city as place) as sale\nfrom {{ ref('raw') }} where price > 0"
    ),
    "models/packed.yml": contract(
        "packed", "id", "sale struct<paid:int,place:string>", extra="    config: {materialized: view}"
    ),
    "models/totals.sql": (
        "select c.country, sum(p.sale.paid) as total\nfrom {{ ref('packed') }} as p\n"
        "join {{ ref('cities') }} as c on p.sale.place = c.city\ngroup by c.country"
    ),
    "models/totals.yml": contract("totals", "country string", "total bigint", extra="    grain: [country]"),
}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("small"), SMALL)


def lineage_of(root: Path) -> Lineage:
    prepared = prepare(root)
    return Lineage(prepared.project, prepared.graph, prepared.queries)


def test_upward_lineage_is_printed_as_a_tree(small: Path) -> None:
    """A field of a struct that a view creates has only that field's origins."""
    lineage = lineage_of(small)

    assert tree_up(lineage, chosen(lineage, "totals.total")) == [
        "totals.total  bigint",
        "│  computed  sum(p.sale.paid)  models/totals.sql:1:19",
        "│  also depends on  cities.city (join), cities.country (group by), packed.sale (join)",
        "└─ packed.sale.paid",
        "   │  computed  struct(raw.price as paid, raw.city as place)  models/packed.sql:1:12",
        "   │  also depends on  raw.price (where)",
        "   └─ raw.price  int",
        "      │  copied",
        "      └─ shop.sales.price  int, source",
    ]


def test_an_expression_names_a_source_s_column_as_the_analyst_does(tmp_path: Path) -> None:
    """Compiled SQL calls the source shop__sales."""
    sql = "select id, upper(city) as city, price from {{ source('shop', 'sales') }}"
    lineage = lineage_of(write(tmp_path, SMALL | {"models/raw.sql": sql}))

    assert tree_up(lineage, chosen(lineage, "raw.city"))[1] == "│  computed  upper(city)  models/raw.sql:1:12"


def test_downward_lineage_is_printed_as_a_tree(small: Path) -> None:
    """A source's column is in the struct, but not in the sum of the struct's other field; there it is a filter."""
    lineage = lineage_of(small)

    assert tree_down(lineage, chosen(lineage, "shop.sales.city")) == [
        "shop.sales.city  string, source",
        "└─ raw.city  string",
        "   │  copied",
        "   └─ packed.sale  struct<paid:int,place:string>",
        "         computed  struct(raw.price as paid, raw.city as place)  models/packed.sql:1:12",
        "         decides about rows of  totals (join)",
    ]


def test_a_model_selects_all_of_its_columns(small: Path) -> None:
    """A repeated part is named without its subtree."""
    lineage = lineage_of(small)
    lines = tree_up(lineage, chosen(lineage, "packed"))

    assert [line for line in lines if line.startswith("packed.")] == [
        "packed.id  int",
        "packed.sale  struct<paid:int,place:string>",
    ]
    assert "│  also depends on  the same as packed.id" in lines


def test_json_has_the_same_lineage(small: Path) -> None:
    lineage = lineage_of(small)
    found = as_json(lineage, "totals.total", chosen(lineage, "totals.total"), "up")
    first, second = found["columns"][:2]

    assert (found["of"], found["direction"]) == ("totals.total", "up")
    assert first == {
        "node": "totals",
        "column": "total",
        "field": "",
        "kind": "model",
        "type": "bigint",
        "how": "computed",
        "steps": [{"how": "computed", "sql": "sum(p.sale.paid)", "at": "models/totals.sql:1:19"}],
        "made_of": [{"node": "packed", "column": "sale", "field": ".paid"}],
        "also": [
            {"node": "cities", "column": "city", "clauses": ["join"]},
            {"node": "cities", "column": "country", "clauses": ["group by"]},
            {"node": "packed", "column": "sale", "clauses": ["join"]},
        ],
    }
    assert (second["node"], second["field"], second["type"]) == ("packed", ".paid", "")
    assert [entry["node"] for entry in found["columns"]] == ["totals", "packed", "raw", "source:shop.sales"]
    assert (found["columns"][-1]["kind"], found["columns"][-1]["how"]) == ("source", "given")


def test_downward_json_has_the_filtered_rows(small: Path) -> None:
    lineage = lineage_of(small)
    entries: list[dict[str, Any]] = as_json(lineage, "cities", chosen(lineage, "cities"), "down")["columns"]

    assert [(e["node"], e["column"], e["decides"]) for e in entries] == [
        ("cities", "city", [{"node": "totals", "clauses": ["join"], "columns": ["country", "total", "*"]}]),
        ("cities", "country", [{"node": "totals", "clauses": ["group by"], "columns": ["country", "total", "*"]}]),
        ("totals", "country", []),
    ]


@pytest.mark.slow
def test_up_and_down_agree(small: Path) -> None:
    """A column is below another if that one is among all of its origins."""
    for root in (small, ROOT):
        lineage = lineage_of(root)
        items = [item for node in lineage.graph.order for item in lineage.columns(node)]
        above = {one: {made.value.item for made in lineage.up([one])} - {one} for one in items}
        below = {one: {made.value.item for made in lineage.down(one)} for one in items}
        pairs = {(high, low) for low, highs in above.items() for high in highs if high.column != "*"}

        assert pairs == {(high, low) for high, lows in below.items() for low in lows if low.column != "*"}
        assert pairs


@pytest.mark.slow
def test_a_long_chain_is_drawn_in_both_directions(tmp_path: Path) -> None:
    """60 models in a row, each column computed from two of the model before: every column is shown once."""
    files = {name: text for name, text in SMALL.items() if name.startswith("seeds/")}
    for number in range(60):
        above = f"m{number - 1}" if number else "cities"
        columns = f"concat(city, country) as city, country as country from {{{{ ref('{above}') }}}}"
        files[f"models/m{number}.sql"] = f"select {columns} where country > 'a'"
        files[f"models/m{number}.yml"] = contract(f"m{number}", "city string", "country string")
    lineage = lineage_of(write(tmp_path, files))
    up = tree_up(lineage, chosen(lineage, "m59"))
    down = tree_down(lineage, chosen(lineage, "cities.country"))

    for lines in (up, down):
        heads = [line for line in lines if "  string" in line and ", seed" not in line]
        assert len(heads) == 120
        assert len(lines) < 600


@pytest.mark.slow
def test_everything_ends_in_seeds_sources_or_constants() -> None:
    """Over the reference project: nothing is lost on the way up."""
    lineage = lineage_of(ROOT)
    for node in lineage.graph.nodes:
        for made in lineage.up(lineage.columns(node)):
            if not made.made_of:
                assert made.how == "constant" or lineage.kind(made.value.item.node) in ("seed", "source"), made


@pytest.mark.slow
@pytest.mark.parametrize(
    ("column", "raw"),
    [
        ("total_sales", "source:orders.events.items"),
        ("n_orders", "source:orders.events.*"),
        ("restaurant_id", "source:orders.events.restaurant_id"),
        ("restaurant_name", "restaurants.restaurant_name"),
        ("top_dishes", "source:orders.events.items[].quantity source:orders.events.items[].dish_id dishes.dish_name"),
        ("window_hours", ""),
    ],
)
def test_the_dashboard_is_traced_to_raw_columns(column: str, raw: str) -> None:
    """Each column of restaurant_windows, through every layer."""
    lineage = lineage_of(ROOT)
    ends = {
        f"{made.value.item.node}.{made.value.item.column}{made.value.field}"
        for made in lineage.up([Item("restaurant_windows", column)])
        if made.how == "given"
    }

    assert ends == set(raw.split())


@pytest.mark.slow
def test_a_window_filters_without_being_a_value() -> None:
    """The time of a slot is in no number of the dashboard; it selects the rows that are summed."""
    lineage = lineage_of(ROOT)
    made = lineage.derive(Value(Item("restaurant_windows", "total_sales")))

    assert [str(value) for value in made.made_of] == ["fct_restaurant_slots.total_sales"]
    assert dict(made.also)[Item("fct_restaurant_slots", "slot_at")] == ("where",)
    assert made.steps[0].place.file == "models/marts/restaurant_windows.sql"


@pytest.mark.slow
def test_the_page_shows_the_printed_trees() -> None:
    """docs/howto/trace-a-column.md: the tree upwards, and the beginning of the one downwards."""
    lineage = lineage_of(ROOT)
    page = (ROOT / "docs" / "howto" / "trace-a-column.md").read_text()
    up = tree_up(lineage, chosen(lineage, "restaurant_windows.total_sales"))
    down = tree_down(lineage, chosen(lineage, "orders.events.ordered_at"))

    assert "\n".join(["```text", *up, "```"]) in page
    assert "\n".join(["```text", *down[:12], "```"]) in page


# ── the command ──────────────────────────────────────────────────────────────────────────────────────────────────


def run(root: Path, *words: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["--project-dir", str(root), "lineage", *words])
    return done.exit_code, done.output


@pytest.mark.slow
def test_the_command_traces_models_up_and_other_nodes_down(small: Path) -> None:
    assert run(small, "totals.total") == run(small, "totals.total", "--up")
    assert run(small, "cities") == run(small, "cities", "--down")
    assert run(small, "source:shop.sales.price") == run(small, "shop.sales.price", "--down")
    assert run(small, "totals.total", "--up") != run(small, "totals.total", "--down")
    assert "└─ totals.total" in run(small, "raw.price", "--down")[1]


def test_the_command_prints_json(small: Path) -> None:
    code, text = run(small, "totals", "--json")

    assert code == 0
    assert [entry["column"] for entry in json.loads(text)["columns"][:2]] == ["country", "total"]


@pytest.mark.parametrize(
    ("asked", "code", "near"),
    [
        ("total", "SR402", "totals"),
        ("total.country", "SR402", "totals"),
        ("shop.sale", "SR402", "shop.sales"),
        ("shop.sale.id", "SR402", "shop.sales"),
        ("totals.totals", "SR403", "total"),
        ("shop.sales.prize", "SR403", "price"),
        ("cities.countri", "SR403", "country"),
    ],
)
def test_an_unknown_name_has_a_code_and_a_suggestion(asked: str, code: str, near: str, small: Path) -> None:
    lineage = lineage_of(small)
    with pytest.raises(ProjectError) as caught:
        chosen(lineage, asked)

    assert [problem.code for problem in caught.value.problems] == [code]
    assert f"Did you mean `{near}`?" in caught.value.problems[0].hint
    assert run(small, asked)[0] == 2
