"""The landing query says the same of every line on Spark and on DuckDB."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from sqlrun.engine_api import Landing, Relation, StoredColumn, TableSpec
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.engines.spark.engine import SparkEngine
from sqlrun.errors import EngineError
from sqlrun.incremental.landing import query as landing_query
from sqlrun.pipeline import prepare
from sqlrun.sources.folder import Folder
from tests.support import nested_lines, rescue_lines
from tests.support.landing_lines import LINES
from tests.support.projects import ROOT

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def answers(engine: SparkEngine) -> dict[str, dict[str, list[Any]]]:
    """Run the query of the reference project over the lines, one file each, on both engines."""
    prepared = prepare(ROOT)
    model = next(m for m in prepared.workspace.tables if m.source is not None)
    rules = prepared.workspace.rules.get(model.name, ())
    found: dict[str, dict[str, list[Any]]] = {}
    for each in (engine, DuckDBEngine()):
        source = model.source
        assert source is not None
        text = landing_query.query(model.own, source, rules, each.dialect, datetime(2026, 1, 12, tzinfo=timezone.utc))
        values = " union all ".join(
            f"select {_quoted(line, each.dialect)} as value, {_quoted(name, each.dialect)} as file"
            for name, line in LINES.items()
        )
        ran = f"with lines as ({values}) select * from ({text}) as answer"
        if each.dialect == "spark":
            with engine._session() as session:
                session.conf.set("spark.sql.ansi.enabled", "false")
                rows = session.sql(ran).toArrow().to_pylist()
                session.conf.unset("spark.sql.ansi.enabled")
        else:
            rows = each.query(ran, ()).to_pylist()
        found[each.name] = {name: [] for name in LINES}
        for row in rows:
            # Of a row that is set aside, its values are no one's.
            kept = row if row["_reason"] is None else {name: row[name] for name in ("_reason", "_raw", "_file")}
            found[each.name][row["_file"]].append({k: v for k, v in kept.items() if k != "_landed_at"})
    return found


def _quoted(text: str, dialect: str) -> str:
    from sqlrun.transpile.writer import string

    return string(text, dialect)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", LINES)
def test_both_engines_say_the_same_of_a_line(name: str, answers: dict[str, dict[str, list[Any]]]) -> None:
    assert len(answers["spark"][name]) == 1
    assert answers["spark"][name] == answers["duckdb"][name]


def test_what_follows_an_object_is_not_lost(answers: dict[str, dict[str, list[Any]]]) -> None:
    """from_json of Spark stops after the first object of a line."""
    for name in ("text after it", "two objects", "two objects with a comma", "arrays around"):
        (row,) = answers["spark"][name]
        assert row["_reason"] == "not a JSON object"
        assert row["_raw"] == LINES[name]
    assert answers["spark"]["good"][0]["_reason"] is None


def asked(engine: SparkEngine, query: str) -> dict[str, str | None]:
    """Run a query for files and a column beside them, as lines are landed."""
    with engine._session() as session:
        session.conf.set("spark.sql.ansi.enabled", "false")
        found = [tuple(row.values()) for row in session.sql(query).toArrow().to_pylist()]
        session.conf.unset("spark.sql.ansi.enabled")
    return dict(found)


def test_rescued_fields_are_cut_out_alike(engine: SparkEngine) -> None:
    """The text of unknown fields, as it was written; a long line doesn't overflow Java's stack."""
    found = asked(engine, rescue_lines.rescued("spark"))

    assert found == {name: kept for name, (_, kept) in rescue_lines.HOSTILE.items()}


def test_faults_inside_of_arrays_and_structs_have_the_same_reason(engine: SparkEngine) -> None:
    found = asked(engine, nested_lines.judged("spark"))

    assert found == {name: reason for name, (_, reason) in nested_lines.LINES.items()}


def test_a_stream_reports_changed_files_and_continues_without_lost_ones(engine: SparkEngine, tmp_path: Path) -> None:
    """Its log knows the times of files; a batch that lost a file after it was begun has to be told to go on."""
    folder, table = tmp_path / "data", str(tmp_path / "table")
    folder.mkdir()
    columns = (StoredColumn("value", "string"), StoredColumn("file", "string"))
    query = "select value, file from lines"
    request = Landing(TableSpec("stg", table, columns), Folder(str(folder)), str(tmp_path / "checkpoint"), query, "app")
    engine.create(request.table)
    (folder / "a.jsonl").write_text("1\n")
    assert engine.land(request).notes == ()
    os.utime(folder / "a.jsonl", ns=(1, 1))
    assert "a.jsonl" in engine.land(request).notes[0]

    for name in "bc":
        (folder / f"{name}.jsonl").write_text(f"{name}\n")
    engine.land(request)
    # As after a crash between the plan of a batch and its commit.
    for made in ("commits/1", "commits/.1.crc"):
        (tmp_path / "checkpoint" / made).unlink(missing_ok=True)
    delta_log = sorted((tmp_path / "table" / "_delta_log").glob("*2.*"))
    for file in delta_log:
        file.unlink()
    (folder / "b.jsonl").unlink()
    with pytest.raises(EngineError, match=r"b\.jsonl"):
        engine.land(request)
    engine.land(replace(request, accept_lost=True))

    held = Relation("held", table, columns, "new", version=2)
    assert sorted(r["value"] for r in DuckDBEngine().query("select value from held", (held,)).to_pylist()) == ["1", "c"]
