"""Build the jar of the log store before the package's files are collected; all else is in pyproject.toml."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
SOURCE = ROOT / "java" / "log_store"
JAR = ROOT / "sqlrun" / "engines" / "spark" / "sqlrun-log-store.jar"


class Build(build_py):
    """`build_py` with the jar. Without Maven it warns: only Spark on a warehouse in S3 needs the jar, and says so."""

    def run(self) -> None:
        """Build the jar if it is missing or older than its source, then do as setuptools does."""
        if not self.editable_mode and not _is_current():
            maven = shutil.which("mvn")
            if maven is None:
                print("warning: no Maven, so this build lacks the jar of Spark's log store for S3", file=sys.stderr)
            else:
                subprocess.run([maven, "-q", "-B", "-f", str(SOURCE / "pom.xml"), "package"], check=True)
        super().run()


def _is_current() -> bool:
    sources = [SOURCE / "pom.xml", *SOURCE.rglob("*.java")]
    return JAR.is_file() and JAR.stat().st_mtime >= max(file.stat().st_mtime for file in sources)


setup(cmdclass={"build_py": Build})
