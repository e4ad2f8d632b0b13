"""Ask the tools themselves about `deploy/`: `make ecosystem`. Each is installed in an environment of its own.

Kubernetes' schemas judge the manifests. Dagster and Airflow load their files and run one tick of the reference project,
then one while another build holds the warehouse.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import environments

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
# Not in target/, where sqlrun allows no links: each environment has one.
HOME = ROOT / "build" / "ecosystem"
TOOLS = {
    "kubernetes": ["kubernetes-validate==1.37.0"],
    "dagster": ["dagster==1.13.29"],
    "airflow": ["apache-airflow==3.3.2"],
}
# The operator's own kind is in no schema of Kubernetes.
OTHERS = {"SparkConnect"}
VALIDATE = """
import sys, yaml, kubernetes_validate
for file in sys.argv[2:]:
    for one in yaml.safe_load_all(open(file)):
        if one["kind"] not in sys.argv[1].split(","):
            kubernetes_validate.validate(one, kubernetes_validate.latest_version(), strict=True)
            print("valid:", one["kind"], one["metadata"]["name"])
"""
MATERIALIZE = """
import importlib.util, sys, dagster
found = importlib.util.spec_from_file_location("assets", sys.argv[1])
module = importlib.util.module_from_spec(found)
found.loader.exec_module(module)
dagster.Definitions.validate_loadable(module.definitions)
result = dagster.materialize([module.tables])
print("materialized:", len(result.get_asset_materialization_events()))
"""


def main() -> int:
    """Run all checks; a failed one ends the run."""
    manifests = sorted(map(str, (DEPLOY / "kubernetes").glob("*.yaml")))
    print(run("kubernetes", ["-c", VALIDATE, ",".join(OTHERS), *manifests], {}))
    with tempfile.TemporaryDirectory() as name:
        project = Path(name) / "project"
        made(project)
        variables = {"SQLRUN_PROJECT": str(project), "SQLRUN_WAREHOUSE": str(project / "warehouse" / "it")}
        shell(["sqlrun", "build", "--quiet", "--profile", "cluster_duckdb"], project, variables)
        dagster(variables)
        airflow(Path(name) / "airflow", variables)
    return 0


def made(project: Path) -> None:
    """Make the reference project, with the image's profiles and some orders."""
    project.mkdir()
    for room in ("models", "macros", "seeds", "expectations", "tests/fixtures"):
        shutil.copytree(ROOT / room, project / room)
    shutil.copytree(DEPLOY / "profiles", project / "profiles")
    text = (ROOT / "pyproject.toml").read_text()
    (project / "pyproject.toml").write_text(text.replace('profile = "local"', 'profile = "cluster_duckdb"'))
    (project / "warehouse").mkdir()
    shell(["sqlrun", "simulate", "--hours", "6"], project, {"SQLRUN_WAREHOUSE": str(project / "warehouse" / "it")})


def dagster(variables: dict[str, str]) -> None:
    """Load the assets and run a tick; a second build that is running skips them."""
    arguments = ["-c", MATERIALIZE, str(DEPLOY / "dagster/sqlrun_assets.py")]
    found = run("dagster", arguments, variables)
    nodes = json.loads(shell(["sqlrun", "ls", "--output", "json"], Path(variables["SQLRUN_PROJECT"]), variables))
    expected = sum(node["kind"] != "source" for node in nodes)
    assert f"materialized: {expected}" in found, found
    with held(variables):
        assert "materialized: 0" in run("dagster", arguments, variables)
    print(f"dagster: {expected} assets; none while another build runs")


def airflow(home: Path, variables: dict[str, str]) -> None:
    """Load the DAG and run its task; a second build that is running skips it."""
    settings = {
        **variables,
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(DEPLOY / "airflow"),
    }
    run("airflow", ["-m", "airflow", "db", "migrate"], settings)
    found = run("airflow", ["-m", "airflow", "dags", "test", "sqlrun_build"], settings)
    assert "state=success" in found or "SUCCESS" in found, found
    with held(variables):
        found = run("airflow", ["-m", "airflow", "dags", "test", "sqlrun_build"], settings)
    assert "skipped" in found.lower(), found
    print("airflow: one task, skipped while another build runs")


class held:
    """Another process that holds the warehouse, as a build does."""

    CODE = """
import sys
from datetime import datetime, timezone
from sqlrun.storage import lock
with lock.hold(sys.argv[1], datetime.now(timezone.utc)):
    print("held", flush=True)
    sys.stdin.read()
"""

    def __init__(self, variables: dict[str, str]) -> None:
        self._warehouse = variables["SQLRUN_WAREHOUSE"]

    def __enter__(self) -> None:
        argv = [sys.executable, "-c", self.CODE, self._warehouse]
        self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)
        assert self._process.stdout is not None and self._process.stdout.readline() == b"held\n"

    def __exit__(self, *_: object) -> None:
        self._process.communicate()


def run(tool: str, arguments: list[str], variables: dict[str, str]) -> str:
    """Run a tool's Python, with this environment's `sqlrun` on its PATH; return its output."""
    python = environments.installed(HOME / tool, TOOLS[tool])
    return shell([str(python), *arguments], ROOT, variables)


def shell(argv: list[str], folder: Path, variables: dict[str, str]) -> str:
    """Run a command; return its output."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), **variables}
    done = subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, f"{argv[:4]} ended with {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout + done.stderr


if __name__ == "__main__":
    sys.exit(main())
