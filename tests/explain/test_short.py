"""`sqlrun explain --short`: what an edit changes, in a few lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from sqlrun.cli.main import main
from sqlrun.scaffold.command import init

VIEW = "{{ config(materialized='view') }} select order_date, sales from {{ ref('daily_sales') }}"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    init(tmp_path / "shop", None)
    monkeypatch.chdir(tmp_path / "shop")
    return tmp_path / "shop"


def explained(*arguments: str) -> tuple[int, list[str]]:
    done = CliRunner().invoke(main, ["explain", *arguments])
    return done.exit_code, done.output.strip().splitlines()


def test_a_table_is_a_few_lines_of_the_long_text(project: Path) -> None:
    code, short = explained("daily_sales", "--short")
    _, whole = explained("daily_sales")

    assert code == 0
    assert short == [
        "daily_sales  (models/marts/daily_sales.sql)",
        "strategy   merge: the change of each group is added to its stored sums and counts",
        "reason     SR541 sqlrun adds the change of each group to its stored sums and counts",
        "cost       1,000 changed rows: merge reads about 2,000 rows, or full reads every row",
        "checks     5",
    ]
    assert set(short[:-1]) <= set(whole)


def test_a_source_is_named_as_in_the_model(project: Path) -> None:
    """Not by the name of its relation."""
    _, whole = explained("stg_orders")

    assert [line for line in whole if line.startswith("reads ")] == ["reads      source('raw', 'orders')"]


@pytest.mark.parametrize("grain", ["[customer_id]", "[]"])
def test_a_strategy_that_reads_everything_says_so(project: Path, grain: str) -> None:
    """Also of a table whose changed rows are found by key: its cost is that of the whole query."""
    (project / "models/ranked.sql").write_text(
        "select customer_id, sum(amount) over (order by amount) as s from {{ ref('stg_orders') }}"
    )
    (project / "models/ranked.yml").write_text(f"models:\n  - name: ranked\n    grain: {grain}\n")
    _, short = explained("ranked", "--short")
    _, whole = explained("ranked")

    does = "the whole query is run again"
    if grain != "[]":
        does = "a tick reads its inputs completely, and writes the rows that changed"
    assert short[1] == f"strategy   full: {does}"
    assert f"table      ranked: full, {does}" in whole
    assert short[2] == "reason     SR522 a window function without PARTITION BY ranks the whole table"


@pytest.mark.parametrize(
    ("contract", "partition", "code", "place"),
    [
        ("models/keyless.yml", "", "SR525", "models/keyless.yml"),
        ("models/all.yml", "", "SR525", "models/all.yml"),
        ("", "", "SR525", "a contract, such as models/keyless.yml"),
        ("models/keyless.yml", "    config: {partition_by: [day]}\n", "SR549", "models/keyless.yml"),
    ],
)
def test_rows_without_a_key_name_the_contract(
    project: Path, contract: str, partition: str, code: str, place: str
) -> None:
    """Whose `grain` is missing, and in which file."""
    (project / "models/keyless.sql").write_text(
        "select a.order_date as day, b.sales from {{ ref('daily_sales') }} as a "
        "join (select distinct sales from {{ ref('daily_sales') }}) as b on a.sales < b.sales "
        "union all select order_date, sales from {{ ref('daily_sales') }}"
    )
    if contract:
        (project / contract).write_text(f"models:\n  - name: keyless\n{partition}")
    _, short = explained("keyless", "--short")

    assert short[2].startswith(f"reason     {code} the rows have no key")
    assert short[3] == f"instead    Declare `grain:` of `keyless` in {place}."


def test_hidden_tables_are_counted(project: Path) -> None:
    (project / "models/ranked.sql").write_text(
        "select status, sum(n) as n from (select status, count(*) as n "
        "from {{ ref('stg_orders') }} group by status, amount) group by status"
    )
    code, short = explained("ranked", "--short")

    assert code == 0, short
    assert "tables     1 and 1 hidden table" in short


def test_a_view_is_two_lines(project: Path) -> None:
    (project / "models/sales.sql").write_text(VIEW)

    assert explained("sales", "--short") == (0, ["sales  (models/sales.sql)", "A view: nothing is stored."])


@pytest.mark.parametrize("other", ["--sql", "--json"])
def test_another_form_is_refused(project: Path, other: str) -> None:
    code, said = explained("daily_sales", "--short", other)

    assert code == 2
    assert "--short leaves out what --sql and --json print" in said[-1]
