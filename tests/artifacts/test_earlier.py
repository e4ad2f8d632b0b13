"""Selectors that compare a project with earlier artifacts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from sqlrun.artifacts import state_files
from sqlrun.artifacts.manifest import SCHEMA
from sqlrun.errors import UsageError
from sqlrun.graph import selectors
from tests.artifacts.test_artifacts import project, run
from tests.support.projects import prepared

FILES = {
    "models__orders_sql": "select id, {{ money('cents') }} as amount from {{ ref('raw') }}",
    "models__orders_yml": "models:\n  - name: orders\n    description: All.\n    grain: [id]\n    columns:\n"
    "      - {name: id, data_type: int}\n      - {name: amount, data_type: double}\n",
    "models__days_sql": "select count(*) as n from {{ ref('orders') }}",
    "macros__money_sql": "{% macro money(column) %}{{ column }} / 100{% endmacro %}",
    "expectations__orders_yml": "expectations:\n"
    "  - type: expect_column_values_to_not_be_null\n    kwargs: {column: amount}\n",
}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A project, and its manifest in `before/`."""
    project(tmp_path, **FILES)
    done = run(tmp_path, "parse")
    assert done.exit_code == 0, done.output
    (tmp_path / "before").mkdir()
    shutil.copy(tmp_path / "target/manifest.json", tmp_path / "before")
    return tmp_path


def edit(root: Path, file: str, old: str, new: str) -> None:
    text = (root / file).read_text()
    assert old in text
    (root / file).write_text(text.replace(old, new))


def selected(root: Path, *texts: str) -> list[str]:
    made = prepared(root)
    graph = state_files.compared(made.graph, made.workspace, texts, root, root / "before")
    return list(selectors.select(graph, texts))


def test_nothing_is_modified_at_first(shop: Path) -> None:
    assert selected(shop, "state:modified") == []
    assert selected(shop, "state:new") == []
    assert selected(shop, "state:unmodified") == selected(shop, "state:old") == ["raw", "orders", "days"]


@pytest.mark.parametrize(
    ("file", "old", "new", "kinds"),
    [
        ("models/orders.sql", "select id", "select id + 0 as id", {"body"}),
        ("models/orders.sql", "select id", "-- a comment\nselect id", {"body"}),
        ("macros/money.sql", "/ 100", "* 0.01D", {"macros"}),
        ("models/orders.yml", "name: orders\n", "name: orders\n    config: {tags: [a]}\n", {"configs"}),
        ("models/orders.yml", "name: orders\n", "name: orders\n    config: {meta: {owner: ann}}\n", {"configs"}),
        ("models/orders.yml", "name: orders\n", "name: orders\n    config: {at_worst: keys}\n", {"configs"}),
        ("models/orders.yml", "name: orders\n", "name: orders\n    config: {alias: sold}\n", {"relation"}),
        ("models/orders.yml", "name: amount", "nulls: false, name: amount", {"contract"}),
        ("models/orders.yml", "All.", "All orders.", set()),
        ("expectations/orders.yml", "amount}", "amount}\n    severity: warning", {""}),
        ("expectations/orders.yml", "column: amount", "column: id", {""}),
    ],
)
def test_each_edit_has_its_kind(shop: Path, file: str, old: str, new: str, kinds: set[str]) -> None:
    edit(shop, file, old, new)

    parts = [value for value in selectors.STATES if value.startswith("modified.")]
    assert {part.partition(".")[2] for part in parts if selected(shop, f"state:{part}")} == kinds - {""}
    assert selected(shop, "state:modified") == (["orders"] if kinds else [])
    assert selected(shop, "state:modified+") == (["orders", "days"] if kinds else [])
    assert ("orders" in selected(shop, "state:unmodified")) is not bool(kinds)


def test_new_models_and_other_rows_of_a_seed_are_modified(shop: Path) -> None:
    (shop / "models/weeks.sql").write_text("select sum(n) as n from {{ ref('days') }}")
    edit(shop, "seeds/raw.csv", "100", "101")

    assert selected(shop, "state:new") == ["weeks"]
    assert selected(shop, "state:modified") == ["raw", "weeks"]
    assert selected(shop, "state:modified.body") == ["raw"]


def test_an_environment_is_no_difference(shop: Path) -> None:
    assert run(shop, "build", "--env", "ci").exit_code == 0
    shutil.copy(shop / "target/manifest.json", shop / "before")

    assert '"schema": "shop__ci"' in (shop / "before/manifest.json").read_text()
    assert selected(shop, "state:modified") == []


@pytest.mark.slow
def test_a_result_of_a_check_is_its_models(shop: Path) -> None:
    edit(shop, "models/orders.sql", "select id,", "select id, nullif(id, 1) as part,")
    edit(
        shop,
        "models/orders.yml",
        "      - {name: amount",
        "      - {name: part, data_type: int}\n      - {name: amount",
    )
    edit(shop, "expectations/orders.yml", "column: amount", "column: part")
    assert run(shop, "build").exit_code == 1
    shutil.copy(shop / "target/run_results.json", shop / "before")

    assert selected(shop, "result:fail") == ["orders"]
    assert "orders" not in selected(shop, "result:skipped")
    assert selected(shop, "result:success") != []


def test_fresher_sources_have_a_newer_event(shop: Path) -> None:
    (shop / "data").mkdir()
    (shop / "models/_sources.yml").write_text(
        "sources:\n  - name: shop\n    tables:\n      - name: sold\n        format: json\n        path: data\n"
        "        columns: [{name: id, data_type: string}]\n"
    )
    (shop / "models/sold.sql").write_text("select id from {{ source('shop', 'sold') }}")
    for folder, newest in (("before", "2026-01-01T00:00:00Z"), ("target", "2026-01-01T00:05:00Z")):
        result = {"unique_id": "source.shop.shop.sold", "max_loaded_at": newest, "status": "pass"}
        (shop / folder / "sources.json").write_text(json.dumps({"results": [result]}))

    assert selected(shop, "source_status:fresher+") == ["sold"]
    assert selected(shop, "source_status:pass+") == ["sold"]
    shutil.copy(shop / "target/sources.json", shop / "before")
    assert selected(shop, "source_status:fresher+") == []


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "there is no"),
        ("{", "isn't JSON"),
        ("[]", "has no JSON object"),
        ("{}", "has another form"),
        (json.dumps({"metadata": {"dbt_schema_version": "manifest/v11.json"}}), "has the format manifest/v11.json"),
        (json.dumps({"metadata": {"dbt_schema_version": SCHEMA}, "nodes": [1]}), "has another form"),
        ("[" * 100_000, "isn't JSON"),
    ],
)
def test_a_corrupt_manifest_is_reported(shop: Path, content: str | None, says: str) -> None:
    file = shop / "before/manifest.json"
    file.unlink()
    if content is not None:
        file.write_text(content)

    with pytest.raises(UsageError, match=says):
        selected(shop, "state:modified")


def test_without_a_folder_it_says_which_option_is_missing(shop: Path) -> None:
    done = run(shop, "ls", "-s", "state:modified")

    assert done.exit_code == 2
    assert "--state DIR" in done.output
    assert "Did you mean `modified`" in run(shop, "ls", "-s", "state:modifed").output


def test_a_build_of_what_is_modified(shop: Path) -> None:
    assert run(shop, "build").exit_code == 0
    edit(shop, "models/days.sql", "count(*)", "count(id)")

    done = run(shop, "build", "-s", "state:modified", "--state", str(shop / "before"))

    assert done.exit_code == 0, done.output
    assert "days" in done.output
    results = json.loads((shop / "target/run_results.json").read_text())
    assert [one["unique_id"] for one in results["results"]] == ["model.shop.days"]
    assert results["args"]["state"] == str(shop / "before")
