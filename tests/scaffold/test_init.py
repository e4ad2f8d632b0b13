"""`sqlrun init` writes a project that builds at once, and overwrites nothing."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

import sqlrun
from sqlrun import pipeline
from sqlrun.cli.main import main
from sqlrun.project import Project
from sqlrun.scaffold import json_schemas
from sqlrun.scaffold.command import init

ROOT = Path(__file__).parents[2]


def run(root: Path, *words: str) -> Result:
    return CliRunner().invoke(main, ["--project-dir", str(root), *words])


def written(root: Path) -> list[str]:
    return sorted(file.relative_to(root).as_posix() for file in root.rglob("*") if file.is_file())


def types(project: Project) -> dict[str, dict[str, str]]:
    return {source.name: {c.name: c.type for c in source.columns} for source in project.sources}


def rows(root: Path, table: str) -> list[dict[str, object]]:
    return sqlrun.published(table, str(root / "warehouse" / "duckdb")).to_pylist()


@pytest.mark.slow
def test_the_starter_builds_at_once(tmp_path: Path) -> None:
    """Its broken line is in quarantine, its unit test and its checks pass, and each table equals its query."""
    root = tmp_path / "My Shop"

    lines = init(root, None)
    done = run(root, "build")

    assert done.exit_code == 0, done.output
    assert "PASS 1 unit test" in done.output and "1 quarantined" in done.output
    assert [
        (str(row["order_date"]), row["n_orders"], str(row["sales"]))
        for row in sorted(rows(root, "daily_sales"), key=str)
    ] == [
        ("2026-11-01", 2, "34.40"),
        ("2026-11-02", 2, "39.00"),
    ]
    assert run(root, "verify").exit_code == 0
    types = run(root, "show", "daily_sales", "--types").output.split("\n")
    assert types[4].split() == ["sales", "decimal(18,2)"] and types[5].startswith("3 columns of daily_sales at tick 1")
    assert lines[-1].endswith("sqlrun build && sqlrun show daily_sales")
    assert pipeline.prepare(root).project.name == "my_shop"


@pytest.mark.slow
def test_types_are_inferred_from_a_csv(tmp_path: Path) -> None:
    """Codes with leading zeros stay texts, and every record of the sample lands."""
    data = tmp_path / "sales 2026.csv"
    data.write_text(
        "id;Größe;zip;price;rate;day;at;paid;note\n"
        "1;4;01234;1.5;1e3;2026-01-02;2026-01-02 10:00:00;true;\n"
        "2;;80331;10.125;2.5;2026-01-03;2026-01-02T10:00:00Z;false;x\n"
    )
    root = tmp_path / "project"

    lines = init(root, data)

    project = pipeline.prepare(root).project
    assert types(project) == {
        "sales_2026": {
            "id": "bigint", "Größe": "bigint", "zip": "string", "price": "decimal(18,3)", "rate": "string",
            "day": "date", "at": "timestamp", "paid": "boolean", "note": "string",
        }
    }  # fmt: skip
    assert lines[0] == "sales_2026: 1 csv file, 9 columns inferred; staging model stg_sales_2026."
    assert run(root, "build").exit_code == 0
    first = next(row for row in rows(root, "stg_sales_2026") if row["id"] == 1)
    assert (first["grosse"], first["zip"], str(first["price"]), first["paid"]) == (4, "01234", "1.500", True)


@pytest.mark.slow
def test_files_of_different_columns_are_different_tables(tmp_path: Path) -> None:
    """The pattern of each takes its own files, those that arrive later too."""
    data = tmp_path / "raw"
    (data / "deep").mkdir(parents=True)
    (data / "customers.csv").write_text("id,name\n1,Ann\n")
    (data / "orders_2026-01.csv").write_text("order_id,customer_id,total\n1,1,2.50\n")
    (data / "orders_2026-02.csv").write_text("order_id,customer_id,total,tip\n2,1,3.50,1\n")
    (data / "deep" / "events.json.gz").write_bytes(gzip.compress(b'[{"a": 1, "b": {"c": [1.5]}}, {"a": 2}]'))
    pq.write_table(pa.table({"n": [1, 2], "when": pa.array([0, 1], pa.timestamp("us", "UTC"))}), data / "x.parquet")
    root = tmp_path / "project"

    init(root, data)
    (data / "orders_2026-03.csv").write_text("order_id,customer_id,total,tip\n3,1,4.50,\n")
    done = run(root, "build")

    assert done.exit_code == 0, done.output
    assert types(pipeline.prepare(root).project) == {
        "customers": {"id": "bigint", "name": "string"},
        "orders": {"order_id": "bigint", "customer_id": "bigint", "total": "decimal(18,2)", "tip": "bigint"},
        "events": {"a": "bigint", "b": "struct<c:array<decimal(18,2)>>"},
        "x": {"n": "bigint", "when": "timestamp"},
    }
    assert sorted(row["order_id"] for row in rows(root, "stg_orders")) == [1, 2, 3]
    assert sorted(row["a"] for row in rows(root, "stg_events")) == [1, 2]
    assert len(rows(root, "stg_x")) == 2


@pytest.mark.slow
def test_fields_inside_of_a_column_may_be_missing(tmp_path: Path) -> None:
    """Nothing says that the sampled records have all there is to come."""
    data = tmp_path / "events"
    data.mkdir()
    (data / "1.jsonl").write_text('{"id": 1, "device": {"os": "x", "size": 2}}\n{"id": 2, "device": {"os": "y"}}\n')
    root = tmp_path / "project"

    init(root, data)

    assert run(root, "build").exit_code == 0
    devices = sorted((row["id"], row["device"]) for row in rows(root, "stg_events"))
    assert [device for _, device in devices] == [{"os": "x", "size": 2}, {"os": "y", "size": None}]


def test_mixed_files_are_refused(tmp_path: Path) -> None:
    """No pattern separates them, and a guess would land one kind as the other."""
    for name, text in (("a1", "id,x\n1,2\n"), ("a2", "name,city\nA,B\n"), ("a3", "id,x\n1,2\n")):
        (tmp_path / f"{name}.csv").write_text(text)

    done = CliRunner().invoke(main, ["init", str(tmp_path / "project"), "--from", str(tmp_path)])

    assert done.exit_code == 2
    assert "files of different columns are mixed (a1.csv, a3.csv)" in done.output
    assert not (tmp_path / "project").exists()


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("a.csv", b"a,,b\n1,2,3\n", "column 2 of its header has no name"),
        ("a.csv", b"a,b,a\n1,2,3\n", "its header has the name `a` twice"),
        ("a.csv", b"1,2.5\n3,4.5\n", "its first line has values instead of names: `1,2.5`"),
        ("a.csv", b"a,b\n", "has no record that can be read as csv"),
        ("a.csv", b"", "has no record that can be read as csv"),
        ("a.jsonl", b"", "has no record that can be read as json"),
        ("a.jsonl", b"{\n{\n", "has no record that can be read as json"),
        ("a.jsonl", b'{"_n": 1}\n', "none of its fields has a name that a column can have"),
        ("a.parquet", b"PAR1", "it isn't a Parquet file"),
        ("a.avro", b"Obj", "can't be read"),
        ("a.csv.gz", b"no gzip", "can't be read"),
        ("a.doc", b"x", "sqlrun reads files that end in"),
    ],
)
def test_a_file_that_cannot_be_read_writes_nothing(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    """The message names the file and what is wrong."""
    file = tmp_path / name
    file.write_bytes(content)

    done = CliRunner().invoke(main, ["init", str(tmp_path / "project"), "--from", str(file)])

    assert done.exit_code == 2, done.output
    assert message in done.output and name in done.output
    assert "Traceback" not in done.output
    assert not (tmp_path / "project").exists()


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    """A file that stands in the way stops the command before it writes."""
    root = tmp_path / "project"
    (root / "profiles").mkdir(parents=True)
    (root / "profiles" / "duckdb.yml").write_text("mine")

    done = CliRunner().invoke(main, ["init", str(root)])

    assert done.exit_code == 2 and "already has profiles/duckdb.yml. Nothing was written" in done.output
    assert written(root) == ["profiles/duckdb.yml"]
    assert (root / "profiles" / "duckdb.yml").read_text() == "mine"


def test_another_tools_settings_stay(tmp_path: Path) -> None:
    """In a Python project the message says where to write the new one."""
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")

    done = CliRunner().invoke(main, ["init", str(tmp_path)])

    assert done.exit_code == 2 and f"`sqlrun init {tmp_path.name}/analytics`" in done.output
    assert written(tmp_path) == ["pyproject.toml"]


def test_a_link_and_a_file_in_the_place_of_a_folder_stop_it(tmp_path: Path) -> None:
    """A dangling link would be followed by a write."""
    (tmp_path / "models").write_text("a file")

    assert CliRunner().invoke(main, ["init", str(tmp_path)]).exit_code == 2
    (tmp_path / "models").unlink()
    (tmp_path / "pyproject.toml").symlink_to(tmp_path / "nowhere")
    assert CliRunner().invoke(main, ["init", str(tmp_path)]).exit_code == 2
    assert written(tmp_path) == [] and not (tmp_path / "nowhere").exists()


@pytest.mark.slow
def test_a_folder_with_other_files_is_left_as_it_is(tmp_path: Path) -> None:
    """`init` in a folder with data writes beside it."""
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text('{"id": 1}\n')

    init(tmp_path, tmp_path / "in")

    assert run(tmp_path, "build").exit_code == 0
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert "path: in\n" in (tmp_path / "models" / "staging" / "_sources.yml").read_text()


@pytest.mark.slow
def test_the_example_builds_at_once(tmp_path: Path) -> None:
    """The repository's own files, on DuckDB, with a week of orders."""
    done = run(tmp_path, "init", str(tmp_path / "demo"), "--example", "restaurants")

    assert done.exit_code == 0, done.output
    root = tmp_path / "demo"
    for name in ("models/marts/restaurant_windows.sql", "seeds/dishes.csv", "profiles/local.yml"):
        assert (root / name).read_text() == json_schemas.modeline(name) + (ROOT / name).read_text()
    files = set(written(root))
    assert {"pyproject.toml", ".gitignore", "tests/fixtures/slots_of_a_lunch_hour.csv"} < files
    assert not [file for file in files if file.endswith((".md", ".py"))]
    prepared = pipeline.prepare(root)
    assert (prepared.project.name, prepared.project.profile) == ("restaurant_dashboard", "duckdb")
    assert prepared.names == pipeline.prepare(ROOT).names
    built = run(root, "build")
    assert built.exit_code == 0, built.output
    assert "r0001" in run(root, "show", "restaurant_windows", "--where", "window_hours = 24").output


def test_an_example_overwrites_nothing(tmp_path: Path) -> None:
    """Orders that are there count as well, although `init` doesn't write them itself."""
    orders = tmp_path / "demo" / "data" / "orders"
    orders.mkdir(parents=True)

    done = run(tmp_path, "init", str(tmp_path / "demo"), "--example", "restaurants")

    assert done.exit_code == 2 and "already has data/orders. Nothing was written" in done.output
    assert written(tmp_path) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--example", "shop"], "there is no example `shop`. Examples: restaurants"),
        (["--example", "restaurants", "--from", "a"], "--from and --example can't be combined"),
    ],
)
def test_an_unknown_example_is_a_mistake(words: list[str], message: str, tmp_path: Path) -> None:
    done = run(tmp_path, "init", str(tmp_path / "demo"), *words)

    assert done.exit_code == 2 and message in done.output
    assert written(tmp_path) == []


def test_an_installation_without_the_files_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An image has the package alone."""
    monkeypatch.setattr("sqlrun.scaffold.examples.REPOSITORY", tmp_path)

    done = run(tmp_path, "init", str(tmp_path / "demo"), "--example", "restaurants")

    assert done.exit_code == 2 and "lacks the examples" in done.output
