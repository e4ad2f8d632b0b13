"""Build the jar for Spark, and copy the example into the package; all else is in pyproject.toml."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
SOURCE = ROOT / "java" / "spark"
JAR = ROOT / "sqlrun" / "engines" / "spark" / "sqlrun-spark.jar"
EXAMPLE = ("models", "macros", "seeds", "profiles", "expectations", "tests/fixtures")


class Build(build_py):
    """`build_py` with the jar. Without Maven it warns: what needs the jar says so."""

    def run(self) -> None:
        """Build the jar if it is missing or older than its source, then do as setuptools does."""
        if not self.editable_mode and not _is_current():
            maven = shutil.which("mvn")
            if maven is None:
                print(
                    "warning: no Maven, so this build lacks the jar with the log store for S3 and the catalog",
                    file=sys.stderr,
                )
            else:
                subprocess.run([maven, "-q", "-B", "-f", str(SOURCE / "pom.xml"), "package"], check=True)
        super().run()
        if not self.editable_mode:
            _copy_example(Path(self.build_lib) / "sqlrun" / "scaffold" / "examples" / "restaurants")


def _copy_example(target: Path) -> None:
    """Copy the reference project for `sqlrun init --example`; an editable install finds it beside the package."""
    shutil.rmtree(target, ignore_errors=True)  # an earlier build's files may be gone from the source
    if not all((ROOT / folder).is_dir() for folder in EXAMPLE):
        print("warning: no reference project here, so this build lacks the example", file=sys.stderr)
        return
    for folder in EXAMPLE:
        for file in (ROOT / folder).rglob("*"):
            if file.suffix in (".sql", ".yml", ".csv"):
                copy = target / file.relative_to(ROOT)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, copy)
    shutil.copyfile(ROOT / "pyproject.toml", target / "pyproject.toml")


def _is_current() -> bool:
    sources = [SOURCE / "pom.xml", *SOURCE.rglob("*.java")]
    return JAR.is_file() and JAR.stat().st_mtime >= max(file.stat().st_mtime for file in sources)


setup(cmdclass={"build_py": Build})
