"""Several selectors in a row, and named ones, on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.artifacts.test_artifacts import project, run


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    project(
        tmp_path,
        models__a_sql="select id from {{ ref('raw') }}",
        models__b_yml="models:\n  - {name: b, columns: [{name: id, data_type: int, tests: [not_null]}]}\n",
        models__b_sql="select id from {{ ref('a') }}",
        models__c_sql="select id from {{ ref('b') }}",
        selectors_yml="selectors:\n  - {name: ends, definition: {union: [a, c]}}\n",
    )
    return tmp_path


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("-s a b", "a b"),
        ("-s a b --exclude a c", "b"),
        ("--select=a b", "a b"),
        ("--exclude raw b --select a b c", "a c"),
        ("-s a -s b", "a b"),
        ("--selector ends", "a c"),
        ("-s selector:ends b", "a b c"),
        ("-s a b --no-such", None),
        ("--selector ends -s a", None),
        ("--selector end", None),
        ("a", None),
        ("-s b,test_name:not_null", "not_null_b_id"),
        ("-s b --exclude test_type:unit", "b not_null_b_id"),
        ("-s test_name:nothing", None),
    ],
)
def test_ls(shop: Path, words: str, names: str | None) -> None:
    done = run(shop, "ls", "--output", "fqn", *words.split())

    if names is None:
        assert done.exit_code == 2
    else:
        assert [line.rpartition(".")[2] for line in done.output.split()] == names.split()


def test_ls_lists_sources(tmp_path: Path) -> None:
    project(
        tmp_path,
        models___sources_yml="sources:\n  - name: shop\n    tables:\n      - name: orders\n        format: json\n"
        "        path: data/orders\n        columns: [{name: id, data_type: int}]\n",
        models__landed_sql="select id from {{ source('shop', 'orders') }}",
        models__other_sql="select id from {{ ref('raw') }}",
    )
    for words, names in (
        ("-s resource_type:source", ["source:shop.orders"]),
        ("-s +landed", ["source:shop.orders", "landed"]),
        ("-s other", ["other"]),
    ):
        done = run(tmp_path, "ls", "--output", "json", *words.split())
        assert [row["name"] for row in json.loads(done.output)] == names, words
    assert "source:shop.orders  source" in run(tmp_path, "ls").output
    assert "source:shop.shop.orders" in run(tmp_path, "ls", "--output", "fqn").output


@pytest.mark.slow
def test_every_command_that_selects_takes_several(shop: Path) -> None:
    assert run(shop, "build", "-s", "+a", "b", "-q").exit_code == 0
    for words in ("compile", "test", "check", "plan", "verify --limit 3", "history"):
        done = run(shop, *words.split(), "-s", "a", "b")
        assert done.exit_code == 0, done.output


def test_a_mistake_in_selectors_yml_is_one_of_the_project(shop: Path) -> None:
    (shop / "selectors.yml").write_text("selectors:\n  - {name: ends, definition: {tags: x}}\n")

    done = run(shop, "ls")

    assert done.exit_code == 2
    assert "SR110 selectors.yml:2:31  unknown selector method `tags`" in done.output


def test_commands_for_tables_select_no_tests(shop: Path) -> None:
    for words in ("build", "compile", "plan"):
        done = run(shop, *words.split(), "-s", "test_type:unit")
        assert done.exit_code == 2 and "--exclude test_type:unit" in done.output, done.output


def test_a_build_leaves_out_unit_tests(shop: Path) -> None:
    contract = shop / "models" / "b.yml"
    contract.write_text(
        contract.read_text()
        + "unit_tests:\n  - {name: wrong, model: b, given: [{input: ref('a'), rows: [{id: 1}]}], expect: {rows: []}}\n"
    )

    assert run(shop, "build").exit_code == 1
    assert run(shop, "build", "--exclude", "test_type:unit", "c").exit_code == 0
    assert run(shop, "build", "--exclude", "test_type:data").exit_code == 2


def test_verify_does_not_pass_what_it_did_not_compare(tmp_path: Path) -> None:
    project(
        tmp_path,
        models__a_sql="{{ config(materialized='view') }}\nselect id from {{ ref('raw') }}",
        models__b_sql="select id from {{ ref('a') }}",
    )
    assert run(tmp_path, "build").exit_code == 0
    view = run(tmp_path, "verify", "--select", "a")

    assert (view.exit_code, "Every table" in view.output) == (2, False)
    assert "Nothing was compared at tick 1" in view.output
    assert "Every table equals its query at tick 1" in run(tmp_path, "verify").output
    # A project without a table that a query computes has nothing to compare, which is no mistake of the command.
    (tmp_path / "models" / "b.sql").unlink()
    assert run(tmp_path, "build").exit_code == 0
    whole = run(tmp_path, "verify")
    assert (whole.exit_code, "Nothing was compared" in whole.output) == (0, True)
