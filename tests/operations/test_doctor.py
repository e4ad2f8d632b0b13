"""Damage is reported with advice; so are another project's warehouse and an edited ledger."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from deltalake import DeltaTable

import sqlrun
from sqlrun.cli.main import main
from sqlrun.engine_api import TableSpec
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.errors import EngineError, UsageError
from sqlrun.operations import maintenance, rollback
from sqlrun.publish import warehouse_format
from sqlrun.publish.ledger import COLUMNS, Ledger
from sqlrun.report.console import Console
from sqlrun.runtime import hadoop_checksums
from sqlrun.system_tables import receipts
from tests.run.test_machine import Stop, project, stopping
from tests.run.test_power_loss import NOW, lines, read
from tests.support.projects import Site
from tests.support.script import FIVE, START
from tests.support.whole import differences

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return two published ticks of the shops, built once."""
    folder = tmp_path_factory.mktemp("made") / "shops"
    site = Site(project(folder), DuckDBEngine())
    for number in range(2):
        site.write(f"{number}.jsonl", lines(number))
        assert site.tick(START + number * FIVE).published
    site.engine.close()
    (folder / "profiles").mkdir(exist_ok=True)
    (folder / "profiles" / "local.yml").write_text("engine: duckdb\nwarehouse: warehouse\n")
    return folder


@pytest.fixture
def site(made: Path, tmp_path: Path) -> Iterator[Site]:
    shutil.copytree(made, tmp_path / "shops")
    opened = Site(tmp_path / "shops", DuckDBEngine())
    yield opened
    opened.engine.close()


def doctor(site: Site, *options: str) -> Result:
    return CliRunner().invoke(main, ["--project-dir", str(site.root), "doctor", "--profile", "local", *options])


def state_of(site: Site, name: str) -> tuple[Path, int]:
    published = site.ledger.read().published
    assert published is not None
    state = published.tables[name]
    return Path(site.warehouse) / state.path, state.version


def refused(site: Site) -> str:
    """Return the message of a rejected build, which has written nothing."""
    before = read(site.warehouse)
    with pytest.raises(UsageError) as caught:
        site.tick(START + 2 * FIVE)
    assert read(site.warehouse) == before
    return str(caught.value)


# ---------------------------------------------------------------------------------------- owner of a warehouse


def mark(site: Site, **changes: Any) -> None:
    file = Path(warehouse_format.file_of(site.warehouse))
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


def test_a_build_marks_its_warehouse(site: Site) -> None:
    known = json.loads(Path(warehouse_format.file_of(site.warehouse)).read_text())

    assert known == {"format": 1, "project": site.prepared.project.name, "sqlrun": sqlrun.__version__}


def test_a_warehouse_without_a_mark_gets_one(site: Site) -> None:
    Path(warehouse_format.file_of(site.warehouse)).unlink()
    assert site.tick(START + 2 * FIVE).published

    assert Path(warehouse_format.file_of(site.warehouse)).exists()


COMMANDS = [
    ["build", "--skip-tests"], ["show", "mart_best"], ["ticks"], ["plan"], ["diff", "mart_best"], ["verify"], ["check"],
    ["views"],
    ["rollback", "--to", "1"], ["vacuum"], ["doctor"], ["doctor", "--repair"], ["clean", "--warehouse"],
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("change", [{"format": 2, "sqlrun": "0.9.0"}, {"project": "bakery"}], ids=["newer", "foreign"])
def test_every_command_rejects_another_projects_warehouse(
    site: Site, command: list[str], change: dict[str, Any]
) -> None:
    """Of a newer format, or of another project: nothing is written, not even the lock's file."""
    mark(site, **change)
    (Path(site.warehouse) / "_sqlrun" / "lock").unlink(missing_ok=True)
    before = read(site.warehouse)
    shown = CliRunner().invoke(main, ["--project-dir", str(site.root), *command, "--profile", "local"])
    if command == ["views"] and "project" in change:
        assert shown.exit_code == 0
        return

    assert shown.exit_code == 2
    words = ("a newer sqlrun", "Upgrade") if "format" in change else ("the project bakery", "profile")
    assert all(word in " ".join(shown.output.split()) for word in words), shown.output
    assert read(site.warehouse) == before


def test_python_reads_any_projects_warehouse_but_no_newer_one(site: Site) -> None:
    mark(site, project="bakery")
    assert sqlrun.published("mart_best", site.warehouse).num_rows

    mark(site, format=2)
    with pytest.raises(UsageError, match="format 2"):
        sqlrun.published("mart_best", site.warehouse)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": "one"}'])
def test_a_mark_that_cannot_be_read_is_refused(site: Site, text: str) -> None:
    Path(warehouse_format.file_of(site.warehouse)).write_text(text)

    assert "delete the file" in refused(site)


# ---------------------------------------------------------------------------------------- edited ledger


@pytest.mark.parametrize(
    ("where", "updates"),
    [
        ("kind = 'published' and tick = 2", {"tables": "replace(tables, '\"version\": 2', '\"version\": 1')"}),
        ("kind = 'published' and tick = 2", {"tables": "'{}'"}),
        ("kind = 'published' and tick = 2", {"tables": "'{\"'"}),
        ("kind = 'pinned' and tick = 2", {"tick": "7"}),
        ("kind = 'published' and tick = 1", {"as_of": "as_of + interval '1 hour'"}),
    ],
)
def test_an_edited_row_is_refused(site: Site, where: str, updates: dict[str, str]) -> None:
    DeltaTable(site.ledger.path).update(predicate=where, updates=updates)

    assert "another writer changed" in refused(site)
    shown = doctor(site)
    assert shown.exit_code == 1 and "another writer changed" in " ".join(shown.output.split())
    # Other writers' commits are rolled back; if they carry sqlrun's own mark, the hashes reveal them.
    assert doctor(site, "--repair").exit_code == 0
    assert site.tick(START + 2 * FIVE).published
    assert differences(site, START + 2 * FIVE) == {}


def test_an_edited_row_with_sqlruns_mark_is_refused(site: Site) -> None:
    delta_table.update_rows(site.ledger.path, "kind = 'published' and tick = 2", {"tables": "'{}'"})

    assert "another writer changed" in refused(site)
    assert doctor(site).exit_code == 2


@pytest.mark.parametrize("where", ["kind = 'pinned' and tick = 2", "kind = 'published' and tick = 1"])
def test_a_removed_row_is_refused(site: Site, where: str) -> None:
    delta_table.delete_rows(site.ledger.path, where)

    assert "as its previous hash" in refused(site)


def test_the_oldest_rows_may_go(site: Site) -> None:
    """Maintenance may delete old ticks: the predecessor of the first retained row is gone."""
    delta_table.delete_rows(site.ledger.path, "tick = 1")

    assert site.tick(START + 2 * FIVE).published


def test_readers_learn_of_an_edit(site: Site) -> None:
    DeltaTable(site.ledger.path).update(predicate="kind = 'published'", updates={"holder": "'me'"})

    with pytest.raises(UsageError, match="another writer"):
        sqlrun.published("mart_best", site.warehouse)


def test_a_ledger_without_hashes_is_refused(site: Site) -> None:
    shutil.rmtree(site.ledger.path)
    delta_table.create(TableSpec("ledger", site.ledger.path, COLUMNS[:-2]))

    assert "no column follows" in refused(site)


# ---------------------------------------------------------------------------------------- numbers


def test_a_number_is_not_used_twice_though_its_row_was_never_written(site: Site) -> None:
    """Killed before the pin: landed and loaded tables carry the number. Spark would reject it forever."""
    site.write("2.jsonl", lines(2))
    real = site.engine.write

    def writing(request: Any) -> Any:
        real(request)
        raise Stop

    site.engine.write = writing  # type: ignore[method-assign]
    with suppress(Stop):
        site.tick(START + 2 * FIVE)
    site.engine.write = real  # type: ignore[method-assign]
    log = Path(site.ledger.path) / "_delta_log"
    sorted(log.glob("*.json"))[-1].unlink()  # the row `pinned` of tick 3
    assert site.ledger.read().last_tick == 2

    assert site.tick(START + 2 * FIVE).tick == 4
    assert differences(site, START + 2 * FIVE) == {}


# ---------------------------------------------------------------------------------------- published data


@pytest.mark.parametrize("name", ["mart_best", "fct_slots", "stg_lines"])
@pytest.mark.parametrize("damage", ["entry empty", "entry cut", "entry gone", "data cut", "data gone"])
def test_a_damaged_published_table_is_refused_and_can_be_rebuilt(site: Site, name: str, damage: str) -> None:
    folder, version = state_of(site, name)
    entry = folder / "_delta_log" / f"{version:020d}.json"
    added = [json.loads(line)["add"]["path"] for line in entry.read_text().splitlines() if '"add"' in line[:6]]
    file = entry if damage.startswith("entry") else folder / added[0]
    match damage.split()[1]:
        case "gone":
            file.unlink()
        case "empty":
            file.write_bytes(b"")
        case _:
            file.write_bytes(file.read_bytes()[:-20])

    words = refused(site)
    assert file.name in words and name in words and f"--full-refresh --select {name}+" in words
    shown = doctor(site, "--repair")
    assert shown.exit_code == 1
    assert file.name in shown.output and "sqlrun rollback --to 1" in " ".join(shown.output.split())
    below = ["stg_lines", "stg_sales", "fct_slots", "mart_hour", "mart_best"]
    chosen = tuple(below if name == "stg_lines" else [name] + (["mart_hour"] if name == "fct_slots" else []))
    assert site.tick(START + 2 * FIVE, chosen, refresh=True).published
    assert site.tick(START + 2 * FIVE).published
    assert differences(site, START + 2 * FIVE) == {}
    assert len(site.rows("stg_lines")) == 6


def test_versions_of_an_old_tick_are_never_moved(site: Site) -> None:
    """After a rollback they are newer than the published ones, and yet tick 2 shows them."""
    folder, version = state_of(site, "mart_best")
    rollback.roll_back(site.ledger, 1, NOW, Console(quiet=True))
    (folder / "_delta_log" / f"{version:020d}.json").write_bytes(b"")

    assert "--full-refresh --select mart_best+" in refused(site)


def test_a_truncated_newest_row_of_the_ledger_is_dropped(site: Site) -> None:
    log = Path(site.ledger.path) / "_delta_log"
    newest = sorted(log.glob("*.json"))[-1]
    newest.write_text(newest.read_text()[:100])
    with pytest.raises(EngineError, match="sqlrun doctor"):
        sqlrun.published("mart_best", site.warehouse)

    shown = doctor(site)
    assert shown.exit_code == 1 and newest.name in shown.output and newest.exists()
    assert doctor(site, "--repair").exit_code == 0
    assert site.ledger.read().published is not None
    assert site.tick(START + 2 * FIVE).tick == 3
    assert differences(site, START + 2 * FIVE) == {}


def test_a_truncated_older_row_of_the_ledger_is_refused(site: Site) -> None:
    log = Path(site.ledger.path) / "_delta_log"
    sorted(log.glob("*.json"))[1].write_text("")

    assert "backup" in refused(site)


# ---------------------------------------------------------------------------------------- landing


def batches(site: Site) -> Path:
    return next((Path(site.warehouse) / "_sqlrun" / "checkpoints").rglob("batches"))


@pytest.mark.parametrize("damage", ["torn", "gone"])
def test_a_corrupt_older_plan_is_refused(site: Site, damage: str) -> None:
    """Its files would land twice; they did, when only the newest plan was checked."""
    plan = batches(site) / "1.json"
    if damage == "gone":
        plan.unlink()
    else:
        plan.write_text(plan.read_text()[:-9])

    assert "--full-refresh --select stg_lines+" in refused(site)


def test_more_than_one_batch_may_be_lost(site: Site) -> None:
    """Two ticks were interrupted, and the table has lost both their batches. Only the newest one was replayed."""
    folder, version = state_of(site, "stg_lines")
    for number in (2, 3):
        site.write(f"{number}.jsonl", lines(number))
        with suppress(Stop), stopping(Ledger, "publish", 1, after=False):
            site.tick(START + number * FIVE)
    (folder / "_delta_log" / f"{version + 1:020d}.json").write_bytes(b"")

    assert site.tick(START + 4 * FIVE).published
    assert len(site.rows("stg_lines")) == 12
    assert differences(site, START + 4 * FIVE) == {}


# ---------------------------------------------------------------------------------------- the command


def test_an_intact_warehouse_passes(site: Site) -> None:
    """Maintenance, rollback and an interrupted tick leave no damage."""
    assert doctor(site).exit_code == 0, doctor(site).output
    with suppress(Stop), stopping(Ledger, "publish", 1, after=False):
        site.tick(START + 2 * FIVE)
    assert doctor(site).exit_code == 0
    receipts.write(site.warehouse, site.tick(START + 2 * FIVE), "duckdb", NOW)
    rollback.roll_back(site.ledger, 1, NOW, Console(quiet=True))
    assert doctor(site).exit_code == 0
    site.tick(START + 3 * FIVE)
    maintenance.vacuum(site.ledger, 1, NOW, lambda _: None)
    shown = doctor(site)
    assert shown.exit_code == 0, shown.output
    assert "All are intact." in shown.output


def test_damage_after_a_crash_is_reported_and_moved_on_request(site: Site) -> None:
    folder, version = state_of(site, "mart_best")
    corrupt = folder / "_delta_log" / f"{version + 1:020d}.json"
    corrupt.write_bytes(b"")
    loose = folder / "_delta_log" / "_commit_3f.json.tmp"
    loose.write_bytes(b"{")

    shown = doctor(site)
    assert shown.exit_code == 1
    assert corrupt.name in shown.output and loose.name in shown.output and corrupt.exists()
    assert doctor(site, "--repair").exit_code == 0
    assert not corrupt.exists() and not loose.exists()
    moved = (Path(site.warehouse) / "_sqlrun" / "set_aside").rglob("*")
    assert {corrupt.name, loose.name} <= {file.name for file in moved}
    assert doctor(site).exit_code == 0


def test_there_is_no_warehouse_yet(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made, tmp_path / "shops", ignore=shutil.ignore_patterns("warehouse"))
    shown = CliRunner().invoke(main, ["--project-dir", str(tmp_path / "shops"), "doctor", "--profile", "local"])

    assert shown.exit_code == 2 and "sqlrun build" in shown.output
    assert not (tmp_path / "shops" / "warehouse").exists()


def test_a_build_reports_files_that_it_moved(site: Site) -> None:
    folder, version = state_of(site, "mart_best")
    (folder / "_delta_log" / f"{version + 1:020d}.json").write_bytes(b"")
    shown = CliRunner().invoke(
        main, ["--project-dir", str(site.root), "build", "--profile", "local", "--as-of", "2026-03-10T12:10"]
    )

    assert shown.exit_code == 0, shown.output
    assert "as after a power failure" in " ".join(shown.output.split())


def test_a_pointer_that_delta_rs_rewrote_after_spark_is_intact(site: Site) -> None:
    """Spark leaves a checksum of the former text beside it; this isn't reported as damage."""
    published = site.ledger.read().published
    assert published is not None
    path = f"{site.warehouse}/{published.tables['stg_sales'].path}"
    DeltaTable(path).create_checkpoint()
    pointer = Path(path) / "_delta_log" / "_last_checkpoint"
    checksum = pointer.with_name("._last_checkpoint.crc")
    text = pointer.read_text()
    checksum.write_bytes(hadoop_checksums.checksum_of(b'{"version": 0}'))
    assert "All are intact" in doctor(site).output
    assert checksum.exists()

    site.write("2.jsonl", lines(2))
    shown = CliRunner().invoke(
        main, ["--project-dir", str(site.root), "build", "--profile", "local", "--as-of", "2026-03-10T12:10"]
    )

    assert shown.exit_code == 0, shown.output
    assert "power failure" not in " ".join(shown.output.split())
    assert pointer.read_text() == text
    assert not checksum.exists()
    assert not (Path(site.warehouse) / "_sqlrun" / "set_aside").exists()
