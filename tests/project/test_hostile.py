"""Hostile models, macros and YAML: each is refused at a place, reads and runs nothing, and takes little time and
memory.

The cases are in cases/hostile/. After a place moved: SQLRUN_WRITE=1 pytest tests/project/test_hostile.py, then read the
diff.
"""

from __future__ import annotations

import os
from datetime import datetime, timezone
from pathlib import Path

import pytest
import sqlglot
from sqlglot import exp

from sqlrun.engine_api import Dialect
from sqlrun.errors import ProjectError
from sqlrun.incremental.compile import whole_query
from sqlrun.incremental.script import Moment
from sqlrun.pipeline import prepare
from tests.support import hostile
from tests.support.broken import write

CASES = Path(__file__).parents[1] / "cases" / "hostile"
FILES = sorted(CASES.glob("*.case"))
# Cases that reach a limit, and long ones, take seconds.
SLOW = ("expectations", "files", "jinja_ways_out", "jinja_without_end", "sql_functions", "sql_statements", "sql_tables")
EACH = [
    pytest.param(
        f,
        id=f.stem,
        marks=[pytest.mark.slow] * (f.stem in SLOW) + [pytest.mark.long] * (f.stem == "jinja_without_end"),
    )
    for f in FILES
]
# Harmless text that looks dangerous: comments are dropped, texts stay texts.
HARMLESS = {
    "MySQL's comment that runs", "a comment that holds a statement", "a long comment that holds a statement",
    "a text that holds a statement", "a text that holds a quote", "a setting in a comment",
    "a macro that is special", "a statement behind a line separator",
    "a comment that ends another", "a setting of Spark as a text",
    "the environment as a text", "a property of Java as a text",
}  # fmt: skip


@pytest.mark.parametrize("file", EACH)
def test_each_is_refused_at_its_place(file: Path) -> None:
    """Same code, same place; no byte of the canary; nothing opened or started outside the project."""
    cases = hostile.read(file)
    verdicts = hostile.run({case.name: case.files for case in cases})
    if os.environ.get("SQLRUN_WRITE"):
        file.write_text(hostile.rewritten(file, verdicts), "utf-8")
        cases = hostile.read(file)

    assert {case.name: case.refused for case in cases} == {
        name: list(dict.fromkeys(answer.problems)) for name, answer in verdicts.items()
    }
    assert {case.name for case in cases if not case.refused} <= HARMLESS
    for name, answer in verdicts.items():
        assert answer.outside == (), name
        assert hostile.CANARY not in answer.text, name
        assert "Traceback" not in answer.text, name
        assert answer.seconds < hostile.SECONDS, name


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_case_names_are_unique(file: Path) -> None:
    """A name is a case's key."""
    names = [case.name for case in hostile.read(file)]

    assert len(names) == len(set(names)) > 20


@pytest.mark.slow
def test_the_watch_detects_foreign_files(tmp_path: Path) -> None:
    """A file that is read outside the project is detected; a link to one isn't read."""
    other = tmp_path / "m.sql"
    other.write_text("select id from {{ ref('t') }}")
    verdicts = hostile.run({"first": {}, "opens": {"opens": str(other)}, "a link": {"models/m.sql": f"-> {other}"}})

    assert verdicts["first"].problems == verdicts["first"].outside == ()
    assert verdicts["opens"].outside == (f"open {other}",)
    assert verdicts["a link"].problems == ("SR118 models/m.sql:1:1",)
    assert verdicts["a link"].outside == ()


def test_a_name_with_a_line_end_stays_on_its_line(tmp_path: Path) -> None:
    """A file can't print lines of its own."""
    with pytest.raises(ProjectError) as caught:
        prepare(write(tmp_path, {**hostile.PROJECT, "models/x\nSR999 y.sql": "select 1 as id"}))

    lines = str(caught.value).split("\n")
    assert not any(line.startswith("SR999") for line in lines)
    assert {problem.code for problem in caught.value.problems} == {"SR116"}


@pytest.mark.parametrize("dialect", ["spark", "duckdb"])
@pytest.mark.parametrize("name", sorted(HARMLESS))
def test_a_name_that_looks_like_a_statement_stays_a_name(name: str, dialect: Dialect, tmp_path: Path) -> None:
    """The SQL for an engine is one query over the declared table alone."""
    files = next(case.files for file in FILES for case in hostile.read(file) if case.name == name)
    queries = {query.name: query for query in prepare(write(tmp_path, {**hostile.PROJECT, **files})).queries}
    moment = Moment(datetime(2026, 11, 21, tzinfo=timezone.utc), None)

    (statement,) = sqlglot.parse(whole_query(queries, "m", (), moment, dialect), read=dialect)

    assert isinstance(statement, exp.Select)
    assert [table.name for table in statement.find_all(exp.Table)] == ["t__new"]
