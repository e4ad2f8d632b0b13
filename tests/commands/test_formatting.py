"""`sqlrun format`: SQL laid out by sqlfmt, with the meaning of each model unchanged."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sqlrun.cli.main import main
from sqlrun.commands import formatting
from sqlrun.pipeline import prepare
from sqlrun.runtime import packages
from sqlrun.scaffold import examples
from sqlrun.scaffold.command import init

UGLY = "SELECT Order_Date,sales\n\n\nFROM {{ref('daily_sales')}} WHERE sales>0"
FORMATTED = "select order_date, sales from {{ ref('daily_sales') }} where sales > 0\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    init(tmp_path / "shop", None)
    monkeypatch.chdir(tmp_path / "shop")
    run("format")
    return tmp_path / "shop"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def write(project: Path, text: str = UGLY) -> Path:
    file = project / "models/ugly.sql"
    file.write_bytes(text.encode())
    return file


def test_a_file_is_formatted_once(project: Path) -> None:
    file = write(project)
    done = run("format")

    assert (done.exit_code, done.output.splitlines()) == (
        0, ["formatted models/ugly.sql", "1 file formatted, 2 files unchanged."]
    )  # fmt: skip
    assert file.read_text() == FORMATTED
    assert run("format").output.splitlines() == ["0 files formatted, 3 files unchanged."]


@pytest.mark.parametrize(
    ("option", "said"), [("--check", "models/ugly.sql isn't formatted"), ("--diff", f"+{FORMATTED.rstrip()}")]
)
def test_nothing_is_written_on_request(project: Path, option: str, said: str) -> None:
    file = write(project)
    done = run("format", option)

    assert done.exit_code == 1
    assert said in done.output.splitlines()
    assert "1 file to format, 2 files unchanged." in done.output
    assert file.read_text() == UGLY
    run("format")
    assert run("format", option).exit_code == 0


def test_only_named_files_are_formatted(project: Path) -> None:
    write(project)

    assert run("format", "models/marts").output.splitlines() == ["0 files formatted, 1 file unchanged."]
    assert run("format", "models/ugly.sql").output.splitlines()[-1] == "1 file formatted, 0 files unchanged."
    wrong = run("format", "data")
    assert wrong.exit_code == 2 and "data has no SQL of the project" in wrong.output


def test_line_ends_stay(project: Path) -> None:
    file = write(project, UGLY.replace("\n", "\r\n"))
    run("format")

    assert file.read_bytes().decode() == FORMATTED.replace("\n", "\r\n")


def test_the_line_length_is_sqlfmts(project: Path) -> None:
    settings = project / "pyproject.toml"
    settings.write_text(settings.read_text() + "\n[tool.sqlfmt]\nline_length = 200\n")
    columns = "sales as one, sales as two, sales as three, sales as four, sales as five, sales as six, sales as seven"
    file = write(project, f"select {columns} from {{{{ ref('daily_sales') }}}}\n")
    run("format", "models/marts", "models/staging")
    done = run("format", "--check")

    assert done.exit_code == 0, done.output
    settings.write_text(settings.read_text().replace("200", "60"))
    assert run("format").exit_code == 0
    assert len(file.read_text().splitlines()) == 9
    settings.write_text(settings.read_text().replace("line_length = 60", "dialect = 7\nline_length = 60"))
    assert run("format", "--check").exit_code == 0


@pytest.mark.slow
def test_the_reference_project_keeps_its_meaning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in examples.files("restaurants").items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    before = prepare(tmp_path).workspace.prints
    done = run("format")

    assert done.exit_code == 0 and "formatted models/marts/restaurant_windows.sql" in done.output
    assert prepare(tmp_path).workspace.prints == before


@pytest.mark.parametrize("changed", [FORMATTED.replace("0", "1"), FORMATTED + " and"])
def test_a_layout_of_another_meaning_is_refused(project: Path, monkeypatch: pytest.MonkeyPatch, changed: str) -> None:
    file = write(project)
    monkeypatch.setattr("sqlfmt.api.format_string", lambda text, mode: changed if text == UGLY else text)
    done = run("format")

    assert done.exit_code == 2, done.output
    assert "ugly" in done.output
    assert file.read_text() == UGLY


def test_broken_sql_is_named(project: Path) -> None:
    """A project with problems isn't formatted; neither is SQL that sqlfmt alone can't read."""
    file = write(project, "select order_date from {{ ref('daily_sale') }}")
    assert run("format").output.startswith("SR202")
    file.unlink()
    macro = project / "macros/odd.sql"
    macro.parent.mkdir()
    macro.write_text("{% macro odd() %}) {% endmacro %}")
    done = run("format")

    assert done.exit_code == 2, done.output
    assert "sqlfmt can't read macros/odd.sql" in done.output and "Nothing was written" in done.output


def test_a_missing_library_is_one_line(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "missing", lambda extra: ("shandy-sqlfmt",) if extra == "format" else ())
    done = run("format")

    assert done.exit_code == 2
    assert "SR133 `sqlrun format` needs the package shandy-sqlfmt, which isn't installed" in done.output
    assert formatting.ROOMS[0] == "models"


def test_lint_reports_layout_and_mistakes_and_writes_nothing(project: Path) -> None:
    assert run("lint").exit_code == 0
    file = write(project)
    done = run("lint")
    assert (done.exit_code, done.output.splitlines()[0]) == (1, "models/ugly.sql isn't formatted")
    assert run("lint", "models/marts").exit_code == 0
    assert file.read_text() == UGLY

    write(project, UGLY.replace("sales>0", "salse>0"))
    done = run("lint")
    assert done.exit_code == 2
    assert "SR3" in done.output and "models/ugly.sql:4" in done.output
