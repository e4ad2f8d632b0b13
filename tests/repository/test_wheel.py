"""What a wheel has beside the modules of Python: the jar of Spark's log store, built from the source here."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.servers import jars

ROOT = Path(__file__).parents[2]
NEEDED = ("sqlrun", "java", "pyproject.toml", "setup.py", "MANIFEST.in", "README.md")


@pytest.mark.servers
@pytest.mark.long
def test_a_wheel_has_the_jar_that_this_source_makes(tmp_path):
    jar = jars.spark_jar()
    source = tmp_path / "source"
    source.mkdir()
    leave = shutil.ignore_patterns("*.jar", "__pycache__", "target")
    for name in NEEDED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=leave)
        else:
            shutil.copy(ROOT / name, source / name)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(source)]
    subprocess.run(command, check=True, capture_output=True, timeout=jars.LONGEST)

    with zipfile.ZipFile(next(tmp_path.glob("sqlrun-*.whl"))) as wheel:
        assert wheel.read("sqlrun/engines/spark/sqlrun-spark.jar") == jar.read_bytes()
        assert not [name for name in wheel.namelist() if name.endswith((".java", "pom.xml"))]
