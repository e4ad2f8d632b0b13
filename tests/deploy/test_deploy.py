"""The files in `deploy/` are true: their commands parse, their profiles load, and they agree with each other.

What only the tools themselves can say, `make ecosystem` asks them (`ecosystem.py`).
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark.version
import pytest
import yaml

from sqlrun.cli.main import main
from sqlrun.engines.spark import jars
from sqlrun.errors import LockedError
from sqlrun.load import profile
from sqlrun.project import Profile

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
MANIFESTS = {path.stem: list(yaml.safe_load_all(path.read_text())) for path in (DEPLOY / "kubernetes").glob("*.yaml")}
PYTHON = sorted(DEPLOY.rglob("*.py"))
ANOTHER_BUILD = LockedError.exit_code


def pods() -> dict[str, dict[str, Any]]:
    """Return the specification of each manifest's pods."""
    return {
        "cronjob": MANIFESTS["cronjob"][0]["spec"]["jobTemplate"]["spec"]["template"]["spec"],
        "builder": MANIFESTS["builder"][0]["spec"]["template"]["spec"],
    }


def spark() -> dict[str, Any]:
    """Return the manifest of the server of Spark Connect."""
    found: dict[str, Any] = MANIFESTS["spark_connect"][0]
    return found


def container(name: str) -> dict[str, Any]:
    (found,) = pods()[name]["containers"]
    assert isinstance(found, dict)
    return found


def dag() -> dict[str, Any]:
    """Return the constants that the calls of the DAG's file are given, by name."""
    calls = [n for n in ast.walk(ast.parse((DEPLOY / "airflow/sqlrun_dag.py").read_text())) if isinstance(n, ast.Call)]
    words = [word for call in calls for word in call.keywords if isinstance(word.value, ast.Constant)]
    return {word.arg: word.value.value for word in words if word.arg and isinstance(word.value, ast.Constant)}


def container_file() -> dict[str, list[str]]:
    """Return the instructions of the container file, by their names, with continued lines joined."""
    lines = (DEPLOY / "Containerfile").read_text().replace("\\\n", " ").split("\n")
    found: dict[str, list[str]] = {}
    for line in filter(None, lines):
        if not line.startswith("#"):
            found.setdefault(line.split()[0], []).append(line.partition(" ")[2])
    return found


def commands() -> Iterator[Any]:
    """Yield the arguments of sqlrun in every file."""
    for name in pods():
        yield pytest.param(container(name)["args"], id=name)
    yield pytest.param([*container("builder")["args"][:-1], "cluster_spark"], id="builder with Spark")
    (text,) = container_file()["CMD"]
    yield pytest.param(json.loads(text), id="image")
    yield pytest.param(str(dag()["bash_command"]).split()[2:], id="airflow")
    (shown,) = re.findall(r'Popen\(\["sqlrun", (.*?)\]', (DEPLOY / "dagster/sqlrun_assets.py").read_text())
    yield pytest.param(shown.replace('"', "").replace("PROFILE", "cluster_duckdb").split(", "), id="dagster")


@pytest.fixture
def profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a project's folder with the profiles that the image has."""
    (config,) = (one for one in MANIFESTS["config"] if one["kind"] == "ConfigMap")
    for name, value in config["data"].items():
        monkeypatch.setenv(name, value)
    (tmp_path / "profiles").mkdir()
    for path in (DEPLOY / "profiles").glob("*.yml"):
        (tmp_path / "profiles" / path.name).write_text(path.read_text())
    return tmp_path


def named(arguments: list[str]) -> str:
    return arguments[arguments.index("--profile") + 1]


@pytest.mark.parametrize("arguments", list(commands()))
def test_a_command_is_one_of_sqlrun_s_and_names_a_profile(arguments: list[str], profiles: Path) -> None:
    command = main.commands[arguments[0]]
    context = command.make_context(arguments[0], arguments[1:])

    loaded = profile.load(profiles, named(arguments))

    assert context.params["profile"] == loaded.name
    assert isinstance(loaded, Profile) and loaded.warehouse == "/warehouse/restaurants"


def test_an_unknown_option_would_be_found() -> None:
    import click

    with pytest.raises(click.NoSuchOption):
        main.commands["build"].make_context("build", ["--evry", "5m"])


@pytest.mark.parametrize("name", ["cronjob", "builder"])
def test_a_pod_waits_longer_than_its_build_needs_to_stop(name: str, profiles: Path) -> None:
    grace = profile.load(profiles, named(container(name)["args"])).stop_grace

    assert pods()[name]["terminationGracePeriodSeconds"] > grace > 60


def test_dagster_and_the_other_profile_wait_as_long(profiles: Path) -> None:
    text = (DEPLOY / "dagster/sqlrun_assets.py").read_text()
    (grace,) = re.findall(r"^GRACE = (\d+)$", text, re.M)
    graces = {profile.load(profiles, name).stop_grace for name in ("cluster_duckdb", "cluster_spark")}

    assert len(graces) == 1 and int(grace) > graces.pop()


def test_there_is_one_builder_at_a_time() -> None:
    assert MANIFESTS["cronjob"][0]["spec"]["concurrencyPolicy"] == "Forbid"
    assert MANIFESTS["builder"][0]["spec"]["replicas"] == 1
    assert MANIFESTS["builder"][0]["spec"]["strategy"] == {"type": "Recreate"}
    assert dag()["max_active_runs"] == 1 and dag()["catchup"] is False


def test_another_build_is_no_failure_anywhere() -> None:
    job = MANIFESTS["cronjob"][0]["spec"]["jobTemplate"]["spec"]
    ignored = [rule["onExitCodes"] for rule in job["podFailurePolicy"]["rules"] if "onExitCodes" in rule]
    text = (DEPLOY / "dagster/sqlrun_assets.py").read_text()

    assert [(rule["containerName"], rule["values"]) for rule in ignored] == [("sqlrun", [ANOTHER_BUILD])]
    assert job["activeDeadlineSeconds"] > 0  # or such a job would wait for ever
    assert dag()["skip_on_exit_code"] == ANOTHER_BUILD
    assert f"PUBLISHED, ANOTHER_BUILD = 0, {ANOTHER_BUILD}\n" in text
    assert "--wait" in container("builder")["args"]


def test_signals_reach_sqlrun() -> None:
    """Without a shell between them: its arguments are lists."""
    instructions = container_file()

    assert [json.loads(text) for text in instructions["ENTRYPOINT"]] == [["sqlrun"]]
    assert instructions["STOPSIGNAL"] == ["SIGTERM"]
    assert str(dag()["bash_command"]).startswith("exec sqlrun ")
    assert not any("command" in container(name) for name in pods())


def test_what_the_image_copies_is_there() -> None:
    copied = [text.split()[:-1] for text in container_file()["COPY"]]

    assert [source for sources in copied for source in sources if not (ROOT / source).exists()] == []


def test_the_image_is_not_run_by_root() -> None:
    (user,) = container_file()["USER"]

    for pod in pods().values():
        assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["runAsUser"] == int(user)


@pytest.mark.parametrize("name", ["cronjob", "builder"])
def test_a_pod_can_write_where_a_build_writes(name: str) -> None:
    (config,) = (one for one in MANIFESTS["config"] if one["kind"] == "ConfigMap")
    mounts = {mount["mountPath"]: mount["name"] for mount in container(name)["volumeMounts"]}
    volumes = {volume["name"] for volume in pods()[name]["volumes"]}

    assert container(name)["securityContext"]["readOnlyRootFilesystem"]
    assert config["data"]["SQLRUN_WAREHOUSE"].startswith("/warehouse/")
    assert mounts.keys() == {"/warehouse", "/project/data", "/project/target", "/tmp"}
    assert {*mounts.values()} == volumes


def test_all_pods_have_one_image_and_one_environment() -> None:
    assert len({container(name)["image"] for name in pods()}) == 1
    assert container("cronjob")["envFrom"] == container("builder")["envFrom"]


def test_the_builder_and_spark_see_the_same_files_as_one_user() -> None:
    server, executor = (spark()["spec"][part]["template"]["spec"] for part in ("server", "executor"))
    ours = {mount["mountPath"]: mount for mount in container("builder")["volumeMounts"] if mount["name"] == "files"}

    for pod in (server, executor):
        assert {mount["mountPath"]: mount for mount in pod["containers"][0]["volumeMounts"]} == ours
        assert pod["volumes"] == [one for one in pods()["builder"]["volumes"] if one["name"] == "files"]
        assert pod["securityContext"] == pods()["builder"]["securityContext"]
        assert pod["containers"][0]["image"] == spark()["spec"]["image"]


def test_the_profile_names_the_server_which_is_sqlrun_s_spark(profiles: Path) -> None:
    manifest, settings = spark(), profile.load(profiles, "cluster_spark").settings
    server = manifest["spec"]["server"]["template"]["spec"]
    accounts = [one["metadata"]["name"] for one in MANIFESTS["spark_connect"] if one["kind"] == "ServiceAccount"]

    # The operator makes the name of the service of the manifest's name.
    assert settings["spark.remote"] == f"sc://{manifest['metadata']['name']}-server:15002"
    assert manifest["spec"]["sparkVersion"] == pyspark.version.__version__
    assert manifest["spec"]["image"].endswith(f":{pyspark.version.__version__}")
    assert manifest["spec"]["sparkConf"]["spark.jars.packages"] == jars.DELTA
    assert accounts == [server["serviceAccountName"]]


def test_no_file_has_a_secret() -> None:
    """Secrets come from the environment: no key of a store, no password, no token stands in a file."""
    word = re.compile(r"(?i)(password|token|secret|access_key|api_key)\w*\s*[:=]\s*(?!\s*$)['\"]?[A-Za-z0-9/+]{8,}")
    wrong = [path.name for path in DEPLOY.rglob("*") if path.is_file() and word.search(path.read_text())]

    assert wrong == []
    assert word.search("AWS_SECRET_ACCESS_KEY: wJalrXUtnFEMI")


@pytest.mark.parametrize("path", PYTHON, ids=lambda path: path.name)
def test_python_files_compile(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text()))


def test_the_page_names_every_file() -> None:
    page = (ROOT / "docs/howto/deploy.md").read_text()
    files = [
        str(path.relative_to(ROOT)) for path in DEPLOY.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    ]

    assert len(files) > 8
    assert [file for file in files if file not in page] == []
