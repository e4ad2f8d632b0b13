"""A database's table is altered while its log is landed: which change brought what, and the rows after a build."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sqlrun.cli.main import main
from sqlrun.engine_api import Engine
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.events import TickResult
from tests.support.projects import Site
from tests.support.script import FIVE, START

DECLARED = """\
sources:
  - name: shop
    tables:
      - name: owners
        path: data/orders
        on_schema_change: SETTING
        cdc: {format: debezium, key: [id], table: public.owners}
        columns:
          - {name: id, data_type: bigint, description: It.}
          - {name: phone, data_type: string, description: It.}
          - {name: credit, data_type: int, description: It.}
          - {name: op, data_type: string, description: It., from: op}
          - {name: at_lsn, data_type: string, description: It., from: position}
          - {name: committed, data_type: timestamp, description: It., from: committed_at}
          - {name: txid, data_type: string, description: It., from: transaction}
"""
ABOUT = "op, at_lsn as position, committed as committed_at, txid"
TYPES = {
    "id": "bigint", "phone": "string", "mobile": "string", "email": "string", "credit": "bigint", "op": "string",
    "position": "string", "committed_at": "timestamp", "txid": "string",
}  # fmt: skip


def event(lsn: int, op: str, **row: Any) -> str:
    """Return an event of the transaction `lsn`, committed that many seconds after the epoch."""
    source = {"lsn": lsn, "txId": lsn, "ts_ms": lsn * 1000, "snapshot": "false", "schema": "public", "table": "owners"}
    before, after = (row, None) if op == "d" else (None, row)
    return json.dumps({"op": op, "before": before, "after": after, "source": source})


FIRST = [event(100, "c", id=1, phone="1", credit=5), event(110, "c", id=2, phone="2", credit=6)]
ALTERED = [
    event(120, "u", id=1, phone="1", credit=5, email="a@x"),  # alter table owners add email text
    event(130, "u", id=2, mobile="22", credit=6, email=None),  # rename phone to mobile
    event(140, "u", id=1, mobile="11", credit=3_000_000_000, email="a@x"),  # alter credit type bigint
    event(150, "d", id=2),
    event(160, "c", id=3, mobile="33", credit=7, email="c@x"),
]


def model(folder: Path, name: str, query: str, grain: str, columns: list[str], extra: str = "") -> None:
    (folder / f"models/{name}.sql").write_text(f"{query}\n")
    listed = "".join(f"      - {{name: {c}, data_type: {TYPES[c]}, description: It.}}\n" for c in columns)
    contract = f"models:\n  - name: {name}\n    description: It.\n    grain: [{grain}]\n{extra}    columns:\n{listed}"
    (folder / f"models/{name}.yml").write_text(contract)


def write(folder: Path, *fields: str) -> None:
    """Write the models over some fields."""
    select = f"select id, {', '.join(fields)}, {ABOUT} from {{{{ source('shop', 'owners') }}}}"
    about = ["op", "position", "committed_at", "txid"]
    model(folder, "changes", select, "id, position", ["id", *fields, *about], "    repeats: true\n")
    current = f"{{{{ current_rows(ref('changes'), key='id', columns={list(fields)}) }}}}"
    model(folder, "owners", current, "id", ["id", *fields, "position"])


def site(folder: Path, setting: str, engine: Engine) -> Site:
    (folder / "data/orders").mkdir(parents=True)
    (folder / "profiles").mkdir()
    (folder / "models").mkdir()
    (folder / "profiles/duckdb.yml").write_text("engine: duckdb\nwarehouse: warehouse\n")
    (folder / "pyproject.toml").write_text('[tool.sqlrun]\nname = "shop"\nprofile = "duckdb"\n')
    (folder / "models/_sources.yml").write_text(DECLARED.replace("SETTING", setting))
    write(folder, "phone")
    return Site(folder, engine)


def note(result: TickResult) -> str:
    assert result.published, [node.message for node in result.nodes]
    return next(node for node in result.nodes if node.name == "changes").stages[-1].note


def drift(made: Site, *options: str) -> str:
    found = CliRunner().invoke(main, ["--project-dir", str(made.root), "drift", *options])
    assert found.exit_code == 0, found.output
    return found.output


def altered(folder: Path, setting: str, engine: Engine) -> tuple[Site, str]:
    """Return the project after the log of the alterations, and the note of its tick."""
    made = site(folder, setting, engine)
    made.write("1.json", FIRST)
    assert note(made.tick(START)) == ""
    made.write("2.json", ALTERED)
    return made, note(made.tick(START + FIVE))


@pytest.mark.parametrize("setting", ["append_new_columns", "sync"])
@pytest.mark.slow
def test_rows_before_and_after_an_alteration_are_right(tmp_path: Path, setting: str) -> None:
    rows_are_right(tmp_path, setting, DuckDBEngine())


def rows_are_right(folder: Path, setting: str, engine: Engine) -> None:
    """Declare what came by `drift --write`, land again, and compare the rows with the database's."""
    made, _ = altered(folder, setting, engine)
    drift(made, "--write")
    write(folder, "phone", "mobile", "email", "credit")
    if setting == "append_new_columns":
        declared = folder / "models/_sources.yml"
        declared.write_text(declared.read_text().replace("data_type: int,", "data_type: bigint,"))
    made = Site(folder, engine)
    assert "SR601" not in note(made.tick(START + 2 * FIVE)) or setting == "sync"
    changes = [(r["id"], r["position"][17:20], r["phone"], r["mobile"], r["email"]) for r in made.rows("changes")]
    assert sorted(changes, key=lambda r: r[1]) == [
        (1, "100", "1", None, None),
        (2, "110", "2", None, None),
        (1, "120", "1", None, "a@x"),
        (2, "130", None, "22", None),
        (1, "140", None, "11", "a@x"),
        (2, "150", None, None, None),
        (3, "160", None, "33", "c@x"),
    ]
    rows = [(r["id"], r["phone"], r["mobile"], r["email"], r["credit"]) for r in made.rows("owners")]
    assert sorted(rows) == [(1, None, "11", "a@x", 3_000_000_000), (3, None, "33", "c@x", 7)]

    # A row of before the alterations comes again: it lacks the new columns, and the table has them.
    made.write("3.json", FIRST[:1])
    assert note(made.tick(START + 3 * FIVE)) == ""


def test_drift_names_the_first_change_with_it(tmp_path: Path) -> None:
    made, said = altered(tmp_path, "sync", DuckDBEngine())

    def first(lsn: int) -> str:
        at = f"1970-01-01 00:{lsn // 60:02}:{lsn % 60:02} UTC"
        return f"first in the transaction {lsn} of {at}, position {lsn:020}/2"

    assert f"new field email string (4 lines, as in 2.json, {first(120)})" in said
    assert f"new field mobile string (3 lines, as in 2.json, {first(130)})" in said
    assert f"phone is missing in 3 lines, as in 2.json, {first(130)}, renamed to" in said
    assert f"credit is not of type int (1 line, as in 2.json, {first(140)}): bigint would fit" in said

    (found,) = json.loads(drift(made, "--json"))
    firsts = {(d["kind"], d["field"]): d["first"]["transaction"] for d in found["drift"]}
    assert firsts == {
        ("new", "email"): "120", ("new", "mobile"): "130", ("missing", "phone"): "130", ("widened", "credit"): "140",
    }  # fmt: skip
    assert "the transaction 130 of 1970-01-01 00:02:10 UTC" in drift(made)


def test_a_failing_tick_names_it_too(tmp_path: Path) -> None:
    made = site(tmp_path, "fail", DuckDBEngine())
    made.write("1.json", FIRST)
    assert note(made.tick(START)) == ""
    made.write("2.json", ALTERED[:1])
    result = made.tick(START + FIVE)

    (message,) = [node.message for node in result.nodes if node.message]
    assert message.startswith("SR602") and "first in the transaction 120 of" in message


def test_without_columns_about_changes_only_the_file_is_named(tmp_path: Path) -> None:
    made = site(tmp_path, "sync", DuckDBEngine())
    declared = tmp_path / "models/_sources.yml"
    lines = [line for line in declared.read_text().splitlines() if "from: " not in line]
    declared.write_text("\n".join(lines) + "\n")
    model(tmp_path, "changes", "select id, phone from {{ source('shop', 'owners') }}", "id", ["id", "phone"])
    (tmp_path / "models/owners.sql").unlink()
    (tmp_path / "models/owners.yml").unlink()
    made = Site(tmp_path, made.engine)
    made.write("1.json", ALTERED[-1:])

    said = note(made.tick(START))
    assert "new field email string (1 line, as in 1.json)" in said
    assert "phone is missing in all 1 line, as in 1.json, renamed to email?" in said
