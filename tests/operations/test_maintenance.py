"""`sqlrun vacuum` changes files but no row; files of retained ticks stay, and the next tick is correct."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from click.testing import CliRunner
from deltalake import DeltaTable

from sqlrun.cli.main import main
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.delta import vacuum as delta_vacuum
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.errors import EngineError, UsageError
from sqlrun.operations import maintenance, rollback
from sqlrun.publish.ledger import Ledger
from sqlrun.publish.reader import tick_of
from sqlrun.report.console import Console
from sqlrun.system_tables import intake
from sqlrun.system_tables.intake import Intake, Subject
from tests.support.delta_logs import commit_as_of
from tests.support.projects import Site, copy_project, prepared
from tests.support.script import FIVE, START, order
from tests.support.whole import differences

pytestmark = pytest.mark.slow
NOW = datetime.now(timezone.utc)
TICKS = 6


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return six ticks, each with two new orders and a correction of the previous one."""
    made = Site(copy_project(tmp_path_factory.mktemp("built")), DuckDBEngine())
    for number in range(1, TICKS + 1):
        at = START + number * FIVE
        lines = [order(f"{number}-{n}", at - FIVE, restaurant=f"r900{n}") for n in range(2)]
        if number > 1:
            lines.append(order(f"{number - 1}-0", at - FIVE, restaurant="r9002", version=2))
        made.write(f"{number}.jsonl", lines)
        assert made.tick(at).published
    return made.root


@pytest.fixture
def site(built: Path, tmp_path: Path) -> Site:
    """Return a copy of these ticks."""
    return Site(shutil.copytree(built, tmp_path / "site"), DuckDBEngine())


def maintained(site: Site, keep: int) -> maintenance.Done:
    return maintenance.vacuum(site.ledger, keep, NOW, lambda _: None)


def files(site: Site) -> set[str]:
    return {f.as_posix() for f in Path(site.warehouse).rglob("*.parquet") if "_delta_log" not in f.parts}


def age(site: Site) -> None:
    """Rewrite the logs as if there had been one commit a day, the newest of them weeks ago."""
    for log in Path(site.warehouse).rglob("_delta_log/*.json"):
        moment = int((NOW - timedelta(days=60 - int(log.stem))).timestamp() * 1000)
        commit_as_of(log, moment)


@pytest.mark.long
def test_rows_stay_and_files_are_fewer(site: Site) -> None:
    before = site.everything()
    assert live(site, "stg_order_events") == TICKS

    done = maintained(site, TICKS)

    assert done.tick == TICKS + 1
    assert done.merged > done.made > 0
    assert site.everything() == before
    assert live(site, "stg_order_events") == 1


def test_the_accounting_of_old_ticks_goes_and_losses_stay(site: Site) -> None:
    path = tick_of(site.ledger).tables["stg_order_events"].path
    loss = Intake("orders/0", 5, 9, lost=4, lost_because="aged out", accepted_by="an operator, 2026-03-10")
    intake.write(site.warehouse, "", Subject("orders.events", "stg_order_events", path, 1, NOW), 1, [loss])
    before = intake.read(site.warehouse, "")
    assert {row["tick"] for row in before} == set(range(1, TICKS + 1))

    maintained(site, 2)

    kept = intake.read(site.warehouse, "")
    assert kept == [row for row in before if row["tick"] >= TICKS - 1 or row["lost_because"]]
    assert len(intake.losses(site.warehouse, "")) == 1


def live(site: Site, name: str) -> int:
    table = delta_table.open_table(f"{site.warehouse}/{tick_of(site.ledger).tables[name].path}")
    return len(delta_table.files_at(table))


def test_every_retained_tick_has_the_same_rows(site: Site) -> None:
    age(site)
    kept = range(TICKS - 2, TICKS + 1)
    before, count = {tick: site.everything(tick) for tick in kept}, len(files(site))

    done = maintained(site, len(kept))

    assert done.files > 0
    assert len(files(site)) < count
    assert {tick: site.everything(tick) for tick in kept} == before


def test_later_ticks_are_correct_and_an_idle_tick_writes_nothing(site: Site) -> None:
    age(site)
    maintained(site, 1)

    idle = site.tick(START + TICKS * FIVE)
    assert {node.status for node in idle.nodes} == {"no-op"}
    site.write("more.jsonl", [order("1-1", START, restaurant="r9002", version=3), order("new", START + TICKS * FIVE)])
    assert site.tick(START + (TICKS + 1) * FIVE).published
    assert differences(site, START + (TICKS + 1) * FIVE) == {}


def test_a_file_is_deleted_and_counted_once(site: Site) -> None:
    """delta-rs names it again as long as the log records its removal."""
    age(site)
    before = files(site)
    path = f"{site.warehouse}/{tick_of(site.ledger).tables['stg_orders'].path}"

    count = delta_vacuum.vacuum(path, timedelta(hours=1))
    version = delta_table.head(path)

    assert count == len(before - files(site)) > 0
    assert delta_vacuum.vacuum(path, timedelta(hours=1)) == 0
    assert delta_table.head(path) == version


def test_the_next_tick_restores_no_table(site: Site) -> None:
    """Deleting files adds commits; the published tick shows the versions after them."""
    age(site)
    done = maintained(site, 1)
    at = START + (TICKS + 1) * FIVE
    site.write("more.jsonl", [order("new", at - FIVE)])

    assert done.files > 0
    assert site.tick(at).published
    restored = [log for log in Path(site.warehouse).rglob("_delta_log/*.json") if "RESTORE" in log.read_text()]
    assert restored == []
    assert differences(site, at) == {}


def test_a_second_run_has_nothing_to_do(site: Site) -> None:
    maintained(site, 2)

    done = maintained(site, 2)

    assert done.tick is None


def test_maintenance_leaves_rollback_to_a_retained_tick_possible(site: Site) -> None:
    age(site)
    before = site.everything(TICKS - 1)
    assert maintained(site, 3).files > 0

    rollback.roll_back(site.ledger, TICKS - 1, NOW, Console(quiet=True))

    assert site.everything() == before
    site.write("more.jsonl", [order("new", START + TICKS * FIVE)])
    assert site.tick(START + (TICKS + 1) * FIVE).published
    assert differences(site, START + (TICKS + 1) * FIVE) == {}


def test_a_rollback_to_a_deleted_tick_is_refused(site: Site) -> None:
    age(site)
    assert maintained(site, 1).files > 0

    with pytest.raises(UsageError, match=f"tick 2 is no longer retained. The oldest retained tick is {TICKS}"):
        rollback.roll_back(site.ledger, 2, NOW, Console(quiet=True))


@pytest.mark.long
def test_a_table_of_an_old_definition_is_deleted_with_its_ticks(site: Site) -> None:
    was = tick_of(site.ledger).tables["fct_restaurant_hours"].path
    model = site.root / "models" / "facts" / "fct_restaurant_hours.sql"
    model.write_text(model.read_text().replace("from slots\n", "from slots\n    where n_orders > 0\n"))
    site.prepared = prepared(site.root)
    assert site.tick(START + (TICKS + 1) * FIVE).published

    assert maintained(site, 2).tables == ()
    assert maintained(site, 1).tables == (was,)

    assert not (Path(site.warehouse) / was).exists()
    assert (Path(site.warehouse) / "_sqlrun").exists()
    assert site.tick(START + (TICKS + 2) * FIVE).published


def test_logs_and_system_tables_shrink_and_retained_ticks_stay(site: Site) -> None:
    """Before a checkpoint that all readers have found, only entries that a retained tick needs are left."""
    age(site)
    for table in tick_of(site.ledger, TICKS - 2).tables.values():
        path = f"{site.warehouse}/{table.path}"
        delta_table.open_table(path, table.version).create_checkpoint()
    delta_table.open_table(site.ledger.path).create_checkpoint()
    before = {tick: site.everything(tick) for tick in range(TICKS - 1, TICKS + 1)}
    young = maintained(site, 2)
    for file in Path(site.warehouse).rglob("*.checkpoint.parquet"):
        os.utime(file, (0, 0))
    rows = Path(f"{site.warehouse}/{tick_of(site.ledger).tables['stg_orders'].path}/_delta_log")

    old = maintained(site, 2)

    assert young.entries == 0 < old.entries
    assert not (rows / f"{0:020}.json").exists()
    assert not (Path(site.ledger.path) / "_delta_log" / f"{0:020}.json").exists()
    assert {tick: site.everything(tick) for tick in before if tick > TICKS - 1} == {TICKS: before[TICKS]}
    # The second vacuum deleted files, and published the versions after that.
    assert [entry.tick for entry in site.ledger.entries()] == [TICKS + 2, TICKS + 1, TICKS]
    site.write("more.jsonl", [order("1-1", START, restaurant="r9002", version=3)])
    assert site.tick(START + (TICKS + 1) * FIVE).published
    assert differences(site, START + (TICKS + 1) * FIVE) == {}


@pytest.mark.long
def test_change_files_of_system_tables_do_not_accumulate(site: Site) -> None:
    """Each maintenance deletes rows of the system tables, which writes change files without readers."""
    for number in range(3):
        maintained(site, 1)
        site.write(f"more-{number}.jsonl", [order("1-1", START, restaurant="r9002", version=3 + number)])
        assert site.tick(START + (TICKS + 1 + number) * FIVE).published
    maintained(site, 1)

    assert not [file for file in files(site) if "/_sqlrun/" in file and "/_change_data/" in file]


def test_checksums_of_spark_are_deleted_with_their_files(site: Site) -> None:
    """Hadoop writes one beside each file on a local disk; checksums of remaining files stay."""
    forget(site)
    made_long_ago(files(site))
    gone, kept = sorted(needless(site))[0], sorted(unquote(uri) for uri in DeltaTable(tables(site)[0]).file_uris())[0]
    change = Path(tables(site)[0]) / "_change_data" / "cdc-1.parquet"
    checksums = [Path(file).with_name(f".{Path(file).name}.crc") for file in (gone, kept, str(change))]
    change.parent.mkdir(exist_ok=True)
    for file in checksums:
        file.write_bytes(b"crc")

    maintained(site, 1)

    assert [file.exists() for file in checksums] == [False, True, False]


def forget(site: Site) -> None:
    """Write checkpoints of the newest versions, without removals older than thirty days."""
    age(site)
    for path in tables(site):
        delta_table.open_table(path).create_checkpoint()


def tables(site: Site) -> list[str]:
    return [f"{site.warehouse}/{table.path}" for table in tick_of(site.ledger).tables.values()]


def needless(site: Site) -> set[str]:
    """Return the files of the published tables that their newest version doesn't name."""
    live = {unquote(uri.removeprefix("file://")) for path in tables(site) for uri in DeltaTable(path).file_uris()}
    return {file for file in files(site) if "/_sqlrun/" not in file and "/_change_data/" not in file} - live


def made_long_ago(files: Iterable[str]) -> None:
    for file in files:
        os.utime(file, ((NOW - timedelta(days=90)).timestamp(),) * 2)


def test_files_whose_removal_the_log_has_forgotten_are_deleted(site: Site) -> None:
    """Delta's checkpoints keep a removal for thirty days; a later maintenance has to find its file itself."""
    forget(site)
    assert (found := needless(site))
    made_long_ago(files(site))
    before = site.everything()

    done = maintained(site, 1)

    assert done.files >= len(found)
    assert not found & files(site)
    assert site.everything() == before
    site.write("more.jsonl", [order("1-1", START, restaurant="r9002", version=3)])
    assert site.tick(START + (TICKS + 1) * FIVE).published
    assert differences(site, START + (TICKS + 1) * FIVE) == {}


def test_files_of_a_retained_tick_stay_although_the_log_has_dropped_them(site: Site) -> None:
    forget(site)
    made_long_ago(files(site))
    before = {tick: site.everything(tick) for tick in range(TICKS - 3, TICKS + 1)}
    states = {tick: tick_of(site.ledger, tick) for tick in before}

    maintained(site, 4)

    kept = [tick for tick in before if tick > TICKS - 3]
    assert {tick: site.everything(tick) for tick in kept} == {tick: before[tick] for tick in kept}
    assert {tick: states[tick].tables for tick in kept} == {tick: tick_of(site.ledger, tick).tables for tick in kept}


def test_files_removed_within_the_hour_stay_for_readers(site: Site) -> None:
    """Its files may be old even so."""
    made_long_ago(files(site))
    before = {file for file in files(site) if "/_change_data/" not in file}

    maintained(site, 1)

    assert before <= files(site)


def test_old_files_that_no_commit_named_are_deleted(site: Site) -> None:
    """A build that dies leaves them; a running one writes them before its commit."""
    path = Path(tables(site)[0])
    table = next(file for file in path.rglob("*.parquet") if "_delta_log" not in file.parts)
    old, young = path / "left behind.parquet", path / "in progress.parquet"
    elsewhere = path / "a table of its own"
    other = elsewhere / "old.parquet"
    (elsewhere / "_delta_log").mkdir(parents=True)
    for file in (old, young, other):
        shutil.copy(table, file)
    made_long_ago([str(old), str(other)])

    maintained(site, 1)

    assert not old.exists()
    assert young.exists() and other.exists()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a project whose profile maintains its tables every second tick."""
    root = copy_project(tmp_path)
    profile = root / "profiles" / "duckdb.yml"
    profile.write_text(f"{profile.read_text()}\nvacuum_every: 2\nkeep_ticks: 3\n")
    (root / "data" / "orders" / "0.jsonl").write_text(order("1", START) + "\n")
    monkeypatch.chdir(root)
    return root


def build(root: Path, minutes: int, fresh: str) -> str:
    (root / "data" / "orders" / f"{fresh}.jsonl").write_text(order(fresh, START) + "\n")
    at = START + timedelta(minutes=minutes)
    arguments = ["build", "--profile", "duckdb", "--skip-tests", "--as-of", f"{at:%Y-%m-%dT%H:%M}"]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.long
def test_a_build_maintains_tables_every_n_ticks(project: Path) -> None:
    outputs = [build(project, 5 * number, str(number)) for number in range(1, 7)]

    # The third tick publishes the second's tables again; so does the sixth the fifth's.
    assert ["Compacted " in text for text in outputs] == [False, True, False, True, False, True]
    assert "retained the newest 3 ticks" in outputs[1]
    published = Ledger(str(project / "warehouse" / "duckdb"), "").entries()
    assert len(published) <= 5


@pytest.mark.long
def test_failed_maintenance_fails_no_tick(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The failure is reported, readers see the tick, and the next build tries again."""

    def fails(*_: object) -> None:
        raise OSError("no space left")

    build(project, 5, "1")
    with monkeypatch.context() as patch:
        patch.setattr(delta_vacuum, "vacuum", fails)
        output = build(project, 10, "2")
    again = build(project, 15, "3")

    assert "The vacuum failed; the build tries again after the next tick: no space left" in output
    assert "Compacted " in again


def test_a_crash_before_the_tick_is_published_costs_nothing(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    age(site)
    before = site.everything()

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(site.ledger, "publish", dies)
        with pytest.raises(KeyboardInterrupt):
            maintained(site, 1)

    assert site.everything() == before
    with pytest.raises(UsageError, match="a build has died or failed"):
        maintained(site, 1)
    site.write("more.jsonl", [order("1-1", START, restaurant="r9002", version=3)])
    assert site.tick(START + (TICKS + 1) * FIVE).published
    assert differences(site, START + (TICKS + 1) * FIVE) == {}


def test_a_table_that_another_build_wrote_to_is_not_compacted(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other build's published version stays the newest, even if it came right before the compaction."""
    name, end, other = "stg_order_events", START + (TICKS + 1) * FIVE, Site(site.root, DuckDBEngine())
    site.write("more.jsonl", [order("1-1", START, restaurant="r9002", version=3)])
    real = delta_vacuum.compact

    def overtaken(path: str, *rest: Any) -> Any:
        if path.endswith(tick_of(site.ledger).tables[name].path):
            monkeypatch.setattr(delta_vacuum, "compact", real)
            assert other.tick(end).published
        return real(path, *rest)

    monkeypatch.setattr(delta_vacuum, "compact", overtaken)
    with pytest.raises(EngineError, match="another writer changed"):
        maintained(site, 1)

    now = tick_of(other.ledger).tables[name]
    assert delta_vacuum.compact is real
    assert delta_table.head(f"{site.warehouse}/{now.path}") == now.version
    assert differences(site, end) == {}


def test_before_the_first_tick_there_is_nothing_to_maintain(tmp_path: Path) -> None:
    site = Site(copy_project(tmp_path), DuckDBEngine())

    with pytest.raises(UsageError, match="nothing"):
        maintained(site, 1)
