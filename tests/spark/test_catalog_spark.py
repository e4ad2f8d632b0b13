"""A project whose published tables are in a Hive metastore: another Spark reads them there, by their names."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import sqlrun
from tests.support.projects import ROOT
from tests.support.readers_of_delta import rows
from tests.support.servers import hive_metastore
from tests.support.waiting import HUNG

pytestmark = [pytest.mark.spark, pytest.mark.long]

# In a process of its own: a JVM keeps the metastore of its first session.
COMMANDS = """
import json, sys
from click.testing import CliRunner
from sqlrun.cli.main import main

for command in json.loads(sys.argv[1]):
    done = CliRunner().invoke(main, command, catch_exceptions=False)
    assert done.exit_code == 0, (command, done.output)
"""
READ = """
import json, sys
from sqlrun.engines.spark.session import session_of
from tests.support.readers_of_delta import rows

session = session_of(json.loads(sys.argv[1]))
schemas = [row["namespace"] for row in session.sql("show schemas").collect()]
found = {}
for schema in schemas:
    for row in session.sql(f"show tables in {schema}").collect():
        name = f"{schema}.{row['tableName']}"
        found[name] = sorted(rows(each.asDict(recursive=True) for each in session.table(name).collect()).elements())
print("FOUND", json.dumps({"schemas": schemas, "tables": found}))
"""
LIMIT = 420


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with hive_metastore.running(tmp_path_factory.mktemp("hive") / "metastore") as found:
        yield found | {"spark.driver.memory": "1g"}


def python(folder: Path, code: str, argument: object) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(argument)],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=LIMIT,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def read(folder: Path, settings: Mapping[str, str]) -> dict[str, dict[str, list[str]]]:
    line = next(line for line in python(folder, READ, settings).splitlines() if line.startswith("FOUND "))
    found: dict[str, dict[str, list[str]]] = json.loads(line.removeprefix("FOUND "))
    return found


def published(folder: Path, name: str, env: str) -> list[str]:
    found = sqlrun.published(name, str(folder / "warehouse" / "hive"), env=env)
    return sorted(rows(found.to_pylist()).elements())


def test_another_spark_reads_the_tables(tmp_path: Path, settings: dict[str, str]) -> None:
    """After ticks, an edit that moves a table, an environment, and its end."""
    folder = tmp_path / "corner shop"
    subprocess.run(
        [sys.executable, "-m", "sqlrun", "init", str(folder)],
        check=True, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=HUNG, capture_output=True,
    )  # fmt: skip
    profile = {"engine": "spark", "warehouse": "warehouse/hive", "catalog": "spark_catalog", "settings": settings}
    (folder / "profiles" / "hive.yml").write_text(json.dumps(profile))
    build = ["build", "--profile", "hive"]
    python(folder, COMMANDS, [build, [*build, "--env", "dev"]])
    [mart] = (folder / "models").rglob("daily_sales.sql")
    text = mart.read_text()
    mart.write_text(text.replace("count(*)", "count(1)"))
    assert mart.read_text() != text
    python(folder, COMMANDS, [build])

    found = read(folder, settings)
    tables = found["tables"]
    assert {name.partition(".")[0] for name in tables} == {"corner_shop", "corner_shop__dev"}
    for name, seen in tables.items():
        schema, _, table = name.partition(".")
        assert seen == published(folder, table, "dev" if schema.endswith("__dev") else ""), name
        assert seen, name

    python(folder, COMMANDS, [["env", "drop", "dev", "--profile", "hive"]])
    left = read(folder, settings)["tables"]
    assert left == {name: seen for name, seen in tables.items() if name.startswith("corner_shop.")}
