"""The manifest and the catalog: what dbt's readers require, by a reader that rejects any other key."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import sqlglot
from click.testing import CliRunner, Result
from dbt_artifacts_parser.parsers.catalog.catalog_v1 import CatalogV1
from dbt_artifacts_parser.parsers.manifest.manifest_v12 import ManifestV12
from dbt_artifacts_parser.parsers.run_results.run_results_v6 import RunResultsV6
from sqlglot import exp

from sqlrun.artifacts.artifact_files import naming_of
from sqlrun.artifacts.manifest import manifest, text
from sqlrun.cli.main import main
from sqlrun.pipeline import Prepared
from tests.support.projects import ROOT, prepared

AT = datetime(2026, 1, 1, 12, 5, tzinfo=timezone.utc)


def manifest_of(made: Prepared, env: str | None = None) -> Any:
    document = json.loads(text(manifest(made.workspace, naming_of(made.project, env), AT, "an id")))
    ManifestV12(**document)
    return document


def run(root: Path, *words: str) -> Result:
    return CliRunner().invoke(main, ["--project-dir", str(root), *words])


def read(root: Path, name: str) -> Any:
    return json.loads((root / "target" / name).read_text())


def project(folder: Path, **files: str) -> Prepared:
    """Write a project over one seed; keys are paths with __ for / and the file's ending behind one _."""
    written = {
        "pyproject.toml": '[tool.sqlrun]\nname = "shop"\n',
        "profiles/local.yml": "engine: duckdb\nwarehouse: warehouse\n",
        "seeds/raw.csv": "id,cents\n1,100\n2,205\n",
        "seeds/raw.yml": "seeds:\n  - name: raw\n    grain: [id]\n    columns:\n"
        "      - {name: id, data_type: int}\n      - {name: cents, data_type: int}\n",
    }
    for path, content in files.items():
        name, _, ending = path.rpartition("_")
        written[f"{name.replace('__', '/')}.{ending}"] = content
    for file, content in written.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(content)
    return prepared(folder)


def test_the_manifest_has_the_whole_reference_project() -> None:
    made = prepared(ROOT)
    document = manifest_of(made)
    name = made.project.name
    nodes = document["nodes"]

    assert {node for node in nodes if node.startswith("model.")} == {f"model.{name}.{m}" for m in made.names}
    assert {node for node in nodes if node.startswith("seed.")} == {f"seed.{name}.{s.name}" for s in made.project.seeds}
    assert set(document["sources"]) == {f"source.{name}.{s.group}.{s.name}" for s in made.project.sources}
    assert len(document["unit_tests"]) == sum(not test.macro for test in made.project.unit_tests)
    assert document["exposures"][f"exposure.{name}.owners_dashboard"]["owner"]["name"] == "Restaurant analytics"
    mart = nodes[f"model.{name}.restaurant_windows"]
    assert mart["config"]["materialized"] == "incremental"
    assert mart["config"]["incremental_strategy"] == "merge"
    assert mart["config"]["unique_key"] == mart["primary_key"] == ["window_hours", "restaurant_id"]
    assert mart["meta"]["sqlrun"]["strategy"] == "keys"
    assert mart["meta"]["sqlrun"]["hidden_tables"] == ["restaurant_windows__state_1", "restaurant_windows__state_2"]
    assert mart["columns"]["total_sales"]["data_type"] == "decimal(18,2)"
    assert mart["columns"]["restaurant_id"]["constraints"][0]["type"] == "not_null"
    assert mart["patch_path"] == f"{name}://models/marts/restaurant_windows.yml"
    assert nodes[f"model.{name}.stg_order_lines"]["config"]["materialized"] == "view"


def test_a_node_s_parents_are_those_of_the_graph() -> None:
    made = prepared(ROOT)
    document = manifest_of(made)
    short = {node: node.rpartition(".")[2] for node in document["nodes"]}
    short |= {node: f"source:{'.'.join(node.split('.')[2:])}" for node in document["sources"]}

    for model in made.names:
        node = f"model.{made.project.name}.{model}"
        assert sorted(short[parent] for parent in document["parent_map"][node]) == sorted(made.graph.parents[model])
    pairs = {(parent, node) for node, parents in document["parent_map"].items() for parent in parents}
    assert pairs == {(node, child) for node, children in document["child_map"].items() for child in children}


def test_compiled_sql_reads_relations_by_their_names() -> None:
    document = manifest_of(prepared(ROOT))
    every = (*document["nodes"].values(), *document["sources"].values())
    relations = {one["unique_id"]: one["relation_name"] for one in every}

    for node in document["nodes"].values():
        if node["resource_type"] == "model":
            tree = sqlglot.parse_one(node["compiled_code"], dialect="databricks")
            tables = [table for table in tree.find_all(exp.Table) if table.catalog]
            names = {f"`{table.catalog}`.`{table.db}`.`{table.name}`" for table in tables}
            assert names == {relations[parent] for parent in node["depends_on"]["nodes"]}, node["name"]


def test_each_check_is_a_test_with_dbt_s_words(tmp_path: Path) -> None:
    made = project(
        tmp_path,
        models__orders_sql="select id, cents, 'paid' as status from {{ ref('raw') }}",
        models__orders_yml="""models:
  - name: orders
    grain: [id]
    columns:
      - name: id
        data_type: int
        data_tests: [not_null, {relationships: {to: ref('raw'), field: id}}]
      - {name: cents, data_type: int}
      - name: status
        data_type: string
        data_tests: [{accepted_values: {values: [paid, open]}}]
""",
        expectations__orders_yml="""expectations:
  - type: expect_column_values_to_be_between
    kwargs: {column: cents, min_value: 0}
    severity: warning
  - type: unexpected_rows_expectation
    kwargs: {unexpected_rows_query: "select * from {batch} where cents > 1000"}
""",
    )
    nodes = manifest_of(made)["nodes"]
    tests = {node["name"]: node for node in nodes.values() if node["resource_type"] == "test"}
    found = {name: (node.get("test_metadata") or {}).get("name", "singular") for name, node in tests.items()}

    assert found == {
        "not_null_orders_id": "not_null",
        "unique_orders_id": "unique",
        "relationships_orders_id_514612": "relationships",
        "accepted_values_orders_status_872524": "accepted_values",
        "expect_column_values_to_be_between_orders_cents_6f3b9a": "expect_column_values_to_be_between",
        "unexpected_rows_expectation_orders_af850e": "singular",
    }
    related = tests["relationships_orders_id_514612"]
    assert related["depends_on"]["nodes"] == ["model.shop.orders", "seed.shop.raw"]
    assert related["test_metadata"]["kwargs"]["to"] == "ref('raw')"
    assert related["attached_node"] == "model.shop.orders" and related["column_name"] == "id"
    assert tests["accepted_values_orders_status_872524"]["test_metadata"]["kwargs"]["values"] == ["paid", "open"]
    assert tests["expect_column_values_to_be_between_orders_cents_6f3b9a"]["config"]["severity"] == "WARN"
    assert "cents > 1000" in tests["unexpected_rows_expectation_orders_af850e"]["raw_code"]


def test_a_new_check_leaves_the_ids_of_the_others(tmp_path: Path) -> None:
    first = "  - {type: expect_column_values_to_be_between, kwargs: {column: cents, min_value: 0}}\n"
    more = "  - {type: expect_column_values_to_be_between, kwargs: {column: id, min_value: 0}}\n"
    model = {
        "models__orders_sql": "select id, cents from {{ ref('raw') }}",
        "models__orders_yml": "models:\n  - {name: orders, columns: [{name: id}, {name: cents}]}\n",
    }
    before = project(tmp_path / "before", **model, expectations__orders_yml=f"expectations:\n{first}")
    after = project(tmp_path / "after", **model, expectations__orders_yml=f"expectations:\n{more}{first}")
    old, new = ({node for node in manifest_of(made)["nodes"] if node.startswith("test.")} for made in (before, after))

    assert old < new and len(new) == len(old) + 1


def test_a_model_without_a_contract_has_the_columns_of_its_query(tmp_path: Path) -> None:
    made = project(tmp_path, models__orders_sql="select id, cents / 100 as amount from {{ ref('raw') }}")
    node = manifest_of(made)["nodes"]["model.shop.orders"]

    assert {name: column["data_type"] for name, column in node["columns"].items()} == {"id": "int", "amount": "double"}
    assert node["patch_path"] is None


def test_a_build_s_results_are_of_nodes_in_the_manifest(tmp_path: Path) -> None:
    """A starter project, by the commands that a user types; also with checks that aren't expectations."""
    root = tmp_path / "cafe"
    assert CliRunner().invoke(main, ["init", str(root)]).exit_code == 0
    (root / "expectations/staging").mkdir()
    (root / "expectations/staging/stg_orders.yml").write_text("max_quarantined: 90%\nexpectations: []\n")
    model = root / "models/staging/stg_orders.yml"
    fresh = "event_time: ordered_at\n    freshness: {warn_after: 99999 days}\n    columns:"
    model.write_text(model.read_text().replace("columns:", fresh, 1))
    assert run(root, "build").exit_code == 0
    results, built = read(root, "run_results.json"), read(root, "manifest.json")
    RunResultsV6(**results)
    ManifestV12(**built)
    done = run(root, "docs", "generate")

    assert done.exit_code == 0, done.output
    assert done.output == "Wrote target/manifest.json\nWrote target/catalog.json\nWrote target/docs/index.html\n"
    assert {one["unique_id"] for one in results["results"]} == set(built["nodes"])
    catalog = read(root, "catalog.json")
    CatalogV1(**catalog)
    assert set(catalog["nodes"]) == {node for node in built["nodes"] if node.startswith("model.")}
    shown = json.loads(run(root, "show", "daily_sales", "--output", "json").output)
    mart = catalog["nodes"]["model.cafe.daily_sales"]
    assert list(mart["columns"]) == list(shown[0])
    assert mart["stats"]["num_rows"]["value"] == len(shown)
    assert set(catalog["sources"]) == set(built["sources"])


def test_before_the_first_tick_the_catalog_has_the_sources_alone(tmp_path: Path) -> None:
    root = tmp_path / "cafe"
    CliRunner().invoke(main, ["init", str(root)])

    assert run(root, "docs", "generate").exit_code == 0
    catalog = read(root, "catalog.json")
    CatalogV1(**catalog)
    assert catalog["nodes"] == {} and list(catalog["sources"]) == ["source.cafe.raw.orders"]


def test_views_are_in_the_catalog(tmp_path: Path) -> None:
    project(
        tmp_path,
        models__cents_sql="{{ config(materialized='view') }}\nselect id, cents from {{ ref('raw') }}",
        models__orders_sql="select id from {{ ref('cents') }}",
    )
    assert run(tmp_path, "build", "--quiet").exit_code == 0
    assert run(tmp_path, "docs", "generate").exit_code == 0
    catalog = read(tmp_path, "catalog.json")
    CatalogV1(**catalog)

    view = catalog["nodes"]["model.shop.cents"]
    assert view["metadata"]["type"] == "view"
    assert {name: column["type"] for name, column in view["columns"].items()} == {"id": "int", "cents": "int"}
    assert catalog["nodes"]["seed.shop.raw"]["stats"]["num_rows"]["value"] == 2


def test_an_environment_has_a_schema_of_its_own() -> None:
    made = prepared(ROOT)
    node = f"model.{made.project.name}.stg_orders"

    assert manifest_of(made)["nodes"][node]["schema"] == made.project.name
    assert manifest_of(made, "dev")["nodes"][node]["schema"] == f"{made.project.name}__dev"


def test_the_adapter_is_a_setting(tmp_path: Path) -> None:
    made = project(tmp_path, pyproject_toml='[tool.sqlrun]\nname = "shop"\nadapter_type = "databricks"\n')

    assert manifest_of(made)["metadata"]["adapter_type"] == "databricks"


def test_parse_writes_the_manifest_or_says_what_is_wrong(tmp_path: Path) -> None:
    project(tmp_path, models__orders_sql="select id from {{ ref('raw') }}")
    assert run(tmp_path, "parse").output == "1 model: no problems. Wrote target/manifest.json.\n"
    (tmp_path / "models" / "orders.sql").write_text("select idd from {{ ref('raw') }}")
    before = (tmp_path / "target" / "manifest.json").read_text()
    done = run(tmp_path, "parse")

    assert done.exit_code == 2 and "models/orders.sql:1:8" in done.output
    assert (tmp_path / "target" / "manifest.json").read_text() == before


def test_a_folder_that_cannot_be_written_is_an_error_with_its_file(tmp_path: Path) -> None:
    project(tmp_path, models__orders_sql="select id from {{ ref('raw') }}")
    (tmp_path / "target" / "manifest.json").mkdir(parents=True)
    done = run(tmp_path, "parse")

    assert done.exit_code == 1
    assert "can't write" in done.output and "manifest.json" in done.output
