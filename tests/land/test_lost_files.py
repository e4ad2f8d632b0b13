"""Rewritten, half-written or missing files of a source: no line is lost silently, none counts twice."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sqlrun.engine_api import Landing, TableSpec
from sqlrun.engines.duckdb import landing as duckdb_landing
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.engines.spark import landing as spark_landing
from sqlrun.errors import EngineError
from sqlrun.events import TickResult
from sqlrun.run.tick import Request, tick
from sqlrun.sources import batches as planned_batches
from sqlrun.sources import folder as source_folder
from tests.support import broken
from tests.support.projects import Site
from tests.support.script import FIVE, START

SOURCES = """\
sources:
  - name: shops
    tables:
      - name: sales
        path: data/orders
        columns:
          - {name: id, data_type: string, description: The sale., nulls: false}
"""
QUERY = "select id from {{ source('shops', 'sales') }}\n"
ENGINE = DuckDBEngine()
pytestmark = pytest.mark.slow


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """Two files have landed."""
    (tmp_path / "data" / "orders").mkdir(parents=True)
    files = {
        "models/_sources.yml": SOURCES,
        "models/stg.sql": QUERY,
        "models/stg.yml": broken.contract("stg", "id string", extra="    repeats: true"),
    }
    made = Site(broken.write(tmp_path, files), ENGINE)
    send(made, "0.jsonl", "a", "b")
    send(made, "1.jsonl", "c")
    assert made.tick(START).published
    return made


def send(site: Site, name: str, *ids: str) -> None:
    site.write(name, [json.dumps({"id": each}) for each in ids])


def build(site: Site, number: int = 1, *, refresh: bool = False, accept: bool = False) -> TickResult:
    request = Request(
        warehouse=site.warehouse, as_of=START + number * FIVE, selected=("stg",), refresh=refresh, threads=1,
        holder="test", clock=lambda: START, accept_lost=accept,
    )  # fmt: skip
    return tick(site.prepared.workspace, site.engine, site.ledger, request, site.events.append)


def message_of(result: TickResult) -> str:
    (node,) = result.nodes
    return node.message or "\n".join(stage.note for stage in node.stages)


def ids(site: Site) -> str:
    return "".join(sorted(row["id"] for row in site.rows("stg")))


def edit(site: Site, sql: str) -> Site:
    return Site(broken.write(site.root, {"models/stg.sql": sql}), ENGINE)


def meanwhile(monkeypatch: pytest.MonkeyPatch, work: Any) -> None:
    """Do something between the plan of a batch and its reading."""
    real = duckdb_landing.commit

    def late(*args: Any) -> Any:
        monkeypatch.setattr(duckdb_landing, "commit", real)
        work()
        return real(*args)

    monkeypatch.setattr(duckdb_landing, "commit", late)


@pytest.mark.parametrize("same_size", [True, False])
def test_a_file_rewritten_after_landing_is_reported(site: Site, same_size: bool) -> None:
    """In each tick, whether or not anything lands; its lines aren't read again."""
    send(site, "1.jsonl", *("x" if same_size else "xyz"))
    os.utime(site.orders / "1.jsonl", ns=(1, 1))
    for number in (1, 2):
        result = build(site, number)
        assert result.published
        assert message_of(result).startswith(
            "1 file was changed after landing, and sqlrun ignores the changes: 1.jsonl."
        )
    assert ids(site) == "abc"
    assert message_of(build(site, 3, refresh=True)) == ""
    assert ids(site) == ("abx" if same_size else "abxyz")


def test_folded_batches_have_the_files_state(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """So a change is noticed however long ago the file landed."""
    monkeypatch.setattr(planned_batches, "KEEP", 1)
    send(site, "2.jsonl", "d")
    assert message_of(build(site)) == ""
    os.utime(site.orders / "0.jsonl", ns=(1, 1))

    assert "0.jsonl" in message_of(build(site, 2))


def test_batches_without_file_states_are_accepted(site: Site) -> None:
    """A checkpoint of an older version has names of files alone."""
    (plan,) = Path(site.warehouse).rglob("batches/1.json")
    plan.write_text(json.dumps({"batch": 1, "files": ["0.jsonl", "1.jsonl"]}))
    send(site, "1.jsonl", "x", "y")

    assert message_of(build(site)) == "" and ids(site) == "abc"


@pytest.mark.parametrize("how", ["refresh", "edit"])
def test_landing_from_scratch_without_a_file_is_refused(site: Site, how: str) -> None:
    """Its lines would be lost; a landed file may be deleted if nothing lands from scratch."""
    (site.orders / "1.jsonl").unlink()
    assert build(site).published and ids(site) == "abc"
    edited = edit(site, "select upper(id) as id from {{ source('shops', 'sales') }}\n") if how == "edit" else site
    refused = build(edited, 2, refresh=how == "refresh")

    assert not refused.published and ids(site) == "abc"
    assert (
        "1.jsonl" in message_of(refused)
        and "0.jsonl" not in message_of(refused)
        and "--accept-lost-files" in message_of(refused)
    )
    assert build(edited, 3, refresh=how == "refresh", accept=True).published
    assert ids(edited).lower() == "ab"


def test_a_file_whose_lines_were_filtered_out_counts(site: Site) -> None:
    """The checkpoint has it, although the table has no row of it."""
    narrow = edit(site, QUERY.strip() + " where id <> 'c'\n")
    assert build(narrow).published and ids(narrow) == "ab"
    (site.orders / "1.jsonl").unlink()
    wide = edit(site, "select upper(id) as id from {{ source('shops', 'sales') }}\n")
    refused = build(wide, 2)
    assert not refused.published and "1.jsonl" in message_of(refused)

    # The table of the first query still has all its lines: nothing lands from scratch.
    assert build(edit(site, QUERY), 3).published and ids(site) == "abc"


def test_rows_landed_by_an_unpublished_tick_are_not_lost(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The new table has its lines already."""

    def stop(*args: Any) -> None:
        raise EngineError("stopped")

    edited = edit(site, "select upper(id) as id from {{ source('shops', 'sales') }}\n")
    with monkeypatch.context() as patched:
        patched.setattr(edited.ledger, "publish", stop)
        with pytest.raises(EngineError):
            build(edited)
    (site.orders / "1.jsonl").unlink()

    assert build(edited, 2).published and ids(edited) == "ABC"


def test_a_half_written_file_is_left_for_the_next_tick(site: Site) -> None:
    """Until its last line ends, or nothing has been added for a while."""
    file = site.orders / "2.jsonl"
    file.write_text('{"id": "d"}\n{"id": "e')
    result = build(site)
    assert result.published and "1 file is still being written. The next tick lands: 2.jsonl" in message_of(result)
    assert ids(site) == "abc"
    file.write_text('{"id": "d"}\n{"id": "e"}\n')
    assert message_of(build(site, 2)) == "" and ids(site) == "abcde"

    (site.orders / "3.jsonl").write_text('{"id": "f"}')
    old = time.time() - source_folder.SETTLES - 1
    os.utime(site.orders / "3.jsonl", (old, old))
    assert message_of(build(site, 3)) == "" and ids(site) == "abcdef"


def test_a_file_that_grows_before_it_is_read_waits(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch continues without it, and the next one takes all of it."""
    send(site, "2.jsonl", "d")
    send(site, "3.jsonl", "e")
    meanwhile(monkeypatch, lambda: send(site, "2.jsonl", "d", "f"))
    result = build(site)
    assert "2.jsonl" in message_of(result) and ids(site) == "abce"

    assert message_of(build(site, 2)) == "" and ids(site) == "abcdef"
    assert build(site, 3).published and ids(site) == "abcdef"


def test_a_file_that_changes_after_a_crash_waits(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch that was planned and not committed takes only what its plan has."""
    send(site, "2.jsonl", "d")

    class Stop(BaseException):
        pass

    def stop() -> None:
        raise Stop

    meanwhile(monkeypatch, stop)
    with pytest.raises(Stop):
        build(site)
    send(site, "2.jsonl", "d", "e")
    assert build(site, 1).published and ids(site) == "abc"
    assert build(site, 2).published and ids(site) == "abcde"


def test_a_file_deleted_before_it_is_read_fails_the_tick(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """In every tick until it is back, or the build accepts the loss."""
    send(site, "2.jsonl", "d")
    send(site, "3.jsonl", "e")
    meanwhile(monkeypatch, (site.orders / "2.jsonl").unlink)
    for number in (1, 2):
        refused = build(site, number)
        assert not refused.published
        assert (
            "2.jsonl" in message_of(refused)
            and "3.jsonl" not in message_of(refused)
            and "--accept-lost-files" in message_of(refused)
        )
    assert build(site, 3, accept=True).published and ids(site) == "abce"
    send(site, "2.jsonl", "d")
    assert build(site, 4).published and ids(site) == "abcde"


def test_a_file_that_is_put_back_lands(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """With another modification time it waits for one tick."""
    send(site, "2.jsonl", "d")
    meanwhile(monkeypatch, (site.orders / "2.jsonl").unlink)
    assert not build(site).published
    send(site, "2.jsonl", "d")
    for number in (2, 3):
        assert build(site, number).published
    assert ids(site) == "abcd"


def test_a_file_that_changes_while_it_is_read_is_not_taken(tmp_path: Path) -> None:
    """The bytes that were read and the state of the file belong together."""
    (tmp_path / "a.jsonl").write_text("{}\n")
    stat = source_folder.listed(str(tmp_path))["a.jsonl"]
    assert source_folder.read_whole(str(tmp_path), "a.jsonl", stat) == b"{}\n"
    (tmp_path / "a.jsonl").write_text("{}\n{}\n")
    assert source_folder.read_whole(str(tmp_path), "a.jsonl", stat) is None


def spark_landing_of(folder: Path, batch: int, *files: str, accept: bool = False) -> Landing:
    """Return a landing with a Spark checkpoint that has one committed batch, and the files in its source's log."""
    for each in ("sources/0", "commits"):
        (folder / "checkpoint" / each).mkdir(parents=True, exist_ok=True)
    (folder / "checkpoint" / "commits" / "0").write_text("v1\n{}")
    entries = [
        {"path": f"file://{folder}/data/{name}", "timestamp": file.stat().st_mtime_ns // 1_000_000, "batchId": batch}
        for name in files
        if (file := folder / "data" / name)
    ]
    log = "\n".join(["v1", *(json.dumps(entry) for entry in entries)])
    (folder / "checkpoint" / "sources" / "0" / str(batch)).write_text(log)
    table = TableSpec("stg", str(folder / "table"), ())
    return Landing(
        table, source_folder.Folder(str(folder / "data")), str(folder / "checkpoint"), "", "app", accept_lost=accept
    )


def test_spark_detects_a_changed_file_by_its_time(tmp_path: Path) -> None:
    """Its log has the modification time of each file."""
    (tmp_path / "data").mkdir()
    for name in ("a.jsonl", "b%20c.jsonl"):
        (tmp_path / "data" / name.replace("%20", " ")).write_text("{}\n")
    (tmp_path / "data" / "b%20c.jsonl").symlink_to(tmp_path / "data" / "b c.jsonl")
    landing = spark_landing_of(tmp_path, 0, "a.jsonl", "b%20c.jsonl")
    assert spark_landing.notes(landing, spark_landing.look(landing)) == ()
    os.utime(tmp_path / "data" / "b c.jsonl", ns=(1, 1))

    (note,) = spark_landing.notes(landing, spark_landing.look(landing))
    assert "b c.jsonl" in note and "a.jsonl" not in note


@pytest.mark.parametrize("batch", [0, 1])
def test_spark_does_not_look_for_a_missing_file(tmp_path: Path, batch: int) -> None:
    """An uncommitted batch is run again with the same files; a committed one needs none."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.jsonl").write_text("{}\n")
    landing = spark_landing_of(tmp_path, batch, "a.jsonl")
    spark_landing.require_parts(landing, spark_landing.look(landing))
    (tmp_path / "data" / "a.jsonl").unlink()
    if batch == 0:
        spark_landing.require_parts(landing, spark_landing.look(landing))
        return
    with pytest.raises(EngineError, match=r"a\.jsonl.*--accept-lost-files"):
        spark_landing.require_parts(landing, spark_landing.look(landing))
    spark_landing.require_parts(replace(landing, accept_lost=True), spark_landing.look(landing))
