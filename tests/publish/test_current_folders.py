"""Folders with paths that stay: other readers see the rows of the published tick, after whatever happens."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Literal

import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from sqlrun.commands import doctor as doctor_command
from sqlrun.commands import environments as environment_commands
from sqlrun.engines.delta import deletion_vectors, file_layout
from sqlrun.engines.delta import state as delta_state
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.operations import maintenance, rollback
from sqlrun.publish import current_folders
from sqlrun.publish.ledger import Ledger
from sqlrun.publish.reader import tick_of
from sqlrun.report.console import Console
from sqlrun.storage.factory import storage_of
from tests.publish.test_environments import beside, edit, sales
from tests.run.test_machine import Stop, project, stopping
from tests.support.projects import Site, prepared
from tests.support.readers_of_delta import rows
from tests.support.script import FIVE, START
from tests.support.servers.object_stores import S3

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("unchecked")]
NOW = datetime.now(timezone.utc)
Rows = Counter[str]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """Three sales, one published tick, and folders; the path has blanks and letters beyond ASCII."""
    made = Site(project(tmp_path / "wärehouse of a shop"), DuckDBEngine(), current_folders=True)
    sales(made, "0.jsonl", ("a", 1, "x", 5, -1), ("b", 1, "y", 3, -2), ("c", 1, "x", 4, -3))
    assert made.tick(START).published
    return made


def folder(site: Site, name: str) -> str:
    return f"{current_folders.place(site.ledger)}/{name}"


def by_scan(path: str) -> list[Mapping[str, Any]]:
    return list(pa.table(delta_table.opened(path, None).scan().read_all()).to_pylist())


def by_sql(path: str) -> list[Mapping[str, Any]]:
    asked = QueryBuilder().register("t", delta_table.opened(path, None)).execute("select * from t")
    return list(pa.table(asked.read_all()).to_pylist())


def tables(site: Site) -> list[str]:
    return sorted(name for name in tick_of(site.ledger).tables if "__state_" not in name)


def require_same(site: Site) -> None:
    """Compare every folder with its published table as sqlrun reads it."""
    names = tables(site)
    assert sorted(storage_of(site.warehouse).names(current_folders.place(site.ledger))) == names
    for name in names:
        expected = rows(site.rows(name))
        assert rows(by_scan(folder(site, name))) == expected, name
        assert rows(by_sql(folder(site, name))) == expected, name


def shown(site: Site, name: str) -> str:
    return str(DeltaTable(folder(site, name)).history(1)[0]["sqlrun.shows"])


def test_folders_follow_the_published_ticks(site: Site) -> None:
    require_same(site)
    columns = {field.name for field in DeltaTable(folder(site, "fct_slots")).schema().fields}
    assert columns == {"shop", "slot_at", "sales", "total"}
    sales(site, "1.jsonl", ("a", 2, "x", 9, -1), ("d", 1, "z", 2, 0))

    assert site.tick(START + FIVE).published

    require_same(site)
    assert site.said == []


def test_quarantined_lines_are_not_shown(site: Site) -> None:
    (site.orders / "1.jsonl").write_text('{"id": "q", "version": "none"}\n')
    sales(site, "2.jsonl", ("e", 1, "x", 1, 0))

    assert site.tick(START + FIVE).published

    assert "'q'" not in str(by_scan(folder(site, "stg_lines")))
    require_same(site)


@pytest.mark.parametrize(("seed", "inline"), [(1, None), (2, 1_000), (3, 0)])
def test_a_random_run(site: Site, seed: int, inline: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """More ticks than a checkpoint needs, with corrections, and a vacuum that retains one tick.

    Changed rows are copied, or marked by vectors in the log, or in files.
    """
    drawn = random.Random(seed)
    if inline is not None:
        monkeypatch.setattr(file_layout, "COPIED", 0)
        monkeypatch.setattr(deletion_vectors, "INLINE", inline)
    kinds = set[str]()
    for number in range(1, 13):
        lines = [(drawn.choice("abcdefgh"), number, drawn.choice("xyz"), drawn.randint(-3, 9), number) for _ in "123"]
        sales(site, f"{number}.jsonl", *lines)
        assert site.tick(START + number * FIVE).published
        if number % 5 == 0:
            maintenance.vacuum(site.ledger, 1, NOW, site.said.append)
        require_same(site)
        entries = delta_state.at(folder(site, "stg_sales"), DeltaTable(folder(site, "stg_sales")).version()).files
        kinds |= {each["deletionVector"]["storageType"] for each in entries.values() if each.get("deletionVector")}
    assert kinds == {None: set(), 1_000: {"i"}, 0: {"u"}}[inline]
    assert list(Path(folder(site, "stg_sales")).glob("_delta_log/*.checkpoint.parquet"))


def test_an_edited_table_keeps_its_path(site: Site) -> None:
    before = shown(site, "fct_slots")
    edit(site, "fct_slots")
    site.prepared = prepared(site.root)

    assert site.tick(START + FIVE).published

    assert shown(site, "fct_slots").split("@")[0] != before.split("@")[0]
    require_same(site)


def test_a_rollback_shows_the_earlier_tick(site: Site) -> None:
    old = site.everything()
    sales(site, "1.jsonl", ("a", 2, "x", 9, -1), ("d", 1, "z", 2, 0))
    site.tick(START + FIVE)
    assert site.everything() != old

    rollback.roll_back(site.ledger, 1, NOW, Console())

    assert site.everything() == old
    require_same(site)
    site.tick(START + 2 * FIVE)
    require_same(site)


def test_an_environment_has_folders_of_its_own(site: Site) -> None:
    edit(site, "fct_slots")
    dev = beside(site, "dev")
    dev.current_folders = True
    assert dev.tick(START).published

    require_same(dev)
    require_same(site)
    assert shown(dev, "fct_slots") != shown(site, "fct_slots")
    place = Path(folder(dev, "x")).parent

    environment_commands.drop(dev.ledger, NOW)

    assert not place.exists()
    require_same(site)


def test_a_crash_after_the_publish_leaves_folders_a_tick_behind(site: Site) -> None:
    old = site.everything()
    sales(site, "1.jsonl", ("a", 2, "x", 9, -1), ("d", 1, "z", 2, 0))
    with stopping(current_folders, "_committed", 3, after=False), pytest.raises(Stop):
        site.tick(START + FIVE)
    assert site.everything() != old
    behind = current_folders.behind(site.ledger, tick_of(site.ledger))
    assert behind

    for name in behind:
        assert Counter(map(str, by_scan(folder(site, name)))).total() == old[name].total()
    current_folders.follow(site.ledger, tick_of(site.ledger), site.said.append)

    require_same(site)
    assert site.said == []
    heads = {name: DeltaTable(folder(site, name)).version() for name in tables(site)}
    current_folders.follow(site.ledger, tick_of(site.ledger), site.said.append)
    assert heads == {name: DeltaTable(folder(site, name)).version() for name in tables(site)}


def test_another_writer_changes_the_folder_only(site: Site) -> None:
    path = folder(site, "mart_hour")
    real = site.everything()
    write_deltalake(path, by_table(path), mode="append")
    write_deltalake(path, by_table(path).slice(0, 0), mode="overwrite")
    sales(site, "1.jsonl", ("d", 1, "z", 2, 0))
    assert site.everything() == real

    assert site.tick(START + FIVE).published

    assert len(site.said) == 1 and "SR741" in site.said[0] and "WRITE by delta-rs" in site.said[0]
    require_same(site)


def by_table(path: str) -> pa.Table:
    return pa.table(DeltaTable(path).scan().read_all())


def test_a_truncated_entry_is_written_again(site: Site) -> None:
    path = Path(folder(site, "mart_hour")) / "_delta_log"
    max(path.glob("*.json")).write_text('{"commitInfo": ')

    current_folders.follow(site.ledger, tick_of(site.ledger), site.said.append, create=True)

    require_same(site)


def test_without_the_key_folders_that_exist_follow(site: Site) -> None:
    shutil.rmtree(folder(site, "mart_hour"))
    site.current_folders = False
    sales(site, "1.jsonl", ("d", 1, "z", 2, 0))

    assert site.tick(START + FIVE).published

    assert not Path(folder(site, "mart_hour")).exists()
    assert rows(by_scan(folder(site, "fct_slots"))) == rows(site.rows("fct_slots"))


def test_the_folder_of_a_removed_table_goes(site: Site) -> None:
    for end in ("sql", "yml"):
        (site.root / f"models/mart_best.{end}").unlink()
    site.prepared = prepared(site.root)

    assert site.tick(START + FIVE).published

    assert not Path(folder(site, "mart_best")).exists()
    require_same(site)


def test_a_moved_warehouse_still_reads(site: Site, tmp_path: Path) -> None:
    expected = rows(site.rows("fct_slots"))
    path = folder(site, "fct_slots").removeprefix(site.warehouse)
    shutil.move(site.warehouse, tmp_path / "moved")

    assert rows(by_scan(f"{tmp_path}/moved{path}")) == expected


def test_no_key_makes_no_folder(tmp_path: Path) -> None:
    made = Site(project(tmp_path / "p"), DuckDBEngine())
    sales(made, "0.jsonl", ("a", 1, "x", 5, -1))
    assert made.tick(START).published

    assert not (Path(made.warehouse) / "current").exists()


def test_the_doctor_names_a_folder_that_is_behind(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(folder(site, "mart_hour")) / "_delta_log" / f"{1:020d}.json"
    path.write_text(json.dumps({"commitInfo": {"operation": "WRITE", "engineInfo": "x"}}) + "\n")

    assert doctor_command._behind(site.ledger, False, Console()) == 1
    assert "mart_hour doesn't show tick 1" in capsys.readouterr().out
    assert doctor_command._behind(site.ledger, True, Console()) == 0
    require_same(site)


@pytest.mark.servers
@pytest.mark.parametrize("form", [True, "copies"])
def test_folders_on_an_object_store(s3: S3, tmp_path: Path, form: Literal[True, "copies"]) -> None:
    made = Site(project(tmp_path / "shops"), DuckDBEngine(), current_folders=form)
    made.warehouse = s3.warehouse(tmp_path)
    made.ledger = Ledger(made.warehouse, made.ledger.project)
    for number in range(12):
        sales(made, f"{number}.jsonl", ("a", number, "x", number, -1), (f"n{number}", 1, "z", 2, 0))
        assert made.tick(START + number * FIVE).published
    require_same(made)
    assert made.said == []
    path = folder(made, "mart_hour")
    has_files = any(name.endswith(".parquet") for name in storage_of(path).names(path))
    assert has_files == (form == "copies")

    # Without the key, and with the other form.
    before = shown(made, "mart_hour")
    current_folders.follow(made.ledger, made.ledger.read().published, made.said.append)
    assert shown(made, "mart_hour") == before
    other: Literal[True, "copies"] = True if form == "copies" else "copies"
    current_folders.follow(made.ledger, made.ledger.read().published, made.said.append, create=other)
    assert shown(made, "mart_hour") != before
    require_same(made)


@pytest.mark.servers
def test_polars_scans_copies_on_a_store(s3: S3, tmp_path: Path) -> None:
    made = Site(project(tmp_path / "shop"), DuckDBEngine(), current_folders="copies")
    made.warehouse = f"s3://lake/{tmp_path.name}"
    made.ledger = Ledger(made.warehouse, made.ledger.project)
    for number in range(2):
        sales(made, f"{number}.jsonl", ("a", number, "x", number, -1), (f"n{number}", 1, "z", 2, 0))
        assert made.tick(START + number * FIVE).published

    options = {**{key.lower(): value for key, value in s3.environment.items()}, "aws_allow_http": "true"}
    for name in tables(made):
        found = pl.scan_delta(folder(made, name), storage_options=options).collect().to_dicts()
        assert rows(found) == rows(made.rows(name)), name


@pytest.mark.parametrize("inline", [None, 1_000, 0])
def test_polars_scans_a_folder(tmp_path: Path, inline: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """It opens no file outside the folder, and none in a path with a blank; changed rows are copied or marked."""
    if inline is not None:
        monkeypatch.setattr(file_layout, "COPIED", 0)
        monkeypatch.setattr(deletion_vectors, "INLINE", inline)
    site = Site(project(tmp_path / "shop"), DuckDBEngine(), current_folders=True)
    sales(site, "0.jsonl", *((f"m{number}", 1, "y", number, 0) for number in range(30)))
    for number in range(3):
        sales(site, f"{number + 1}.jsonl", ("m1", number + 2, "x", number, -1), (f"n{number}", 1, "z", 2, 0))
        assert site.tick(START + number * FIVE).published
        for name in tables(site):
            found = pl.scan_delta(folder(site, name)).collect().to_dicts()
            assert rows(found) == rows(site.rows(name)), name
    entries = delta_state.at(folder(site, "stg_sales"), DeltaTable(folder(site, "stg_sales")).version()).files.values()
    kinds = {each["deletionVector"]["storageType"] for each in entries if each.get("deletionVector")}
    assert kinds == {None: set(), 1_000: {"i"}, 0: {"u"}}[inline]


def test_a_store_is_read_by_delta_rs(site: Site) -> None:
    """Polars' own `scan_delta` opens no file outside the folder, so the page shows this way."""
    frame = pl.DataFrame(pa.table(DeltaTable(folder(site, "fct_slots")).scan().read_all()))

    assert rows(frame.to_dicts()) == rows(site.rows("fct_slots"))


def test_pandas_reads_a_folder_without_vectors(site: Site) -> None:
    [model] = site.root.rglob("mart_hour.sql")
    model.write_text("{{ config(readable_by='pandas') }}\n" + model.read_text())
    site.prepared = prepared(site.root)
    assert site.tick(START + FIVE).published

    found = DeltaTable(folder(site, "mart_hour")).to_pandas()

    assert rows(found.to_dict("records")) == rows(site.rows("mart_hour"))


def files(path: str) -> set[str]:
    """Return the names of a folder's files, of rows and of vectors."""
    return {str(file.relative_to(path)) for kind in ("parquet", "bin") for file in Path(path).glob(f"**/*.{kind}")} - {
        str(file.relative_to(path)) for file in Path(path).glob("_delta_log/*")
    }


def test_second_names_go_when_no_reader_needs_them(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """At each tenth commit of a folder; those of an hour stay."""
    monkeypatch.setattr(file_layout, "COPIED", 0)
    monkeypatch.setattr(deletion_vectors, "INLINE", 0)
    path = folder(site, "stg_sales")
    most = 0
    for number in range(1, 22):
        if number == 12:
            most = len(files(path))
            monkeypatch.setattr(current_folders, "READERS", timedelta(0))
        sales(site, f"{number}.jsonl", ("a", number + 1, "x", number, -1), (f"n{number}", 1, "z", 2, 0))
        assert site.tick(START + number * FIVE).published
    version = DeltaTable(path).version()
    assert version % 10 == 1
    # After the twentieth commit came another one.
    entries = list(delta_state.at(path, version - 1).files.values())
    needed = {entry["path"] for entry in entries} | {deletion_vectors.file_of(e.get("deletionVector")) for e in entries}
    brought = {action["add"]["path"] for action in delta_table.actions(path, version) if "add" in action}
    assert len(files(path)) <= len((needed | brought) - {""}) + 2 < most
    require_same(site)


def test_folders_of_the_form_before_get_names_of_their_own(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a store: the log names the files in the table's folder."""
    with monkeypatch.context() as patched:
        patched.setattr(current_folders.Folder, "linked", False)
        shutil.rmtree(current_folders.place(site.ledger))
        sales(site, "1.jsonl", ("a", 2, "x", 9, -1), ("d", 1, "z", 2, 0))
        assert site.tick(START + FIVE).published
        assert files(folder(site, "stg_sales")) == set()
        assert rows(by_scan(folder(site, "stg_sales"))) == rows(site.rows("stg_sales"))

    current_folders.follow(site.ledger, site.ledger.read().published, site.said.append)

    assert files(folder(site, "stg_sales"))
    require_same(site)
    assert site.said == []
