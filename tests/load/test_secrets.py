"""A secret that a profile takes from the environment is in nothing that sqlrun prints or writes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sqlrun.engines.duckdb.memory import LOCKED
from tests.support.projects import copy_project

CANARY = "canary-7f31aa"
PROFILE = "engine: duckdb\nwarehouse: warehouse/secret\nsettings:\n  custom_user_agent: ${CANARY}\n"
# The same, in settings that DuckDB rejects: its own message names them.
REFUSED = "engine: duckdb\nwarehouse: warehouse/refused\nsettings:\n  max_memory: ${CANARY}\n"


def sqlrun(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sqlrun", "--project-dir", str(root), *words],
        capture_output=True, text=True, check=False,
        env={**os.environ, "CANARY": CANARY, "PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip


@pytest.mark.slow
def test_no_secret_is_printed_or_written(tmp_path: Path) -> None:
    """By compile, explain, debug, a build, a failing build, or into any file of the project and the warehouse."""
    root = copy_project(tmp_path)
    (root / "profiles" / "secret.yml").write_text(PROFILE)
    (root / "profiles" / "refused.yml").write_text(REFUSED)
    (root / "profiles" / "wrong.yml").write_text("engine: ${CANARY}\nwarehouse: w\nthreads: ${CANARY}\n")
    said = [
        (sqlrun(root, *words), code)
        for words, code in [
            (("compile", "--profile", "secret"), 0),
            (("explain", "fct_restaurant_slots", "--profile", "secret"), 0),
            (("debug", "--profile", "secret"), 0),
            (("build", "--profile", "secret", "--skip-tests", "--receipts"), 0),
            (("build", "--profile", "refused", "--skip-tests"), 2),
            (("build", "--profile", "wrong", "--skip-tests"), 2),
        ]
    ]

    assert [(done.args[5:], done.returncode) for done, code in said if done.returncode != code] == []
    assert [done.args[5:] for done, _ in said if CANARY in done.stdout + done.stderr] == []
    files = [file for file in root.rglob("*") if file.is_file()]
    assert any(file.name == "run_results.json" for file in files)
    assert [file for file in files if CANARY.encode() in file.read_bytes()] == []


@pytest.mark.parametrize(
    "sql",
    [
        "select * from read_text('{file}')",
        "select * from '{file}'",
        "copy (select 1) to '{file}.copy'",
        "attach '{file}.db' as other",
        "install httpfs",
        "load httpfs",
        "set enable_external_access = true",
        "set lock_configuration = false",
        "select * from secret_rows",
    ],
)
def test_duckdb_of_unit_tests_finds_nothing_outside(sql: str, tmp_path: Path) -> None:
    """A query that passed the checks of models would still be refused."""
    import duckdb

    secret_rows = [(CANARY,)]
    file = tmp_path / "secret.csv"
    file.write_text(CANARY)
    connection = duckdb.connect(config=LOCKED)
    connection.execute("set lock_configuration = true")

    with pytest.raises(duckdb.Error):
        connection.execute(sql.format(file=file)).fetchall()
    assert secret_rows
    assert [path.name for path in tmp_path.iterdir()] == ["secret.csv"]
