"""Folders whose names have blanks and quotes: the project's, the tool's own, Spark's, that of temporary files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyspark
import pytest

import sqlrun
from tests import shops
from tests.test_warm_builds import Shell, put

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_a_jvm_is_born_wherever_all_lies(tmp_path: Path) -> None:
    place = tmp_path / 'Ann\'s "own" place, 100% höher'
    temporary = place / "tmp $HOME;"
    temporary.mkdir(parents=True)
    shutil.copytree(Path(sqlrun.__file__).parent, place / "sqlrun", ignore=shutil.ignore_patterns("__pycache__"))
    (place / "pyspark").symlink_to(Path(pyspark.__file__).parent)
    shell = Shell(shops.project(place / "project"), place / "run")
    profile = "engine: spark\nwarehouse: the warehouse\nsettings:\n  spark.driver.memory: 1g\n"
    (shell.root / "profiles" / "local.yml").write_text(profile)
    put(shell.root, "a")
    for command in (["build", "--skip-tests"], ["verify"]):
        code, said = shell.run(*command, alone=True, PYTHONPATH=str(place), TMPDIR=str(temporary))
        assert code == 0, said
