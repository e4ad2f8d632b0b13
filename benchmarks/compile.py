"""From the files of 1,000 models to a plan: sqlrun beside dbt-core and SQLMesh. Shell: processes, package installs.

python -m benchmarks.compile
python -m benchmarks.compile --models 200 --contenders sqlrun

Every run is its own process, measured as a whole. Cold: without the files of earlier runs. Warm: nothing has changed.
One changed: one line differs in one model, on which 20 others depend.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import many_models, written_projects
from benchmarks.environments import installed, version_of

ROOT = Path(__file__).parent.parent
CHANGED = "models/staging/retail_000/stg_retail_000__orders.sql"
DBT = ("dbt-core==1.12.*", "dbt-duckdb", "duckdb")
MESH = "from sqlmesh import Context; print(len(Context(paths='.').models))"


@dataclass(frozen=True, slots=True)
class Contender:
    """A command on a project; `left` are the files that it leaves for its next run."""

    name: str
    project: str
    command: Sequence[str]
    left: Sequence[str]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--models", type=int, default=1000)
    options.add_argument("--repeat", type=int, default=3)
    options.add_argument("--contenders", default="sqlrun,dbt,sqlmesh")
    options.add_argument("--folder", type=Path, default=ROOT / "target" / "benchmarks" / "compile")
    chosen = options.parse_args()
    names = chosen.contenders.split(",")
    world = many_models.describe(chosen.models)
    for name in names:
        shutil.rmtree(chosen.folder / name, ignore_errors=True)
        written_projects.WRITERS[name](world, chosen.folder / name)
    contenders = [c for name in names for c in made(name, chosen.folder)]
    print(
        f"{len(world.models)} models, {len(world.sources)} sources; medians of {chosen.repeat}, {os.cpu_count()} cores"
    )
    print("seconds (processor seconds)")
    print(f"{'':32} {'cold':>16} {'warm':>16} {'one changed':>16}")
    for contender in contenders:
        cells = [f"{wall:.2f} ({used:.2f})" for wall, used in measured(contender, chosen.folder, chosen.repeat)]
        print(f"{contender.name:32} " + " ".join(f"{text:>16}" for text in cells), flush=True)


def made(name: str, folder: Path) -> list[Contender]:
    """Return the commands to run on one tool's form of the project; install the tool if it is missing."""
    match name:
        case "sqlrun":
            build = "compiled" if is_compiled() else "in Python"
            version = f"sqlrun {importlib.metadata.version('sqlrun')}, sqlglot {build}"
            command = (sys.executable, "-m", "sqlrun", "ls", "--output", "json")
            return [Contender(version, name, command, ("target",))]
        case "dbt":
            python = installed(folder / "venv-dbt", DBT)
            dbt = str(python.parent / "dbt")
            version = f"dbt-core {version_of(python, 'dbt-core')}"
            return [
                Contender(f"{version} {verb}", name, (dbt, "--quiet", verb), ("target",))
                for verb in ("parse", "compile")
            ]
        case "sqlmesh":
            python = installed(folder / "venv-sqlmesh", ["sqlmesh"])
            version = f"SQLMesh {version_of(python, 'sqlmesh')} Context"
            return [Contender(version, name, (str(python), "-c", MESH), (".cache",))]
        case _:
            raise SystemExit(f"there is no contender {name}")


def sqlglot_folder() -> Path:
    import sqlglot

    return Path(sqlglot.__file__).parent


def is_compiled() -> bool:
    """Return whether sqlglot's compiled build (the package sqlglotc) is in use."""
    return any(sqlglot_folder().glob("parser.*.so"))


def measured(contender: Contender, folder: Path, repeat: int) -> list[tuple[float, float]]:
    """Return the median (seconds, CPU seconds) of cold runs, of warm runs, and of runs with one changed file."""
    project = folder / contender.project
    changed = project / CHANGED
    text = changed.read_text()
    found: list[list[tuple[float, float]]] = [[], [], []]
    for number in range(repeat):
        for name in contender.left:
            shutil.rmtree(project / name, ignore_errors=True)
        found[0].append(timed(contender.command, project))
        found[1].append(timed(contender.command, project))
        changed.write_text(text + f"-- changed {number}\n")
        found[2].append(timed(contender.command, project))
        changed.write_text(text)
    return [(statistics.median(w for w, _ in one), statistics.median(p for _, p in one)) for one in found]


def timed(command: Sequence[str], folder: Path) -> tuple[float, float]:
    """Run a command; return its seconds and its CPU seconds, children included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    paths = {"PYTHONPATH": str(ROOT)} if command[0] == sys.executable else {}
    environment = {**os.environ, **paths, "DBT_PROFILES_DIR": str(folder)}
    # Installed packages have their bytecode; a checkout gets it in its first run.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
    seconds = time.perf_counter() - started
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
