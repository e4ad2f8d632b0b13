"""Preparing a project in two processes returns the same as in one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import many_models, written_projects
from sqlrun.errors import ProjectError
from sqlrun.pipeline import prepare

ROOT = Path(__file__).parents[2]
# A separate process, because pytest's has threads, and sqlrun doesn't fork a process with threads.
CODE = """
import os, sys
from pathlib import Path
from sqlrun.runtime import fork
from sqlrun.runtime.disk_cache import Cache
from sqlrun.errors import ProjectError
from sqlrun.pipeline import prepare
fork.FEW = 2
os.sched_getaffinity = lambda process: {0, 1}
root, cache = Path(sys.argv[1]), Cache.of(Path(sys.argv[1]))
try:
    print(prepare(root, cache).workspace.prints)
except ProjectError as error:
    print(error)
print(cache.made.get("model", 0), file=sys.stderr)
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="forks are made on Linux alone"),
]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("halves")
    written_projects.sqlrun(many_models.describe(50), folder)
    return folder


def shared(root: Path) -> tuple[str, int]:
    """Return the project as prepared by two processes, and how many models the first of them compiled."""
    done = subprocess.run([sys.executable, "-c", CODE, str(root)], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.rstrip("\n"), int(done.stderr)


def test_two_processes_return_the_same_project(root: Path) -> None:
    """The other process compiles half of the models, which are cached from then on."""
    expected = str(prepare(root).workspace.prints)

    text, compiled = shared(root)
    assert text == expected
    assert 15 <= compiled <= 35
    assert shared(root) == (expected, 0)


@pytest.mark.long
@pytest.mark.parametrize("model", ["stg_retail_000__orders", "stg_wholesale_001__orders"])
def test_a_mistake_in_either_half_is_reported(root: Path, model: str) -> None:
    """Every problem is reported exactly once."""
    file = next(root.rglob(f"{model}.sql"))
    text = file.read_text()
    for wrong in (text.replace("status", "staatus"), text + ")"):
        file.write_text(wrong)
        (root / "target" / "cache.jsonl").unlink(missing_ok=True)
        with pytest.raises(ProjectError) as caught:
            prepare(root)

        assert shared(root)[0] == str(caught.value)
    file.write_text(text)
