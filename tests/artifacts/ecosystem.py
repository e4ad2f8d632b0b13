"""Let dbt's tools read the artifacts of the reference project: `make ecosystem`. Each has an environment of its own.

The tools are unmodified, from the public registry. Each must find the project's models, columns and tests as they are.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from pathlib import Path

import yaml

from sqlrun.pipeline import prepare
from tests.deploy import ecosystem
from tests.deploy.ecosystem import HOME, made, shell

TOOLS = {
    "dbt-coverage": ["dbt-coverage==0.5.0"],
    "dbt-bouncer": ["dbt-bouncer==4.3.0"],
    "dbt-score": ["dbt-score==0.19.0"],
    # 0.3.7 uses what later versions of sqlglot lack, and doesn't say so in its requirements.
    "dbt-colibri": ["dbt-colibri==0.3.7", "sqlglot[c]==30.16.0"],
    # Without its requirement dbt-core, which it runs and doesn't import.
    "openlineage-dbt": ["openlineage-integration-common==1.54.0", "pyyaml", "jinja2", "tqdm"],
    # It imports dateutil and doesn't require it.
    "astronomer-cosmos": ["apache-airflow==3.3.2", "astronomer-cosmos==1.15.1"],
    "dagster-dbt": ["dagster-dbt==0.29.27", "python-dateutil"],
}
RULES = {
    "dbt_artifacts_dir": "target",
    "manifest_checks": [
        {"name": "check_model_description_populated"},
        {"name": "check_model_names", "include": "^models/staging", "model_name_pattern": "^stg_"},
        {"name": "check_source_description_populated"},
        {
            "name": "check_model_has_unique_test",
            "include": "^models/marts",
            "accepted_uniqueness_tests": ["unique", "dbt_utils.unique_combination_of_columns"],
        },
    ],
    "catalog_checks": [{"name": "check_column_description_populated"}, {"name": "check_columns_are_all_documented"}],
    "run_results_checks": [{"name": "check_run_results_max_execution_time", "max_execution_time_seconds": 600}],
}

# Airflow reads a file that has the words airflow and dag.
COSMOS = """
# airflow dag
from datetime import datetime
from pathlib import Path
from cosmos import DbtDag, ExecutionConfig, ProfileConfig, ProjectConfig, RenderConfig
from cosmos.constants import InvocationMode, LoadMode

project = Path("{project}")
shop = DbtDag(
    dag_id="shop",
    project_config=ProjectConfig(
        dbt_project_path=project,
        manifest_path=project / "target" / "manifest.json",
        project_name="restaurant_dashboard",
    ),
    profile_config=ProfileConfig(
        profile_name="shop", target_name="cluster_duckdb", profiles_yml_filepath=Path("{profiles}")
    ),
    execution_config=ExecutionConfig(dbt_executable_path="{program}", invocation_mode=InvocationMode.SUBPROCESS),
    render_config=RenderConfig(load_method=LoadMode.DBT_MANIFEST, dbt_deps=False),
    operator_args={{"install_deps": False}},
    schedule=None,
    start_date=datetime(2026, 1, 1),
    catchup=False,
)
"""
DAGSTER = """
import sys
from pathlib import Path
import dagster
from dagster_dbt import DbtCliResource, dbt_assets

root = Path(sys.argv[1])

@dbt_assets(manifest=root / "target" / "manifest.json")
def tables(context: dagster.AssetExecutionContext, dbt: DbtCliResource):
    yield from dbt.cli(["build"], context=context).stream()

resource = DbtCliResource(project_dir=str(root), dbt_executable="sqlrun-dbt")
result = dagster.materialize([tables], resources={"dbt": resource}, selection=(sys.argv[2:] or [None])[0])
checks = [event for event in result.all_events if event.event_type_value == "ASSET_CHECK_EVALUATION"]
print("materialized:", len(result.get_asset_materialization_events()), "checked:", len(checks))
"""


def main() -> int:
    """Run all tools; a failed one ends the run."""
    ecosystem.TOOLS.update(TOOLS)
    with tempfile.TemporaryDirectory() as name:
        project = Path(name) / "project"
        made(project)
        file = project / "pyproject.toml"
        file.write_text(file.read_text().replace("[tool.sqlrun]", '[tool.sqlrun]\nadapter_type = "databricks"', 1))
        variables = {"SQLRUN_WAREHOUSE": str(project / "warehouse" / "it"), "DO_NOT_TRACK": "1"}
        shell(["sqlrun", "build", "--quiet"], project, variables)
        shell(["sqlrun", "docs", "generate"], project, variables)
        for check in (coverage, bouncer, score, colibri, openlineage, dagster, cosmos):
            print(check(project, variables))
    return 0


def coverage(project: Path, variables: dict[str, str]) -> str:
    """Every column of the reference project has a description."""
    shown = tool("dbt-coverage", "dbt-coverage", ["compute", "doc"], project, variables)
    total = next(line for line in shown.splitlines() if line.startswith("Total"))
    columns = sum(len(table.columns) for table in prepare(project).project.models)
    covered, of = map(int, re.findall(r"(\d+)/(\d+)", total)[0])
    assert covered == of > columns, shown
    tests = tool("dbt-coverage", "dbt-coverage", ["compute", "test"], project, variables)
    assert "restaurant_windows                   (0 tests)" not in tests, tests
    return f"dbt-coverage: {covered} of {of} columns have a description"


def bouncer(project: Path, variables: dict[str, str]) -> str:
    """The project keeps the rules; a rule that it breaks is found."""
    (project / "rules.yml").write_text(yaml.safe_dump(RULES))
    shown = tool("dbt-bouncer", "dbt-bouncer", ["run", "--config-file", "rules.yml"], project, variables)
    done = re.findall(r"SUCCESS=(\d+) WARN=0 ERROR=0", shown)
    assert done and int(done[0]) > 10, shown
    return f"dbt-bouncer: {done[0]} checks"


def score(project: Path, variables: dict[str, str]) -> str:
    """Each model gets a score."""
    shown = tool(
        "dbt-score",
        "dbt-score",
        [
            "lint",
            "--manifest",
            "target/manifest.json",
            "--show",
            "all",
            "--fail-project-under",
            "0",
            "--fail-any-item-under",
            "0",
        ],
        project,
        variables,
    )
    names = prepare(project).names
    assert all(f"{name}" in shown for name in names), shown
    return f"dbt-score: {len(names)} models"


def colibri(project: Path, variables: dict[str, str]) -> str:
    """The lineage of columns has no table that the manifest lacks."""
    tool("dbt-colibri", "colibri", ["generate", "--disable-telemetry", "--output-dir", "lineage"], project, variables)
    edges = json.loads((project / "lineage" / "colibri-manifest.json").read_text())["lineage"]["edges"]
    columns = [edge for edge in edges if edge["sourceColumn"]]
    strange = [edge for edge in edges if edge["source"].split(".")[0] not in ("model", "seed", "source")]
    assert strange == [] and len(columns) > 50, strange
    name = prepare(project).project.name
    wanted = (f"model.{name}.fct_restaurant_slots", "total_sales", f"model.{name}.fct_restaurant_hours", "total_sales")
    keys = ("source", "sourceColumn", "target", "targetColumn")
    assert wanted in {tuple(edge[key] for key in keys) for edge in columns}
    return f"dbt-colibri: {len(columns)} edges between columns"


def dagster(project: Path, variables: dict[str, str]) -> str:
    """It runs `sqlrun-dbt` as it runs dbt: all tables, then one."""
    (project / "dbt_project.yml").write_text("name: restaurant_dashboard\n")
    shell(["sqlrun", "clean", "--warehouse"], project, variables)
    shell(["sqlrun", "parse"], project, variables)
    python = str(HOME / "dagster-dbt" / "bin" / "python")
    ecosystem.run("dagster-dbt", ["-c", "pass"], variables)
    made = prepare(project)
    tables = len(made.workspace.tables) + len(made.project.seeds)
    shown = shell([python, "-c", DAGSTER, str(project)], project, variables)
    done = re.findall(r"materialized: (\d+) checked: (\d+)", shown)
    assert done and int(done[0][0]) == tables and int(done[0][1]) > 50, shown[-3000:]
    shown = shell([python, "-c", DAGSTER, str(project), "restaurant_windows"], project, variables)
    assert "materialized: 1 " in shown, shown[-3000:]
    return f"dagster-dbt: {done[0][0]} assets, {done[0][1]} checks; one of them alone"


def openlineage(project: Path, variables: dict[str, str]) -> str:
    """`dbt-ol` runs the program `dbt`, and reads what it wrote."""
    folder, events = project.parent / "openlineage", project.parent / "events.jsonl"
    folder.mkdir()
    (folder / "dbt").symlink_to(Path(sys.executable).parent / "sqlrun-dbt")
    (folder / "profiles.yml").write_text("shop: {target: x, outputs: {cluster_duckdb: {type: duckdb, path: x}}}\n")
    (project / "dbt_project.yml").write_text("name: restaurant_dashboard\nprofile: shop\n")
    ecosystem.run("openlineage-dbt", ["-m", "pip", "install", "-q", "--no-deps", "openlineage-dbt==1.54.0"], variables)
    settings = {
        **variables,
        "PATH": os.pathsep.join((str(folder), os.environ["PATH"])),
        "DBT_PROFILES_DIR": str(folder),
        "OPENLINEAGE__TRANSPORT__TYPE": "file",
        "OPENLINEAGE__TRANSPORT__LOG_FILE_PATH": str(events),
        "OPENLINEAGE__TRANSPORT__APPEND": "true",
    }
    program = str(HOME / "openlineage-dbt" / "bin" / "dbt-ol")
    arguments = ["build", "--full-refresh", "--project-dir", str(project), "--target", "cluster_duckdb"]
    shell([program, *arguments], project, settings)
    found = [json.loads(line) for line in events.read_text().splitlines()]
    made_by = {
        out["name"].rpartition(".")[2]: {one["name"].rpartition(".")[2] for one in event["inputs"]}
        for event in found
        if event["eventType"] == "COMPLETE"
        for out in event.get("outputs", ())
    }
    assert made_by["fct_restaurant_hours"] == {"fct_restaurant_slots"}, made_by
    assert set(made_by) == {table.name for table in prepare(project).workspace.tables}
    return f"openlineage-dbt: {len(found)} events"


def cosmos(project: Path, variables: dict[str, str]) -> str:
    """It makes a task of each table and of its checks, and runs `sqlrun-dbt` in each."""
    home = project.parent / "airflow"
    (home / "dags").mkdir(parents=True)
    (home / "profiles.yml").write_text("shop: {target: cluster_duckdb, outputs: {cluster_duckdb: {type: spark}}}\n")
    program = Path(sys.executable).parent / "sqlrun-dbt"
    text = COSMOS.format(project=str(project), profiles=str(home / "profiles.yml"), program=str(program))
    (home / "dags" / "shop.py").write_text(text)
    settings = {
        **variables,
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
    }
    shell(["sqlrun", "clean", "--warehouse"], project, variables)
    shell(["sqlrun", "parse"], project, variables)
    ecosystem.run("astronomer-cosmos", ["-m", "airflow", "db", "migrate"], settings)
    shown = ecosystem.run("astronomer-cosmos", ["-m", "airflow", "dags", "test", "shop"], settings)
    found = prepare(project)
    tasks = shown.count("new_state=success")
    assert tasks > len(found.workspace.tables) + len(found.project.seeds) and "state=success" in shown, shown[-3000:]
    assert "new_state=failed" not in shown
    return f"astronomer-cosmos: {tasks} tasks"


def tool(name: str, program: str, arguments: list[str], project: Path, variables: dict[str, str]) -> str:
    """Run a tool's program in the project; return its output."""
    ecosystem.run(name, ["-c", "pass"], variables)
    return shell([str(HOME / name / "bin" / program), *arguments], project, variables)


if __name__ == "__main__":
    sys.exit(main())
