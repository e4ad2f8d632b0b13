"""Each file in a project's folders is read, or reported with what to do; documents and leftovers are neither."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from sqlrun import project_files
from sqlrun.cli.main import main
from sqlrun.load import unread_files
from sqlrun.render import render
from tests.run.test_machine import project
from tests.support import broken

DUCKDB = "engine: duckdb\nwarehouse: warehouse\n"
NAMED = {
    "dbt_project.yml": "under [tool.sqlrun]",
    "packages.yml": "sqlrun has no packages",
    "dependencies.yml": "sqlrun has no packages",
    "profiles.yml": "profiles/duckdb.yml",
    "snapshots/orders.sql": "Declare the snapshot in YAML",
    "snapshots/deep/orders.yaml": "Rename the file",
    "analyses/a.sql": "Make it a model",
    "tests/no_negative.sql": "expectations/",
    "tests/marts/no_negative.sql": "expectations/",
    "tests/generic/is_even.sql": "sqlrun has no generic tests",
    "models/a.py": "sqlrun has no Python models",
    "models/docs.md": "`description`",
    "models/deep/a.sql.j2": "Rename the file",
    "models/a.SQL": "Rename the file",
    "models/a.json": "Rename the file",
    "macros/m.py": "Rename the file",
    "seeds/s.csv.gz": "Rename the file",
    "seeds/s.tsv": "Rename the file",
    "expectations/e.yaml": "Rename the file",
    "profiles/p.yaml": "Rename the file",
}
TEXTS = {
    "models/docs.md": "{% docs orders %}\nAll orders.\n{% enddocs %}\n",
    "tests/generic/is_even.sql": "{% test is_even(model, column_name) %}select 1{% endtest %}",
}
SILENT = (
    "README.md", "models/README.md", "models/.gitkeep", "models/.DS_Store", "models/a.sql~", "models/.a.sql.swp",
    "models/a.sql.bak", "models/notes.txt", "models/picture.png", "seeds/LICENSE", "tests/fixtures/rows.csv",
    "tests/test_mine.py",
    "tests/cases/plain.sql", "docs/whatever.html", "notebooks/a.ipynb", "data/orders/x.jsonl",
)  # fmt: skip


def found(root: Path, *files: str) -> dict[str, str]:
    root.mkdir()
    broken.write(root, {file: TEXTS.get(file, "select * from {{ ref('orders') }}") for file in files})
    return {p.place.file: p.hint for p in project_files.read(root).problems if p.code == "SR117"}


@pytest.mark.parametrize("file", NAMED)
def test_an_unread_file_is_reported(tmp_path: Path, file: str) -> None:
    """One at a time, with what to do about it."""
    said = found(tmp_path / "p", file)
    assert list(said) == [file] and NAMED[file] in said[file]


def test_documents_and_leftovers_are_not_reported(tmp_path: Path) -> None:
    assert found(tmp_path / "p", *SILENT) == {}


def test_every_folder_that_is_read_is_searched(tmp_path: Path) -> None:
    """A folder that load reads and this list lacks would be silent again."""
    read = project_files.read(broken.write(tmp_path, {}))
    assert not read.problems
    rooms = {"models", "macros", "seeds", "expectations"}
    assert rooms <= {*unread_files.SUFFIXES}


@pytest.mark.parametrize("text", ["{{ doc('orders') }}", "All of {{ var('x') }}"])
def test_a_description_is_no_template(tmp_path: Path, text: str) -> None:
    yml = broken.contract("a").replace("description: A row.", f'description: "{text}"')
    broken.write(tmp_path, {"models/a.sql": "select 1 as id", "models/a.yml": yml})
    (problem,) = project_files.read(tmp_path).problems
    assert (problem.code, problem.place.line) == ("SR110", 3)


@pytest.mark.slow
def test_files_that_do_not_land_are_reported_once(tmp_path: Path) -> None:
    """Compressed files, CSV, folders: reported when they arrive, and the tick continues."""
    root = broken.write(project(tmp_path / "p"), {"profiles/local.yml": DUCKDB})
    folder = root / "data" / "orders"
    (folder / "deep").mkdir()
    for name in ("1.json.gz", "2.csv", "3.JSON", "_writing", ".hidden", "4.jsonl.tmp", "README.md"):
        (folder / name).write_text("x")

    def build() -> str:
        done = CliRunner().invoke(main, ["--project-dir", str(root), "build"])
        assert done.exit_code == 0, done.output
        return " ".join(done.output.split())

    said = (
        "sqlrun can't land these files of data/orders: 1.json.gz, 2.csv, 3.JSON, deep/. A source's files are JSON lines"
    )
    assert said in build()
    assert "does not land" not in build()
    (folder / "5.parquet").write_text("x")
    assert "sqlrun can't land these files of data/orders: 5.parquet." in build()


@pytest.mark.parametrize(
    ("key", "said"),
    [("unique_key", "grain"), ("pre-hook", "no statements"), ("schema", "Rename the file"), ("grants", "permissions")],
)
def test_a_dbt_key_is_refused_with_its_replacement(tmp_path: Path, key: str, said: str) -> None:
    """In the contract, and in the SQL, which has no hyphens."""
    written = broken.contract("a", extra=f"    {key}: x")
    broken.write(tmp_path, {"models/a.sql": "select 1 as id", "models/a.yml": written})
    (problem,) = project_files.read(tmp_path).problems
    assert problem.code == "SR102" and said in problem.hint
    name = key.replace("-", "_")
    broken.write(
        tmp_path, {"models/a.sql": f"{{{{ config({name}='x') }}}}select 1 as id", "models/a.yml": broken.contract("a")}
    )
    (problem,) = render.attempt(project_files.project(tmp_path))[1]
    assert problem.code == "SR205" and said in problem.hint


def test_no_odd_file_of_a_source_stops_a_tick(tmp_path: Path) -> None:
    """A name that isn't UTF-8, broken and circular links, a folder and a pipe with a file's name."""
    root = broken.write(project(tmp_path / "p"), {"profiles/local.yml": DUCKDB})
    folder = root / "data" / "orders"
    (folder / os.fsdecode(b"\xff\xfe.jsonl")).write_text("{}\n")
    (folder / "loop.jsonl").symlink_to("loop.jsonl")
    (folder / "dangling.jsonl").symlink_to("/nowhere")
    (folder / "folder.jsonl").mkdir()
    os.mkfifo(folder / "pipe.jsonl")

    done = CliRunner().invoke(main, ["--project-dir", str(root), "build"])

    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    for name in ("loop.jsonl", "dangling.jsonl", "folder.jsonl/", "pipe.jsonl", r"\udcff\udcfe.jsonl"):
        assert name in said
