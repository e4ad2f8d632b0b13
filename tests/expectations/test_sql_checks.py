"""Checks written as a query that returns the wrong rows; mistakes in them are in tests/cases/errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sqlrun import pipeline
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.errors import ProjectError
from sqlrun.expectations.sql import batch_query, row_predicate
from sqlrun.expectations.validate import scope
from sqlrun.report.html_report import html
from sqlrun.report.report_files import TEMPLATE
from sqlrun.report.summaries import junit
from sqlrun.runtime.disk_cache import Cache
from tests.commands.test_check_command import run, sale, write
from tests.report.test_page import ABOUT
from tests.run.test_machine import project
from tests.support.projects import Site
from tests.support.script import FIVE, START

FREE = """\
-- Nobody gets something
-- for nothing.
{{ config(severity='warning') }}
select sales.id, sales.amount
from {{ ref('stg_sales') }} as sales
where sales.amount < {{ var('least', 1) }} and sales.id not like '{x}%'
"""
TWICE = """\
select shop, count(*) as n
from {{ ref('stg_sales') }}
group by shop
having count(*) > 2
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = project(tmp_path / "shops")
    write(root, "profiles/local.yml", "engine: duckdb\nwarehouse: warehouse\n")
    return root


def checks(root: Path) -> list:
    prepared = pipeline.prepare(root)
    return [check for suite in prepared.workspace.suites.values() for check in suite.expectations]


def test_a_query_is_a_check_of_its_model(root):
    write(root, "expectations/deep/down/free.sql", FREE)
    (check,) = checks(root)

    assert (check.name, check.severity, check.on_fail) == ("free", "warning", "warn")
    assert check.description == "Nobody gets something for nothing."
    assert str(check.place) == "expectations/deep/down/free.sql:1:1"
    query = check.kwargs["unexpected_rows_query"]
    assert "{batch} AS sales" in query and "'{{x}}%'" in query
    assert scope(check) == "row" and row_predicate(batch_query(query)) is not None


@pytest.mark.parametrize(
    ("text", "sees"),
    [
        ("select * from {{ ref('stg_sales') }} where stg_sales.amount < 0", "row"),
        ("select id, amount from {{ ref('stg_sales') }} s where amount < 0", "row"),
        (TWICE, "table"),
        ("select a.* from {{ ref('stg_sales') }} a join {{ ref('stg_sales') }} b on a.id < b.id", "table"),
        ("with bad as (select * from {{ ref('stg_sales') }} where amount < 0) select * from bad", "table"),
        ("select * from {{ ref('stg_sales') }} where sold_at > current_timestamp() + interval 1 day", "row"),
    ],
)
@pytest.mark.slow
def test_scope_of_a_check(root, text, sees):
    write(root, "expectations/one.sql", text)
    (check,) = checks(root)
    assert scope(check) == sees


def test_config_overrides_defaults(root):
    config = "{{ config(severity='critical', on_fail='quarantine', description='Said.') }}"
    text = f"-- Not said.\n{config}\nselect * from {{{{ ref('stg_lines') }}}} where amount < 0"
    write(root, "expectations/one.sql", text)
    (check,) = checks(root)
    assert (check.on_fail, check.description) == ("quarantine", "Said.")


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("select 1 as a", "SR718", 1),
        ("select *\nfrom {{ source('shops', 'lines') }}", "SR718", 2),
        ("select * from {{ ref('stg_sales') }}; drop table x", "SR302", 1),
        ("drop table x", "SR718", 1),
        ("-- nothing", "SR718", 1),
        ("select * from {{ ref('stg_sales') }}\nwhere uuid() = id", "SR501", 2),
        ("select * from {{ ref('stg_sales') }}\nwhere java_method('a') = id", "SR305", 2),
        ("select * from {{ ref('stg_sales') }}\nwhere amout < 0", "SR304", 2),
        ("select * from {{ ref('stg_sales') }} join other using (id)", "SR303", 1),
        ("select * from {{ ref('stg_sales' }}", "SR201", 1),
        ("select * from {{ ref('stg_sales') }} where (", "SR301", 1),
        ("select * from {{ ref('stg_sales') }} where {{ nonsense }}", "SR201", 1),
        ("{{ config(on_fail='quarantine') }}\nselect * from {{ ref('stg_sales') }} where amount < 0", "SR708", 1),
    ],
)
def test_a_mistake_has_its_place(root, text, code, line):
    write(root, "expectations/one.sql", text)
    with pytest.raises(ProjectError) as caught:
        pipeline.prepare(root)

    (problem,) = caught.value.problems
    assert (problem.code, problem.place.file, problem.place.line) == (code, "expectations/one.sql", line)


def test_a_macros_mistake_is_reported_once(root):
    write(root, "macros/least.sql", "{% macro least() %}{{ nonsense }}{% endmacro %}")
    write(root, "expectations/one.sql", "select * from {{ ref('stg_sales') }} where amount < {{ least() }}")
    write(root, "expectations/two.sql", "select * from {{ ref('stg_sales') }} where amount < {{ least() }}")
    with pytest.raises(ProjectError) as caught:
        pipeline.prepare(root)
    assert all(problem.code == "SR201" for problem in caught.value.problems)
    assert len({str(problem) for problem in caught.value.problems}) == len(caught.value.problems)


@pytest.mark.slow
def test_a_cached_check_is_read_again_after_an_edit(root):
    write(root, "expectations/free.sql", FREE)
    assert pipeline.prepare(root, Cache.of(root)).workspace.suites["stg_sales"].expectations[0].name == "free"
    cached = Cache.of(root)
    again = pipeline.prepare(root, cached)
    assert cached.made.get("sql check") is None and again.workspace.suites == pipeline.prepare(root).workspace.suites

    write(root, "pyproject.toml", (root / "pyproject.toml").read_text() + "\n[tool.sqlrun.vars]\nleast = 77\n")
    (check,) = pipeline.prepare(root, Cache.of(root)).workspace.suites["stg_sales"].expectations
    assert "< 77" in check.kwargs["unexpected_rows_query"]
    contract = root / "models" / "stg_sales.yml"
    contract.write_text(contract.read_text().replace("amount", "price"))
    (root / "models" / "stg_sales.sql").write_text(
        (root / "models" / "stg_sales.sql").read_text().replace("amount", "amount as price", 1)
    )
    with pytest.raises(ProjectError, match=r"expectations/free\.sql:6"):
        pipeline.prepare(root, Cache.of(root))


@pytest.mark.slow
def test_it_runs_in_ticks_and_over_whole_tables(root):
    write(root, "expectations/free.sql", FREE)
    write(root, "expectations/twice.sql", TWICE)
    site = Site(root, DuckDBEngine())
    site.write("1.jsonl", [sale("a", 1, 0), sale("{x}1", 1, 0), sale("b", 1, 5)])
    first = site.tick(START)
    assert not first.published
    found = {check.type: check for check in first.checks}
    assert {"free", "twice"} <= set(found)
    assert (found["free"].status, found["free"].unexpected, found["free"].samples) == (
        "warn",
        1,
        ("id=a, amount=0.00",),
    )
    assert (found["twice"].status, found["twice"].unexpected) == ("fail", 1)
    assert found["twice"].check_id != found["free"].check_id
    page = html(TEMPLATE.read_text(), first, ABOUT)
    assert "twice" in page and "Nobody gets something for nothing." in page and "expectations/twice.sql" in page
    assert 'name="twice stg_sales"' in junit(first, ABOUT)

    write(root, "expectations/twice.sql", TWICE.replace("> 2", "> 3"))
    site = Site(root, DuckDBEngine())
    assert site.tick(START).published
    site.write("2.jsonl", [sale("c", 1, 9)])
    second = site.tick(START + FIVE)
    site.engine.close()
    # free reads only the change, twice the whole table
    assert {c.type: (c.status, c.evaluated) for c in second.checks if c.type in ("free", "twice")} == {
        "free": ("pass", 1), "twice": ("fail", 4),
    }  # fmt: skip
    tables = json.loads(run(root, "--json").output)["tables"]
    results = {c["expectation"]: (c["status"], c["evaluated"]) for t in tables for c in t["checks"]}
    assert results["free"] == ("warn", 3) and results["twice"] == ("pass", 3)
