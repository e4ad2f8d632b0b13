"""`sqlrun run-operation`: a macro reads published tables and prints; it changes nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sqlrun.cli.main import main
from tests.support import broken

pytestmark = pytest.mark.slow

PROJECT = {
    "profiles/duckdb.yml": "engine: duckdb\nwarehouse: warehouse\n",
    "pyproject.toml": '[tool.sqlrun]\nname = "shop"\nprofile = "duckdb"\n[tool.sqlrun.vars]\ndays = 7\n',
    "seeds/orders.csv": "id,customer,day,amount\n1,Ann,2026-01-01,10.00\n2,Cem,2026-01-02,20.50\n3,Ann,,\n",
    "seeds/orders.yml": "seeds:\n  - name: orders\n    description: Orders.\n    grain: [id]\n    columns:\n"
    "      - {name: id, data_type: int, description: Its id.}\n"
    "      - {name: customer, data_type: string, description: Who.}\n"
    "      - {name: day, data_type: date, description: When., data_tests: []}\n"
    "      - {name: amount, data_type: 'decimal(10,2)', description: How much.}\n",
    "models/sums.sql": "select customer, sum(amount) as amount from {{ ref('orders') }} group by customer\n",
    "models/seen.sql": "{{ config(materialized='view') }} select id from {{ ref('orders') }}\n",
    "macros/ask.sql": "{% macro ask(sql) %}{% do run_query(sql).print_table() %}{% endmacro %}\n",
    "macros/broken_ref.sql": "{% macro broken_ref() %}{% do run_query('select * from ' ~ ref('ordres')) %}"
    "{% endmacro %}",
}


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = broken.write(tmp_path_factory.mktemp("shop"), PROJECT)
    built = run("--project-dir", root, "build")
    assert built.exit_code == 0, built.output
    return root


def operated(root: Path, macro: str, *words: str) -> Result:
    """Run a macro that is written for it."""
    (root / "macros/m.sql").write_text(macro)
    return run("--project-dir", root, "run-operation", "m", *words)


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        ("{{ log('told', info=True) }}{{ log('quiet') }}{% do print(3) %}", ["told", "3"]),
        ("{% if execute %}{{ return('yes') }}{% endif %}no", ["yes"]),
        ("{{ return({'a': [1, none]}) }}", ['{"a": [1, null]}']),
        ("{{ return(none) }}", []),
        ("\n\n    a:\n      - b\n\n  ", ["a:", "  - b"]),
        ("{% do exceptions.warn('careful') %}", ["Warning: careful"]),
        ("{{ var('days') }} {{ target.type }} {{ adapter.quote('a') }}", ["7 spark `a`"]),
        (
            "{% set t = run_query('select * from ' ~ ref('sums') ~ ' order by customer') %}"
            "{{ t.columns[0].values() | join(',') }} {{ t.columns['amount'].values()[1] }} {{ t.rows[0]['CUSTOMER'] }} "
            "{{ t.rows | length }} {{ t.column_names | join(',') }} {{ t.columns.keys() | join('+') }} "
            "{% for row in t %}{{ row.customer }}{{ row[1] }};{% endfor %}{{ t.rows[0].values()[1] + 1 }}",
            ["Ann,Cem 20.50 Ann 2 customer,amount customer+amount Ann10.00;Cem20.50;11.00"],
        ),
        (
            "{% call statement('n', fetch_result=True) %}select count(*) as n from {{ ref('orders') }};{% endcall %}"
            "{% call statement('unread') %}select 1 as one{% endcall %}{{ load_result('n')['data'][0][0] }} "
            "{{ load_result('n').table.columns.n.name }} {{ load_result('unread').data }} "
            "{{ load_result('x') is none }}",
            ["3 n [] True"],
        ),
        (
            "{% set t = run_query('select id, day, amount from orders order by id') %}"
            "{% do t.print_table(max_rows=2, max_columns=2) %}",
            [
                "id  day",
                "--  ----------",
                " 1  2026-01-01",
                " 2  2026-01-02",
                "... and 1 more",
                "... and 1 column more",
            ],
        ),
        (
            "{% set t = run_query('select day, amount from orders where id = 3') %}{{ t.rows[0][0] is none }} "
            "{{ 'empty' if not run_query('select id from orders where id = 9') }}{% do t.print_json() %}"
            "{% do t.print_csv() %}",
            ["[", '  {"day": null, "amount": null}', "]", "day,amount", ",", "True empty"],
        ),
        (
            "{% for c in adapter.get_columns_in_relation(ref('orders')) %}"
            "{{ c.name }} {{ c.data_type }} {{ c.quoted }} "
            "{{ c.column }}{{ c.dtype }}{{ c.fields | length }};{% endfor %}",
            [
                "id int `id` idint0;customer string `customer` customerstring0;day date `day` daydate0;"
                "amount decimal(10,2) `amount` amountdecimal(10,2)0;"
            ],
        ),
        ("{% set text = 'a' ~ '\n' ~ 'b' %}{{ print(text) }}{% do return(text) %}", ["a", "b"]),
        ("{{ return(run_query('select customer from sums where amount > 15')) }}", ["customer", "--------", "Cem"]),
    ],
)
def test_a_macro_reads_and_prints(shop: Path, body: str, lines: list[str]) -> None:
    done = operated(shop, "{% macro m() %}" + body + "{% endmacro %}\n")

    assert done.exit_code == 0, done.output
    assert done.output.splitlines() == lines


def test_arguments_are_yaml_or_json(shop: Path) -> None:
    macro = "{% macro m(days, shops=[]) %}{{ days + 1 }} {{ shops | join(',') }}{% endmacro %}\n"

    assert operated(shop, macro, "--args", "{days: 7, shops: [a, b]}").output == "8 a,b\n"
    assert operated(shop, macro, "--args", '{"days": 1}').output == "2\n"
    assert run("--project-dir", shop, "run-operation", "shop.m", "--args", "days: 2").output == "3\n"
    assert run("--project-dir", shop, "run-operation", "dbt_utils.slugify", "--args", "string: A b").output == "a_b\n"
    assert "--args must be a mapping" in operated(shop, macro, "--args", "[7]").output
    assert "--args isn't YAML" in operated(shop, macro, "--args", "{a: ").output
    wrong = operated(shop, macro, "--args", "{day: 1}")
    assert wrong.exit_code == 2 and "the macro `m` has no argument `day`" in wrong.output
    assert "Arguments: days, shops. Did you mean `days`?" in wrong.output
    missing = operated(shop, macro)
    assert missing.exit_code == 2 and "parameter 'days' was not provided" in missing.output


def test_an_unknown_macro_names_the_nearest(shop: Path) -> None:
    for name, near in (("aks", "ask"), ("dbt_utils.slugfy", "dbt_utils.slugify")):
        done = run("--project-dir", shop, "run-operation", name)
        assert done.exit_code == 2 and f"unknown macro `{name}`. Did you mean `{near}`?" in done.output


@pytest.mark.parametrize(
    ("sql", "said", "instead"),
    [
        ("drop table orders", "SR209 macros/ask.sql:1:27  run_query() runs no DROP", "Remove the files of the model"),
        ("DROP VIEW x", "run_query() runs no DROP", "Remove the files of the model"),
        ("/* a */ -- b\n insert into orders select 1", "runs no INSERT", "Change the model's query, its seed"),
        ("delete from orders", "runs no DELETE", "Change the model's query"),
        ("truncate table orders", "runs no TRUNCATE", "Change the model's query"),
        ("grant select on orders to bob", "runs no GRANT", "Grant access to the warehouse's folder"),
        ("create table x as select 1", "runs no CREATE", "Write the SELECT as a model"),
        ("alter table orders add column x int", "runs no ALTER", "Change the model's query or its contract"),
        (
            "merge into orders using orders on true when matched then delete",
            "runs no MERGE",
            "Change the model's query",
        ),
        ("copy orders to '/x'", "runs no COPY", "Change the model's query"),
        ("begin", "runs no BEGIN", "A build publishes all tables at once"),
        ("vacuum", "runs no VACUUM", "`sqlrun vacuum` compacts tables"),
        ("show tables", "runs no SHOW", "Run `sqlrun ls`"),
        ("set memory_limit = '1GB'", "runs no SET", "profiles/NAME.yml"),
        ("select 1; drop table orders", "SR209 macros/ask.sql:1:27  run_query() takes one SELECT: this text has 2", ""),
        ("with a as (select 1) insert into orders select * from a", "takes one SELECT: this text contains WITH", ""),
        ("attach 'x.db'", "SR209 macros/ask.sql:1:27  run_query() runs no ATTACH", "Write one SELECT"),
        (" -- nothing", "run_query() has no query", ""),
        ("select nope from orders", "SR304 query:1:8  unknown column `nope`", "run_query() in macros/ask.sql:1."),
        ("select * from ordres", "SR303 query:1:15  unknown table `ordres`", "Did you mean `orders`?"),
        ("select * from seen", "SR303 query:1:15  unknown table `seen`", "It is a view, which stores no rows"),
        ("select * from read_csv('/etc/passwd')", "SR305", ""),
        ("select * from parquet.`/etc/passwd`", "SR303", ""),
        ("select * from 'warehouse/x.parquet'", "SR30", ""),
    ],
)
def test_what_is_not_one_select_over_published_tables_is_refused(shop: Path, sql: str, said: str, instead: str) -> None:
    before = sorted(str(file) for file in (shop / "warehouse").rglob("*"))

    done = run("--project-dir", shop, "run-operation", "ask", "--args", json.dumps({"sql": sql}))

    assert done.exit_code == 2 and said in done.output and instead in done.output, done.output
    assert sorted(str(file) for file in (shop / "warehouse").rglob("*")) == before


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("{{ source('a', 'b') }}", "SR203 macros/m.sql:1:19  an operation reads no source"),
        ("{{ this }}", "`this` isn't supported: an operation has no model"),
        ("{% do adapter.drop_schema('x') %}", "`adapter.drop_schema` isn't supported: tables change by models only"),
        ("{{ run_query('select 1 as a').columns.__class__ }}", "SR201"),
        ("{{ run_query('select 1 as a')._say('x') }}", "SR201"),
        ("{{ run_query.__globals__ }}", "SR201"),
        ("{{ run_query('select 1 as a').print_table.__self__ }}", "SR201"),
        ("{{ adapter.get_columns_in_relation(ref('orders'))[0].__class__ }}", "SR201"),
        ("{% do adapter.get_columns_in_relation(ref('seen')) %}", "has no table `seen`"),
        ("{% do adapter._inner.dispatch('x') %}", "SR201"),
        ("{% do run_query('select 1 as a').rows.append(1) %}", "SR201"),
        ("{% set t = run_query('select 1 as a') %}{% set t.rows = [] %}", "SR201"),
        ("{{ run_query('select 1 as a').rows[0]['b'] }}", "SR201"),
        ("{{ env_var('HOME') }}", "SR207"),
        ("{{ dbt_utils.get_column_values(ref('sums'), 'customer') }}", "Query a table by run_query()"),
        ("{{ dbt_utils.slugfy('a') }}", "sqlrun has no macro `dbt_utils.slugfy`"),
        ("{% for i in range(1001) %}{% do run_query('select 1 as a') %}{% endfor %}", "SR2"),
        ("{% include '/etc/passwd' %}", "SR201"),
        ("{{ exceptions.raise_compiler_error('the macro says no') }}", "the macro says no"),
        ("{{ invocation_id }}", "`invocation_id` isn't supported"),
    ],
)
def test_the_sandbox_is_that_of_models(shop: Path, body: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlrun.render.operation.MOST_QUERIES", 3)
    done = operated(shop, "{% macro m() %}" + body + "{% endmacro %}\n")

    assert done.exit_code == 2 and said in done.output, done.output


def test_an_unknown_ref_is_named_and_not_the_query_that_follows(shop: Path) -> None:
    done = run("--project-dir", shop, "run-operation", "broken_ref")

    assert done.exit_code == 2 and "SR202 macros/broken_ref.sql:1:65  unknown model `ordres`" in done.output
    assert "SR303" not in done.output


def test_a_query_has_a_limit_of_rows(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlrun.commands.run_operation.MOST_ROWS", 2)
    done = run("--project-dir", shop, "run-operation", "ask", "--args", "sql: select id from orders")

    assert done.exit_code == 2 and "returns 3 rows, more than 2. Add a LIMIT" in done.output


def test_an_environment_and_an_empty_warehouse(tmp_path: Path) -> None:
    """A macro without a query needs no tick."""
    root = broken.write(tmp_path, PROJECT)

    assert operated(root, "{% macro m() %}{{ ref('sums') }}{% endmacro %}\n").output == "`sums`\n"
    empty = run("--project-dir", root, "run-operation", "ask", "--args", "sql: select id from orders")
    assert empty.exit_code == 2 and "nothing is published" in empty.output

    assert run("--project-dir", root, "build").exit_code == 0
    (root / "models/sums.sql").write_text("select customer, count(*) as n from {{ ref('orders') }} group by customer\n")
    assert run("--project-dir", root, "build", "--env", "ci").exit_code == 0
    ask = ("run-operation", "ask", "--args", "sql: select * from sums limit 0")
    assert "amount" in run("--project-dir", root, *ask).output
    assert "n" in run("--project-dir", root, *ask, "--env", "ci").output.splitlines()[0].split()
    unknown = run("--project-dir", root, *ask, "--env", "nowhere")
    assert unknown.exit_code == 2 and "unknown environment `nowhere`" in unknown.output


def test_a_broken_macro_is_reported(shop: Path) -> None:
    done = operated(shop, "{% macro m() %}{% if %}{% endmacro %}\n")

    assert done.exit_code == 2 and "SR201 macros/m.sql:1" in done.output
