"""A JVM of sqlrun's is born wherever all lies, and whatever other Sparks have left in the environment."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyspark
import pytest

import sqlrun
from tests.daemon.test_warm_builds import Shell, put
from tests.support import shops

pytestmark = [pytest.mark.spark, pytest.mark.slow]
VARIABLES = {
    "LC_ALL": "C",
    "MASTER": "yarn",
    "PYSPARK_GATEWAY_PORT": "1",
    "PYSPARK_GATEWAY_SECRET": "none",
    "PYSPARK_SUBMIT_ARGS": "--master yarn pyspark-shell",
    "SPARK_API_MODE": "connect",
    "SPARK_CONF_DIR": "/nonexistent",
    "SPARK_CONNECT_MODE": "1",
    "SPARK_CONNECT_MODE_ENABLED": "1",
    "SPARK_HOME": "/nonexistent",
    "SPARK_REMOTE": "sc://nowhere",
}


@pytest.mark.long
def test_folders_have_blanks_and_quotes_and_another_spark_is_set_up(tmp_path: Path) -> None:
    place = tmp_path / 'Ann\'s "own" place, 100% höher'
    temporary = place / "tmp $HOME;"
    temporary.mkdir(parents=True)
    shutil.copytree(Path(sqlrun.__file__).parent, place / "sqlrun", ignore=shutil.ignore_patterns("__pycache__"))
    (place / "pyspark").symlink_to(Path(pyspark.__file__).parent)
    shell = Shell(shops.project(place / "project"), place / "run")
    profile = "engine: spark\nwarehouse: the warehouse\nsettings:\n  spark.driver.memory: 1g\n"
    (shell.root / "profiles" / "local.yml").write_text(profile)
    put(shell.root, "a")
    elsewhere = "<property><name>fs.defaultFS</name><value>hdfs://nowhere:9000</value></property>"
    (place / "core-site.xml").write_text(f"<configuration>{elsewhere}</configuration>")
    more = VARIABLES | {"PYTHONPATH": str(place), "TMPDIR": str(temporary), "HADOOP_CONF_DIR": str(place)}
    for command in (["build", "--skip-tests"], ["verify"]):
        code, said = shell.run(*command, alone=True, **more)
        assert code == 0, said
