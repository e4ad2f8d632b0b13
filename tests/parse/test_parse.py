"""The checks of a query: what a model may read and call, and where its mistakes are reported."""

from __future__ import annotations

import pytest

from sqlrun.errors import Place, ProjectError, UsageError
from sqlrun.parse import parse
from sqlrun.parse.source_map import source_place
from sqlrun.parse.where_clause import condition
from sqlrun.project import Column, Config, Model, Project, Rendered, Source

ORDERS = (
    "order_id int",
    "price decimal(10,2)",
    "placed_at timestamp",
    "items array<struct<dish:int,n:int>>",
    "note string",
)
DISHES = ("dish int", "price decimal(10,2)")


def columns(*texts: str) -> tuple[Column, ...]:
    return tuple(Column(*text.split(" ", 1), "It.", Place("models/x.yml")) for text in texts)  # type: ignore[arg-type]


def model(name: str, *texts: str, sql: str = "") -> Model:
    return Model(name, f"models/{name}.sql", sql, f"models/{name}.yml", "", (), False, columns(*texts), Config(), ())


SOURCE = Source("shop", "events", "json", "data", columns("id int", "raw string"), "", Place("models/_sources.yml"))


def query(sql: str, *gives: str) -> parse.Query:
    """Return a parsed model over orders, dishes and the source, which `o`, `d` and `s` in braces name."""
    for short, long in {"{o}": "`ref`.`orders`", "{d}": "`ref`.`dishes`", "{s}": "`source`.`shop__events`"}.items():
        sql = sql.replace(short, long)
    own = model("m", *(gives or ("a int",)), sql=sql)
    project = Project("", "", "", {}, (model("orders", *ORDERS), model("dishes", *DISHES), own), (), (SOURCE,), (), ())
    lines = tuple(range(1, sql.count("\n") + 2))
    rendered = Rendered(own, sql, ("orders", "dishes"), ("shop__events",), lines, Config())
    return parse.project([rendered], project)[0]


def refused(sql: str, *gives: str) -> list[str]:
    with pytest.raises(ProjectError) as caught:
        query(sql, *gives)
    return [f"{problem.code} {problem.place.line}:{problem.place.column}" for problem in caught.value.problems]


@pytest.mark.parametrize(
    "sql",
    [
        "select order_id as a from {o}",
        "select o.order_id as a from {o} as o left join {d} as d on o.order_id = d.dish",
        "with x as (select * from {o}), y as (select * from x) select order_id as a from y",
        "select a from (select order_id as a from {o}) as x",
        "select order_id as a from {o} order by a limit 3",
        "select order_id as a from {o} order by price",
        "select count(*) as a from {o} group by order_id having a > 3",
        "select order_id as a, row_number() over (order by order_id) as b from {o} qualify b = 1",
        "select item.dish as a from {o} lateral view explode(items) t as item",
        "select position as a from {o} lateral view posexplode(items) t as position, item",
        "select items[0].dish as a from {o}",
        "select o.items[0].n as a from {o} as o",
        "select size(filter(items, item -> item.n > 1)) as a from {o}",
        "select aggregate(items, 0, (sum, item) -> sum + item.n) as a from {o}",
        "select order_id as a from {o} union all select dish from {d}",
        "select order_id as a from {o} where exists (select 1 from {d} where dish = order_id)",
        "select order_id as a from {o} as o where order_id in (select dish from {d} where price > o.price)",
        "select id as a from {s} where raw like '%x%';",
        "-- a comment; with a semicolon\nselect order_id as a from {o}",
        "select `order_id` as `a` from {o}",
        "select ORDER_ID as a from {o}",
        "select case when note rlike 'x' then 1 else 2 end as a from {o}",
    ],
)
def test_plain_queries_pass(sql: str) -> None:
    """Aliases, CTEs, subqueries, structs and lambdas are not unknown columns."""
    gives = ("a int", "b int") if " as b" in sql else ("a int",)

    assert query(sql, *gives).columns == tuple(text.partition(" ")[0] for text in gives)


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("select a from text.`/etc/passwd`", "SR303"),
        ("select a from csv.`file:///etc/passwd`", "SR303"),
        ("select a from delta.`/lake/other`", "SR303"),
        ("select a from `/etc/passwd`", "SR303"),
        ("select a from other.orders", "SR303"),
        ("select a from spark_catalog.default.orders", "SR303"),
        ("select a from spark_catalog.ref.orders", "SR303"),
        ("select a from x.ref.orders.y", "SR303"),
        ("select a from orders", "SR303"),
        ("select a from information_schema.tables", "SR303"),
        ("select a from `ref`.`m`", "SR303"),
        ("select a from `ref`.`shop__events`", "SR303"),
        ("select a from source.orders", "SR303"),
        ("select 1 as a from {o} where order_id in (select a from text.`/etc/passwd`)", "SR303"),
        ("select (select max(value) from text.`/etc/passwd`) as a from {o}", "SR303"),
        ("with x as (select * from text.`/etc/passwd`) select 1 as a from {o}", "SR303"),
        ("select 1 as a from {o} join text.`/etc/passwd` on true", "SR303"),
        ("select 1 as a from {o}, lateral (select * from text.`/etc/passwd`)", "SR303 SR553"),
        ("select 1 as a from {o} union all select * from text.`/etc/passwd`", "SR303"),
        ("select a from read_files('/etc')", "SR305"),
        ("select a from read_csv('/etc/passwd')", "SR305"),
        ("select a from read_parquet('/etc/passwd')", "SR305"),
        ("select a from identifier('default.orders')", "SR305"),
        ("select a from identifier('ref' || '.orders')", "SR305"),
        ("select a from table_changes('orders', 1)", "SR305"),
        ("select a from table_changes_by_path('/x', 1)", "SR305"),
        ("select a from range(10)", "SR305"),
        ("select a from stream({o})", "SR305"),
        ("select order_id as a from {o} version as of 1", "SR305"),
        ("select order_id as a from {o} timestamp as of '2026-01-01'", "SR305"),
        ("select transform(order_id) using 'cat' as (a) from {o}", "SR305"),
        ("select identifier('order_id') as a from {o}", "SR305"),
        ("select java_method('java.lang.System', 'getenv') as a from {o}", "SR305"),
        ("select reflect('java.lang.System', 'getenv') as a from {o}", "SR305"),
        ("select try_reflect('java.lang.System', 'getenv') as a from {o}", "SR305"),
        ("select JAVA_METHOD('a', 'b') as a from {o}", "SR305"),
        ("select `java_method`('a', 'b') as a from {o}", "SR305"),
        ("select sys.java_method('a', 'b') as a from {o}", "SR305"),
        ("select system.builtin.java_method('a', 'b') as a from {o}", "SR305"),
        ("select getenv('HOME') as a from {o}", "SR305"),
        ("select current_user() as a from {o}", "SR305"),
        ("select current_catalog() as a from {o}", "SR305"),
        ("select input_file_name() as a from {o}", "SR305"),
        ("select secret('a', 'b') as a from {o}", "SR305"),
        ("select ai_query('a', 'b') as a from {o}", "SR305"),
        ("select ${spark} as a from {o}", "SR305"),
        ("select :x as a from {o}", "SR305"),
        ("select sume(order_id) as a from {o}", "SR305"),
        ("select order_id as a from {o} order by java_method('a', 'b')", "SR305"),
        ("select rand() as a from {o}", "SR501"),
        ("select uuid() as a from {o}", "SR501"),
        ("select localtimestamp() as a from {o}", "SR501"),
        ("select order_id as a from {o} where rand() > 0.5", "SR501"),
        ("insert into {o} select order_id as a from {o}", "SR302"),
        ("create table x as select order_id as a from {o}", "SR302"),
        ("delete from {o}", "SR302"),
        ("set spark.x = 1", "SR302"),
        ("describe {o}", "SR302"),
        ("values (1)", "SR302"),
        ("select order_id as a from {o}; drop table x", "SR302"),
        ("select order_id as a from {o}; select 1", "SR302"),
        ("", "SR302"),
        (";;", "SR302"),
        ("-- nothing", "SR302"),
        ("select", "SR302"),
        ("selct order_id as a from {o}", "SR301"),
        ("select order_id as a from {o} where (price > 3", "SR301"),
        ("select 'a", "SR301"),
        ("select /* a", "SR301"),
        ("select `a", "SR301"),
        ("with x as nothing select order_id as a from {o}", "SR301"),
        ("(" * 3000, "SR301"),
    ],
)
def test_forbidden_constructs_are_refused(sql: str, code: str) -> None:
    """Files, other tables, code, clocks, statements."""
    assert {found.partition(" ")[0] for found in refused(sql)} == set(code.split())


def test_a_cte_is_known_in_its_own_query_alone() -> None:
    """A CTE of a subquery doesn't hide a real table of its name outside."""
    inner = "(with secrets as (select * from {o}) select * from secrets)"

    assert query(f"select order_id as a from {inner} as x").columns == ("a",)
    assert refused(f"select x.order_id as a from {inner} as x join secrets on true") == ["SR303 1:110"]
    assert refused("with x as (select * from y), y as (select * from {o}) select order_id as a from x") == [
        "SR303 1:26"
    ]


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("with x as (\n  select order_idd from {o}\n)\nselect order_id as a from x", ["SR304 2:10"]),
        ("select order_id as a\nfrom (\n  select order_idd from {o}\n) as x", ["SR304 3:10"]),
        ("with x as (\n  select order_idd from {o}\n)\nselect pric as a from x", ["SR304 2:10", "SR304 4:8"]),
        ("select order_idd as a, prize as b from {o}", ["SR304 1:8", "SR304 1:24"]),
    ],
)
def test_a_column_that_a_misspelled_one_would_hand_on_is_not_reported(sql: str, found: list[str]) -> None:
    """Its similar name would be the misspelled one."""
    assert refused(sql) == found


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("select nothing as a\nfrom {o}", ["SR304 1:8"]),
        ("select o.nothing as a\nfrom {o} as o", ["SR304 1:10"]),
        ("select x.order_id as a\nfrom {o} as o", ["SR304 1:8"]),
        ("select order_id as a\nfrom {o}\nwhere nothing > 3\n  and never < 3", ["SR304 3:7", "SR304 4:7"]),
        ("select order_id as a\nfrom {o}\norder by nothing", ["SR304 3:10"]),
        ("select count(*) as a\nfrom {o}\ngroup by nothing", ["SR304 3:10"]),
        ("with x as (\n  select nothing as a from {o}\n)\nselect a from x", ["SR304 2:10"]),
        ("with x as (\n  select order_id from {o}\n)\nselect price as a from x", ["SR304 4:8"]),
        ("select dish as a\nfrom {d}\nwhere exists (select 1 from {o} where nothing = dish)", ["SR304 3:50"]),
        ("select price as a\nfrom {o}\njoin {d} on dish = order_id", ["SR308 1:8"]),
        ("select dish as a\nfrom {o}\njoin {d} on dish = order_id and price > 3", ["SR308 3:44"]),
        ("select order_id as a, price as a\nfrom {o}", ["SR308 1:23"]),
        ("select order_id as a, price\nfrom {o}", ["SR306 1:23"]),
        ("select order_id as b\nfrom {o}", ["SR306 1:8", "SR307 1:1"]),
        ("select * from {d}", ["SR306 1:1", "SR306 1:1", "SR307 1:1"]),
    ],
)
def test_unresolved_columns_have_their_place(sql: str, found: list[str]) -> None:
    """Every one of them, each at its own word."""
    assert refused(sql) == found


def test_a_query_over_an_unreadable_contract_is_checked_as_far_as_possible() -> None:
    """The missing contract is reported; what depends on it isn't."""
    sql = "select nothing from `ref`.`bare`"
    bare, own = model("bare"), model("m", "a int", sql=sql)
    project = Project("", "", "", {}, (bare, own), (), (), (), ())
    rendered = Rendered(own, sql, ("bare",), (), (1,), Config())

    assert parse.attempt([rendered], project) == ((), ())


def test_places_are_mapped_through_jinja() -> None:
    """Columns before and behind a call are exact; those within it point at the word or at the line's start."""
    source = "select {{ ref('a') }}.x, y\n  {{ many(\n    'z'\n  ) }}"
    rendered = Rendered(model("m", sql=source), "select `ref`.`a`.x, y\n  z + zz", (), (), (1, 2), Config())

    assert source_place(rendered, 1, 1)[0] == Place("models/m.sql", 1, 1)
    assert source_place(rendered, 1, 21)[0] == Place("models/m.sql", 1, 26)
    assert source_place(rendered, 2, 3, "z")[0] == Place("models/m.sql", 3, 6)
    assert source_place(rendered, 2, 7, "zz")[0] == Place("models/m.sql", 2, 3)


COLUMNS = {
    "n_orders": "bigint",
    "name": "string",
    "is_paid": "boolean",
    "day": "date",
    "place": "struct<site:int>",
    "numbers": "array<int>",
    "unknown": "",
    "Two words": "decimal(5,2)",
}


@pytest.mark.parametrize(
    "text",
    [
        "n_orders > 3",
        "n_orders between 1 and 3 or name in ('a', 'b')",
        "lower(name) = 'a' and not n_orders is null",
        "name like '%; drop table x --%'",
        "`n_orders` > 3",
        "N_Orders > 3",
        "place.site = 1",
        "Place.Site = 1",
        "is_paid",
        "not is_paid",
        "is_paid and name like 'a%'",
        "unknown",
        "n_orders = '3'",
        "size(filter(numbers, x -> x > 1)) > 0",
    ],
)
def test_a_condition_passes(text: str) -> None:
    """In brackets, so that text that is appended stays outside."""
    done = condition(text, COLUMNS)

    assert done.startswith("(") and done.endswith(")")


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "1 = 1) or (1 = 1",
        "1 = 1) union all select * from read_csv('/etc/passwd') --",
        "1 = 1); drop table x; --",
        "1 = 1; drop table x",
        "-- 1 = 1",
        "1 = 1 /*",
        "1 = 1) order by (1",
        "1 = 1) limit (3",
        "1 = 1) group by (n_orders",
        "n_orders in (select 1)",
        "exists (select 1 from read_csv('/etc/passwd'))",
        "(select max(content) from read_text('/etc/passwd')) > 'a'",
        "n_orders > (values (1))",
        "getenv('HOME') = 'x'",
        "read_text('/etc/passwd') = 'x'",
        "java_method('a', 'b') = 'x'",
        "rand() > 0.5",
        "n_order > 3",
        "x.n_orders > 3",
        "information_schema.tables.n_orders > 3",
        "${n_orders} > 3",
        ":x > 3",
        "? > 3",
        "sum(n_orders) > 3",
        "row_number() over (order by n_orders) = 1",
        "explode(array(1)) = 1",
        "n_orders > 3, name",
        "(n_orders, name)",
        "*",
        "(" * 3000,
    ],
)
def test_anything_but_a_condition_is_refused(text: str) -> None:
    """Injection, subqueries, files, aggregates: each ends in a message."""
    with pytest.raises(UsageError, match=r"^--where"):
        condition(text, COLUMNS)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("n_orders", "the condition `n_orders` is of type `bigint`, not boolean"),
        ("n_orders + 1", "the condition `n_orders + 1` is of type `bigint`, not boolean"),
        ("`Two words`", "is of type `decimal(5,2)`, not boolean"),
        ("name", "the condition `name` is of type `string`, not boolean"),
        ("place.site", "is of type `int`, not boolean"),
        ("1", "the condition `1` is of type `int`, not boolean"),
        ("is_paid and day", "the condition `day` is of type `date`, not boolean"),
        ("not n_orders", "the condition `n_orders` is of type `bigint`, not boolean"),
        ("day > 3", "Spark can't combine `date` and `int` in `day > 3`"),
        ("day * 2 = 4", "Spark can't compute with `date` and `int`"),
    ],
)
def test_a_condition_that_spark_refuses_for_its_types_is_refused(text: str, why: str) -> None:
    """DuckDB would take a number for a condition, and would answer."""
    with pytest.raises(UsageError) as caught:
        condition(text, COLUMNS)

    assert str(caught.value).startswith("--where: ") and why in str(caught.value)
