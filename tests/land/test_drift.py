"""Changing sources: what each setting of `on_schema_change` does, and no field of a line is ever lost."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sqlrun.cli import main
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.errors import Place, ProjectError
from sqlrun.events import NodeResult, TickResult
from sqlrun.land.schema_drift import Drift, message, union
from sqlrun.land.source_editor import edited
from sqlrun.load.sources import sources
from sqlrun.load.yaml_reader import Reader
from sqlrun.project import Source
from sqlrun.project_files import project as load_project
from sqlrun.publish.reader import find, query, tick_of
from tests.support import broken, rescue_lines
from tests.support.projects import Site
from tests.support.script import FIVE, START

SOURCES = """\
# What others send us.
sources:
  - name: shops
    description: What shops say.
    tables:
      - name: sales
        description: Sales.
        format: json
        path: data/orders
        on_schema_change: SETTING
        columns:
          - {name: id, data_type: string, description: The sale., nulls: false}
          - {name: pieces, data_type: int, description: How many., unit: pieces}  # not the price
          - name: note
            data_type: string
            description: What the guest said.
            tags: [pii]
          - {name: lines, data_type: "array<struct<dish:string,price:decimal(5,2)>>", description: Its lines.}
      - name: ratings
        description: Ratings.
        format: json
        path: data/ratings
        columns:
          - {name: id, data_type: string, description: The rating., nulls: false}
"""
SALE = {"id": "a", "pieces": 2, "note": "thanks", "lines": []}
NAME, NOTE = "stg_sales", "          - name: note"


def project(folder: Path, setting: str) -> Path:
    (folder / "data" / "orders").mkdir(parents=True)
    (folder / "data" / "ratings").mkdir(parents=True)
    files = {
        "models/_sources.yml": SOURCES.replace("SETTING", setting),
        "models/stg_sales.sql": "select id, pieces from {{ source('shops', 'sales') }}\n",
        "models/stg_sales.yml": broken.contract(NAME, "id string", "pieces int", extra="    repeats: true"),
        "models/stg_ratings.sql": "select id from {{ source('shops', 'ratings') }}\n",
        "models/stg_ratings.yml": broken.contract("stg_ratings", "id string", extra="    repeats: true"),
        "models/sums.sql": "select sum(pieces) as pieces from {{ ref('stg_sales') }}\n",
        "models/sums.yml": broken.contract("sums", "pieces bigint"),
    }
    return broken.write(folder, files)


@pytest.fixture
def site(tmp_path: Path, request: pytest.FixtureRequest) -> Site:
    """A project with one valid line; the setting is the test's parameter."""
    made = Site(project(tmp_path, getattr(request, "param", "ignore")), DuckDBEngine())
    send(made, "0.jsonl", SALE)
    assert made.tick(START).published
    return made


def send(site: Site, name: str, *lines: Mapping[str, Any]) -> None:
    site.write(name, [json.dumps(line) for line in lines])


def tick(site: Site, number: int = 1) -> TickResult:
    return site.tick(START + number * FIVE)


def node(result: TickResult) -> NodeResult:
    return next(n for n in result.nodes if n.name == NAME)


def note(result: TickResult) -> str:
    return node(result).stages[-1].note


def rescued(site: Site) -> list[dict[str, Any]]:
    name = f"{NAME}__rescued"
    rows: list[dict[str, Any]] = query(
        f'select * from "{name}" order by _rescued', [find(tick_of(site.ledger), site.warehouse, name)]
    ).to_pylist()
    return rows


def without(*names: str) -> dict[str, Any]:
    return {name: value for name, value in SALE.items() if name not in names}


# Each kind of change of a source: the lines that land, and the reports about them.
CHANGES: dict[str, tuple[list[dict[str, Any]], str]] = {
    "a new field": ([{**SALE, "tip": 1.5}, {**SALE, "tip": None}], "new field tip decimal(2,1) (2 lines"),
    "a field inside": ([{**SALE, "lines": [{"dish": "d", "price": "1.00", "size": "L"}]}], "new fields inside lines"),
    "missing": ([without("note"), without("note")], "note is missing in all 2 lines"),
    "a wider type": ([{**SALE, "pieces": 3_000_000_000}], "pieces is not of type int (1 line, as in 1.jsonl): bigint"),
    "another type": ([{**SALE, "pieces": "many"}], "pieces is not of type int (1 line, as in 1.jsonl): string"),
    "a wider decimal": (
        [{**SALE, "lines": [{"dish": "d", "price": "1.005"}]}],
        "lines[].price is not of type decimal(5, 2) (1 line, as in 1.jsonl). Correct",
    ),
    "renamed": ([{**without("pieces"), "count": 2}], "pieces is missing in all 1 line, as in 1.jsonl, renamed"),
}  # fmt: skip
SILENT = {"ignore": {"missing"}, "sync": set[str]()}


@pytest.mark.slow
def test_only_new_fields_are_said_to_be_rescued() -> None:
    """A value of another type is in the quarantine, not among the rescued fields."""
    source = Source("shops", "sales", "json", "data", (), "Sales.", Place("_sources.yml"))
    changed = Drift("changed", "pieces", 1, "a.jsonl", "int", "string")
    missing = Drift("missing", "note", 1, "a.jsonl", "string", renamed="remark")

    assert "rescued" not in message(source, NAME, [changed])
    assert "rescued" in message(source, NAME, [changed, Drift("new", "tip", 1, "a.jsonl", seen="int")])
    assert "rescued" in message(source, NAME, [changed, missing])


@pytest.mark.parametrize("site", ["ignore", "sync"], indirect=True)
@pytest.mark.slow
def test_drift_is_reported_and_published(site: Site) -> None:
    """Each change is reported in its tick, with names and counts alone."""
    setting = next(s.on_schema_change for s in site.prepared.project.sources if s.name == "sales")
    for number, (change, (lines, said)) in enumerate(CHANGES.items(), 1):
        send(site, "1.jsonl", *lines)
        (site.orders / "1.jsonl").rename(site.orders / f"{number}.jsonl")
        result = tick(site, number)

        assert result.published
        expected = "" if change in SILENT[setting] else said.replace("1.jsonl", f"{number}.jsonl")
        assert expected in note(result) and bool(note(result)) == bool(expected), change
        assert "many" not in note(result)
    assert note(tick(site, number + 1)) == ""
    assert ("drift --write" in note(result)) == (setting != "ignore")


@pytest.mark.slow
@pytest.mark.parametrize("site", ["fail"], indirect=True)
@pytest.mark.parametrize("change", ["a new field", "a field inside", "missing", "a wider type"])
def test_drift_fails_the_tick_until_it_is_settled(site: Site, change: str) -> None:
    """The lines have landed; the next tick fails too, without a new file, until the source allows them."""
    lines, said = CHANGES[change]
    send(site, "1.jsonl", *lines)
    for number in (1, 2):
        result = tick(site, number)
        assert not result.published
        message = node(result).message
        assert message.startswith("SR602") and said in message and "on_schema_change: ignore" in message
        assert "many" not in message and "3000000000" not in message
    assert [row["pieces"] for row in site.rows("sums")] == [2]

    again = Site(broken.write(site.root, {"models/_sources.yml": SOURCES.replace("SETTING", "ignore")}), site.engine)
    result = tick(again, 3)
    assert result.published
    (counted,) = query(
        f'select count(*) as n from "{NAME}"', [find(tick_of(again.ledger), again.warehouse, NAME)]
    ).to_pylist()
    assert counted["n"] + node(result).quarantined == 1 + len(lines)


@pytest.mark.slow
@pytest.mark.parametrize("site", ["fail"], indirect=True)
def test_differences_that_are_not_drift(site: Site) -> None:
    """The order of fields is irrelevant, as are an optional field that some lines have, NULL, and a broken line."""
    send(
        site, "1.jsonl", dict(reversed(SALE.items())), without("note"), {**SALE, "note": None}, {**SALE, "lines": None}
    )
    with (site.orders / "1.jsonl").open("a") as file:
        file.write('{"id": "cut\n[1]\n')
    result = tick(site)

    assert result.published, node(result).message
    assert (node(result).rows, node(result).quarantined) == (4, 2)
    assert rescued(site) == []


@pytest.mark.slow
def test_an_unknown_field_is_preserved(site: Site) -> None:
    """As it was written, with file and time, whether or not the line was quarantined."""
    lines = ['{"id": "b", "z": 1.50, "a": {"k": [1, "\\u00e9"]}}', '{"pieces": 1, "who": "x"}']
    site.write("1.jsonl", lines)
    result = tick(site)

    assert result.published
    first, second = rescued(site)
    assert first["_rescued"] == '{"a": {"k": [1, "\\u00e9"]},"z": 1.50}'
    assert (first["id"], first["_file"], second["_rescued"]) == ("b", "1.jsonl", '{"who": "x"}')
    assert first["_landed_at"] is not None


@pytest.mark.slow
def test_a_declared_field_comes_back_from_the_files(site: Site) -> None:
    """A rescued field becomes a column as soon as the source declares it: the files land from scratch."""
    send(site, "1.jsonl", {**SALE, "tip": 3})
    assert tick(site).published and rescued(site)
    column = "          - {name: tip, data_type: int, description: A tip.}\n"
    sources = SOURCES.replace("SETTING", "fail").replace(NOTE, f"{column}{NOTE}")
    sql = "select id, tip as pieces from {{ source('shops', 'sales') }}"
    broken.write(site.root, {"models/_sources.yml": sources, "models/stg_sales.sql": sql})
    again = Site(site.root, site.engine)
    result = tick(again, 2)

    # The first file lacks it, which isn't a change: some lines have it.
    assert result.published, node(result).message
    assert [row["pieces"] for row in again.rows("sums")] == [3]
    assert rescued(again) == []


def test_an_unknown_setting_is_refused(tmp_path: Path) -> None:
    """With the most similar word."""
    with pytest.raises(ProjectError, match="Did you mean `ignore`"):
        load_project(project(tmp_path, "ignored"))


@pytest.mark.slow
def test_hostile_lines_are_cut_exactly(site: Site) -> None:
    """The exact text of the fields is preserved; spark/test_landing_spark.py tests the same lines on Spark."""
    found = {row["_file"]: row["kept"] for row in site.engine.query(rescue_lines.rescued("duckdb"), ()).to_pylist()}

    assert found == {name: kept for name, (_, kept) in rescue_lines.HOSTILE.items()}


@pytest.mark.parametrize(
    ("one", "two", "both"),
    [
        ("int", "decimal(12,2)", "decimal(12,2)"),
        ("decimal(38,0)", "decimal(4,3)", "double"),
        ("boolean", "int", "string"),
        ("timestamp", "string", "string"),
        ("tinyint", "smallint", "smallint"),
        ("double", "bigint", "double"),
        ("", "date", "date"),
    ],
)
def test_the_narrowest_type(one: str, two: str, both: str) -> None:
    assert union(one, two) == union(two, one) == both


def command(site: Site, *options: str) -> str:
    (site.root / "profiles").mkdir(exist_ok=True)
    (site.root / "profiles" / "local.yml").write_text(f"engine: duckdb\nwarehouse: {site.warehouse}\n")
    result = CliRunner().invoke(main.main, ["--project-dir", str(site.root), "drift", *options])
    assert result.exit_code == 0, result.output
    return result.output


DRIFTED = [
    {**SALE, "tip": 1.5, "who is it": "x"},
    {**SALE, "tip": 12, "pieces": 3_000_000_000, "vip": True},
    {**SALE, "lines": [{"dish": "d", "price": "1.00", "size": "L"}]},
]
ADDED = """\
          - {name: tip, data_type: "decimal(3,1)", description: Describe this column.}
          - {name: vip, data_type: boolean, description: Describe this column.}
"""


@pytest.mark.slow
@pytest.mark.parametrize("site", ["ignore", "append_new_columns", "sync"], indirect=True)
def test_drift_is_shown_and_written(site: Site) -> None:
    """By the setting; the rest of the file stays as it is, comments included, and the next build uses it."""
    file = site.root / "models" / "_sources.yml"
    before = file.read_text()
    setting = next(s.on_schema_change for s in site.prepared.project.sources if s.name == "sales")
    send(site, "1.jsonl", *DRIFTED)
    assert tick(site).published
    found = {each["source"]: each for each in json.loads(command(site, "--json"))}
    sales, ratings = found["shops.sales"], found["shops.ratings"]
    fields = {drift["field"]: (drift["kind"], drift["seen"]) for drift in sales["drift"]}
    assert fields == {
        "tip": ("new", "decimal(3,1)"), "vip": ("new", "boolean"), "who is it": ("new", "string"),
        "lines": ("inside", ""), "pieces": ("widened", "bigint"),
    }  # fmt: skip
    assert (ratings["drift"], ratings["landed"], file.read_text()) == ([], False, before)
    said = command(site, "--write")

    expected = before
    if setting != "ignore":
        end = before.index("      - name: ratings")
        expected = before[:end] + ADDED + before[end:]
    if setting == "sync":
        expected = expected.replace("{name: pieces, data_type: int,", "{name: pieces, data_type: bigint,")
    assert file.read_text() == expected
    assert "wider type" in said and "3000000000" not in said
    if setting != "ignore":
        assert "who is it: the name isn't valid for a column" in said
        again = Site(site.root, site.engine)
        assert tick(again, 2).published
        assert "tip" not in note(tick(again, 3))
        left = {d["field"] for each in json.loads(command(again, "--json")) for d in each["drift"]}
        assert left == {"who is it", "lines", *(["pieces"] if setting != "sync" else [])}


@pytest.mark.slow
@pytest.mark.parametrize("site", ["fail"], indirect=True)
def test_drift_of_a_tick_that_failed_is_written(site: Site) -> None:
    """A difference that blocks publishing is shown although no reader sees it; a missing field is marked once."""
    send(site, "1.jsonl", {"id": "b", "pieces": 1, "lines": [], "remark": "good"})
    assert not tick(site).published
    said = command(site, "--write")
    assert "renamed to remark?" in said and "note: marked as missing" in said
    text = (site.root / "models" / "_sources.yml").read_text()
    assert "          # Missing in the lines that landed last; renamed to remark?\n          - name: note\n" in text
    assert "{name: remark, data_type: string, description: Describe this column.}" in text
    again = Site(site.root, site.engine)
    assert tick(again, 2).published
    assert "shops.sales: as declared." in command(again)


TIP = "- {name: tip, data_type: int, description: Describe this column.}"
YAML = """\
sources:
- name: shops   # theirs
  tables:
  - name: sales
    path: p
    on_schema_change: sync
    columns:
    - name: id
      data_type: int
      description: >-
        The
        sale.
    # the end

# bye
"""


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        (YAML, "        sale.\n", f"        sale.\n    {TIP}\n"),
        (YAML.replace(">-\n        The\n        sale.", "It."), "It.\n", f"It.\n    {TIP}\n"),
        (YAML.partition("\n    # the")[0], "sale.", f"sale.\n    {TIP}\n"),
        (YAML.replace("data_type: int", "data_type: 'int'  # why"), "'int'  # why", "bigint  # why"),
    ],
)  # fmt: skip
def test_the_text_of_a_file_is_edited_in_place(text: str, old: str, new: str) -> None:
    """In any style."""
    (source,) = sources(Reader("_sources.yml", text, []))
    kind = "widened" if "bigint" in new else "new"
    drift = (
        Drift("widened", "id", 1, "f", "int", "bigint")
        if kind == "widened"
        else Drift("new", "tip", 1, "f", seen="int")
    )

    assert edited(text, source, [drift]).text == text.replace(old, new)


def test_a_list_in_one_line_is_not_edited() -> None:
    """No line can be added there."""
    column = "{name: id, data_type: int, description: I}"
    text = f"sources: [{{name: a, tables: [{{name: b, path: p, on_schema_change: sync, columns: [{column}]}}]}}]\n"
    (source,) = sources(Reader("_sources.yml", text, []))

    with pytest.raises(ValueError, match=r"_sources\.yml"):
        edited(text, source, [Drift("new", "tip", 1, "f", seen="int")])
